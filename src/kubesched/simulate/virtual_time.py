"""asyncio in virtual time: nobody ever waits, and everything happens in the order of its time.

    loop: nothing left to do now ──> selector asked to wait until the next timer
              ^                                     │ does not wait: the clock jumps there
              └──── timers that are due now <───────┘

A day passes as fast as what happens in it can be computed, in the same order every time. Only
timers can wake a loop like this one: there are no connections and no threads to wait for.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import TypeVar

from kubesched.clock import VirtualClock
from kubesched.errors import InvariantError

T = TypeVar("T")


class _JumpingSelector(selectors.DefaultSelector):
    """Lets the time pass that it is asked to wait."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._virtual_clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what is ready now, signals among it; nothing if time passed instead."""
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            raise InvariantError("everybody waits for something that can never happen")
        self._virtual_clock.advance(max(timeout, 0.0))
        return []


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop whose time is a virtual clock's."""

    def __init__(self, clock: VirtualClock) -> None:
        self._virtual_clock = clock
        super().__init__(_JumpingSelector(clock))
        # Timers are due if they are before now plus this, so it has to be more than what a float
        # of seconds since 1970 can tell apart: otherwise none that is due now ever would be.
        self._clock_resolution = 1e-6

    def time(self) -> float:
        """Return the clock's time."""
        return self._virtual_clock.monotonic()


def run_in_virtual_time(clock: VirtualClock, main: Coroutine[object, object, T]) -> T:
    """Run a coroutine to its end; as with asyncio.run, what it started ends with it."""
    with asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(clock)) as runner:
        return runner.run(main)
