"""Quantities: what they are worth is what the rest of the scheduler takes them for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api import quantity
from kubesched.cel.library.quantities import Quantity, compare, parse
from kubesched.cel.values import Err
from kubesched.errors import QuantityError

numbers = st.from_regex(r"[+-]?[0-9]{1,12}(\.[0-9]{0,12})?", fullmatch=True)
suffixes = st.sampled_from(["", "n", "u", "m", "k", "M", "G", "T", "Ki", "Mi", "Gi", "e3", "E-2"])


@given(st.tuples(numbers, suffixes).map("".join), st.tuples(numbers, suffixes).map("".join))
def test_the_order_is_that_of_the_schedulers_quantities(left: str, right: str) -> None:
    one, other = parse(left), parse(right)
    assert isinstance(one, Quantity)
    assert isinstance(other, Quantity)

    assert compare(one, other) == quantity.compare(left, right)


@given(st.text("0123456789.+-mkKiGn", max_size=6))
def test_what_is_a_quantity_is_one_for_the_scheduler_too(text: str) -> None:
    try:
        quantity.nano(text)
    except QuantityError:
        assert isinstance(parse(text), Err)
    else:
        assert isinstance(parse(text), Quantity)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("", "quantities must match the regular expression"),
        ("x", "quantities must match the regular expression"),
        ("1Q", "quantities must match the regular expression"),
        ("1mm", "unable to parse quantity's suffix"),
    ],
)
def test_errors(text: str, want: str) -> None:
    parsed = parse(text)

    assert isinstance(parsed, Err)
    assert parsed.message.startswith(want)
