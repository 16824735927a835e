"""Numbers of flags, parsed and formatted as by Go's strconv."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.cli.flag_numbers import format_float, parse_bool, parse_float, parse_int, parse_uint
from kubesched.errors import UsageError


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", True), ("t", True), ("TRUE", True), ("0", False), ("F", False), ("false", False)],
)
def test_booleans(text: str, value: bool) -> None:
    assert parse_bool(text) is value


@pytest.mark.parametrize(
    ("text", "number"),
    [("0x1f", 31), ("0b101", 5), ("0o17", 15), ("017", 15), ("-0x1", -1), ("1_000", 1000)],
)
def test_a_prefix_sets_the_base_of_an_integer(text: str, number: int) -> None:
    assert parse_int(text) == number


@pytest.mark.parametrize("text", ["", "x", "1.5", "1e3", "0x", "09", "1__0"])
def test_malformed_integers(text: str) -> None:
    with pytest.raises(UsageError, match=r"strconv\.ParseInt: parsing .*: invalid syntax"):
        parse_int(text)


def test_integers_out_of_range() -> None:
    assert parse_int("127", bits=8) == 127
    with pytest.raises(UsageError, match="value out of range"):
        parse_int("128", bits=8)


def test_unsigned_integers_are_plain_decimals() -> None:
    assert parse_uint("255", bits=8) == 255
    with pytest.raises(UsageError, match="value out of range"):
        parse_uint("256", bits=8)
    for text in ("-1", "0x1", "1_0", ""):
        with pytest.raises(UsageError, match="invalid syntax"):
            parse_uint(text, bits=8)


@given(st.integers(-(2**63), 2**63 - 1), st.sampled_from([str, hex, oct, bin]))
def test_integers_read_back_in_every_base(number: int, write: Any) -> None:
    assert parse_int(write(number)) == number


@given(st.floats(allow_nan=False))
def test_floats_read_back(number: float) -> None:
    assert parse_float(format_float(number)) == number


@given(st.floats(width=32, allow_nan=False))
def test_single_floats_read_back(number: float) -> None:
    assert parse_float(format_float(number, single=True), single=True) == number


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0.0, "0"),
        (100000.0, "100000"),
        (1e6, "1e+06"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (-2.5, "-2.5"),
        (123456.7, "123456.7"),
        (float("inf"), "+Inf"),
        (float("-inf"), "-Inf"),
        (float("nan"), "NaN"),
    ],
)
def test_floats_as_go_shows_them(number: float, shown: str) -> None:
    assert format_float(number) == shown
