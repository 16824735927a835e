"""Numbers and booleans of flags, parsed and formatted as by Go's strconv."""

from __future__ import annotations

import re
import struct
from decimal import Decimal
from typing import Final

from kubesched.errors import UsageError
from kubesched.logs import quote

_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})
#: An integer with a base prefix; underscores may separate digits.
_INTEGER: Final = re.compile(
    r"(?P<sign>[+-]?)(?:"
    r"0[xX](?P<hex>(?:_?[0-9a-fA-F])+)|0[bB](?P<bin>(?:_?[01])+)|0[oO]?(?P<oct>(?:_?[0-7])+)"
    r"|(?P<dec>0|[1-9](?:_?[0-9])*))"
)
_BASES: Final = {"hex": 16, "bin": 2, "oct": 8, "dec": 10}
_DECIMAL_FLOAT: Final = re.compile(
    r"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf|infinity|nan)", re.IGNORECASE
)
_HEX_FLOAT: Final = re.compile(
    r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+"
)
#: An underscore between digits, or between a prefix and its digits.
_UNDERSCORE: Final = re.compile(r"(?<=[0-9a-fA-FxX])_(?=[0-9a-fA-F])")
#: From this exponent on, Go's %g writes one.
_FIRST_EXPONENT: Final = 6
_LAST_SMALL_EXPONENT: Final = -4


def parse_bool(text: str) -> bool:
    """Parse a boolean."""
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise _refused("ParseBool", text)


def parse_int(text: str, *, bits: int = 64) -> int:
    """Parse an integer; ``0x``, ``0b``, ``0o`` and a leading zero set its base."""
    found = _INTEGER.fullmatch(text)
    if found is None or found.lastgroup is None:
        raise _refused("ParseInt", text)
    digits = found[found.lastgroup].replace("_", "").lstrip("0") or "0"
    limit = 1 << (bits - 1)
    # Python limits the number of digits.
    is_long = len(digits) > bits
    number = 0 if is_long else int(found["sign"] + digits, _BASES[found.lastgroup])
    if is_long or not -limit <= number < limit:
        raise _refused("ParseInt", text, "value out of range")
    return number


def parse_uint(text: str, *, bits: int) -> int:
    """Parse a plain decimal integer."""
    if not (text.isascii() and text.isdigit()):
        raise _refused("ParseUint", text)
    digits = text.lstrip("0") or "0"
    if len(digits) > bits or (number := int(digits)) >= 1 << bits:
        raise _refused("ParseUint", text, "value out of range")
    return number


def parse_float(text: str, *, single: bool = False) -> float:
    """Parse a float, optionally of single precision."""
    digits = _UNDERSCORE.sub("", text)
    if _HEX_FLOAT.fullmatch(digits):
        number = _float_from_hex(digits)
    elif _DECIMAL_FLOAT.fullmatch(digits):
        number = float(digits)
    else:
        raise _refused("ParseFloat", text)
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", number))[0] if single else number
    except OverflowError:
        rounded = float("inf")
    if rounded in (float("inf"), float("-inf")) and "inf" not in text.lower():
        raise _refused("ParseFloat", text, "value out of range")
    return rounded


def format_float(number: float, *, single: bool = False) -> str:
    """Format the shortest text that parses back to the number, in Go's %g."""
    if number != number:  # noqa: PLR0124 (only NaN is not itself)
        return "NaN"
    if number in (float("inf"), float("-inf")):
        return "+Inf" if number > 0 else "-Inf"
    shortest = _shortest_single(number) if single else repr(number)
    sign, digits, exponent = Decimal(shortest).normalize().as_tuple()
    point = len(digits) + int(exponent) - 1
    if not number or _LAST_SMALL_EXPONENT <= point < _FIRST_EXPONENT:
        return f"{Decimal(shortest):f}".removesuffix(".0")
    text = "".join(map(str, digits))
    fraction = f".{text[1:]}" if text[1:] else ""
    return f"{'-' if sign else ''}{text[0]}{fraction}e{point:+03d}"


def _float_from_hex(text: str) -> float:
    try:
        return float.fromhex(text)
    except OverflowError:
        return float("inf")


def _shortest_single(number: float) -> str:
    packed = struct.pack("<f", number)
    texts = (f"{number:.{digits}g}" for digits in range(1, 10))
    return next(text for text in texts if _packed_single(text) == packed)


def _packed_single(text: str) -> bytes | None:
    """Convert to single precision; None if it overflows."""
    try:
        return struct.pack("<f", float(text))
    except OverflowError:
        return None


def _refused(function: str, text: str, why: str = "invalid syntax") -> UsageError:
    return UsageError(f"strconv.{function}: parsing {quote(text)}: {why}")
