"""Server-sent events: updates once a second, rendered once for all clients.

    tick ──> overview ─────────────┐
         ──> nodes since version ──┼──> the same bytes to all clients at the same version
         ──> queue, every other ───┘

Nothing runs without clients: each stream waits for the next tick by itself, and the first to wake
renders what the others then send, too. A slow client is waited for, so that nothing piles up; it
gets what it missed when it reads again.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncGenerator, Iterator
from typing import Final

import msgspec

from kubesched.server.request import ServerRequest
from kubesched.web import telling
from kubesched.web.source import Source
from kubesched.web.state import PageState

#: Maximum number of open pages.
MOST_STREAMS: Final = 32
#: After this time a client must reconnect, and be authorized again.
LIFE_S: Final = 600.0
QUEUE_LIMIT: Final = 200
_QUEUE_EVERY: Final = 2
_COMMENT_EVERY: Final = 15
_FAREWELL_S: Final = 0.5
_encode = msgspec.json.Encoder().encode


class _Listener:
    """What one client has received."""

    def __init__(self, version: int | None) -> None:
        #: version of its nodes; -1 if it has none
        self.version = -1 if version is None else version
        #: the last queue data it received
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
        #: number of open streams
        self.count = 0
        self._empty = asyncio.Event()
        self._empty.set()
        #: rendered in this tick: (event name, version) → bytes
        self._told: dict[tuple[str, int], bytes] = {}
        self._told_in = -1

    @property
    def is_full(self) -> bool:
        """Whether the limit is reached."""
        return self.count >= self._most

    async def aclose(self) -> None:
        """End all streams; wait until their ends are sent, except to clients that do not read."""
        self._closing.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_FAREWELL_S):
                await self._empty.wait()

    async def follow(
        self, request: ServerRequest, version: int | None
    ) -> AsyncGenerator[bytes, None]:
        """Yield events until the client is gone; `version` is that of the nodes it has."""
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

    def _news(self, state: PageState, listener: _Listener) -> Iterator[bytes]:
        """Yield what a client does not have yet."""
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
        """Return the time to the next tick: all streams wake at the same time."""
        now = asyncio.get_running_loop().time()
        return (math.floor(now / self._period_s) + 1) * self._period_s - now

    # --- rendered once -----------------------------------------------------------------------

    def _known(self, event: str, version: int = 0) -> bytes | None:
        tick = math.floor(asyncio.get_running_loop().time() / self._period_s)
        if tick != self._told_in:
            self._told.clear()
            self._told_in = tick
        return self._told.get((event, version))

    def _overview(self, state: PageState) -> bytes:
        known = self._known("overview")
        if known is None:
            told = telling.overview(self._source, state)
            known = self._told["overview", 0] = _event("overview", told)
        return known

    def _queue(self, state: PageState) -> bytes:
        known = self._known("queue")
        if known is None:
            told = telling.queue(state, limit=QUEUE_LIMIT)
            known = self._told["queue", 0] = _event("queue", told)
        return known

    def _nodes(self, state: PageState, version: int) -> tuple[int, bytes]:
        """Return the version of the nodes, and the changes since `version`; b"" if none."""
        now = state.columns.current_version()
        known = self._known(f"nodes {now}", version)
        if known is None:
            told = state.columns.since(version)
            known = b"" if told is None else _event("nodes", told, number=told.version)
            self._told[f"nodes {now}", version] = known
        return now, known


def _event(name: str, told: object, *, number: int | None = None) -> bytes:
    """Render an event; the client sends its number back when it reconnects."""
    identity = b"" if number is None else b"id: %d\n" % number
    return b"%bevent: %b\ndata: %b\n\n" % (identity, name.encode(), _encode(told))
