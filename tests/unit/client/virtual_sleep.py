"""Sleeps in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.support.waiting import settle


class VirtualSleep:
    """Sleeps that end when the test says that time has passed."""

    def __init__(self, clock: Any) -> None:
        self._clock = clock
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []
        #: every pause that was asked for
        self.asked: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.asked.append(seconds)
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self._clock.monotonic() + seconds, waiter))
        await waiter

    @property
    def waiting(self) -> int:
        return sum(not waiter.done() for _, waiter in self._sleepers)

    async def advance(self, seconds: float) -> None:
        """Let time pass, waking sleepers in order of their time."""
        end = self._clock.monotonic() + seconds
        while True:
            await settle()
            due = [item for item in self._sleepers if not item[1].done() and item[0] <= end]
            if not due:
                break
            moment, waiter = min(due, key=lambda item: item[0])
            self._clock.advance(max(0.0, moment - self._clock.monotonic()))
            waiter.set_result(None)
            self._sleepers = [item for item in self._sleepers if not item[1].done()]
        self._clock.advance(end - self._clock.monotonic())
        await settle()
