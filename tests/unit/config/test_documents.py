"""Text to JSON tree: what YAML's scalars, keys and structures become."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.config import documents
from kubesched.config.documents import Members, NumberText
from kubesched.errors import ConfigError


def value_of(text: str) -> Any:
    """The value of the key ``v`` in a YAML document that says ``v: <text>``."""
    return documents.plain(documents.parse(f"v: {text}\n").root)["v"]


@pytest.mark.parametrize("text", ["y", "Y", "yes", "Yes", "YES", "true", "True", "on", "ON"])
def test_words_for_true(text: str) -> None:
    assert value_of(text) is True


@pytest.mark.parametrize("text", ["n", "N", "no", "No", "NO", "false", "FALSE", "off", "Off"])
def test_words_for_false(text: str) -> None:
    assert value_of(text) is False


@pytest.mark.parametrize("text", ["", "~", "null", "Null", "NULL", "!!null ''"])
def test_words_for_nothing(text: str) -> None:
    assert value_of(text) is None


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("12", 12),
        ("-12", -12),
        ("+12", 12),
        ("0x1F", 31),
        ("0b101", 5),
        ("0o17", 15),
        ("017", 15),
        ("08", 8),
        ("1_000", 1000),
        ("9223372036854775807", 2**63 - 1),
        ("18446744073709551615", 2**64 - 1),
        ("1.5", 1.5),
        (".5", 0.5),
        ("2.0", 2),
        ("1e3", 1000),
        ("1.5e-7", 1.5e-7),
        ("!!float 3", 3),
        ("!!int '7'", 7),
    ],
)
def test_numbers(text: str, want: float) -> None:
    value = value_of(text)

    assert value == want
    assert type(value) is type(want)


@pytest.mark.parametrize(
    "text",
    [
        "abc",
        "1:30",
        "0xzz",
        "1.2.3",
        "2001-01-01",
        "tRue",
        "nO",
        "-a",
        "+",
        ".",
        "1__a",
        "NaN",
    ],
)
def test_what_looks_odd_is_text(text: str) -> None:
    assert value_of(text) == text


@pytest.mark.parametrize("text", ["'12'", '"true"', "!!str 12", "!custom 12"])
def test_quoted_and_tagged_scalars_are_text(text: str) -> None:
    assert isinstance(value_of(text), str)


def test_keys_become_text_and_are_sorted() -> None:
    tree = documents.parse("b: 1\n2: 2\nyes: 3\n1.5: 4\n").root

    assert tree == Members([("1.5", 4), ("2", 2), ("b", 1), ("true", 3)])


def test_json_keeps_order_duplicates_and_the_text_of_numbers() -> None:
    tree = documents.parse(' {"b": 1.0, "a": [true, null], "b": 2}').root

    assert tree == Members([("b", NumberText("1.0")), ("a", [True, None]), ("b", 2)])


def test_duplicate_keys_are_reported_with_the_line_of_the_value() -> None:
    document = documents.parse("a: 1\nb:\n  c: 1\n  c: 2\na: 2\n")

    assert document.yaml_errors == (
        'line 4: key "c" already set in map',
        'line 5: key "a" already set in map',
    )


def test_merge_keys_and_aliases() -> None:
    text = "base: &b {x: 1, w: 2}\nother: &o {w: 3}\nmerged:\n  <<: [*b, *o]\n  z: 4\nalias: *b\n"

    tree = documents.plain(documents.parse(text).root)

    assert tree["merged"] == {"x": 1, "w": 2, "z": 4}
    assert tree["alias"] == {"x": 1, "w": 2}


def test_only_the_first_document_is_read() -> None:
    assert documents.plain(documents.parse("a: 1\n---\n]]\n").root) == {"a": 1}


def test_an_empty_text_is_null() -> None:
    assert documents.parse("").root is None
    assert documents.parse("# nothing\n").root is None


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("a: b: c", "yaml: mapping values are not allowed in this context"),
        ("x: 1\na: b: c", "yaml: line 2: mapping values are not allowed in this context"),
        ("x: 1\na: [1, 2\n", "yaml: line 2: did not find expected ',' or ']'"),
        ("x:\n\t- a\n", "yaml: line 2: found character that cannot start any token"),
        ("a: *nowhere\n", "yaml: found undefined alias"),
        ("a: &x [*x]\n", "yaml: anchor value contains itself"),
        ("a: &x {<<: *x}\n", "yaml: anchor value contains itself"),
        ("a: {<<: 5}\n", "yaml: map merge requires map or sequence of maps as the value"),
        ("? [a]\n: b\n", "yaml: invalid map key: it has to be a scalar"),
        ("null: 1\n", "unsupported map key of type: %!s(<nil>), key: <nil>"),
        ("a: .inf\n", "json: unsupported value: +Inf"),
        ("a: !!int abc\n", "yaml: cannot decode !!str `abc` as a !!int"),
    ],
)
def test_yaml_that_cannot_be_read(text: str, want: str) -> None:
    with pytest.raises(ConfigError) as caught:
        documents.parse(text)

    assert str(caught.value) == want


@pytest.mark.parametrize("text", ['{"a": }', '{"a": 1', "{'a': 1}", '{"a": NaN}', '{"a": 1} x'])
def test_json_that_cannot_be_read(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^couldn't get version/kind; json parse error: "):
        documents.parse(text)


def test_maps_that_merge_each_other_are_counted_even_if_they_are_empty() -> None:
    lines = ["a0: &a0 {}"]
    lines += [f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 6)}]}}" for i in range(1, 20)]

    with pytest.raises(ConfigError, match="excessive aliasing"):
        documents.parse("\n".join(lines))


def test_keys_that_only_their_text_makes_equal() -> None:
    tree = documents.parse("1: {a: b}\n'1': 2\n").root

    assert sorted(map(str, (key for key, _ in tree))) == ["1", "1"]


def test_a_small_text_that_unfolds_to_a_huge_one_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]

    with pytest.raises(ConfigError, match="excessive aliasing"):
        documents.parse("\n".join(lines))


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)


@given(JSON_VALUES)
def test_plain_is_the_opposite_of_tree(value: object) -> None:
    assert documents.plain(documents.tree(value)) == value
