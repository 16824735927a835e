"""The syntax of patterns, and its errors."""

from __future__ import annotations

import pytest

from kubesched.cel.regex.parsing import Chars, RegexError, Sequence, parse


@pytest.mark.parametrize(
    ("pattern", "want"),
    [
        ("(", "missing closing ): `(`"),
        (")", "unexpected ): `)`"),
        ("[a", "missing closing ]: `[a`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a{2,1}", "invalid repeat count: `{2,1}`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("(a{100}){11}", "invalid repeat count: `{11}`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("\\", "trailing backslash at end of expression: ``"),
        (r"\1", r"invalid escape sequence: `\1`"),
        (r"\pX", r"invalid character class range: `\pX`"),
        ("(?P<1-", "invalid named capture: `(?P<1-`"),
        ("(" * 1001 + ")" * 1001, "expression nests too deeply"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_patterns_that_are_refused(pattern: str, want: str) -> None:
    with pytest.raises(RegexError) as raised:
        parse(pattern)

    assert str(raised.value).startswith(f"error parsing regexp: {want}")


def test_a_brace_that_is_no_repetition_is_a_character() -> None:
    node = parse("{,2}")

    assert isinstance(node, Sequence)
    assert [part.ranges for part in node.parts if isinstance(part, Chars)] == [
        ((ord(char), ord(char)),) for char in "{,2}"
    ]


def test_case_is_folded_as_unicode_does() -> None:
    node = parse("(?i)k")

    assert isinstance(node, Chars)
    # The Kelvin sign is a k as well.
    assert node.ranges == ((0x4B, 0x4B), (0x6B, 0x6B), (0x212A, 0x212A))
