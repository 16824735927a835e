"""Client-side rate limit: a token bucket of ``burst`` tokens, refilled at ``qps`` per second.

A caller that finds the bucket empty takes its token from the future: it learns how long to wait,
and the next caller waits longer. So callers are served in order, without a queue or wake-ups.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from kubesched.clock import Clock, RealClock

Sleep = Callable[[float], Awaitable[None]]


class RateLimiter:
    """Allows ``qps`` calls per second on average and ``burst`` at once; qps <= 0: no limit."""

    __slots__ = ("_burst", "_clock", "_qps", "_sleep", "_tokens", "_updated", "unlimited")

    def __init__(
        self,
        qps: float,
        burst: int,
        *,
        clock: Clock | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        if qps > 0 and burst < 1:
            raise ValueError(f"burst must be at least 1 when qps is limited, not {burst}")
        self._clock = clock or RealClock()
        self._sleep = sleep
        self._qps = qps
        #: whether there is no limit
        self.unlimited = qps <= 0
        self._burst = float(burst)
        #: negative: tokens reserved by callers that still wait
        self._tokens = float(burst)
        self._updated = self._clock.monotonic()

    def reserve(self) -> float:
        """Take a token; return how many seconds to wait before using it."""
        if self.unlimited:
            return 0.0
        now = self._clock.monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._updated) * self._qps)
        self._updated = now
        self._tokens -= 1
        return -self._tokens / self._qps if self._tokens < 0 else 0.0

    def give_back(self) -> None:
        """Return a reserved token that was not used."""
        if not self.unlimited:
            self._tokens = min(self._burst, self._tokens + 1)

    async def wait(self, delay_s: float) -> None:
        """Wait for a reserved token; a cancelled caller returns it."""
        try:
            await self._sleep(delay_s)
        except asyncio.CancelledError:
            self.give_back()
            raise
