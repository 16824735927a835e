"""One request, as the filters and handlers want to read it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from functools import cached_property
from typing import Any
from urllib.parse import parse_qs

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

#: The name under which a connection's verified certificates come along.
CERTIFICATES_EXTENSION = "kubesched.client_certificates"
#: The name of what ends a connection without another word.
ABORT_EXTENSION = "kubesched.abort"
#: No body that means anything is longer.
BODY_LIMIT_BYTES = 4096
BODY_TIMEOUT_S = 30.0


class Request:
    """What a client asks."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.method: str = scope["method"]
        #: decoded; the same one is authorized and routed
        self.path: str = scope["path"]
        self._scope = scope
        self._receive = receive

    @property
    def uri(self) -> str:
        """Path and query as they were sent."""
        path: bytes = self._scope.get("raw_path") or self.path.encode()
        query: bytes = self._scope["query_string"]
        return (path + b"?" + query if query else path).decode("latin-1")

    @property
    def client(self) -> str:
        """Where it came from."""
        host, port = self._scope.get("client") or ("", 0)
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    @property
    def certificates(self) -> tuple[bytes, ...]:
        """The client's certificate and those that vouch for it, in DER; none if it showed none."""
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
        """Read the body; ValueError if it is too long, TimeoutError if it does not come."""
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
        """End the connection, and forget what the client has not taken yet."""
        abort = self._scope.get("extensions", {}).get(ABORT_EXTENSION)
        if abort is not None:
            abort()

    async def disconnected(self) -> None:
        """Return when the client is gone, or has its answer; a body that was not read is lost."""
        while (await self._receive())["type"] != "http.disconnect":
            pass


def _text(value: bytes) -> str:
    return value.decode("utf-8", errors="replace")
