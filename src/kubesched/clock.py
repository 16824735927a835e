"""Time as a parameter, so that tests and simulations decide how it passes."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """What a component may ask about time."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary start; never goes back."""

    def time(self) -> float:
        """Seconds since the epoch, for timestamps that others read."""


class RealClock:
    """The machine's clocks; asked dozens of times for each pod, so there is nothing in between."""

    monotonic = staticmethod(time.monotonic)
    time = staticmethod(time.time)


class VirtualClock:
    """A clock that stands still until it is told to go on."""

    def __init__(self, start: float = 0.0) -> None:
        self._now = start

    def monotonic(self) -> float:
        """Seconds since the epoch of this clock."""
        return self._now

    def time(self) -> float:
        """Seconds since the epoch of this clock: both readings agree."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        if seconds < 0:
            raise ValueError(f"time cannot go back by {-seconds} s")
        self._now += seconds
