"""Literals and the values that they stand for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.cel.literals import (
    LiteralError,
    byte_string,
    double,
    integer,
    string,
    unsigned,
)
from kubesched.cel.values import INT_MAX, INT_MIN, UINT_MAX, Uint


@given(st.integers(INT_MIN, INT_MAX))
def test_integers_are_decimal_or_hexadecimal(value: int) -> None:
    assert integer(str(value)) == value
    assert integer(f"{'-' if value < 0 else ''}0x{abs(value):x}") == value


@pytest.mark.parametrize("text", [str(INT_MAX + 1), str(INT_MIN - 1), "9" * 100])
def test_integers_that_do_not_fit_are_refused(text: str) -> None:
    with pytest.raises(LiteralError, match="invalid int literal"):
        integer(text)


def test_unsigned_integers_end_in_u() -> None:
    assert unsigned("0x10u") == Uint(16)
    with pytest.raises(LiteralError, match="invalid uint literal"):
        unsigned(f"{UINT_MAX + 1}u")


def test_doubles_that_do_not_fit_are_refused() -> None:
    assert double("1e3") == 1000.0
    with pytest.raises(LiteralError, match="invalid double literal"):
        double("1e999")


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ('"a"', "a"),
        ("'''a'b'''", "a'b"),
        (r'"\n\x41\u00e4\101\U0001F600"', "\nAäA😀"),
        (r'r"\n"', "\\n"),
        (r"'\?\`'", "?`"),
        ('"""a\r\nb"""', "a\nb"),
    ],
)
def test_strings_may_be_escaped_raw_or_of_several_lines(text: str, want: str) -> None:
    assert string(text) == want


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (r'"\z"', "unable to unescape string"),
        (r'"\ud800"', "invalid unicode code point"),
        (r'"\U00110000"', "invalid unicode code point"),
    ],
)
def test_escapes_that_stand_for_nothing_are_refused(text: str, why: str) -> None:
    with pytest.raises(LiteralError, match=why):
        string(text)


def test_escapes_in_bytes_are_bytes() -> None:
    assert byte_string(r'b"\xff\101ä"') == b"\xffA" + "ä".encode()
    assert byte_string(r'br"\x"') == b"\\x"
    with pytest.raises(LiteralError, match="unable to unescape string"):
        byte_string(r'b"\u00e4"')
