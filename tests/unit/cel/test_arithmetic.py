"""Arithmetic: 64-bit integers that do not wrap, doubles that do not fail, and sequences."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.cel.arithmetic import add, divide, modulo, multiply, negate, subtract
from kubesched.cel.values import INT_MAX, INT_MIN, UINT_MAX, Err, Uint, Value

ints = st.integers(INT_MIN, INT_MAX)


def message(value: Value) -> str:
    assert isinstance(value, Err)
    return value.message


@given(ints, ints)
def test_integers_are_exact_or_overflow(left: int, right: int) -> None:
    for operation, exact in (
        (add, left + right),
        (subtract, left - right),
        (multiply, left * right),
    ):
        found = operation(left, right)
        if INT_MIN <= exact <= INT_MAX:
            assert found == exact
        else:
            assert message(found) == "integer overflow"


@given(ints, ints.filter(bool))
def test_division_cuts_towards_zero(left: int, right: int) -> None:
    quotient, rest = divide(left, right), modulo(left, right)
    if (left, right) == (INT_MIN, -1):
        assert message(quotient) == message(rest) == "integer overflow"
        return
    assert quotient * right + rest == left
    assert abs(rest) < abs(right)
    assert rest == 0 or (rest > 0) == (left > 0)


@pytest.mark.parametrize("zero", [0, Uint(0)])
def test_integers_are_not_divided_by_zero(zero: Value) -> None:
    one = type(zero)(1)
    assert message(divide(one, zero)) == "division by zero"
    assert message(modulo(one, zero)) == "modulus by zero"


def test_doubles_are_divided_by_zero() -> None:
    assert divide(1.0, 0.0) == math.inf
    assert divide(-1.0, 0.0) == -math.inf
    assert math.isnan(divide(0.0, 0.0))


def test_unsigned_integers_have_no_sign() -> None:
    assert add(Uint(1), Uint(2)) == Uint(3)
    assert message(subtract(Uint(1), Uint(2))) == "unsigned integer overflow"
    assert message(multiply(Uint(UINT_MAX), Uint(2))) == "unsigned integer overflow"


def test_sequences_are_joined() -> None:
    assert add("a", "b") == "ab"
    assert add(b"a", b"b") == b"ab"
    assert list(add([1], [2, "x"])) == [1, 2, "x"]


def test_numbers_of_different_types_do_not_mix() -> None:
    assert message(add(1, Uint(1))) == "no such overload"
    assert message(add(1, 1.0)) == "no such overload"
    assert message(add("a", 1)) == "no such overload"


def test_the_smallest_integer_has_no_opposite() -> None:
    assert negate(5) == -5
    assert negate(1.5) == -1.5
    assert message(negate(INT_MIN)) == "integer overflow"
