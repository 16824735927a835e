"""Connections are opened within a time limit, and failures are explained."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest

from kubesched.client.access import ClusterAccess
from kubesched.client.connection import HttpConnection
from kubesched.client.dial import Dialer, _explain
from kubesched.client.proxy import Proxy

PROXY = Proxy(scheme="http", host="proxy", port=3128, username="me", password="secret")


@pytest.mark.parametrize(
    ("error", "proxy", "message"),
    [
        (
            socket.gaierror(-2, "Name or service not known"),
            None,
            (
                "api:6443: cannot resolve the host name: Name or service not known; "
                "check the server's address"
            ),
        ),
        (
            ConnectionRefusedError(111, "Connection refused"),
            PROXY,
            "api:6443: connection refused through the proxy proxy:3128 (is the server running?)",
        ),
        (
            OSError(113, "No route to host"),
            None,
            "api:6443: cannot connect: No route to host",
        ),
        (
            OSError("Multiple exceptions: [Errno 111] a,\n [Errno 111] b"),
            None,
            "api:6443: cannot connect: Multiple exceptions: [Errno 111] a, [Errno 111] b",
        ),
        (OSError(), None, "api:6443: cannot connect: OSError"),
    ],
)
def test_reasons(error: Exception, proxy: Proxy | None, message: str) -> None:
    assert str(_explain(error, "api:6443", proxy)) == message


def test_what_is_cancelled_right_after_the_handshake_is_not_shut_down_but_aborted() -> None:
    """A TLS shutdown takes longer than a process that ends has."""
    transport = Mock(asyncio.Transport)

    async def connects_and_is_cancelled(
        factory: Callable[[], HttpConnection], *_: object, **__: object
    ) -> Any:
        factory().connection_made(transport)
        raise asyncio.CancelledError

    async def main() -> None:
        loop: Any = asyncio.get_running_loop()
        loop.create_connection = connects_and_is_cancelled
        dialer = Dialer(ClusterAccess.plain("http://127.0.0.1:1"), connect_timeout_s=5.0)
        with pytest.raises(asyncio.CancelledError):
            await dialer.dial(lambda: HttpConnection("peer", lambda _: None))

    asyncio.run(main())
    transport.abort.assert_called_once_with()
