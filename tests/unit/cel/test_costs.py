"""What calls cost; the vectors have most of it, here is what they cannot tell apart."""

from __future__ import annotations

import pytest

from kubesched.cel.costs import call_cost, comparison, equality, size
from kubesched.cel.values import Err, Optional, Rope

from .vectors import quantity


@pytest.mark.parametrize(
    ("value", "want"),
    [("héllo", 5), (b"abc", 3), ([1, 2], 2), (1, 1), (Err("x"), 1), (Optional("abc"), 3), ("", 0)],
)
def test_sizes(value: object, want: int) -> None:
    assert size(value) == want


def test_strings_cost_a_tenth_of_the_shorter() -> None:
    assert comparison("a" * 41, "a" * 100) == 5
    assert equality("", "a") == 0


def test_objects_cost_one_to_compare() -> None:
    assert equality(quantity("1"), "a" * 100) == 1


def test_an_overload_that_is_not_known_costs_one() -> None:
    assert call_cost("_+_", "").fixed == 1
    assert call_cost("_+_", "add_string").of_args is not None


def test_a_traversal_stops_when_it_costs_too_much() -> None:
    values: object = list(range(1000))
    for _ in range(40):
        values = Rope(values, values)  # type: ignore[arg-type]
    cost = call_cost("max", "")

    assert cost.of_args is not None
    assert cost.of_args(values) > 1_000_000
