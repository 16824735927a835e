"""asyncio in virtual time: no real waiting; timers fire in order.

    loop: no ready callbacks ────────> selector asked to wait until the next timer
              ^                                     │ does not wait: the clock jumps there
              └──── timers that are due now <───────┘

A day passes as fast as its events can be computed, in the same order every time. Only timers can
wake this loop: there are no connections and no threads to wait for.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

from kubesched.clock import VirtualClock
from kubesched.errors import InvariantError

T = TypeVar("T")


class _JumpingSelector(selectors.DefaultSelector):
    """Advances the clock by the requested timeout instead of waiting."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._virtual_clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what is ready now, signals included; advance the clock if nothing is."""
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            raise InvariantError("deadlock: all tasks wait, and no timer is pending")
        self._virtual_clock.advance(max(timeout, 0.0))
        return []


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop whose time is a virtual clock's."""

    def __init__(self, clock: VirtualClock) -> None:
        self._virtual_clock = clock
        super().__init__(_JumpingSelector(clock))
        # Timers are due if they are before now plus this, so it must exceed the resolution of a
        # float of seconds since 1970: otherwise none that is due now ever would be.
        self._clock_resolution = 1e-6

    def time(self) -> float:
        """Return the clock's time."""
        return self._virtual_clock.monotonic()


def run_in_virtual_time(clock: VirtualClock, main: Coroutine[object, object, T]) -> T:
    """Run a coroutine to its end; as with asyncio.run, its tasks end with it."""
    with asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(clock)) as runner:
        runner.get_loop().set_exception_handler(_on_loop_error)
        return runner.run(main)


def _on_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log errors of the event loop, but not the exit that a signal has caused in a task."""
    if not isinstance(context.get("exception"), SystemExit):
        loop.default_exception_handler(context)
