"""Opens connections: TCP, an optional proxy, optional TLS, all within a time limit.

direct   TCP ──(TLS)──> server
tunnel   TCP ──(TLS)──> proxy ──CONNECT or SOCKS 5──> ──(TLS)──> server
relay    TCP ──(TLS)──> HTTP proxy, which gets plain requests with absolute URLs
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import Any, TypeVar

from kubesched.client.access import ClusterAccess, tls_context
from kubesched.client.connection import HttpConnection
from kubesched.client.proxy import Proxy
from kubesched.client.tls_errors import explain_tls
from kubesched.client.tunnel import open_tunnel
from kubesched.errors import ClientError, ConnectionFailedError, RequestTimeoutError

C = TypeVar("C", bound=HttpConnection)

#: Timeout of a TLS shutdown.
_TLS_SHUTDOWN_TIMEOUT_S = 2.0

#: Keep-alive: a dead peer is detected after 30 s of silence and 3 unanswered probes 10 s apart.
_KEEP_ALIVE_OPTIONS = (
    (socket.SOL_SOCKET, "SO_KEEPALIVE", 1),
    (socket.IPPROTO_TCP, "TCP_KEEPIDLE", 30),
    (socket.IPPROTO_TCP, "TCP_KEEPINTVL", 10),
    (socket.IPPROTO_TCP, "TCP_KEEPCNT", 3),
    (socket.IPPROTO_TCP, "TCP_USER_TIMEOUT", 60_000),
)


class Dialer:
    """Opens connections to one API server."""

    def __init__(self, access: ClusterAccess, *, connect_timeout_s: float) -> None:
        self._access = access
        self._connect_timeout_s = connect_timeout_s
        proxy = access.proxy
        self._relays = proxy is not None and not proxy.is_socks and access.server.scheme == "http"

    @property
    def peer(self) -> str:
        """``host:port`` of the server, for messages."""
        return self._access.server.address

    @property
    def target_prefix(self) -> str:
        """The part of the request target before the path."""
        server = self._access.server
        return server.url if self._relays else server.base_path

    @property
    def relay_headers(self) -> tuple[tuple[str, str], ...]:
        """Headers for a proxy that relays plain requests."""
        proxy = self._access.proxy
        if not self._relays or proxy is None or proxy.authorization is None:
            return ()
        return (("Proxy-Authorization", proxy.authorization),)

    async def dial(self, factory: Callable[[], C], *, deadline: float | None = None) -> C:
        """Open a connection before ``deadline`` (loop time) and the connect timeout."""
        loop = asyncio.get_running_loop()
        limit = loop.time() + self._connect_timeout_s
        if deadline is not None:
            limit = min(limit, deadline)
        try:
            async with asyncio.timeout_at(limit):
                connection = await self._connect(factory)
        except TimeoutError:
            raise RequestTimeoutError(f"{self.peer}: no connection in time") from None
        except (OSError, UnicodeError) as error:
            raise _explain(error, self.peer, self._access.proxy) from error
        _keep_alive(connection.transport)
        return connection

    async def _connect(self, factory: Callable[[], C]) -> C:
        access, loop = self._access, asyncio.get_running_loop()
        if access.proxy is not None:
            return await self._connect_through(access.proxy, factory)
        made: list[C] = []

        def make() -> C:
            made.append(factory())
            return made[-1]

        try:
            _, connection = await loop.create_connection(
                make, access.server.host, access.server.port, **self._tls_arguments()
            )
        except BaseException:
            # Where the handshake is over already, the loop begins a TLS shutdown, which takes
            # longer than a process that ends has.
            for each in made:
                if hasattr(each, "transport"):
                    each.abort()
            raise
        return connection

    def _tls_arguments(self) -> dict[str, Any]:
        context = self._access.ssl_context
        if context is None:
            return {}
        return {
            "ssl": context,
            "server_hostname": self._access.tls_server_name or self._access.server.host,
            "ssl_shutdown_timeout": _TLS_SHUTDOWN_TIMEOUT_S,
        }

    async def _connect_through(self, proxy: Proxy, factory: Callable[[], C]) -> C:
        loop = asyncio.get_running_loop()
        arguments: dict[str, Any] = {}
        if proxy.scheme == "https":
            arguments["ssl"] = self._access.ssl_context or tls_context(ca_pem=None)
            arguments["ssl_shutdown_timeout"] = _TLS_SHUTDOWN_TIMEOUT_S
        if self._relays:
            _, connection = await loop.create_connection(
                factory, proxy.host, proxy.port, **arguments
            )
            return connection
        server = self._access.server
        transport = await open_tunnel(proxy, server.host, server.port, arguments)
        try:
            return await self._take_over(transport, factory())
        except BaseException:
            transport.abort()
            raise

    async def _take_over(self, transport: asyncio.Transport, connection: C) -> C:
        """Continue with the server after the proxy's handshake."""
        tls = self._tls_arguments()
        if not tls:
            transport.set_protocol(connection)
            connection.connection_made(transport)
            return connection
        upgraded = await asyncio.get_running_loop().start_tls(
            transport, connection, tls.pop("ssl"), **tls
        )
        if upgraded is None:
            raise ConnectionFailedError(f"{self.peer}: the proxy closed the connection")
        connection.connection_made(upgraded)
        return connection


def _keep_alive(transport: asyncio.Transport) -> None:
    raw = transport.get_extra_info("socket")
    for level, name, value in _KEEP_ALIVE_OPTIONS:
        option = getattr(socket, name, None)
        if raw is not None and option is not None:
            with contextlib.suppress(OSError):  # not supported by this system
                raw.setsockopt(level, option, value)


def _explain(error: Exception, peer: str, proxy: Proxy | None) -> ClientError:
    explained = explain_tls(error, peer)
    if explained is not None:
        return explained
    via = f" through the proxy {proxy.address}" if proxy is not None else ""
    if isinstance(error, socket.gaierror):
        return ConnectionFailedError(
            f"{peer}: cannot resolve the host name{via}: {error.strerror}; "
            "check the server's address"
        )
    if isinstance(error, ConnectionRefusedError):
        return ConnectionFailedError(f"{peer}: connection refused{via} (is the server running?)")
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return ConnectionFailedError(f"{peer}: cannot connect{via}: {' '.join(reason.split())}")
