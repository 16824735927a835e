"""Durations are read and written as Go reads and writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.config.durations import Duration
from kubesched.errors import ConfigError

MICRO_SIGN = "\N{MICRO SIGN}"
GREEK_MU = "\N{GREEK SMALL LETTER MU}"


@pytest.mark.parametrize(
    ("text", "want_ns"),
    [
        ("0", 0),
        ("0s", 0),
        ("-0", 0),
        ("5s", 5_000_000_000),
        ("5m0s", 300_000_000_000),
        ("1.5h", 5_400_000_000_000),
        ("100ms", 100_000_000),
        ("1h15m30.918273645s", 4_530_918_273_645),
        ("-2m3.4s", -123_400_000_000),
        ("+5s", 5_000_000_000),
        ("5.s", 5_000_000_000),
        (".5s", 500_000_000),
        (f"7{MICRO_SIGN}s", 7_000),
        (f"7{GREEK_MU}s", 7_000),
        ("7us", 7_000),
        ("11ns", 11),
        ("1.5ns", 1),
        ("39h9m14.425s", 140_954_425_000_000),
        ("9223372036854775807ns", 2**63 - 1),
        ("-9223372036854775808ns", -(2**63)),
        ("0.3333333333333333333h", 1_200_000_000_000),
        ("0.100000000000000000000h", 360_000_000_000),
        ("3h2h1s", 18_001_000_000_000),
    ],
)
def test_parse(text: str, want_ns: int) -> None:
    assert Duration.parse(text).nanoseconds == want_ns


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("", 'time: invalid duration ""'),
        ("3", 'time: missing unit in duration "3"'),
        ("-", 'time: invalid duration "-"'),
        ("s", 'time: invalid duration "s"'),
        (".", 'time: invalid duration "."'),
        (".s", 'time: invalid duration ".s"'),
        ("+.s", 'time: invalid duration "+.s"'),
        ("1d", 'time: unknown unit "d" in duration "1d"'),
        ("5 s", 'time: unknown unit " s" in duration "5 s"'),
        ("3000000h", 'time: invalid duration "3000000h"'),
        ("9223372036854775808ns", 'time: invalid duration "9223372036854775808ns"'),
        ('1"', 'time: unknown unit "\\"" in duration "1\\""'),
        ("1é", 'time: unknown unit "\\xc3\\xa9" in duration "1\\xc3\\xa9"'),
    ],
)
def test_parse_refuses(text: str, want: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Duration.parse(text)

    assert str(caught.value) == want


@pytest.mark.parametrize(
    ("nanoseconds", "want"),
    [
        (0, "0s"),
        (1, "1ns"),
        (1_100, f"1.1{MICRO_SIGN}s"),
        (2_200_000, "2.2ms"),
        (3_300_000_000, "3.3s"),
        (245_000_000_000, "4m5s"),
        (245_001_000_000, "4m5.001s"),
        (18_367_001_000_000, "5h6m7.001s"),
        (480_000_000_001, "8m0.000000001s"),
        (-1_500_000_000, "-1.5s"),
        (2**63 - 1, "2562047h47m16.854775807s"),
        (-(2**63), "-2562047h47m16.854775808s"),
    ],
)
def test_format(nanoseconds: int, want: str) -> None:
    assert str(Duration(nanoseconds)) == want


@given(st.integers(min_value=-(2**63), max_value=2**63 - 1))
def test_what_is_written_is_read_back(nanoseconds: int) -> None:
    duration = Duration(nanoseconds)
    # The fraction of a second is read in floating point, exactly for up to nine digits.
    assert Duration.parse(str(duration)) == duration


def test_durations_compare_and_convert() -> None:
    assert Duration.of_seconds(1.5) == Duration.parse("1.5s")
    assert Duration.parse("10s") < Duration.parse("1m")
    assert Duration.parse("250ms").seconds == 0.25
