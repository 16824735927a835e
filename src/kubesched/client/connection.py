"""One HTTP/1.1 connection of the pool: a request's bytes in, a ``Response`` out.

    send(message) ──write──> socket ──data_received──> httptools ──> head, body ──> Response

httptools does the parsing; this module collects its pieces, and reports exactly what happened when
a connection ends too early, because that decides whether a request may be retried.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable
from typing import cast

import httptools

from kubesched.client.head import Head
from kubesched.client.tls_errors import explain_tls
from kubesched.errors import ClientError, ConnectionFailedError, RequestTimeoutError

#: poll() events when the peer sent something or hung up.
_PEER_SPOKE = select.POLLIN | select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)


#: Larger heads are treated as an attack.
MAX_HEAD_BYTES = 1 << 20


class UnansweredError(ConnectionFailedError):
    """The connection ended before the first byte of a response."""

    def __init__(self, message: str, *, unread: bool) -> None:
        super().__init__(message)
        #: whether the server cannot have read the request
        self.unread = unread


class Response:
    """A complete response."""

    __slots__ = ("_head", "body", "status")

    def __init__(self, status: int, head: list[bytes], body: bytes) -> None:
        self.status = status
        self._head = head
        self.body = body

    def header(self, name: str) -> str | None:
        """Return a header's value; its name is case-insensitive."""
        return Head(self._head).get(name)


class HttpConnection(asyncio.Protocol):
    """A socket that receives responses; subclasses handle them."""

    __slots__ = (
        "_head",
        "_head_done",
        "_head_size",
        "_loop",
        "_on_lost",
        "_parser",
        "closed",
        "lost",
        "peer",
        "transport",
    )

    transport: asyncio.Transport
    #: dropped when the connection ends: it refers back to us, a cycle that only the garbage
    #: collector would free
    _parser: httptools.HttpResponseParser

    def __init__(self, peer: str, on_lost: Callable[[HttpConnection], None]) -> None:
        self._loop = asyncio.get_running_loop()
        #: ``host:port`` for messages
        self.peer = peer
        self._on_lost = on_lost
        #: bytes of the current response until its head was complete
        self._head: list[bytes] = []
        self._head_done = False
        self._head_size = 0
        #: whether nothing can be sent any more
        self.closed = False
        #: whether the socket is closed
        self.lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        self.transport = cast("asyncio.Transport", transport)
        self._parser = httptools.HttpResponseParser(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Complete or fail the request in flight."""
        self.closed = self.lost = True
        self._ended(exc)
        self._on_lost(self)
        del self._parser

    def data_received(self, data: bytes) -> None:
        """Feed the parser."""
        if not self._head_done:
            self._head.append(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._failed(ConnectionFailedError(f"{self.peer}: the answer is not HTTP/1.1: {error}"))
            self.abort()
            return
        if not self._head_done:
            self._head_size += len(data)
            if self._head_size > MAX_HEAD_BYTES:
                limit = f"{MAX_HEAD_BYTES} bytes"
                self._failed(ClientError(f"{self.peer}: the answer's head is larger than {limit}"))
                self.abort()

    def on_headers_complete(self) -> None:
        """Handle a complete head (called by the parser)."""
        self._head_size = 0
        if self._expects_data():
            self._head_done = True
        else:
            # Unsolicited, e.g. a 408 before a hang-up, or a second response behind the first.
            self.abort()

    def on_message_complete(self) -> None:
        """Handle a complete response, unless it is a 1xx (called by the parser)."""
        if self._parser.get_status_code() < 200:
            self._head_done = False
        else:
            self._completed()

    def hand_over(self, successor: HttpConnection) -> None:
        """Let another connection use the socket from now on."""
        self.closed = self.lost = True
        self.transport.set_protocol(successor)
        successor.connection_made(self.transport)
        del self._parser

    def abort(self) -> None:
        """Close immediately, without a TLS shutdown."""
        self.closed = True
        self.transport.abort()

    def close(self) -> None:
        """Close after a TLS shutdown."""
        self.closed = True
        self.transport.close()

    def _expects_data(self) -> bool:
        raise NotImplementedError

    def _completed(self) -> None:
        raise NotImplementedError

    def _failed(self, error: ClientError) -> None:
        raise NotImplementedError

    def _ended(self, exc: Exception | None) -> None:
        """Handle a closed socket: it completes a response without a length; others fail."""
        if not self._expects_data():
            return
        if exc is None and self._head_done and self._lasts_until_close():
            self._completed()
        else:
            self._failed(self._explain_end(exc))

    def _lasts_until_close(self) -> bool:
        head = Head(self._head)
        return head.get("content-length") is None and head.get("transfer-encoding") is None

    def _explain_end(self, exc: Exception | None) -> ClientError:
        explained = explain_tls(exc, self.peer) if exc is not None else None
        if explained is not None:
            return explained
        reason = f": {exc}" if exc is not None and str(exc) else ""
        if self._head:
            return ConnectionFailedError(
                f"{self.peer}: the connection broke in the middle of an answer{reason}"
            )
        return UnansweredError(
            f"{self.peer}: the connection was closed before an answer came{reason}",
            # A reset means that the peer's kernel discarded what we sent.
            unread=isinstance(exc, ConnectionResetError | BrokenPipeError),
        )


class PooledConnection(HttpConnection):
    """A connection for consecutive requests."""

    __slots__ = (
        "_body",
        "_max_body_bytes",
        "_size",
        "_waiter",
        "deadline",
        "idle_since",
        "keep",
        "served",
    )

    def __init__(
        self, peer: str, on_lost: Callable[[HttpConnection], None], *, max_body_bytes: int
    ) -> None:
        super().__init__(peer, on_lost)
        #: resolved with the response; None: no request in flight
        self._waiter: asyncio.Future[Response] | None = None
        self._body: list[bytes] = []
        self._size = 0
        self._max_body_bytes = max_body_bytes
        #: loop time by which the response must have arrived
        self.deadline = 0.0
        #: whether more requests may follow the one in flight
        self.keep = True
        #: responses so far
        self.served = 0
        #: loop time of the last response
        self.idle_since = self._loop.time()

    @property
    def is_busy(self) -> bool:
        """Whether a request is in flight."""
        return self._waiter is not None

    def send(self, message: bytes, deadline: float) -> asyncio.Future[Response]:
        """Send a request; a failure leaves the connection closed.

        A caller that stops waiting for the response must call ``abort()``.
        """
        waiter: asyncio.Future[Response] = self._loop.create_future()
        self._waiter = waiter
        self.deadline = deadline
        self._head = []
        self._head_done = False
        if self.closed:
            self._failed(UnansweredError(f"{self.peer}: the connection was closed", unread=True))
        else:
            self.transport.write(message)
        return waiter

    def is_quiet(self) -> bool:
        """Whether the peer has neither sent nor hung up, checked in the kernel."""
        descriptor = self.transport.get_extra_info("socket").fileno()
        if descriptor < 0:
            return False
        poll = select.poll()
        poll.register(descriptor, _PEER_SPOKE)
        return not poll.poll(0)

    def expire(self) -> None:
        """Fail a request whose deadline has passed."""
        self._failed(RequestTimeoutError(f"{self.peer}: no answer in time"))
        self.abort()

    def on_body(self, data: bytes) -> None:
        """Collect a piece of the body (called by the parser)."""
        self._size += len(data)
        if self._size > self._max_body_bytes:
            self._failed(
                ClientError(f"{self.peer}: the answer is larger than {self._max_body_bytes} bytes")
            )
            self.abort()
            return
        self._body.append(data)

    def _expects_data(self) -> bool:
        return self._waiter is not None

    def _completed(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is None:
            return
        body, self._body = self._body, []
        self._size = 0
        self.served += 1
        self.idle_since = self._loop.time()
        if not self.keep or not self._parser.should_keep_alive():
            self.close()
        if not waiter.done():
            waiter.set_result(
                Response(
                    self._parser.get_status_code(),
                    self._head,
                    body[0] if len(body) == 1 else b"".join(body),
                )
            )

    def _failed(self, error: ClientError) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_exception(error)
