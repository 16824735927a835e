"""A request, as filters and handlers read it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from functools import cached_property
from typing import Any
from urllib.parse import parse_qs

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

#: Scope key of a connection's verified certificates.
CERTIFICATES_EXTENSION = "kubesched.client_certificates"
#: Scope key of the function that aborts a connection.
ABORT_EXTENSION = "kubesched.abort"
#: Default limit of a body.
BODY_LIMIT_BYTES = 4096
BODY_TIMEOUT_S = 30.0


class ServerRequest:
    """A client's request."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.method: str = scope["method"]
        #: decoded; the same for authorization and routing
        self.path: str = scope["path"]
        self._scope = scope
        self._receive = receive

    @property
    def uri(self) -> str:
        """Path and query as sent."""
        path: bytes = self._scope.get("raw_path") or self.path.encode()
        query: bytes = self._scope["query_string"]
        return (path + b"?" + query if query else path).decode("latin-1")

    @property
    def client(self) -> str:
        """The client's address."""
        host, port = self._scope.get("client") or ("", 0)
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    @property
    def certificates(self) -> tuple[bytes, ...]:
        """The client's certificate chain in DER; empty if it sent none."""
        chain: tuple[bytes, ...] = self._scope.get("extensions", {}).get(CERTIFICATES_EXTENSION, ())
        return chain

    @property
    def headers(self) -> list[tuple[str, str]]:
        """All headers, names in lower case."""
        return [(name.decode("latin-1"), _text(value)) for name, value in self._scope["headers"]]

    @cached_property
    def query(self) -> dict[str, list[str]]:
        """The query's values by name; a name alone has the value ""."""
        return parse_qs(self._scope["query_string"].decode("latin-1"), keep_blank_values=True)

    def header(self, name: str) -> str:
        """Return the first value of a header, "" if there is none."""
        values = self.header_values(name)
        return values[0] if values else ""

    def header_values(self, name: str) -> list[str]:
        """Return all values of a header."""
        wanted = name.strip().lower().encode()
        return [_text(value) for key, value in self._scope["headers"] if key == wanted]

    async def body(self, *, limit_bytes: int = BODY_LIMIT_BYTES) -> bytes:
        """Read the body; raises ValueError if it is too long, TimeoutError if it is too slow."""
        received = bytearray()
        async with asyncio.timeout(BODY_TIMEOUT_S):
            while True:
                message = await self._receive()
                received += message.get("body", b"")
                if len(received) > limit_bytes:
                    raise ValueError("http: request body too large")
                if not message.get("more_body", False):
                    return bytes(received)

    def hang_up(self) -> None:
        """Abort the connection, and discard what is not sent yet."""
        abort = self._scope.get("extensions", {}).get(ABORT_EXTENSION)
        if abort is not None:
            abort()

    async def disconnected(self) -> None:
        """Return when the client is gone or has its response; an unread body is discarded."""
        while (await self._receive())["type"] != "http.disconnect":
            pass


def _text(value: bytes) -> str:
    return value.decode("utf-8", errors="replace")
