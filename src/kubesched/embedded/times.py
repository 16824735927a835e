"""Timestamps in the API's format, from an injectable clock."""

from __future__ import annotations

from datetime import UTC, datetime

from kubesched.clock import Clock


class Timestamps:
    """The current time as text; cached for a second, as thousands of objects share it."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._second = -1
        self._text = ""

    def now(self) -> str:
        """Return the current time, to the second."""
        second = int(self.clock.time())
        if second != self._second:
            self._second, self._text = second, format_time(second)
        return self._text

    def after(self, seconds: float) -> str:
        """Return a future time, to the second."""
        return format_time(self.clock.time() + seconds)


def format_time(epoch_s: float) -> str:
    """Return seconds since the epoch as a timestamp, to the second."""
    return datetime.fromtimestamp(int(epoch_s), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_time(text: str) -> float:
    """Parse a timestamp to seconds since the epoch; raises ValueError."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"the timestamp {text!r} has no time zone")
    return moment.timestamp()
