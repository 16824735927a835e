"""Conversions between types, as ``int("1")`` does them, and numbers as Go spells them."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Final

from kubesched.cel import timestamps
from kubesched.cel.arithmetic import INT_OVERFLOW, TIMESTAMP_OVERFLOW, UINT_OVERFLOW
from kubesched.cel.types import Type
from kubesched.cel.values import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    CelDuration,
    Err,
    Timestamp,
    Uint,
    Value,
)

_NANOS: Final = 10**9
_INT: Final = re.compile(r"[+-]?[0-9]+")
_UINT: Final = re.compile(r"[0-9]+")
_FLOAT: Final = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
    r"|0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)"
)
_SPECIAL_FLOATS: Final = re.compile(r"[+-]?(?:inf|infinity)|nan", re.IGNORECASE)
_BOOLS: Final = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}
_MAX_DIGITS: Final = 4000


def failed(source: str, target: Type) -> Err:
    """Return the error of a conversion that cannot be done."""
    return Err(f"type conversion error from '{source}' to '{target.name}'")


def string_to_int(text: str) -> int | None:
    """Return the int that a text spells, or None."""
    return _in_range(text, _INT, INT_MIN, INT_MAX)


def string_to_uint(text: str) -> Uint | None:
    """Return the uint that a text spells, or None."""
    value = _in_range(text, _UINT, 0, UINT_MAX)
    return None if value is None else Uint(value)


def string_to_double(text: str) -> float | None:
    """Return the double that a text spells, or None."""
    if _SPECIAL_FLOATS.fullmatch(text):
        return float(text)
    if not _FLOAT.fullmatch(text):
        return None
    try:
        value = float.fromhex(text) if "x" in text.lower() else float(text)
    except OverflowError:
        return None
    return None if math.isinf(value) else value


def string_to_bool(text: str) -> bool | None:
    """Return the bool that a text spells, or None."""
    return _BOOLS.get(text)


def double_to_int(value: float) -> Value:
    """Truncate a double, unless it is out of range."""
    if math.isnan(value) or not -(2.0**63) < value < 2.0**63:
        return INT_OVERFLOW
    return int(value)


def double_to_uint(value: float) -> Value:
    """Truncate a double, unless it is out of range."""
    if math.isnan(value) or not 0 <= value < 2.0**64:
        return UINT_OVERFLOW
    return Uint(int(value))


def int_to_uint(value: int) -> Value:
    """Convert an int that is not negative."""
    return UINT_OVERFLOW if value < 0 else Uint(value)


def uint_to_int(value: Uint) -> Value:
    """Convert a uint that is small enough."""
    return INT_OVERFLOW if value > INT_MAX else int(value)


def int_to_timestamp(seconds: int) -> Value:
    """Return the time that is so many seconds after the epoch."""
    if not timestamps.MIN_UNIX_SECONDS <= seconds <= timestamps.MAX_UNIX_SECONDS:
        return TIMESTAMP_OVERFLOW
    return Timestamp(seconds * _NANOS)


def string_to_timestamp(text: str) -> Value:
    """Return the time that a text names, None if it names none, or an error if it is too far."""
    value = timestamps.parse_timestamp(text)
    if value is None:
        return None
    in_range = int_to_timestamp(value.nanos // _NANOS)
    return in_range if type(in_range) is Err else value


def bytes_to_string(value: bytes) -> Value:
    """Decode UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return Err("invalid UTF-8 in bytes, cannot convert to string")


def to_string(value: Value) -> str:
    """Return the text of a value of a simple type, as ``string()`` gives it."""
    if type(value) is bool:
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return double_text(value)
    if isinstance(value, CelDuration):
        return f"{plain_double(value.nanos / _NANOS)}s"
    if isinstance(value, Timestamp):
        return timestamps.format_timestamp(value)
    return str(value)


def double_text(value: float) -> str:
    """Spell a double as Go's %g does: 1e+06, 0.1, +Inf."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    sign, digits, exponent = _digits(value)
    if not -4 <= exponent < 6:
        fraction = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{fraction}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    return sign + _positional(digits, exponent)


def plain_double(value: float) -> str:
    """Spell a double without an exponent, with as few digits as tell it from its neighbours."""
    if math.isnan(value) or math.isinf(value):
        return double_text(value)
    sign, digits, exponent = _digits(value)
    return sign + _positional(digits, exponent)


def _digits(value: float) -> tuple[str, str, int]:
    """Return sign, significant digits and the decimal exponent of the first of them."""
    sign = "-" if math.copysign(1, value) < 0 else ""
    _, digits, exponent = Decimal(repr(abs(value))).as_tuple()
    assert isinstance(exponent, int)  # noqa: S101 - the value is finite
    text = "".join(map(str, digits))
    stripped = text.rstrip("0") or "0"
    if stripped == "0":
        return sign, "0", 0
    return sign, stripped, exponent + len(text) - 1


def _positional(digits: str, exponent: int) -> str:
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    fraction = digits[exponent + 1 :]
    return f"{whole}.{fraction}" if fraction else whole


def _in_range(text: str, pattern: re.Pattern[str], low: int, high: int) -> int | None:
    if len(text) > _MAX_DIGITS or not pattern.fullmatch(text):
        return None
    value = int(text)
    return value if low <= value <= high else None
