"""HTTP/1.1 requests to one API server over keep-alive connections.

    request() ──> a connection of the pool ──> Response
    stream()  ──> a connection of its own  ──> StreamResponse, read as it arrives

A stream takes one of the pool's connections if there are idle ones: after the first lists there are
as many as watches begin, and each handshake costs both sides a millisecond. A request is retried
once, on another connection, if its connection turned out to be stale and the server cannot have
acted on it, or the request is idempotent.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kubesched.client.access import ClusterAccess
from kubesched.client.connection import HttpConnection, Response, UnansweredError
from kubesched.client.dial import Dialer
from kubesched.client.pool import ConnectionPool
from kubesched.client.stream import StreamConnection, StreamResponse
from kubesched.errors import ClientError

JSON = "application/json"

#: Idempotent methods.
_IDEMPOTENT = frozenset({"GET", "HEAD", "PUT", "DELETE", "OPTIONS"})
#: Number of cached header blocks: there is one per kind of request.
_MAX_HEADER_BLOCKS = 16


class Transport:
    """Sends requests to one API server; belongs to the event loop that it is first used in."""

    def __init__(
        self,
        access: ClusterAccess,
        *,
        user_agent: str = "kubesched",
        max_connections: int = 64,
        connect_timeout_s: float = 10.0,
        idle_timeout_s: float = 60.0,
        max_body_bytes: int = 1 << 30,
    ) -> None:
        self._dialer = Dialer(access, connect_timeout_s=connect_timeout_s)
        self._pool = ConnectionPool(
            self._dialer,
            max_connections=max_connections,
            idle_timeout_s=idle_timeout_s,
            max_body_bytes=max_body_bytes,
        )
        self._streams: set[HttpConnection] = set()
        self._no_streams: asyncio.Event | None = None
        self._target_prefix = self._dialer.target_prefix
        self._static_headers = encode_headers(
            (
                ("Host", access.server.address),
                ("User-Agent", user_agent),
                *access.headers,
                *self._dialer.relay_headers,
            )
        )
        #: by additional headers and content type: see _header_block
        self._header_blocks: dict[tuple[str, str], tuple[bytes, bytes]] = {}

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        content_type: str = JSON,
        timeout_s: float = 30.0,
        headers: str = "",
        idempotent: bool | None = None,
    ) -> Response:
        """Send a request and read its answer; ``headers`` are lines that end in CRLF.

        `content_type` is the type of the body; without one, the type that is asked for.
        """
        message = self._message(method, path, body=body, content_type=content_type, headers=headers)
        # The loop's clock; looking up the running loop costs a system call.
        now = time.monotonic()
        deadline = now + timeout_s
        pool = self._pool
        repeatable = True
        try:
            while True:
                connection = pool.take_idle(now) or await pool.check_out(deadline)
                pool.enforce(deadline)
                try:
                    return await connection.send(message, deadline)
                except UnansweredError as error:
                    if idempotent is None:
                        idempotent = method in _IDEMPOTENT
                    # Only a connection that worked before can be stale.
                    repeatable = repeatable and connection.served > 0
                    if not repeatable or not (idempotent or error.unread):
                        raise
                    repeatable = False
                    pool.drop_idle()  # idle even longer than this one
                except asyncio.CancelledError:
                    connection.abort()
                    raise
                finally:
                    pool.give_back(connection)
        except ClientError as error:
            error.args = (f"{request_name(method, path)}: {error}",)
            raise

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        headers: str = "",
        inactivity_timeout_s: float = 60.0,
    ) -> AsyncIterator[StreamResponse]:
        """Send a request and stream its response, on a connection of its own."""
        message = self._message(method, path, body=None, content_type=JSON, headers=headers)
        connection: StreamConnection | None = None
        try:
            self._pool.check_open()
            connection = self._from_pool()
            response = None
            if connection is not None:
                with contextlib.suppress(UnansweredError):  # it was stale
                    response = await connection.open(message, timeout_s=inactivity_timeout_s)
            if response is None:
                connection = await self._dialer.dial(self._make_stream)
                self._streams.add(connection)
                response = await connection.open(message, timeout_s=inactivity_timeout_s)
            yield response
        except ClientError as error:
            error.args = (f"{request_name(method, path)}: {error}",)
            raise
        finally:
            if connection is not None:
                connection.abort()

    def _make_stream(self) -> StreamConnection:
        return StreamConnection(self._dialer.peer, self._stream_lost)

    def _from_pool(self) -> StreamConnection | None:
        """Return a connection on the socket of an idle one, if the pool can spare one."""
        idle = self._pool.give_away(time.monotonic())
        if idle is None:
            return None
        connection = self._make_stream()
        idle.hand_over(connection)
        self._streams.add(connection)
        return connection

    def renew(self) -> None:
        """Use new connections for later requests, e.g. for new credentials."""
        self._pool.renew()

    async def aclose(self) -> None:
        """Close everything; requests in flight fail."""
        for connection in self._streams:
            connection.abort()
        await self._pool.aclose()
        if self._streams:
            self._no_streams = asyncio.Event()
            await self._no_streams.wait()

    def _stream_lost(self, connection: HttpConnection) -> None:
        self._streams.discard(connection)
        if self._no_streams is not None and not self._streams:
            self._no_streams.set()

    def _message(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None,
        content_type: str,
        headers: str,
    ) -> bytes:
        """Return the request's bytes; parts common to many requests are cached."""
        if not (path.isascii() and path.isprintable() and path) or " " in path:
            raise ValueError(f"not a path that can be requested: {path!r}")
        first = f"{method} {self._target_prefix}{path} HTTP/1.1\r\n".encode("ascii")
        key = (headers, content_type)
        block = self._header_blocks.get(key)
        if block is None:
            if len(self._header_blocks) >= _MAX_HEADER_BLOCKS:  # tokens come and go
                self._header_blocks.clear()
            block = self._header_blocks[key] = self._header_block(headers, content_type)
        if body is None:
            return b"%b%b\r\n" % (first, block[0])
        return b"%b%b%d\r\n\r\n%b" % (first, block[1], len(body), body)

    def _header_block(self, headers: str, content_type: str) -> tuple[bytes, bytes]:
        """The headers of a request without a body, and of one with it, up to its length."""
        common = f"{self._static_headers}{headers}"
        without_body = f"{common}Accept: {content_type}\r\n"
        with_body = f"{common}Accept: {JSON}\r\nContent-Type: {content_type}\r\nContent-Length: "
        return without_body.encode("latin-1"), with_body.encode("latin-1")


def encode_headers(headers: tuple[tuple[str, str], ...]) -> str:
    """Encode headers as lines; rejects line breaks."""
    for name, value in headers:
        if "\r" in value or "\n" in value:
            raise ValueError(f"header {name} cannot hold a line break")
    return "".join(f"{name}: {value}\r\n" for name, value in headers)


def request_name(method: str, path: str) -> str:
    """Method and path for messages; without the query, so that messages repeat."""
    return f"{method} {path.partition('?')[0]}"
