"""Equality and order of values of any types."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.cel.equality import compare, contains, equals, is_comparable
from kubesched.cel.library import semvers
from kubesched.cel.values import Err, Optional, Uint, Value

numbers = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 2**64 - 1).map(Uint),
    st.floats(allow_nan=False),
)


@given(numbers, numbers)
def test_numbers_are_compared_across_types_by_value(left: Value, right: Value) -> None:
    exact = (left > right) - (left < right)
    assert compare(left, right) == exact
    assert equals(left, right) is (exact == 0)


@pytest.mark.parametrize(
    ("left", "right", "want"),
    [
        (True, 1, False),
        ("1", 1, False),
        (None, None, True),
        (None, 0, False),
        (b"a", "a", False),
        ([1, 2], [1, Uint(2)], True),
        ([1], [1, 2], False),
        (Optional(1), Optional(1.0), True),
        (Optional(1), Optional(2), False),
    ],
)
def test_values_of_different_types_are_different(left: Value, right: Value, want: bool) -> None:
    assert equals(left, right) is want
    assert equals(right, left) is want


def test_nan_is_equal_to_nothing_and_has_no_order() -> None:
    assert equals(math.nan, math.nan) is False
    found = compare(math.nan, 1.0)
    assert isinstance(found, Err)
    assert found.message == "NaN values cannot be ordered"


def test_objects_of_a_library_refuse_another_type() -> None:
    version = semvers.parse("1.0.0")
    assert equals(version, semvers.parse("1.0.0+build")) is True
    assert isinstance(equals(version, "1.0.0"), Err)


def test_membership_is_equality_with_an_element() -> None:
    assert contains([1, "a", 2.0], 2)
    assert not contains([1, "a"], True)
    assert not contains([], 1)


def test_what_has_an_order() -> None:
    assert compare("a", "b") == -1
    assert compare(b"b", b"a") == 1
    assert compare(False, True) == -1
    assert isinstance(compare("a", 1), Err)
    assert is_comparable(1)
    assert not is_comparable([1])
