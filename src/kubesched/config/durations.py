"""Durations as ``metav1.Duration`` writes them: ``5m0s``, ``1.5h``, ``100ms``.

Stored in nanoseconds. Parsing accepts what Go's ``time.ParseDuration`` accepts and rejects the rest
with its messages; formatting is that of Go's ``Duration.String``, so that both programs write the
same configuration.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from kubesched.errors import ConfigError

_UNITS_NS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # U+00B5, micro sign
    "μs": 1_000,  # U+03BC, the Greek letter, which Go accepts as well
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_SECOND_NS: Final = _UNITS_NS["s"]
_MAX_NS: Final = 2**63 - 1
#: int64 has no more digits.
_MAX_DIGITS: Final = 19
_PART: Final = re.compile(
    r"(?P<whole>[0-9]*)(?:(?P<dot>\.)(?P<fraction>[0-9]*))?(?P<unit>[^0-9.]*)"
)


class Duration(msgspec.Struct, frozen=True, gc=False, order=True):
    """A duration with nanosecond precision."""

    nanoseconds: int = 0

    @property
    def seconds(self) -> float:
        """The duration in seconds, for timers."""
        return self.nanoseconds / _SECOND_NS

    @classmethod
    def of_seconds(cls, seconds: float) -> Duration:
        """Return a duration of seconds, rounded to the nanosecond."""
        return cls(round(seconds * _SECOND_NS))

    @classmethod
    def parse(cls, text: str) -> Duration:
        """Parse Go's notation; raises ConfigError with Go's message."""
        return cls(_parse_ns(text))

    def __str__(self) -> str:
        return _format_ns(self.nanoseconds)


def _parse_ns(text: str) -> int:
    negative = text.startswith("-")
    rest = text[1:] if text[:1] in {"-", "+"} else text
    if rest == "0":
        return 0
    if not rest:
        raise _invalid(text)
    total = 0
    while rest:
        part = _PART.match(rest)
        if part is None or not (part["whole"] or part["fraction"]):
            raise _invalid(text)
        if not part["unit"]:
            raise ConfigError(f"time: missing unit in duration {_quote(text)}")
        if part["unit"] not in _UNITS_NS:
            unit = _quote(part["unit"])
            raise ConfigError(f"time: unknown unit {unit} in duration {_quote(text)}")
        total += _part_ns(part["whole"], part["fraction"] or "", _UNITS_NS[part["unit"]])
        if total > _MAX_NS + negative:
            raise _invalid(text)
        rest = rest[part.end() :]
    return -total if negative else total


def _part_ns(whole: str, fraction: str, unit_ns: int) -> int:
    significant = whole.lstrip("0")
    if len(significant) > _MAX_DIGITS:
        return _MAX_NS + 2  # out of range for a duration
    amount = int(significant or 0) * unit_ns
    zeros = len(fraction) - len(fraction.lstrip("0"))
    # Go multiplies in floating point and truncates; digits that overflow int64 are dropped.
    digits = fraction[: zeros + _MAX_DIGITS]
    while digits and int(digits) > _MAX_NS:
        digits = digits[:-1]
    if digits and zeros < _MAX_DIGITS:
        amount += int(float(int(digits)) * (float(unit_ns) / 10.0 ** len(digits)))
    return amount


def _invalid(text: str) -> ConfigError:
    return ConfigError(f"time: invalid duration {_quote(text)}")


def _quote(text: str) -> str:
    """Quote as Go's time package does: every non-ASCII or control byte becomes ``\\xNN``."""
    quoted = "".join(
        f"\\{char}"
        if char in '"\\'
        else char
        if " " <= char < "\x7f"
        else "".join(f"\\x{byte:02x}" for byte in char.encode(errors="surrogatepass"))
        for char in text
    )
    return f'"{quoted}"'


def _format_ns(nanoseconds: int) -> str:
    if nanoseconds == 0:
        return "0s"
    sign = "-" if nanoseconds < 0 else ""
    amount = abs(nanoseconds)
    if amount < _SECOND_NS:
        unit = "ns" if amount < _UNITS_NS["us"] else "µs" if amount < _UNITS_NS["ms"] else "ms"
        return f"{sign}{_decimal(amount, _UNITS_NS[unit])}{unit}"
    minutes, below_minute_ns = divmod(amount, _UNITS_NS["m"])
    hours, minutes = divmod(minutes, 60)
    seconds = f"{_decimal(below_minute_ns, _SECOND_NS)}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{seconds}"
    return f"{sign}{minutes}m{seconds}" if minutes else f"{sign}{seconds}"


def _decimal(amount: int, unit: int) -> str:
    """Write amount/unit exactly, without trailing zeros; unit is a power of ten."""
    whole, fraction = divmod(amount, unit)
    digits = str(fraction).zfill(len(str(unit)) - 1).rstrip("0") if fraction else ""
    return f"{whole}.{digits}" if digits else str(whole)
