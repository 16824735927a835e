"""Client-side rate limit: a token bucket of ``burst`` tokens, refilled with ``qps`` a second.

A caller that finds the bucket empty takes its token from the future: it learns how long to wait,
and the next caller's wait is that much longer. So turns come in the order of asking, without a
queue, and nothing has to be woken.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from kubesched.clock import Clock, RealClock

Sleep = Callable[[float], Awaitable[None]]


class RateLimiter:
    """Lets through ``qps`` calls a second on average and ``burst`` at once; qps <= 0: all."""

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
        #: whether nobody ever waits
        self.unlimited = qps <= 0
        self._burst = float(burst)
        #: below zero: tokens already promised to callers that are still waiting
        self._tokens = float(burst)
        self._updated = self._clock.monotonic()

    def reserve(self) -> float:
        """Take a token; the answer is how many seconds to wait before acting on it."""
        if self.unlimited:
            return 0.0
        now = self._clock.monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._updated) * self._qps)
        self._updated = now
        self._tokens -= 1
        return -self._tokens / self._qps if self._tokens < 0 else 0.0

    def give_back(self) -> None:
        """Return a token that was reserved and not used."""
        if not self.unlimited:
            self._tokens = min(self._burst, self._tokens + 1)

    async def wait(self, delay_s: float) -> None:
        """Wait for a turn that was reserved; who gives up gives it back."""
        try:
            await self._sleep(delay_s)
        except asyncio.CancelledError:
            self.give_back()
            raise
