"""Timestamps and durations as Go reads and writes them.

``datetime`` knows neither nanoseconds nor Go's durations, so both are counts of nanoseconds here;
only the calendar is Python's.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from typing import Final
from zoneinfo import ZoneInfo

from kubesched.cel.values import INT_MAX, CelDuration, Timestamp

MIN_UNIX_SECONDS: Final = -62135596800
MAX_UNIX_SECONDS: Final = 253402300799

_NANOS: Final = 10**9
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_RFC3339: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))",
    re.ASCII,
)
_DURATION: Final = re.compile(
    r"[+-]?(?:0|(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)", re.ASCII
)
_DURATION_PART: Final = re.compile(r"(\d*)(?:\.(\d*))?(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_UNITS: Final = {
    "ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6,
    "s": _NANOS, "m": 60 * _NANOS, "h": 3600 * _NANOS,
}  # fmt: skip
_MAX_TEXT: Final = 1000


def parse_timestamp(text: str) -> Timestamp | None:
    """Return the time that an RFC 3339 text names, or None; its year may be out of range."""
    match = _RFC3339.fullmatch(text)
    if match is None or len(text) > _MAX_TEXT:
        return None
    year, month, day, hour, minute, second = (int(match[group]) for group in range(1, 7))
    offset = 0
    if match[8]:
        offset_hour, offset_minute = int(match[9]), int(match[10])
        if offset_hour > 24 or offset_minute > 60:
            return None
        offset = (offset_hour * 60 + offset_minute) * 60 * (-1 if match[8] == "-" else 1)
    if hour > 23 or minute > 59 or second > 59 or not 1 <= month <= 12:
        return None
    try:
        # Year 0 is a year for Go, and a leap year as 400 is.
        at = datetime(year or 400, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    seconds = int((at - _EPOCH) / timedelta(seconds=1)) - offset
    if year == 0:
        seconds -= 146097 * 86400
    fraction = int((match[7] or "")[:9].ljust(9, "0"))
    return Timestamp(seconds * _NANOS + fraction, offset)


def format_timestamp(value: Timestamp) -> str:
    """Return a time as Go's RFC3339Nano does, in the offset that it was given in."""
    seconds, nanos = divmod(value.nanos, _NANOS)
    local = _EPOCH + timedelta(seconds=seconds + value.offset_seconds)
    fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
    return f"{local:%Y-%m-%dT%H:%M:%S}".rjust(19, "0") + fraction + _zone(value.offset_seconds)


def parse_duration(text: str) -> CelDuration | None:
    """Return a duration such as 1h30m or -1.5s, or None."""
    if len(text) > _MAX_TEXT or not _DURATION.fullmatch(text):
        return None
    total = 0
    for whole, fraction, unit in _DURATION_PART.findall(text):
        if len(whole.lstrip("0")) > 19:
            return None
        scale = _UNITS[unit]
        part = int(whole or "0") * scale
        if fraction:
            part += int(Fraction(int(fraction[:18]), 10 ** len(fraction[:18])) * scale)
        total += part
    limit = INT_MAX + (1 if text.startswith("-") else 0)
    if total > limit:
        return None
    return CelDuration(-total if text.startswith("-") else total)


class ZoneError(Exception):
    """A time zone that does not exist; the text is upstream's."""


def local_time(value: Timestamp, zone: str | None = None) -> datetime:
    """Return a time in a zone: an offset such as -08:00, or a name; without one, in UTC."""
    at = _EPOCH + timedelta(microseconds=value.nanos // 1000)
    if zone is None:
        return at
    if ":" not in zone:
        return at.astimezone(_named_zone(zone))
    hours, _, minutes = zone.partition(":")
    try:
        hour, minute = _go_int(hours), _go_int(minutes)
    except ValueError as error:
        raise ZoneError(str(error)) from None
    offset = hour * 60 - minute if zone[:1] == "-" else hour * 60 + minute
    try:
        return at.astimezone(timezone(timedelta(minutes=offset)))
    except (ValueError, OverflowError):
        return at + timedelta(minutes=offset)


def _named_zone(name: str) -> ZoneInfo | timezone:
    if name in ("", "UTC"):
        return UTC
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        raise ZoneError(f"unknown time zone {name}") from None


def _go_int(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        quoted = '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
        raise ValueError(f"strconv.Atoi: parsing {quoted}: invalid syntax")
    return int(text)


def _zone(offset_seconds: int) -> str:
    if offset_seconds == 0:
        return "Z"
    sign = "-" if offset_seconds < 0 else "+"
    hours, minutes = divmod(abs(offset_seconds) // 60, 60)
    return f"{sign}{hours:02d}:{minutes:02d}"
