"""uvicorn's HTTP protocol, plus client certificates and limits on what clients send.

The certificates of a connection are passed in the scope of each of its requests. A client is
disconnected, without authentication, if it sends slowly or without end what no handler reads: a
request head, the rest of a body after the response, trailers, blank lines between requests.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from kubesched.server.request import ABORT_EXTENSION, CERTIFICATES_EXTENSION

#: Bytes that are received in a row without being part of a body that a handler may read.
HEAD_LIMIT_BYTES = 1 << 20
#: Time for a head, and for the rest of a body after the response.
HEAD_TIMEOUT_S = 32.0
FAREWELL_S = 0.2
#: Time to read the last response, once a connection is to be closed.
LINGER_S = 5.0
_ENCODING_DER = 2

# Malformed requests of arbitrary clients are not logged.
_quiet = logging.getLogger("kubesched.server.http")
_quiet.setLevel(logging.ERROR)


class ServingProtocol(HttpToolsProtocol):
    """One connection."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 (uvicorn's signature)
        super().__init__(*args, **kwargs)
        self.logger = _quiet
        self._certificates: tuple[bytes, ...] = ()
        #: bytes since the head began, or since the last byte of a body that may be read
        self._unread_bytes = 0
        #: whether a head was received, and the end of its request was not
        self._in_body = False
        #: runs while the client has to send something
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn does
        """Read the certificates, and start the timeout of the first request."""
        super().connection_made(transport)
        # asyncio does this itself only for sockets created with an explicit protocol.
        raw = transport.get_extra_info("socket")
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._certificates = client_certificates(transport.get_extra_info("ssl_object"))
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Clean up."""
        self._stop_timer()
        self._unset_keepalive_if_required()  # uvicorn leaves it after an error
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse, unless it is too much of what is not read."""
        if self._is_answered() and self._timer is None:
            # The next request, the rest of the last one, or nothing but blank lines.
            self._start_timer()
        self._unread_bytes += len(data)
        if self._unread_bytes <= HEAD_LIMIT_BYTES:
            super().data_received(data)
        elif self._in_body:
            self._hang_up()
        else:
            self.send_400_response("Request header too large.")

    def shutdown(self) -> None:
        """End the connection: immediately if it is idle, else after the response."""
        super().shutdown()
        if self.transport.is_closing():
            # A TLS shutdown would wait for a client that may not even read.
            self.loop.call_later(FAREWELL_S, self.transport.abort)

    def on_message_begin(self) -> None:
        """Handle the start of a request."""
        super().on_message_begin()
        self._unset_keepalive_if_required()
        self._unread_bytes = 0
        if self._timer is None:
            self._start_timer()
        extensions: dict[str, Any] = {
            CERTIFICATES_EXTENSION: self._certificates,
            ABORT_EXTENSION: self.transport.abort,
        }
        self.scope["extensions"] = extensions

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header, but not a trailer: it must not be taken for a header of the head."""
        if not self._in_body:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Handle the end of a head: stop its timeout."""
        self._stop_timer()
        self._unread_bytes = 0
        self._in_body = True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Handle a part of a body; what comes after the response counts as unread."""
        if not self._is_answered():
            self._unread_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Handle the end of a request."""
        super().on_message_complete()
        self._in_body = False
        self._unread_bytes = 0
        if self._is_answered():
            # uvicorn stopped the timeout of an idle connection when the rest arrived.
            self._stop_timer()
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def timeout_keep_alive_handler(self) -> None:
        """End an idle connection, even of a client that does not read."""
        self._hang_up()

    def _is_answered(self) -> bool:
        """Whether the last request has its response: nothing is received for a handler."""
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request
        return cycle is not None and cycle.response_complete

    def _start_timer(self) -> None:
        self._timer = self.loop.call_later(HEAD_TIMEOUT_S, self._hang_up)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _hang_up(self) -> None:
        self.transport.close()
        # To close waits until the client has read everything, or forever.
        self.loop.call_later(LINGER_S, self.transport.abort)


def client_certificates(connection: ssl.SSLObject | None) -> tuple[bytes, ...]:
    """Return a client's certificate chain up to the trusted authority, in DER."""
    leaf = connection.getpeercert(binary_form=True) if connection is not None else None
    if connection is None or leaf is None:
        return ()
    if hasattr(connection, "get_verified_chain"):
        chain: list[bytes] = connection.get_verified_chain()
        return tuple(chain) or (leaf,)
    # Public since Python 3.13; 3.11 and 3.12, which will not change any more, have it here.
    inner: Any = connection._sslobj  # type: ignore[attr-defined]  # noqa: SLF001
    return tuple(each.public_bytes(_ENCODING_DER) for each in inner.get_verified_chain() or ()) or (
        leaf,
    )
