"""Arithmetic of CEL: checked 64-bit integers, doubles, times, and ``+`` of sequences."""

from __future__ import annotations

import math
from typing import Final

from kubesched.cel.timestamps import MAX_UNIX_SECONDS, MIN_UNIX_SECONDS
from kubesched.cel.values import (
    INT_MAX,
    INT_MIN,
    NO_SUCH_OVERLOAD,
    UINT_MAX,
    CelDuration,
    Err,
    Timestamp,
    Uint,
    Value,
    is_list,
    joined,
)

INT_OVERFLOW: Final = Err("integer overflow")
UINT_OVERFLOW: Final = Err("unsigned integer overflow")
TIMESTAMP_OVERFLOW: Final = Err("timestamp overflow")
_DIVISION_BY_ZERO: Final = Err("division by zero")
_MODULUS_BY_ZERO: Final = Err("modulus by zero")

_NANOS: Final = 10**9
_MIN_NANOS: Final = MIN_UNIX_SECONDS * _NANOS
_MAX_NANOS: Final = MAX_UNIX_SECONDS * _NANOS + _NANOS - 1


def checked_int(value: int) -> Value:
    """Return an int, or the error that it does not fit into 64 bits."""
    return value if INT_MIN <= value <= INT_MAX else INT_OVERFLOW


def _checked_uint(value: int) -> Value:
    return Uint(value) if 0 <= value <= UINT_MAX else UINT_OVERFLOW


def _checked_duration(nanos: int) -> Value:
    return CelDuration(nanos) if INT_MIN <= nanos <= INT_MAX else INT_OVERFLOW


def _checked_timestamp(nanos: int, offset: int) -> Value:
    return Timestamp(nanos, offset) if _MIN_NANOS <= nanos <= _MAX_NANOS else TIMESTAMP_OVERFLOW


def add(left: Value, right: Value) -> Value:  # noqa: PLR0911 - one line a type
    """``left + right``."""
    kind, other = type(left), type(right)
    if kind is other:
        if kind is int:
            return checked_int(left + right)
        if kind is str or kind is float or kind is bytes:
            return left + right
        if kind is Uint:
            return _checked_uint(left + right)
        if kind is CelDuration:
            return _checked_duration(left.nanos + right.nanos)
    if kind is Timestamp and other is CelDuration:
        return _checked_timestamp(left.nanos + right.nanos, left.offset_seconds)
    if kind is CelDuration and other is Timestamp:
        return _checked_timestamp(left.nanos + right.nanos, right.offset_seconds)
    if is_list(left) and is_list(right):
        return joined(left, right)
    return NO_SUCH_OVERLOAD


def subtract(left: Value, right: Value) -> Value:
    """``left - right``."""
    kind, other = type(left), type(right)
    if kind is other:
        if kind is int:
            return checked_int(left - right)
        if kind is Uint:
            return _checked_uint(left - right)
        if kind is float:
            return left - right
        if kind is CelDuration or kind is Timestamp:
            return _checked_duration(left.nanos - right.nanos)
    if kind is Timestamp and other is CelDuration:
        return _checked_timestamp(left.nanos - right.nanos, left.offset_seconds)
    return NO_SUCH_OVERLOAD


def multiply(left: Value, right: Value) -> Value:
    """``left * right``."""
    kind = type(left)
    if kind is not type(right):
        return NO_SUCH_OVERLOAD
    if kind is int:
        return checked_int(left * right)
    return _checked_uint(left * right) if kind is Uint else left * right


def divide(left: Value, right: Value) -> Value:
    """``left / right``: integers are rounded toward zero, doubles follow IEEE 754."""
    kind = type(left)
    if kind is not type(right):
        return NO_SUCH_OVERLOAD
    if kind is float:
        return _float_quotient(left, right)
    if right == 0:
        return _DIVISION_BY_ZERO
    quotient = abs(left) // abs(right)
    if kind is Uint:
        return Uint(quotient)
    return checked_int(quotient if (left < 0) == (right < 0) else -quotient)


def modulo(left: Value, right: Value) -> Value:
    """``left % right``: the result has the sign of the left."""
    kind = type(left)
    if kind is not type(right):
        return NO_SUCH_OVERLOAD
    if right == 0:
        return _MODULUS_BY_ZERO
    if kind is Uint:
        return Uint(left % right)
    if left == INT_MIN and right == -1:
        return INT_OVERFLOW
    return int(math.copysign(1, left)) * (abs(left) % abs(right))


def negate(value: Value) -> Value:
    """``-value``."""
    if type(value) is bool:
        return NO_SUCH_OVERLOAD
    if type(value) is int:
        return checked_int(-value)
    return _checked_duration(-value.nanos) if type(value) is CelDuration else -value


def _float_quotient(left: float, right: float) -> float:
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1, right)
