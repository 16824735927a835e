"""Numbers as Go spells them, and texts as Go reads them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.cel.conversions import (
    double_text,
    double_to_int,
    plain_double,
    string_to_double,
    string_to_int,
)
from kubesched.cel.values import Err


@pytest.mark.parametrize(
    ("value", "want"),
    [
        (0.0, "0"), (-0.0, "-0"), (1.0, "1"), (100000.0, "100000"), (1e6, "1e+06"),
        (1234567.5, "1.2345675e+06"), (0.0001, "0.0001"), (0.00001, "1e-05"),
        (math.inf, "+Inf"), (-math.inf, "-Inf"), (math.nan, "NaN"),
    ],
)  # fmt: skip
def test_doubles_are_spelled_as_go_does(value: float, want: str) -> None:
    assert double_text(value) == want


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_double_can_be_read_back(value: float) -> None:
    assert string_to_double(double_text(value)) == value
    assert float(plain_double(value)) == value


@pytest.mark.parametrize(
    ("text", "want"),
    [("12", 12), ("+12", 12), ("-12", -12), ("0x1", None), (" 1", None), ("1_0", None),
     ("9223372036854775808", None), ("9" * 5000, None), ("", None)],
    ids=lambda value: str(value)[:20],
)  # fmt: skip
def test_texts_as_integers(text: str, want: int | None) -> None:
    assert string_to_int(text) == want


@pytest.mark.parametrize("value", [2.0**63, -(2.0**63), math.nan, math.inf])
def test_doubles_out_of_range_are_errors(value: float) -> None:
    assert isinstance(double_to_int(value), Err)
