"""Streaming responses, for watches.

socket ──> httptools ──> chunks ──> next()         too much unread: reading from the socket pauses
                                                   no byte for too long: RequestTimeoutError
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable

from kubesched.client.connection import HttpConnection
from kubesched.client.head import Head
from kubesched.errors import ClientError, ConnectionFailedError, RequestTimeoutError

#: Above this number of unread bytes, reading from the socket pauses.
_HIGH_WATER_BYTES = 1 << 20
#: A stream that is held is read all the same when this much has come, far less than a socket holds.
HELD_BYTES = 1 << 16
#: Timers fire to the millisecond, possibly just before their time.
_TIMER_RESOLUTION_S = 0.001


class StreamConnection(HttpConnection):
    """A connection for one request with an unbounded response."""

    __slots__ = (
        "_chunks",
        "_complete",
        "_due",
        "_error",
        "_has_failed",
        "_paused",
        "_size",
        "_status",
        "_timeout_s",
        "_timer",
        "_waiter",
    )

    def __init__(self, peer: str, on_lost: Callable[[HttpConnection], None]) -> None:
        super().__init__(peer, on_lost)
        self._chunks: list[bytes] = []
        self._size = 0
        self._status = 0
        self._paused = False
        self._complete = False
        self._has_failed = False
        #: why it failed, until raised in the reader
        self._error: ClientError | None = None
        self._waiter: asyncio.Future[None] | None = None
        #: how long the reader waits, and until when it does
        self._timeout_s = 0.0
        self._due = 0.0
        #: one for many waits: it checks whether the last of them is due
        self._timer: asyncio.TimerHandle | None = None

    async def open(self, message: bytes, *, timeout_s: float) -> StreamResponse:
        """Send the request and wait for the head of the response.

        From now on, a wait for bytes fails after the timeout.
        """
        self._timeout_s = timeout_s
        self.transport.write(message)
        while not self._head_done:
            if self._has_failed:
                raise self._take_error()
            await self._wait()
        return StreamResponse(self, self._status, Head(self._head))

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the wait, if any."""
        super().connection_lost(exc)
        if self._timer is not None:
            self._timer.cancel()  # it refers to us

    async def next(self) -> bytes:
        """Return all bytes since the last call, b"" at the end."""
        while not self._chunks:
            if self._complete:
                return b""
            if self._has_failed:
                raise self._take_error()
            await self._wait()
        chunks, self._chunks = self._chunks, []
        self._size = 0
        if self._paused:
            self._paused = False
            if not self.closed:
                self.transport.resume_reading()
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def hold(self) -> None:
        """Read no more until `release`, or until a lot has come."""
        self._wait_for_bytes(HELD_BYTES)

    def release(self) -> None:
        """Read what has come, and what comes."""
        self._wait_for_bytes(1)

    def _wait_for_bytes(self, count: int) -> None:
        """Let the kernel wake us for so many bytes, or the end of the connection."""
        raw = self.transport.get_extra_info("socket")
        if raw is not None and not self.closed:
            with contextlib.suppress(OSError):  # not supported by this system, or just closed
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, count)

    def on_body(self, data: bytes) -> None:
        """Buffer a chunk (called by the parser)."""
        self._chunks.append(data)
        self._size += len(data)
        if self._size > _HIGH_WATER_BYTES and not self._paused:
            self._paused = True
            self.transport.pause_reading()
        self._wake()

    def on_headers_complete(self) -> None:
        """Wake the opener, unless it is a 1xx."""
        self._status = self._parser.get_status_code()
        if self._status >= 200:
            super().on_headers_complete()
            self._wake()

    def _expects_data(self) -> bool:
        return not self._complete and not self._has_failed

    def _completed(self) -> None:
        self._complete = True
        self._wake()

    def _failed(self, error: ClientError) -> None:
        self._has_failed = True
        self._error = error
        self._wake()

    def _take_error(self) -> ClientError:
        """Pass the error on without keeping it: its traceback refers to our reader."""
        error, self._error = self._error, None
        return error or ConnectionFailedError(f"{self.peer}: the connection has failed before")

    async def _wait(self) -> None:
        self._waiter = self._loop.create_future()
        self._due = self._loop.time() + self._timeout_s
        if self._timer is None:
            self._timer = self._loop.call_at(self._due, self._check)
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _check(self) -> None:
        """Fail a wait that is due."""
        self._timer = None
        if self._waiter is None:
            return  # the next wait sets the timer
        if self._loop.time() < self._due:
            self._timer = self._loop.call_at(self._due + _TIMER_RESOLUTION_S, self._check)
        else:
            timeout = f"nothing came for {self._timeout_s:g} s"
            self._failed(RequestTimeoutError(f"{self.peer}: {timeout}"))

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class StreamResponse:
    """Status, headers, and the body as an asynchronous iterator of byte chunks."""

    __slots__ = ("_connection", "_head", "status")

    def __init__(self, connection: StreamConnection, status: int, head: Head) -> None:
        self._connection = connection
        self.status = status
        self._head = head

    def header(self, name: str) -> str | None:
        """Return a header's value; its name is case-insensitive."""
        return self._head.get(name)

    def __aiter__(self) -> StreamResponse:
        return self

    async def __anext__(self) -> bytes:
        chunk = await self._connection.next()
        if not chunk:
            raise StopAsyncIteration
        return chunk

    def hold(self) -> None:
        """Read no more until `release`, or until a lot has come."""
        self._connection.hold()

    def release(self) -> None:
        """Read what has come, and what comes."""
        self._connection.release()

    async def read(self, *, limit_bytes: int = 1 << 20) -> bytes:
        """Read the whole body, for error responses."""
        pieces: list[bytes] = []
        size = 0
        async for chunk in self:
            pieces.append(chunk)
            size += len(chunk)
            if size > limit_bytes:
                raise ConnectionFailedError(f"the answer is larger than {limit_bytes} bytes")
        return b"".join(pieces)
