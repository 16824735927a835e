"""News for those who watch: once a second, put together once for all of them.

    tick ──> overview ─────────────┐
         ──> nodes since version ──┼──> the same bytes to everybody who is at the same version
         ──> queue, every other ───┘

Nothing runs while nobody watches: each stream waits for the next tick by itself, and the first one
that wakes puts together what the others then send, too. A client that does not read is waited for,
so that nothing piles up; what it missed is told at once when it comes back.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncGenerator, Iterator
from typing import Final

import msgspec

from kubesched.server.request import Request
from kubesched.web import telling
from kubesched.web.source import Source
from kubesched.web.state import State

#: More pages at a time than people who look after a cluster.
MOST_STREAMS: Final = 32
#: Then a client connects again, and is let in again if it still may.
LIFE_S: Final = 600.0
QUEUE_LIMIT: Final = 200
_QUEUE_EVERY: Final = 2
_COMMENT_EVERY: Final = 15
_FAREWELL_S: Final = 0.5
_encode = msgspec.json.Encoder().encode


class _Listener:
    """What one client was told."""

    def __init__(self, version: int | None) -> None:
        #: version of its nodes; -1 if it has none
        self.version = -1 if version is None else version
        #: the last it was told of the queue
        self.queue = b""
        self.ticks = 0


class Streams:
    """All streams of a page."""

    def __init__(
        self,
        source: Source,
        *,
        most: int = MOST_STREAMS,
        period_s: float = 1.0,
        life_s: float = LIFE_S,
    ) -> None:
        self._source = source
        self._life_s = life_s
        self._most = most
        self._period_s = period_s
        self._closing = asyncio.Event()
        #: streams that are open
        self.count = 0
        self._empty = asyncio.Event()
        self._empty.set()
        #: what was put together in a tick: name of the event, version → bytes
        self._told: dict[tuple[str, int], bytes] = {}
        self._told_in = -1

    @property
    def is_full(self) -> bool:
        """Whether there are as many as may be."""
        return self.count >= self._most

    async def aclose(self) -> None:
        """End all streams; wait for their ends to be sent, unless a client does not take them."""
        self._closing.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_FAREWELL_S):
                await self._empty.wait()

    async def follow(self, request: Request, version: int | None) -> AsyncGenerator[bytes, None]:
        """Tell what happens until the client is gone; `version` is that of the nodes it has."""
        self.count += 1
        self._empty.clear()
        over = {
            asyncio.create_task(request.disconnected()),
            asyncio.create_task(self._closing.wait()),
        }
        try:
            state = await self._source.state(None)
            listener = _Listener(version)
            yield b"retry: 2000\n\n"
            clock = asyncio.get_running_loop().time
            end = clock() + self._life_s
            while clock() < end and not any(task.done() for task in over):
                for piece in self._news(state, listener):
                    yield piece
                await asyncio.wait(
                    over, timeout=self._until_next(), return_when=asyncio.FIRST_COMPLETED
                )
        finally:
            for task in over:
                task.cancel()
            await asyncio.gather(*over, return_exceptions=True)
            self.count -= 1
            if not self.count:
                self._empty.set()

    def _news(self, state: State, listener: _Listener) -> Iterator[bytes]:
        """Tell a listener what it does not know yet."""
        yield self._overview(state)
        version, nodes = self._nodes(state, listener.version)
        if nodes:
            listener.version = version
            yield nodes
        if listener.ticks % _QUEUE_EVERY == 0:
            queue = self._queue(state)
            if queue != listener.queue:
                listener.queue = queue
                yield queue
        listener.ticks += 1
        if listener.ticks % _COMMENT_EVERY == 0:
            yield b":\n\n"

    def _until_next(self) -> float:
        """Return how long it is to the next tick: all streams wake at the same time."""
        now = asyncio.get_running_loop().time()
        return (math.floor(now / self._period_s) + 1) * self._period_s - now

    # --- put together once ------------------------------------------------------------------

    def _known(self, event: str, version: int = 0) -> bytes | None:
        tick = math.floor(asyncio.get_running_loop().time() / self._period_s)
        if tick != self._told_in:
            self._told.clear()
            self._told_in = tick
        return self._told.get((event, version))

    def _overview(self, state: State) -> bytes:
        known = self._known("overview")
        if known is None:
            told = telling.overview(self._source, state)
            known = self._told["overview", 0] = _event("overview", told)
        return known

    def _queue(self, state: State) -> bytes:
        known = self._known("queue")
        if known is None:
            told = telling.queue(state, limit=QUEUE_LIMIT)
            known = self._told["queue", 0] = _event("queue", told)
        return known

    def _nodes(self, state: State, version: int) -> tuple[int, bytes]:
        """Return the version of the nodes, and what changed since the one given; b"" if nothing."""
        now = state.columns.current_version()
        known = self._known(f"nodes {now}", version)
        if known is None:
            told = state.columns.since(version)
            known = b"" if told is None else _event("nodes", told, number=told.version)
            self._told[f"nodes {now}", version] = known
        return now, known


def _event(name: str, told: object, *, number: int | None = None) -> bytes:
    """Write an event; its number comes back if the client connects again."""
    identity = b"" if number is None else b"id: %d\n" % number
    return b"%bevent: %b\ndata: %b\n\n" % (identity, name.encode(), _encode(told))
