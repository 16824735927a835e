"""What is said when no connection can be made."""

from __future__ import annotations

import socket

import pytest

from kubesched.client.dial import _explain
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
