"""Proxy handshakes: HTTP CONNECT, or SOCKS 5 (RFC 1928, 1929)."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, cast

from kubesched.client.proxy import Proxy
from kubesched.errors import ConnectionFailedError

_LONGEST_HEAD = 16 << 10
_SOCKS_REFUSALS = {
    1: "general failure",
    2: "not allowed by its rules",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "it took too long",
    7: "command not supported",
    8: "address type not supported",
}


class _Talk(asyncio.Protocol):
    """Collects the proxy's bytes."""

    transport: asyncio.Transport

    def __init__(self, address: str) -> None:
        self._address = address
        self._heard = bytearray()
        self._closed = False
        self._waiter: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._heard += data
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _more(self) -> None:
        if self._closed:
            raise ConnectionFailedError(f"the proxy {self._address} closed the connection")
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    async def exactly(self, count: int) -> bytes:
        """Read ``count`` bytes."""
        while len(self._heard) < count:
            await self._more()
        piece = bytes(self._heard[:count])
        del self._heard[:count]
        return piece

    async def head(self) -> bytes:
        """Read an HTTP head, up to its empty line."""
        while b"\r\n\r\n" not in self._heard:
            if len(self._heard) > _LONGEST_HEAD:
                raise ConnectionFailedError(f"the proxy {self._address} does not speak HTTP")
            await self._more()
        head, _, rest = bytes(self._heard).partition(b"\r\n\r\n")
        self._heard = bytearray(rest)
        return head


async def open_tunnel(
    proxy: Proxy, host: str, port: int, arguments: dict[str, Any]
) -> asyncio.Transport:
    """Return a transport connected to ``host:port``; ``arguments`` are those of the proxy's
    connection.
    """
    loop = asyncio.get_running_loop()
    _, talk = await loop.create_connection(
        lambda: _Talk(proxy.address), proxy.host, proxy.port, **arguments
    )
    try:
        if proxy.is_socks:
            await _socks(talk, proxy, host, port)
        else:
            await _connect(talk, proxy, host, port)
    except BaseException:
        talk.transport.abort()
        raise
    return talk.transport


async def _connect(talk: _Talk, proxy: Proxy, host: str, port: int) -> None:
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
    if proxy.authorization is not None:
        lines.append(f"Proxy-Authorization: {proxy.authorization}")
    talk.transport.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
    first = (await talk.head()).split(b"\r\n", 1)[0].decode("latin-1")
    version, _, status = first.partition(" ")
    if not version.startswith("HTTP/1."):
        raise ConnectionFailedError(f"the proxy {proxy.address} does not speak HTTP")
    if not status.startswith("2"):
        raise ConnectionFailedError(
            f"the proxy {proxy.address} refused to connect to {target}: {status}; check proxy-url"
        )


async def _socks(talk: _Talk, proxy: Proxy, host: str, port: int) -> None:
    talk.transport.write(b"\x05\x02\x00\x02" if proxy.username else b"\x05\x01\x00")
    version, method = await talk.exactly(2)
    if version != 5 or method not in (0, 2):
        raise ConnectionFailedError(f"the proxy {proxy.address} wants another way to sign in")
    if method == 2:
        await _socks_sign_in(talk, proxy)
    name = host.encode("idna")
    talk.transport.write(b"\x05\x01\x00\x03" + _counted(name) + port.to_bytes(2, "big"))
    _, reply, _, kind = await talk.exactly(4)
    if reply != 0:
        why = _SOCKS_REFUSALS.get(reply, f"reply {reply}")
        raise ConnectionFailedError(
            f"the proxy {proxy.address} refused to connect to {host}:{port}: {why}"
        )
    length = {1: 4, 4: 16}.get(kind) or (await talk.exactly(1))[0]
    await talk.exactly(length + 2)


async def _socks_sign_in(talk: _Talk, proxy: Proxy) -> None:
    name, password = proxy.username.encode(), proxy.password.encode()
    with contextlib.suppress(ValueError):  # more than 255 bytes: the proxy will reject it
        talk.transport.write(b"\x01" + _counted(name) + _counted(password))
    _, status = await talk.exactly(2)
    if status != 0:
        raise ConnectionFailedError(
            f"the proxy {proxy.address} refused the user name or password; check proxy-url"
        )


def _counted(text: bytes) -> bytes:
    return bytes([len(text)]) + text
