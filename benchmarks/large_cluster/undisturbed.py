"""Time as it would pass if no other process used this core: for a machine that is busy.

    this time = CPU time of the thread + time asleep in the selector
    not in it: time that the thread could run and had to wait for a core

Linux tells the latter (schedstat). Pods that arrive at a rate by this clock arrive at the rate
that they would have on an idle machine.
"""

from __future__ import annotations

import asyncio
import os
import selectors
import time
from selectors import SelectorKey


class UndisturbedSelector(selectors.EpollSelector):
    """Measures how long the thread sleeps."""

    def __init__(self) -> None:
        super().__init__()
        self._idle_s = 0.0
        self._schedstat = os.open("/proc/thread-self/schedstat", os.O_RDONLY)

    def close(self) -> None:
        """Close the files."""
        os.close(self._schedstat)
        super().close()

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        """Wait for events; count the time asleep."""
        if timeout is not None and timeout <= 0:
            return super().select(timeout)
        before = self._not_running_s()
        ready = super().select(timeout)
        self._idle_s += self._not_running_s() - before
        return ready

    def now(self) -> float:
        """Return the time in seconds, from an arbitrary start."""
        return time.thread_time() + self._idle_s

    def _not_running_s(self) -> float:
        waited_ns = int(os.pread(self._schedstat, 64, 0).split()[1])
        return time.perf_counter() - waited_ns / 1e9 - time.thread_time()


class UndisturbedLoop(asyncio.SelectorEventLoop):
    """An event loop whose timers go by that time."""

    def __init__(self) -> None:
        self._undisturbed = UndisturbedSelector()
        super().__init__(self._undisturbed)

    def time(self) -> float:
        """Return the time that timers go by."""
        return self._undisturbed.now()


class UndisturbedClock:
    """The time of the running loop."""

    time = staticmethod(time.time)

    def __init__(self) -> None:
        self.monotonic = asyncio.get_running_loop().time
