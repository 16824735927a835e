"""The parsers of all commands: help in one layout, and errors in one line.

Errors are raised as UsageError, so that one place prints them and exits. Each names the ``--help``
of the command that refused the words, and the flag or command that was probably meant.
"""

from __future__ import annotations

import argparse
import re
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any, Final, NoReturn

from kubesched.errors import UsageError

#: Lines that begin with this are laid out by hand: examples.
_LAID_OUT: Final = "  "
_EXAMPLE: Final = re.compile(r"  (?P<command>\S.*?)(?: {2,}(?P<explained>\S.*))?")
#: Ends a line of a shell that goes on.
_CONTINUED: Final = " \\"
_MAX_WIDTH: Final = 100


class Help(argparse.HelpFormatter):
    """Wraps text to the terminal, keeps the lines of examples, and shows every default."""

    def __init__(self, prog: str) -> None:
        width = min(shutil.get_terminal_size().columns - 2, _MAX_WIDTH)
        super().__init__(prog, max_help_position=32, width=width)

    def add_argument(self, action: argparse.Action) -> None:
        """Count the indentation of commands, which argparse forgets."""
        super().add_argument(action)
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 (it has no public name)
            self._action_max_length += self._indent_increment

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines = text.splitlines()
        if not any(line.startswith(_LAID_OUT) for line in lines):
            return super()._fill_text(text, width, indent)
        if any(len(line) > width for line in lines):
            lines = [each for line in lines for each in _broken(line, width)]
        return "".join(f"{indent}{line}\n" for line in lines)

    def _get_help_string(self, action: argparse.Action) -> str | None:
        shown = action.help
        if shown is None or "(default" in shown or not _has_default(action):
            return shown
        return f"{shown} (default: %(default)s)"


def _broken(line: str, width: int) -> Iterator[str]:
    """Put what an example does below it, and break an example that is too long by itself."""
    example = _EXAMPLE.fullmatch(line)
    if example is None:
        yield from [line] if line.startswith(_LAID_OUT) else textwrap.wrap(line, width)
        return
    command, explained = example["command"], example["explained"]
    if len(_LAID_OUT) + len(command) > width:
        parts = textwrap.wrap(
            command,
            width - len(_LAID_OUT + _CONTINUED),
            subsequent_indent=_LAID_OUT * 2,
            break_long_words=False,
            break_on_hyphens=False,
        )
        command = f"{_CONTINUED}\n{_LAID_OUT}".join(parts)
    yield _LAID_OUT + command
    if explained:
        yield _LAID_OUT * 3 + explained


def _has_default(action: argparse.Action) -> bool:
    default = action.default
    is_value = isinstance(default, str | int | float) and not isinstance(default, bool)
    return bool(action.option_strings) and is_value and default not in ("", argparse.SUPPRESS)


class Parser(argparse.ArgumentParser):
    """A parser that raises UsageError."""

    #: exit code for an invalid command line
    failure_code = UsageError.exit_code

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 (those of ArgumentParser)
        super().__init__(**{"formatter_class": Help, "allow_abbrev": False, **options})

    def error(self, message: str) -> NoReturn:
        """Reject the command line."""
        refused = UsageError(f"{message}; see '{self.prog} --help'")
        refused.exit_code = self.failure_code
        raise refused

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse, and reject unknown arguments here, where the known ones can be suggested."""
        parsed, left = super().parse_known_args(args, namespace)
        if left:
            flags = [flag for flag in self._option_string_actions if flag.startswith("--")]
            meant = (similar(each.partition("=")[0], flags) for each in left)
            hint = next(filter(None, meant), "")
            self.error(f"unrecognized arguments: {' '.join(left)}{hint}")
        return parsed, left

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is None or value in action.choices:
            return
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 (it has no public name)
            hint = similar(str(value), action.choices)
            listed = "" if hint else f"; there are {', '.join(action.choices)}"
            raise argparse.ArgumentError(None, f"unknown command {value!r}{hint}{listed}")
        super()._check_value(action, value)


def similar(word: str, known: Iterable[str]) -> str:
    """Return `` (did you mean …?)`` for a misspelled word, "" if none of the known is close."""
    found = get_close_matches(word, known, n=1, cutoff=0.7)
    return f" (did you mean {found[0]!r}?)" if found else ""


def add_output(parser: argparse.ArgumentParser, first: str, *others: str) -> None:
    """Add the flag of the output format; the first one is the default."""
    parser.add_argument(
        "-o", "--output", choices=(first, *others), default=first, help="format of the output"
    )


def positive(text: str) -> int:
    """Parse a number of at least 1."""
    return _at_least(1, text)


def not_negative(text: str) -> int:
    """Parse a number of at least 0."""
    return _at_least(0, text)


def port(text: str) -> int:
    """Parse a port number, 0 for any free one."""
    number = _at_least(0, text)
    if number > 65535:
        raise argparse.ArgumentTypeError(f"{number}: a port is a number from 0 to 65535")
    return number


def _at_least(least: int, text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if number < least:
        raise argparse.ArgumentTypeError(f"{number} is too small, it must be at least {least}")
    return number
