"""Resource quantities, parsed to exact integers.

    "1500m" ── nano ──▶ 1_500_000_000 ── rounded up ──▶ value 2, milli_value 1500

Kubernetes stores a quantity with nine decimal places: anything smaller than 1n counts as 1n, and
binary suffixes are capped at 2^63-1. So a count of nano units is exact, sums of it are exact, and
rounding happens once, on conversion to a scheduler unit. No floats are involved.

``value`` and ``milli_value`` return what Go's ``Value()`` and ``MilliValue()`` do, with two
exceptions on purpose. Where the result does not fit into an int64, Go returns 0 or wraps around;
here it is a ``QuantityError``, or 0 where that would make a node unreadable (``capacity``). And
negative amounts, which no API server accepts for anything that is scheduled, are always rounded
away from zero; Go does so only for short decimal numbers.

Any text takes bounded time: long ones are rejected unparsed, and no power of ten is built that is
larger than ``MAX_INTEGER_DIGITS`` allows.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from kubesched.api.core import QuantityText
from kubesched.errors import QuantityError

INT64_MAX: Final = 2**63 - 1
INT64_MIN: Final = -(2**63)

#: Longer texts are rejected: nothing that fits into an int64 needs them, and they would be cached.
MAX_TEXT_LENGTH: Final = 1024
#: Limit of digits before the decimal point.
MAX_INTEGER_DIGITS: Final = 64

#: Enough for the sizes in use; more would be memory for sizes that never come again.
_CACHE_SIZE: Final = 8192
_SHOWN_LENGTH: Final = 80

_NANO_DIGITS: Final = 9
_NANO: Final = 10**_NANO_DIGITS
_NANO_PER_MILLI: Final = 10**6
_BINARY_CAP_NANO: Final = INT64_MAX * _NANO

_DECIMAL_EXPONENTS: Final = {
    "n": -9,
    "u": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
}
_BINARY_EXPONENTS: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
#: Kubernetes parses a suffix without digits as zero, except on its slow path.
_NEEDS_DIGITS: Final = frozenset({"Pi", "Ei"})

_QUANTITY: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?"
    r"(?P<suffix>[numkMGTPE]?|[KMGTPE]i|[eE](?P<exponent>[+-]?[0-9]+))"
)
#: What Go's strings.TrimSpace removes; str.strip() would remove a few control characters more.
_SPACE: Final = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)


class _OutOfRangeError(QuantityError):
    """Well-formed, but out of range."""


@lru_cache(maxsize=_CACHE_SIZE, typed=True)
def value(text: QuantityText) -> int:
    """Return the amount in whole units, rounded up: bytes, devices, pods.

    Raises QuantityError if the text is malformed or the result does not fit into an int64.
    """
    return _in_int64(_away_from_zero(_parse(text), _NANO), text)


@lru_cache(maxsize=_CACHE_SIZE, typed=True)
def milli_value(text: QuantityText) -> int:
    """Return the amount in thousandths, rounded up: the unit of CPU.

    Raises QuantityError if the text is malformed or the result does not fit into an int64.
    """
    return _in_int64(_away_from_zero(_parse(text), _NANO_PER_MILLI), text)


@lru_cache(maxsize=_CACHE_SIZE, typed=True)
def nano(text: QuantityText) -> int:
    """Return the exact amount in billionths, for sums that are rounded once, at the end.

    Raises QuantityError if the text is malformed or has more than MAX_INTEGER_DIGITS digits.
    """
    return _parse(text)


@lru_cache(maxsize=_CACHE_SIZE, typed=True)
def capacity(text: QuantityText, *, milli: bool = False) -> int:
    """Return a node's capacity, as ``value`` or ``milli_value``, but 0 if it overflows int64.

    Raises QuantityError if the text is malformed.
    """
    try:
        return _in_int64(_away_from_zero(_parse(text), _NANO_PER_MILLI if milli else _NANO), text)
    except _OutOfRangeError:
        return 0


def value_of_nano(amount_nano: int) -> int:
    """Convert an exact amount to whole units, rounded up; raises QuantityError on overflow."""
    return _in_int64(_away_from_zero(amount_nano, _NANO), f"{amount_nano}n")


def milli_of_nano(amount_nano: int) -> int:
    """Convert an exact amount to thousandths, rounded up; raises QuantityError on overflow."""
    return _in_int64(_away_from_zero(amount_nano, _NANO_PER_MILLI), f"{amount_nano}n")


def compare(left: QuantityText, right: QuantityText) -> int:
    """Return -1, 0 or 1 as ``left`` is less than, equal to or greater than ``right``."""
    left_nano, right_nano = nano(left), nano(right)
    return (left_nano > right_nano) - (left_nano < right_nano)


def _parse(text: QuantityText) -> int:
    spelled = _spelled(text)
    match = _QUANTITY.fullmatch(spelled)
    if match is None or not spelled:
        raise _malformed(text)
    whole, fraction, suffix = match["whole"], match["fraction"] or "", match["suffix"]
    if suffix in _BINARY_EXPONENTS:
        amount = _binary(whole, fraction, suffix)
    else:
        exponent = _decimal_exponent(suffix, match["exponent"], text)
        amount = _decimal(whole, fraction, exponent, text)
    if amount is None:
        raise _malformed(text)
    return -amount if match["sign"] == "-" else amount


def _spelled(text: QuantityText) -> str:
    if isinstance(text, str):
        if len(text) > MAX_TEXT_LENGTH:
            raise QuantityError(
                f"quantity {_shown(text)} is too long: at most {MAX_TEXT_LENGTH} characters"
            )
        return text.strip(_SPACE)
    if isinstance(text, int) and text.bit_length() > 4 * MAX_INTEGER_DIGITS:
        raise _out_of_range("a JSON number")  # printing it could take long
    return str(text)


def _decimal_exponent(suffix: str, exponent: str | None, text: QuantityText) -> int:
    if exponent is None:
        return _DECIMAL_EXPONENTS[suffix]
    power = int(exponent)
    # Go truncates the exponent to 32 bits here.
    if not -(2**31) <= power < 2**31:
        raise _out_of_range(text)
    return power


def _decimal(whole: str, fraction: str, exponent: int, text: QuantityText) -> int | None:
    if not whole and not fraction:
        return 0 if exponent >= -_NANO_DIGITS else None
    digits = (whole + fraction).lstrip("0")
    if not digits:
        return 0
    shift = exponent - len(fraction) + _NANO_DIGITS
    if len(digits) + shift > MAX_INTEGER_DIGITS + _NANO_DIGITS:
        raise _out_of_range(text)
    if shift >= 0:
        amount: int = int(digits) * 10**shift
        return amount
    if -shift > len(digits):
        return 1  # less than 1n
    return _away_from_zero(int(digits), 10**-shift)


def _binary(whole: str, fraction: str, suffix: str) -> int | None:
    if not whole and not fraction:
        return None if suffix in _NEEDS_DIGITS else 0
    scaled = int(whole + fraction) * _NANO << _BINARY_EXPONENTS[suffix]
    return min(_away_from_zero(scaled, 10 ** len(fraction)), _BINARY_CAP_NANO)


def _away_from_zero(amount: int, unit: int) -> int:
    return -(-amount // unit) if amount >= 0 else amount // unit


def _in_int64(amount: int, text: QuantityText) -> int:
    if INT64_MIN <= amount <= INT64_MAX:
        return amount
    raise _out_of_range(text)


def _malformed(text: QuantityText) -> QuantityError:
    return QuantityError(
        f"{_shown(text)} is not a quantity: want a number with an optional suffix, "
        "such as 500m, 1.5Gi or 1e3"
    )


def _out_of_range(text: QuantityText) -> QuantityError:
    return _OutOfRangeError(
        f"quantity {_shown(text)} is out of range: it must fit into a 64-bit integer "
        "in the unit it is counted in"
    )


def _shown(text: QuantityText) -> str:
    """Quote a text on one line, truncated."""
    if not isinstance(text, str):
        return repr(text)
    cut = text if len(text) <= _SHOWN_LENGTH else text[: _SHOWN_LENGTH - 1] + "…"
    return ascii(cut) if not cut.isprintable() else repr(cut)
