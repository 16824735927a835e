"""Time as a parameter, so that tests and simulations decide how it passes."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """What components need of a clock."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary start; never goes back."""

    def time(self) -> float:
        """Seconds since the epoch, for timestamps that others read."""


class RealClock:
    """The system's clocks; called dozens of times per pod, so without a wrapper."""

    monotonic = staticmethod(time.monotonic)
    time = staticmethod(time.time)


class SteadyClock:
    """Seconds since the epoch, carried on from the start by the monotonic clock.

    Jumps of the system's clock do not reach it: it is for waiting, and for what came first.
    """

    def __init__(self, clock: Clock) -> None:
        self.monotonic = clock.monotonic
        self._start = clock.time() - clock.monotonic()

    def time(self) -> float:
        """Seconds since the epoch, had the system's clock not been set since the start."""
        return self._start + self.monotonic()


class VirtualClock:
    """A clock that stands still until it is advanced."""

    def __init__(self, start: float = 0.0) -> None:
        self._now = start

    def monotonic(self) -> float:
        """Seconds since the epoch of this clock."""
        return self._now

    def time(self) -> float:
        """Seconds since the epoch of this clock: both readings agree."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Advance the clock."""
        if seconds < 0:
            raise ValueError(f"time cannot go back by {-seconds} s")
        self._now += seconds
