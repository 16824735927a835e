"""Limits how many tasks do something at the same time, and lets those of a lower rank go first."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from heapq import heappop, heappush

#: The lowest goes first.
Rank = tuple[int, ...]


class Turns:
    """A semaphore whose waiters are served by rank, and in order of arrival within a rank."""

    def __init__(self, at_once: int) -> None:
        #: turns that nothing waits for
        self._free = at_once
        #: waiters: rank, order of arrival, and the future that ends the wait
        self._line: list[tuple[Rank, int, asyncio.Future[None]]] = []
        self._arrivals = itertools.count()

    @asynccontextmanager
    async def take(self, rank: Rank) -> AsyncIterator[None]:
        """Wait for a turn; it ends with the block."""
        await self._wait(rank)
        try:
            yield
        finally:
            self._end()

    async def _wait(self, rank: Rank) -> None:
        if self._free:
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heappush(self._line, (rank, next(self._arrivals), turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._end()  # it was given its turn just before: the next waiter gets it
            raise

    def _end(self) -> None:
        while self._line:
            *_, turn = heappop(self._line)
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
