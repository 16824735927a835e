"""uvicorn's HTTP protocol, plus client certificates and limits on request heads.

The certificates of a connection are passed in the scope of each of its requests. A client that
sends its request head slowly or without end is disconnected, before authentication.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from kubesched.server.request import ABORT_EXTENSION, CERTIFICATES_EXTENSION

HEAD_LIMIT_BYTES = 1 << 20
HEAD_TIMEOUT_S = 32.0
FAREWELL_S = 0.2
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
        #: bytes of the current request head; None: there is none
        self._head_bytes: int | None = 0
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn does
        """Read the certificates, and start the timeout of the first request."""
        super().connection_made(transport)
        # asyncio does this itself only for sockets created with an explicit protocol.
        raw = transport.get_extra_info("socket")
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._certificates = client_certificates(transport.get_extra_info("ssl_object"))
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Clean up."""
        self._head_done()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse, unless the head is too large."""
        if self._head_bytes is not None:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_LIMIT_BYTES:
                self.send_400_response("Request header too large.")
                return
        super().data_received(data)

    def shutdown(self) -> None:
        """End the connection: immediately if it is idle, else after the response."""
        super().shutdown()
        if self.transport.is_closing():
            # A TLS shutdown would wait for a client that may not even read.
            self.loop.call_later(FAREWELL_S, self.transport.abort)

    def on_message_begin(self) -> None:
        """Handle the start of a request."""
        super().on_message_begin()
        if self._head_bytes is None:
            self._await_head()
        extensions: dict[str, Any] = {
            CERTIFICATES_EXTENSION: self._certificates,
            ABORT_EXTENSION: self.transport.abort,
        }
        self.scope["extensions"] = extensions

    def on_headers_complete(self) -> None:
        """Handle the end of a head: stop its timeout."""
        self._head_done()
        super().on_headers_complete()

    def _await_head(self) -> None:
        self._head_bytes = 0
        self._head_timer = self.loop.call_later(HEAD_TIMEOUT_S, self.transport.close)

    def _head_done(self) -> None:
        self._head_bytes = None
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


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
