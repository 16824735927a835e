"""Quantities: every spelling Kubernetes knows, its rounding, and what is refused.

The tables were checked against k8s.io/apimachinery v0.36.4.
"""

from __future__ import annotations

import math
import time
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kubesched.api import quantity
from kubesched.api.core import QuantityText
from kubesched.errors import ObjectError, QuantityError

DECIMAL = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 10**3),
    "": Fraction(1),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
}
BINARY = {suffix: Fraction(2 ** (10 * i)) for i, suffix in enumerate(("Ki", "Mi", "Gi"), start=1)}


@pytest.mark.parametrize(
    ("text", "want", "want_milli"),
    [
        ("0", 0, 0),
        ("1", 1, 1000),
        ("007", 7, 7000),
        ("+8000m", 8, 8000),
        ("-5", -5, -5000),
        ("-1.5", -2, -1500),
        (".5", 1, 500),
        ("5.", 5, 5000),
        ("5.Ki", 5120, 5120000),
        ("1.5Gi", 1610612736, 1610612736000),
        (".5Ki", 512, 512000),
        ("0.1Ki", 103, 102400),
        ("1n", 1, 1),
        ("1u", 1, 1),
        ("1m", 1, 1),
        ("1001u", 1, 2),
        ("1k", 1000, 1000000),
        ("1M", 10**6, 10**9),
        ("1G", 10**9, 10**12),
        ("1T", 10**12, 10**15),
        ("1P", 10**15, 10**18),
        ("1Ki", 2**10, 1000 * 2**10),
        ("1Mi", 2**20, 1000 * 2**20),
        ("1Gi", 2**30, 1000 * 2**30),
        ("1Ti", 2**40, 1000 * 2**40),
        ("1Pi", 2**50, 1000 * 2**50),
        ("1e3", 1000, 1000000),
        ("1E3", 1000, 1000000),
        ("1e+3", 1000, 1000000),
        ("25e-1", 3, 2500),
        ("1E-3", 1, 1),
        ("1e-30", 1, 1),
        (".0000000000001", 1, 1),
        ("0.5m", 1, 1),
        ("0.0000000001Ki", 1, 1),
        ("1e-999999999", 1, 1),
        ("0e999999999", 0, 0),
        ("0e-999999999", 0, 0),
        ("9223372036854775.807", 9223372036854776, 9223372036854775807),
    ],
)
def test_a_legal_spelling_is_rounded_up(text: str, want: int, want_milli: int) -> None:
    assert quantity.value(text) == want
    assert quantity.milli_value(text) == want_milli


@pytest.mark.parametrize("text", [".", "+", "-", "+.", "k", "Ki", "Ti", ".Mi", "n", "e5", "-E0"])
def test_no_digits_at_all_is_zero_as_kubernetes_has_it(text: str) -> None:
    assert quantity.nano(text) == 0


@pytest.mark.parametrize(
    ("number", "want_milli"),
    [(1, 1000), (0, 0), (2**40, 1000 * 2**40), (1.5, 1500), (1e16, 10**19)],
)
def test_json_numbers_are_quantities_too(number: float, want_milli: int) -> None:
    assert quantity.nano(number) == want_milli * 10**6


def test_white_space_around_a_quantity_is_ignored() -> None:
    assert quantity.value(" 5Gi\n") == 5 * 2**30
    assert quantity.value("\u00a05") == 5


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "abc",
        "1 Gi",
        "1K",
        "1ki",
        "1gi",
        "1i",
        "1mm",
        "1e",
        "1e+",
        "1ee5",
        "1e1.5",
        "1E3Ki",
        "0x10",
        "1_000",
        "1,5",
        "1.2.3",
        "--1",
        "+-1",
        "1-",
        "1-5",
        "1GiB",
        "Pi",
        "Ei",
        "e-10",
        "5\x1c",
        "٣",
        "1٣",
        "½",
        "∞",
        float("nan"),
        float("inf"),
        True,
        "1\x00",
        "1\n2",
    ],
)
def test_anything_else_is_refused(text: QuantityText) -> None:
    for function in (quantity.value, quantity.milli_value, quantity.nano):
        with pytest.raises(QuantityError, match="is not a quantity"):
            function(text)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("1E", 10**18),
        ("9E", 9 * 10**18),
        ("7Ei", 7 * 2**60),
        ("8Ei", 2**63 - 1),
        ("100Ei", 2**63 - 1),
        ("99999999999999999999999999999999999999999Ki", 2**63 - 1),
    ],
)
def test_the_largest_values_are_exact_and_binary_ones_capped(text: str, want: int) -> None:
    assert quantity.value(text) == want
    with pytest.raises(QuantityError, match="out of range"):
        quantity.milli_value(text)


@pytest.mark.parametrize(
    "text", ["9223372036854775808", "10E", "9.3E", "1e19", "-1e19", 10**19, "9223372036854775807.1"]
)
def test_what_no_int64_holds_is_refused_but_can_be_compared(text: QuantityText) -> None:
    with pytest.raises(QuantityError, match="out of range"):
        quantity.value(text)

    assert quantity.compare(text, text) == 0
    assert abs(quantity.nano(text)) > (2**63 - 1) * 10**9


@pytest.mark.parametrize(
    ("text", "want", "want_milli"),
    [
        ("4", 4, 4000),
        ("1500m", 2, 1500),
        ("1E", 10**18, 0),
        ("8Ei", 2**63 - 1, 0),
        ("10E", 0, 0),
        ("1e999999999", 0, 0),
    ],
)
def test_a_capacity_that_cannot_be_counted_is_zero(text: str, want: int, want_milli: int) -> None:
    assert quantity.capacity(text) == want
    assert quantity.capacity(text, milli=True) == want_milli


def test_a_malformed_capacity_is_refused() -> None:
    with pytest.raises(QuantityError, match="is not a quantity"):
        quantity.capacity("a lot")


@pytest.mark.parametrize(
    "text",
    [
        "1e999999999",
        "1e99999999999999999999",
        "1e4294967296",
        "1e-4294967296",
        "9" * 1_000_000,
        "0." + "9" * 1_000_000,
        "1e" + "9" * 1_000_000,
        "٣" * 1_000_000,
        10**100_000,
        "1" * 1024,
        "." * 1024,
    ],
    ids=lambda text: str(text)[:12] if isinstance(text, str) else "int",
)
def test_hostile_text_is_refused_at_once_in_one_short_line(text: QuantityText) -> None:
    start = time.perf_counter()
    for function in (quantity.value, quantity.milli_value, quantity.nano):
        with pytest.raises(QuantityError) as caught:
            function(text)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 250

    assert time.perf_counter() - start < 1.0


def test_long_but_legal_text_is_computed_at_once() -> None:
    start = time.perf_counter()

    assert quantity.value("0" * 1000 + "7") == 7
    assert quantity.nano("0." + "0" * 1000 + "1") == 1
    assert quantity.nano("1" + "0" * 900 + "e-900") == 10**9
    assert time.perf_counter() - start < 1.0


def test_a_refusal_shows_the_text_and_is_an_object_error() -> None:
    with pytest.raises(ObjectError) as caught:
        quantity.value("12 cores\nplease")

    assert str(caught.value) == (
        r"'12 cores\nplease' is not a quantity: want a number with an optional suffix, "
        "such as 500m, 1.5Gi or 1e3"
    )


@pytest.mark.parametrize(
    ("left", "right", "want"),
    [
        ("1", "1000m", 0),
        ("1Ki", "1024", 0),
        ("1Gi", "1G", 1),
        ("999999999n", "1", -1),
        ("-1", "0", -1),
        ("1e30", "1e29", 1),
        (1, "1", 0),
    ],
)
def test_compare_is_exact(left: QuantityText, right: QuantityText, want: int) -> None:
    assert quantity.compare(left, right) == want
    assert quantity.compare(right, left) == -want


def test_sums_are_rounded_once() -> None:
    half_milli = quantity.nano("0.5m")

    assert quantity.milli_value("0.5m") == 1
    assert quantity.milli_of_nano(half_milli + half_milli) == 1
    assert quantity.milli_of_nano(half_milli + half_milli + 1) == 2
    assert quantity.value_of_nano(quantity.nano("0.5") + quantity.nano("0.6")) == 2


def test_a_sum_that_no_int64_holds_is_refused() -> None:
    with pytest.raises(QuantityError, match="out of range"):
        quantity.value_of_nano(2 * quantity.nano("5E"))


numbers = st.tuples(
    st.sampled_from(["", "+", "-"]),
    st.from_regex(r"[0-9]{1,12}(\.[0-9]{0,12})?", fullmatch=True),
)


def _exact(sign: str, number: str, unit: Fraction) -> Fraction:
    amount = Fraction(number.removesuffix(".")) * unit
    return -amount if sign == "-" else amount


def _away_from_zero(amount: Fraction) -> int:
    return math.ceil(amount) if amount >= 0 else math.floor(amount)


@given(numbers, st.sampled_from(sorted(DECIMAL) + sorted(BINARY)))
@example(("-", "0.1"), "Ki")
def test_nano_is_the_amount_rounded_away_from_zero(signed: tuple[str, str], suffix: str) -> None:
    amount = _exact(*signed, {**DECIMAL, **BINARY}[suffix])
    want = _away_from_zero(amount * 10**9)
    if suffix in BINARY:
        want = max(-(2**63 - 1) * 10**9, min(want, (2**63 - 1) * 10**9))

    assert quantity.nano("".join(signed) + suffix) == want


@given(numbers, st.integers(min_value=-40, max_value=40), st.sampled_from("eE"))
def test_exponents_shift_the_decimal_point(
    signed: tuple[str, str], exponent: int, letter: str
) -> None:
    amount = _exact(*signed, Fraction(10) ** exponent)

    assert quantity.nano(f"{''.join(signed)}{letter}{exponent}") == _away_from_zero(amount * 10**9)


@given(st.lists(st.from_regex(r"[0-9]{1,6}(\.[0-9]{1,9})?", fullmatch=True), max_size=8))
def test_the_unit_of_a_sum_is_the_rounded_exact_sum(amounts: list[str]) -> None:
    total = sum(map(Fraction, amounts), start=Fraction(0))
    total_nano = sum(map(quantity.nano, amounts))

    assert quantity.value_of_nano(total_nano) == math.ceil(total)
    assert quantity.milli_of_nano(total_nano) == math.ceil(total * 1000)


@given(st.text(max_size=30) | st.from_regex(r"[-+.0-9eEinumkKMGTP]{0,12}", fullmatch=True))
def test_any_text_gives_an_int_or_a_quantity_error(text: str) -> None:
    try:
        amount = quantity.value(text)
    except QuantityError:
        return
    assert -(2**63) <= amount < 2**63
