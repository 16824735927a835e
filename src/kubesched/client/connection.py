"""One HTTP/1.1 connection of the pool: a request's bytes in, a ``Response`` out.

    send(message) ──write──> socket ──data_received──> httptools ──> head, body ──> Response

httptools does the parsing; this module collects its pieces, and says exactly what happened when a
connection ends too early, because that decides whether a request may be repeated.
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

#: Bits that poll() shows when the peer sent something or hung up.
_PEER_SPOKE = select.POLLIN | select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)


#: Larger heads than that come from servers that mean no good.
MAX_HEAD_BYTES = 1 << 20


class UnansweredError(ConnectionFailedError):
    """The connection ended before the first byte of an answer."""

    def __init__(self, message: str, *, unread: bool) -> None:
        super().__init__(message)
        #: whether the server cannot have read the request
        self.unread = unread


class Response:
    """An answer that was read to its end."""

    __slots__ = ("_head", "body", "status")

    def __init__(self, status: int, head: list[bytes], body: bytes) -> None:
        self.status = status
        self._head = head
        self.body = body

    def header(self, name: str) -> str | None:
        """Value of a header, whatever the case of its name."""
        return Head(self._head).get(name)


class HttpConnection(asyncio.Protocol):
    """A socket that receives answers; subclasses say what becomes of them."""

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
    #: as long as the connection lasts: it refers to us, and every connection would be a cycle that
    #: stays until the garbage collector comes
    _parser: httptools.HttpResponseParser

    def __init__(self, peer: str, on_lost: Callable[[HttpConnection], None]) -> None:
        self._loop = asyncio.get_running_loop()
        #: ``host:port`` for messages
        self.peer = peer
        self._on_lost = on_lost
        #: what came of the current answer until its head was complete
        self._head: list[bytes] = []
        self._head_done = False
        self._head_size = 0
        #: nothing can be sent any more
        self.closed = False
        #: the socket is gone
        self.lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self.transport = cast("asyncio.Transport", transport)
        self._parser = httptools.HttpResponseParser(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Finish or fail what is under way."""
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
        """Note that the head is complete (called by the parser)."""
        self._head_size = 0
        if self._expects_data():
            self._head_done = True
        else:
            # Nobody asked, e.g. a 408 before a hang-up, or a second answer behind the first.
            self.abort()

    def on_message_complete(self) -> None:
        """Hand over an answer, unless it only announces one (called by the parser)."""
        if self._parser.get_status_code() < 200:
            self._head_done = False
        else:
            self._completed()

    def abort(self) -> None:
        """Close at once, without good-byes."""
        self.closed = True
        self.transport.abort()

    def close(self) -> None:
        """Close after a good-bye."""
        self.closed = True
        self.transport.close()

    def _expects_data(self) -> bool:
        raise NotImplementedError

    def _completed(self) -> None:
        raise NotImplementedError

    def _failed(self, error: ClientError) -> None:
        raise NotImplementedError

    def _ended(self, exc: Exception | None) -> None:
        """The socket is gone: an answer without a length is complete by that, others are not."""
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
            # A reset means that the peer's kernel threw away what we sent.
            unread=isinstance(exc, ConnectionResetError | BrokenPipeError),
        )


class PooledConnection(HttpConnection):
    """A connection for one request after the other."""

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
        #: who waits for the answer, None: no request is under way
        self._waiter: asyncio.Future[Response] | None = None
        self._body: list[bytes] = []
        self._size = 0
        self._max_body_bytes = max_body_bytes
        #: loop time until which the answer must have come
        self.deadline = 0.0
        #: whether more requests may follow the one under way
        self.keep = True
        #: answers so far
        self.served = 0
        #: loop time of the last answer
        self.idle_since = self._loop.time()

    @property
    def is_busy(self) -> bool:
        """Whether a request is under way."""
        return self._waiter is not None

    def send(self, message: bytes, deadline: float) -> asyncio.Future[Response]:
        """Send a request; a failure leaves the connection closed.

        Whoever stops waiting for the answer must call ``abort()``.
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
        """Whether the peer has neither spoken nor hung up: asks the kernel, not the event loop."""
        descriptor = self.transport.get_extra_info("socket").fileno()
        if descriptor < 0:
            return False
        poll = select.poll()
        poll.register(descriptor, _PEER_SPOKE)
        return not poll.poll(0)

    def expire(self) -> None:
        """Give up a request whose time is over."""
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
