"""Parsers: one layout of help, and errors that name the command and what was meant."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import pytest

from kubesched.cli.kubesched import make_parser
from kubesched.cli.parsing import Parser, add_output, positive
from kubesched.errors import UsageError


@pytest.fixture
def parser() -> Parser:
    parser = Parser(prog="tool", description="word " * 60, epilog="examples:\n  tool   run  x\n")
    kinds = parser.add_subparsers(metavar="COMMAND", required=True)
    run = kinds.add_parser("run", help="run it")
    run.add_argument("--count", type=positive, default=3, metavar="N", help="how many")
    run.add_argument("--port", type=int, default=0, help="port (default: any free one)")
    run.add_argument("--name", default="", help="a name")
    run.add_argument("--quiet", action="store_true", help="say nothing")
    add_output(run, "table", "json")
    kinds.add_parser("a-long-command", help="another")
    return parser


def refused(parser: Parser, *words: str) -> str:
    with pytest.raises(UsageError) as caught:
        parser.parse_args(words)
    return str(caught.value)


def test_a_misspelled_command_is_suggested(parser: Parser) -> None:
    assert refused(parser, "runn") == (
        "unknown command 'runn' (did you mean 'run'?); see 'tool --help'"
    )


def test_commands_are_listed_if_none_is_close(parser: Parser) -> None:
    assert refused(parser, "xyz") == (
        "unknown command 'xyz'; there are run, a-long-command; see 'tool --help'"
    )


@pytest.mark.parametrize("flag", ["--cuont=3", "--cuont"])
def test_a_misspelled_flag_is_suggested_with_the_help_of_its_command(
    parser: Parser, flag: str
) -> None:
    assert refused(parser, "run", flag) == (
        f"unrecognized arguments: {flag} (did you mean '--count'?); see 'tool run --help'"
    )


def test_flags_are_not_abbreviated(parser: Parser) -> None:
    assert "unrecognized arguments: --cou" in refused(parser, "run", "--cou", "3")


def test_a_bad_value_names_the_help_of_its_command(parser: Parser) -> None:
    assert refused(parser, "run", "--count=0") == (
        "argument --count: 0 is too small, it must be at least 1; see 'tool run --help'"
    )


def test_defaults_are_shown_once(
    parser: Parser, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    with pytest.raises(SystemExit):
        parser.parse_args(["run", "--help"])
    said = capsys.readouterr().out
    assert "how many (default: 3)" in said
    assert "port (default: any free one)\n" in said
    assert "a name\n" in said
    assert "say nothing\n" in said
    assert "format of the output (default: table)" in said


def test_text_is_wrapped_and_examples_are_not(
    parser: Parser, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        parser.parse_args(["--help"])
    said = capsys.readouterr().out
    assert all(len(line) <= 80 for line in said.splitlines())
    assert "  tool   run  x\n" in said
    assert "    a-long-command  another\n" in said


EXAMPLES = """\
examples:
  tool run             what it does
  tool run --flag=x {long}   what it does then
"""


def test_examples_that_are_too_wide_are_explained_below(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    words = " ".join(f"--flag={number}" for number in range(9))
    with pytest.raises(SystemExit):
        Parser(prog="tool", epilog=EXAMPLES.format(long=words)).parse_args(["--help"])

    assert capsys.readouterr().out.endswith("""\
examples:
  tool run
      what it does
  tool run --flag=x --flag=0 --flag=1 --flag=2 --flag=3 --flag=4 --flag=5 \\
      --flag=6 --flag=7 --flag=8
      what it does then
""")


def commands(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from commands(each)


@pytest.mark.parametrize("command", [*commands(make_parser())], ids=lambda command: command.prog)
def test_every_flag_of_every_command_has_help(command: argparse.ArgumentParser) -> None:
    silent = [
        action.option_strings or action.dest
        for action in command._actions
        if not action.help and not isinstance(action, argparse._SubParsersAction)
    ]
    assert silent == []


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("command", [*commands(make_parser())], ids=lambda command: command.prog)
def test_the_help_of_every_command_fits_the_terminal(
    command: argparse.ArgumentParser, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))

    lines = command.format_help().splitlines()

    assert [line for line in lines if len(line) > columns] == []
    assert [line for line in lines if line != line.rstrip()] == []


@pytest.mark.parametrize("command", [*commands(make_parser())], ids=lambda command: command.prog)
def test_every_command_refuses_with_its_own_help(command: argparse.ArgumentParser) -> None:
    with pytest.raises(UsageError) as refused:
        command.parse_args(["--no-such-flag-anywhere"])

    assert str(refused.value).endswith(f"; see '{command.prog} --help'")
