"""Clients that never come to the point."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time

import pytest

from kubesched.server import protocol
from tests.support.serving import LOOPBACK, client_tls, parse, served

from .conftest import Run


async def received_after(data: bytes, port: int) -> bytes:
    """Send something and return what comes until the server hangs up."""
    reader, writer = await asyncio.open_connection(LOOPBACK, port, ssl=client_tls())
    try:
        with contextlib.suppress(OSError):
            writer.write(data)
            await writer.drain()
        received = b""
        with contextlib.suppress(OSError):
            while piece := await reader.read(65536):
                received += piece
        return received
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def test_a_head_without_end(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "HEAD_LIMIT_BYTES", 1000)

    async def main() -> bytes:
        async with served() as target:
            head = b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 2000
            return await received_after(head, target.port)

    assert parse(run(main())).code == 400


@pytest.mark.parametrize("data", [b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\n"])
def test_a_head_that_does_not_come(run: Run, monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(protocol, "HEAD_TIMEOUT_S", 0.2)

    async def main() -> tuple[bytes, float]:
        async with served() as target:
            began = time.monotonic()
            return await received_after(data, target.port), time.monotonic() - began

    received, taken = run(main())

    assert received == b""
    assert 0.1 < taken < 3


def test_the_time_is_for_heads_and_not_for_answers(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first head is on its way while the time runs, so there has to be enough of it; a later
    # one is there as a whole before it is looked at.
    monkeypatch.setattr(protocol, "HEAD_TIMEOUT_S", 1.0)

    async def main() -> None:
        async with served() as target:
            reader, writer = await asyncio.open_connection(LOOPBACK, target.port, ssl=client_tls())
            for pause_s in (1.2, 0.3, 0.0):
                writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
                await reader.readuntil(b"ok")
                monkeypatch.setattr(protocol, "HEAD_TIMEOUT_S", 0.1)
                await asyncio.sleep(pause_s)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    run(main())


def test_garbage(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> bytes:
        async with served() as target:
            return await received_after(b"\x00\x01\x02\r\n\r\n", target.port)

    assert parse(run(main())).code == 400
    assert "Invalid HTTP request" not in caplog.text


def test_answers_do_not_wait_for_more_to_send(run: Run) -> None:
    """Head and body are two packets, and the second must not wait for the first's receipt."""

    async def main() -> list[int]:
        async with served() as target:
            reader, writer = await asyncio.open_connection(LOOPBACK, target.port, ssl=client_tls())
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            await reader.readuntil(b"ok")
            server = target.server._server
            assert server is not None
            set_ones = [
                each.transport.get_extra_info("socket").getsockopt(
                    socket.IPPROTO_TCP, socket.TCP_NODELAY
                )
                for each in server.server_state.connections
            ]
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
            return set_ones

    assert run(main()) == [1]
