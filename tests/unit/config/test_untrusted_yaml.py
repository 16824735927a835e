"""YAML that anybody may have written: values or a YAMLError, never anything else."""

from __future__ import annotations

import contextlib
import time

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.config import untrusted_yaml
from kubesched.config.untrusted_yaml import MAX_DEPTH

TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep"
#: Deep enough to end the process of whoever gives it to libyaml's composer.
ABYSS = 100_000


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" * ABYSS, id="open lists"),
        pytest.param("a: " + "[" * ABYSS + "]" * ABYSS, id="lists"),
        pytest.param("{a: " * ABYSS, id="open maps"),
        pytest.param('{"a":' * ABYSS + "1" + "}" * ABYSS, id="JSON"),
        pytest.param("- " * ABYSS, id="lists on a line"),
        pytest.param("? " * ABYSS, id="keys on a line"),
        pytest.param("".join(" " * level + "a:\n" for level in range(2_000)), id="indented"),
        pytest.param("a:\n" + "".join(" " * n + "-\n" for n in range(2_000)), id="indented lists"),
        pytest.param("--- 1\n--- " + "[" * ABYSS, id="in the second document"),
    ],
)
def test_a_bottomless_text_is_refused(text: str) -> None:
    with pytest.raises(yaml.YAMLError, match=f"line [0-9]+: {TOO_DEEP}"):
        untrusted_yaml.load_all(text)


def test_what_is_just_deep_enough() -> None:
    def nested(depth: int) -> str:
        return "[" * depth + "1" + "]" * depth

    value = untrusted_yaml.load(nested(MAX_DEPTH))
    for _ in range(MAX_DEPTH):
        (value,) = value
    assert value == 1
    with pytest.raises(yaml.YAMLError, match=TOO_DEEP):
        untrusted_yaml.load(nested(MAX_DEPTH + 1))


def test_many_brackets_that_are_not_deep() -> None:
    text = "[" + "[{a: 1}]," * 5_000 + "]"
    assert untrusted_yaml.load(text) == [[{"a": 1}]] * 5_000
    assert untrusted_yaml.load(f"a: {'[' * 5_000!r}") == {"a": "[" * 5_000}


def _chained(links: int) -> str:
    lines = [f"a{number}: &a{number} [*a{number - 1}]\n" for number in range(1, links)]
    return "".join(("a0: &a0 [x]\n", *lines))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("a: &a [*a]", TOO_DEEP, id="a list in itself"),
        pytest.param("a: &a {b: *a}", TOO_DEEP, id="a map in itself"),
        pytest.param(_chained(3_000), TOO_DEEP, id="a chain"),
        pytest.param(
            "a0: &a0 [[]]\n"
            + "".join(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 30)),
            "excessive aliasing",
            id="a billion laughs",
        ),
        pytest.param(
            "a0: &a0 {x: 1}\n"
            + "".join(
                f"a{n}: &a{n} {{<<: [{','.join([f'*a{n - 1}'] * 6)}]}}\n" for n in range(1, 30)
            ),
            "excessive aliasing",
            id="a billion merges",
        ),
    ],
)
def test_what_aliases_can_do(text: str, problem: str) -> None:
    began = time.monotonic()
    with pytest.raises(yaml.YAMLError, match=problem):
        untrusted_yaml.load(text)
    assert time.monotonic() - began < 10


def test_aliases_are_fine() -> None:
    assert untrusted_yaml.load("a: &a [1]\nb: *a\nc: [*a, *a]") == {
        "a": [1],
        "b": [1],
        "c": [[1], [1]],
    }


@pytest.mark.parametrize(
    "text",
    [
        "!!int x",
        "!!float x",
        "!!bool x",
        "!!timestamp soon",
        "!!int ''",
        "0b_",
        "1" * 5_000,
        "!!python/name:os.system x",
        "a\ud800",
        "a: b: c",
        "{[a]: b}",
        "\x00",
    ],
)
def test_what_a_tag_promises(text: str) -> None:
    with pytest.raises(yaml.YAMLError):
        untrusted_yaml.load(text)


def test_a_time_is_a_text() -> None:
    """YAML 1.1 takes it for a number to the base 60, and PyYAML minutes for a long one."""
    assert untrusted_yaml.load("[12:30, -1:30.5, 190:20:30]") == ["12:30", "-1:30.5", "190:20:30"]
    assert untrusted_yaml.load("[1, -2, 0x10, 1.5]") == [1, -2, 16, 1.5]
    long = "1" + ":11" * 300_000
    assert untrusted_yaml.load(f"a: {long}") == {"a": long}
    with pytest.raises(yaml.YAMLError, match="is not a number"):
        untrusted_yaml.load(f"a: !!int {long}")


def test_a_date_is_a_text() -> None:
    assert untrusted_yaml.load("a: 2026-99-99") == {"a": "2026-99-99"}


def test_one_document() -> None:
    assert untrusted_yaml.load("") is None
    assert untrusted_yaml.load_all("1\n---\n2") == [1, 2]
    with pytest.raises(yaml.YAMLError, match="another document"):
        untrusted_yaml.load("1\n---\n2")


#: Pieces of which anything may be built, right or wrong.
PIECES = st.sampled_from(
    [*"[]{},:-?&*!|>'\"%@` \n\t#=~.a1", "- ", ": ", "? ", "&a ", "*a", "<<: ", "!!", "!!int ",
     "!!set ", "!!omap ", "!!binary ", "---\n", "...\n", "0x", "1e9", "\\", "\x00", "\ud800", "é"]
)  # fmt: skip


@settings(deadline=None, max_examples=300)
@given(st.lists(PIECES, max_size=40).map("".join) | st.text(max_size=60))
def test_whatever_the_text(text: str) -> None:
    with contextlib.suppress(yaml.YAMLError):
        untrusted_yaml.load_all(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: [b", "line 2, column 1: did not find expected ',' or ']', while parsing a flow"),
        ("a: b: c", "line 1, column 5: mapping values are not allowed in this context"),
        ("a: \x00", "character 4: control characters are not allowed"),
        ("a: !!int x", "a value that is not what its tag says"),
        ("a: !thing x", "line 1, column 4: could not determine a constructor for the tag"),
    ],
)
def test_a_problem_is_one_line_without_the_parsers_own_names(text: str, problem: str) -> None:
    with pytest.raises(yaml.YAMLError) as refused:
        untrusted_yaml.load_all(text)

    said = untrusted_yaml.problem(refused.value)
    assert said.startswith(problem)
    assert "<" not in said
    assert "\n" not in said
