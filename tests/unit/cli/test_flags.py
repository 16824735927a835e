"""Command lines: how they are read, and what is said about those that cannot be."""

from __future__ import annotations

import pytest

from kubesched.cli import flag_kinds as kinds
from kubesched.cli.flags import Flag, FlagSet, Group, ParsedFlags
from kubesched.errors import UsageError

FLAGS = FlagSet(
    [
        Group(
            "some",
            (
                Flag("name", kinds.STRING, "none", "A name."),
                Flag("long-name", kinds.STRING, "", "A longer name."),
                Flag("on", kinds.BOOL, False, "A switch."),
                Flag("off", kinds.BOOL, True, "Another switch."),
                Flag("v", kinds.LEVEL, 0, "A level.", shorthand="v"),
                Flag("quiet", kinds.BOOL, False, "A switch with a letter.", shorthand="q"),
                Flag("list", kinds.STRINGS, ("a", "b"), "A list."),
            ),
        )
    ]
)


def parse(*arguments: str) -> ParsedFlags:
    return FLAGS.parse(arguments)


# --- right ------------------------------------------------------------------------------------


def test_what_is_not_given_has_its_default() -> None:
    flags = parse()

    assert flags.get("name", str) == "none"
    assert flags.get("off", bool)
    assert flags.get("list", tuple) == ("a", "b")
    assert not flags.is_given("name")
    assert list(flags.given()) == []


@pytest.mark.parametrize("arguments", [["--name=x"], ["--name", "x"], ["--name=a", "--name=x"]])
def test_a_value_is_attached_or_follows_and_the_last_one_counts(arguments: list[str]) -> None:
    flags = parse(*arguments)

    assert flags.get("name", str) == "x"
    assert flags.is_given("name")


@pytest.mark.parametrize(
    ("argument", "value"), [("--name=", ""), ("--name=a=b", "a=b"), ("--name=--on", "--on")]
)
def test_an_attached_value_is_all_behind_the_first_equals_sign(argument: str, value: str) -> None:
    assert parse(argument).get("name", str) == value


def test_a_value_that_follows_may_look_like_a_flag() -> None:
    flags = parse("--name", "--on")

    assert flags.get("name", str) == "--on"
    assert not flags.is_given("on")


def test_underscores_are_dashes_in_names_but_not_in_values() -> None:
    assert parse("--long_name=a_b").get("long-name", str) == "a_b"


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        (["--on"], True),
        (["--on=true"], True),
        (["--on=T"], True),
        (["--on=1"], True),
        (["--on", "--on=false"], False),
        (["--on=0"], False),
    ],
)
def test_a_switch_may_stand_alone(arguments: list[str], *, value: bool) -> None:
    assert parse(*arguments).get("on", bool) is value


def test_a_switch_takes_nothing_that_follows() -> None:
    assert parse("--off", "false").arguments == ("false",)


@pytest.mark.parametrize("arguments", [["-v=2"], ["-v2"], ["-v", "2"], ["--v=2"], ["--v", "2"]])
def test_a_letter(arguments: list[str]) -> None:
    assert parse(*arguments).get("v", int) == 2


def test_letters_share_a_dash() -> None:
    flags = parse("-qv3")

    assert flags.get("quiet", bool)
    assert flags.get("v", int) == 3


def test_a_list_given_replaces_the_default_and_then_grows() -> None:
    assert parse("--list=c").get("list", tuple) == ("c",)
    assert parse("--list=c,d", "--list=e").get("list", tuple) == ("c", "d", "e")
    assert parse("--list=").get("list", tuple) == ()


def test_dashes_end_the_flags() -> None:
    flags = parse("a", "--on", "--", "--name=x", "--")

    assert flags.arguments == ("a", "--name=x", "--")
    assert not flags.is_given("name")


def test_texts_of_all_flags_in_order() -> None:
    assert parse('--list=x,"y,z"', "--on", "-v2").texts() == {
        "list": '[x,"y,z"]',
        "long-name": "",
        "name": "none",
        "off": "true",
        "on": "true",
        "quiet": "false",
        "v": "2",
    }


def test_asking_for_the_wrong_type_is_a_bug() -> None:
    with pytest.raises(TypeError, match="--name is not of type int"):
        parse().get("name", int)


# --- wrong ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--nam=x"], "unknown flag: --nam"),
        (["--NAME=x"], "unknown flag: --NAME"),
        (["--no-such", "x"], "unknown flag: --no-such"),
        (["-x"], "unknown shorthand flag: 'x' in -x"),
        (["-qx"], "unknown shorthand flag: 'x' in -x"),
        (["-name"], "unknown shorthand flag: 'n' in -name"),
        (["-'"], "unknown shorthand flag: '\\'' in -'"),
        (["--=x"], "bad flag syntax: --=x"),
        (["---name"], "bad flag syntax: ---name"),
        (["--name"], "flag needs an argument: --name"),
        (["--long_name"], "flag needs an argument: --long_name"),
        (["-v"], "flag needs an argument: 'v' in -v"),
        (["-qv"], "flag needs an argument: 'v' in -v"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_read(arguments: list[str], said: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse(*arguments)

    assert str(refused.value) == said


@pytest.mark.parametrize(
    ("argument", "flag", "text", "function"),
    [
        ("--on=maybe", "--on", "maybe", "ParseBool"),
        ("-v=-1", "-v, --v", "-1", "ParseUint"),
        ("-v=", "-v, --v", "=", "ParseUint"),
        ('--v="', "-v, --v", '\\"', "ParseUint"),
    ],
)
def test_what_cannot_be_the_value(argument: str, flag: str, text: str, function: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse(argument)

    why = f'strconv.{function}: parsing "{text}": invalid syntax'
    assert str(refused.value) == f'invalid argument "{text}" for "{flag}" flag: {why}'


def test_the_first_mistake_counts() -> None:
    with pytest.raises(UsageError, match="--first"):
        parse("--first", "--second")
