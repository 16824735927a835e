"""Quantities: exact decimal numbers with Kubernetes' suffixes.

A quantity is ``unscaled * 10^scale``. Upstream keeps short ones in an int64 and others in a big
decimal, and an expression can tell: only those in an int64 without decimal places are integers
(``is_small``).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import ClassVar, Final

from kubesched.cel.functions import Function, Overload, member
from kubesched.cel.types import BOOL, DOUBLE, INT, QUANTITY, STRING, Type
from kubesched.cel.values import INT_MAX, INT_MIN, NO_SUCH_OVERLOAD, Err, Object, Value

_DECIMAL: Final = {
    "n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
}  # fmt: skip
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_EXPONENT: Final = re.compile(r"[eE]([+-]?[0-9]+)")
_SHAPE: Final = re.compile(
    r"(?P<value>(?P<sign>[+-]?)(?P<zeros>0*)(?P<whole>[0-9]*)(?:(?P<dot>\.)(?P<fraction>[0-9]*))?)"
    r"(?P<suffix>[eEinumkKMGTP]*[-+]?[0-9]*)"
)
_MALFORMED: Final = Err(
    "quantities must match the regular expression "
    "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_BAD_SUFFIX: Final = Err("unable to parse quantity's suffix")
_BAD_NUMBER: Final = Err("unable to parse numeric part of quantity")

_NANO: Final = -9
_MAX_INT64_DIGITS: Final = 18
#: Upstream computes with exponents of any size; more than this cannot be meant, and takes forever.
_MAX_EXPONENT: Final = 5000


class Quantity(Object):
    """A quantity; ``is_pointer`` marks results of arithmetic, which upstream represents otherwise."""

    __slots__ = ("is_pointer", "is_small", "scale", "unscaled")
    type: ClassVar[Type] = QUANTITY

    def __init__(
        self, unscaled: int, scale: int = 0, *, is_small: bool = True, is_pointer: bool = False
    ) -> None:
        self.unscaled = unscaled
        self.scale = scale
        self.is_small = is_small
        self.is_pointer = is_pointer

    def equals(self, other: Value) -> Value:
        """Whether both are the same amount; upstream cannot compare with a result of arithmetic."""
        if not isinstance(other, Quantity) or other.is_pointer:
            return NO_SUCH_OVERLOAD
        return compare(self, other) == 0


@lru_cache(maxsize=4096)
def parse(text: str) -> Quantity | Err:
    """Return the quantity that a text spells, or upstream's error."""
    match = _SHAPE.fullmatch(text)
    if not text or match is None:
        return _MALFORMED
    suffix, whole, fraction = match["suffix"], match["whole"], match["fraction"] or ""
    negative = match["sign"] == "-"
    if match["dot"] is None and not whole and not suffix:
        whole = "0"
    if suffix in _BINARY:
        return _parse_binary(match, negative, whole or "0", fraction)
    exponent = _decimal_exponent(suffix)
    if exponent is None:
        return _BAD_SUFFIX
    whole = whole or "0"
    scale = exponent - len(fraction)
    digits = whole + fraction
    if len(digits) <= _MAX_INT64_DIGITS and scale >= _NANO:
        value = int(digits)
        return Quantity(-value if negative else value, scale)
    if not _is_number(match):
        return _BAD_NUMBER
    return _rounded(int(digits), scale, negative=negative)


def _decimal_exponent(suffix: str) -> int | None:
    if suffix in _DECIMAL:
        return _DECIMAL[suffix]
    match = _EXPONENT.fullmatch(suffix)
    if match is None or len(match[1]) > 10:
        return None
    exponent = int(match[1])
    return exponent if abs(exponent) <= _MAX_EXPONENT else None


def _parse_binary(
    match: re.Match[str], negative: bool, whole: str, fraction: str
) -> Quantity | Err:
    exponent = _BINARY[match["suffix"]]
    precision = 15 - len(whole) - int(exponent * 3 / 10) - 1
    if match["dot"] is None or not fraction:
        value = int(whole) << exponent if len(whole) <= _MAX_INT64_DIGITS else INT_MAX + 1
        if precision >= 0 and value <= INT_MAX:
            return Quantity(-value if negative else value)
    if not _is_number(match):
        return _BAD_NUMBER
    unscaled, scale = int(whole + fraction) << exponent, -len(fraction)
    if unscaled > INT_MAX * 10**-scale:
        return Quantity(-INT_MAX if negative else INT_MAX, is_small=False)
    return _rounded(unscaled, scale, negative=negative)


def _is_number(match: re.Match[str]) -> bool:
    """Whether the slow way reads the number: it wants at least one digit."""
    return any(char.isdigit() for char in match["value"])


def _rounded(unscaled: int, scale: int, *, negative: bool) -> Quantity:
    """Return a big quantity; less than a nano unit is rounded up to one."""
    if unscaled and scale < _NANO:
        divisor = 10 ** (_NANO - scale)
        unscaled, scale = -(-unscaled // divisor), _NANO
    return Quantity(-unscaled if negative else unscaled, scale, is_small=False)


def compare(left: Quantity, right: Quantity) -> int:
    """Return -1, 0 or 1."""
    if left.scale == right.scale:
        return (left.unscaled > right.unscaled) - (left.unscaled < right.unscaled)
    scale = min(left.scale, right.scale)
    one = left.unscaled * 10 ** (left.scale - scale)
    other = right.unscaled * 10 ** (right.scale - scale)
    return (one > other) - (one < other)


def _subtract(left: Quantity, right: Quantity) -> Quantity:
    # The lowest int64 has no counterpart, and stays what it is.
    wraps = left.is_small and right.is_small and right.unscaled == INT_MIN
    negated = right.unscaled if wraps else -right.unscaled
    return _add(left, Quantity(negated, right.scale, is_small=right.is_small))


def _add(left: Quantity, right: Quantity) -> Quantity:
    if left.is_small and right.is_small and 0 in (left.unscaled, right.unscaled):
        same = right if left.unscaled == 0 and right.unscaled else left
        return Quantity(same.unscaled, same.scale, is_pointer=True)
    scale = min(left.scale, right.scale)
    one = left.unscaled * 10 ** (left.scale - scale)
    other = right.unscaled * 10 ** (right.scale - scale)
    total = one + other
    is_small = left.is_small and right.is_small
    is_small = is_small and all(INT_MIN <= part <= INT_MAX for part in (one, other, total))
    return Quantity(total, scale, is_small=is_small, is_pointer=True)


def _as_int(value: Quantity) -> int | None:
    if not value.is_small or value.scale < 0 or value.scale > 18:
        return None
    amount = value.unscaled * 10**value.scale
    return amount if INT_MIN <= amount <= INT_MAX else None


def _as_integer(value: Quantity) -> Value:
    amount = _as_int(value)
    return Err("cannot convert value to integer") if amount is None else amount


def _as_float(value: Quantity) -> float:
    if value.scale == 0:
        return float(value.unscaled)
    return float(value.unscaled) * 10.0**value.scale


def _is_quantity(text: str) -> bool:
    return isinstance(parse(text), Quantity)


_PAIR: Final = (QUANTITY, QUANTITY)

FUNCTIONS: Final = [
    Function("quantity", (Overload("string_to_quantity", (STRING,), QUANTITY, parse),)),
    Function("isQuantity", (Overload("is_quantity_string", (STRING,), BOOL, _is_quantity),)),
    Function(
        "sign",
        (
            Overload(
                "quantity_sign", (QUANTITY,), INT,
                lambda it: (it.unscaled > 0) - (it.unscaled < 0),
            ),
        ),
    ),
    Function(
        "isGreaterThan",
        (member("quantity_is_greater_than", _PAIR, BOOL, lambda a, b: compare(a, b) > 0),),
    ),
    Function(
        "isLessThan",
        (member("quantity_is_less_than", _PAIR, BOOL, lambda a, b: compare(a, b) < 0),),
    ),
    Function("compareTo", (member("quantity_compare_to", _PAIR, INT, compare),)),
    Function(
        "asApproximateFloat", (member("quantity_get_float", (QUANTITY,), DOUBLE, _as_float),)
    ),
    Function("asInteger", (member("quantity_get_int", (QUANTITY,), INT, _as_integer),)),
    Function(
        "isInteger",
        (member("quantity_is_integer", (QUANTITY,), BOOL, lambda it: _as_int(it) is not None),),
    ),
    Function(
        "add",
        (
            member("quantity_add", _PAIR, QUANTITY, _add),
            member("quantity_add_int", (QUANTITY, INT), QUANTITY, lambda a, b: _add(a, Quantity(b))),
        ),
    ),
    Function(
        "sub",
        (
            member("quantity_sub", _PAIR, QUANTITY, _subtract),
            member(
                "quantity_sub_int", (QUANTITY, INT), QUANTITY,
                lambda a, b: _subtract(a, Quantity(b)),
            ),
        ),
    ),
]  # fmt: skip
