"""Equality and order of values of any types.

``equals`` is upstream's, with its corners: numbers are equal across types, values of different
types are otherwise different, but a library's object refuses to be compared with another type. A
list literal takes such a refusal for equality, a list that ``+`` made passes it on.

Comparing values nested in values takes steps that no cost accounts for. They are counted, and an
evaluation that takes too many ends as if it had cost too much.
"""

from __future__ import annotations

import math
from typing import Final

from kubesched.cel.types import Type
from kubesched.cel.values import (
    NO_SUCH_OVERLOAD,
    CelDuration,
    CostLimitExceeded,
    Err,
    Joined,
    Map,
    Object,
    Optional,
    Rope,
    Timestamp,
    Uint,
    Value,
    is_list,
)

#: Comparisons of elements within one comparison of two values.
_MAX_STEPS: Final = 1_000_000

_NUMBERS: Final = frozenset({int, Uint, float})
_NAN_ORDER: Final = Err("NaN values cannot be ordered")


def equals(left: Value, right: Value) -> Value:
    """Whether two values are equal: a bool, or an error."""
    kind = type(left)
    if kind is str or kind is bool:
        return type(right) is kind and left == right
    return _Comparison().equals(left, right)


class _Comparison:
    """One comparison, which counts its steps."""

    def __init__(self) -> None:
        self._steps = 0

    def equals(self, left: Value, right: Value) -> Value:  # noqa: PLR0911 - one line a type
        if left is None or right is None:
            return left is right
        kind = type(left)
        if kind in _NUMBERS:
            return type(right) in _NUMBERS and _equal_numbers(left, right)
        if kind in (str, bytes, bool):
            return type(right) is kind and left == right
        if is_list(left):
            return self._equal_lists(left, right)
        if isinstance(left, Map):
            return self._equal_maps(left, right)
        if isinstance(left, Optional):
            return self._equal_optionals(left, right)
        if isinstance(left, Timestamp | CelDuration):
            return type(right) is kind and left.nanos == right.nanos
        if isinstance(left, Type):
            return isinstance(right, Type) and left.name == right.name
        if isinstance(left, Object):
            return left.equals(right)
        return left if isinstance(left, Err) else NO_SUCH_OVERLOAD

    def _step(self) -> None:
        self._steps += 1
        if self._steps > _MAX_STEPS:
            raise CostLimitExceeded

    def _equal_lists(self, left: Value, right: Value) -> Value:
        if not is_list(right) or len(left) != len(right):
            return False
        refused = None
        for one, other in zip(left, right, strict=True):
            self._step()
            equal = self.equals(one, other)
            if equal is False:
                return False
            if refused is None and type(equal) is Err:
                refused = equal
        if refused is not None and isinstance(left, Joined | Rope):
            return refused
        return True

    def _equal_maps(self, left: Map, right: Value) -> Value:
        if not isinstance(right, Map) or len(left) != len(right):
            return False
        for key, value in left.items():
            self._step()
            other, found = right.find(key)
            if not found or self.equals(value, other) is False:
                return False
        return True

    def _equal_optionals(self, left: Optional, right: Value) -> Value:
        if not isinstance(right, Optional) or left.has_value != right.has_value:
            return False
        return self.equals(left.value, right.value) if left.has_value else True


def contains(values: Value, wanted: Value) -> bool:
    """Whether a list has an element; an element that refuses to be compared is another one."""
    compare = _Comparison().equals
    return any(compare(wanted, value) is True for value in values)


def compare(left: Value, right: Value) -> Value:  # noqa: PLR0911 - one line a type
    """Return -1, 0 or 1, or an error if the values have no order."""
    kind, other = type(left), type(right)
    if kind in _NUMBERS:
        if kind is float and math.isnan(left):
            return _NAN_ORDER
        if other not in _NUMBERS:
            return NO_SUCH_OVERLOAD
        if other is float and math.isnan(right):
            return _NAN_ORDER
        return _number_order(left, right)
    if kind is not other:
        return NO_SUCH_OVERLOAD
    if kind is str:
        # Python orders by code point, as the order of UTF-8 bytes does.
        return (left > right) - (left < right)
    if kind is bool or kind is bytes:
        return (left > right) - (left < right)
    return (left.nanos > right.nanos) - (left.nanos < right.nanos)


def is_comparable(value: Value) -> bool:
    """Whether a value has an order among its like."""
    return isinstance(value, int | float | str | bytes | Timestamp | CelDuration)


def _equal_numbers(left: Value, right: Value) -> bool:
    if left != left or right != right:  # noqa: PLR0124 - NaN
        return False
    return _number_order(left, right) == 0


def _number_order(left: Value, right: Value) -> int:
    if type(left) is float and type(right) is not float:
        return _float_order(left, right)
    if type(right) is float and type(left) is not float:
        return -_float_order(right, left)
    return (left > right) - (left < right)


def _float_order(left: float, right: int) -> int:
    """Compare as upstream does: in floats, unless the float is out of the integers' range."""
    as_float = float(right)
    return (left > as_float) - (left < as_float)
