"""Clients that never come to the point."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time

import pytest
import uvicorn
from uvicorn.server import ServerState

from kubesched.server import protocol
from kubesched.server.request import Receive, Scope, Send
from tests.support.serving import LOOPBACK, client_tls, parse, served
from tests.support.wire import Wire

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


CHUNKED = b"POST /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("request_", "later"),
    [
        pytest.param(
            b"POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\na", b"b", id="a body"
        ),
        pytest.param(CHUNKED, b"1\r\nb\r\n", id="chunks"),
        pytest.param(CHUNKED + b"0\r\n", b"a: b\r\n", id="trailers"),
        pytest.param(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", b"\r\n", id="blank lines"),
    ],
)
def test_what_no_handler_reads_has_to_end(
    run: Run, monkeypatch: pytest.MonkeyPatch, request_: bytes, later: bytes
) -> None:
    async def main() -> None:
        async with served() as target:
            reader, writer = await asyncio.open_connection(LOOPBACK, target.port, ssl=client_tls())
            writer.write(request_)
            await reader.readuntil(b"ok")
            monkeypatch.setattr(protocol, "HEAD_TIMEOUT_S", 0.2)
            writer.write(later)
            async with asyncio.timeout(10):
                assert await reader.read() == b""
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    run(main())


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(CHUNKED + b"0\r\na: " + b"b" * 3000, id="one trailer"),
        pytest.param(CHUNKED + b"0\r\n" + b"a: b\r\n" * 500, id="many trailers"),
        pytest.param(
            b"POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\n" + b"b" * 3000,
            id="a body",
        ),
    ],
)
def test_what_no_handler_reads_is_limited(
    run: Run, monkeypatch: pytest.MonkeyPatch, request_: bytes
) -> None:
    monkeypatch.setattr(protocol, "HEAD_LIMIT_BYTES", 1000)

    async def main() -> bytes:
        async with served() as target:
            reader, writer = await asyncio.open_connection(LOOPBACK, target.port, ssl=client_tls())
            writer.write(request_[:100])
            received = await reader.readuntil(b"ok")
            writer.write(request_[100:])
            async with asyncio.timeout(10):
                with contextlib.suppress(ConnectionError):
                    received += await reader.read()
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
            return received

    assert run(main()).count(b"HTTP/1.1") == 1


def test_the_rest_of_a_body_and_then_another_request(run: Run) -> None:
    async def main() -> None:
        async with served() as target:
            reader, writer = await asyncio.open_connection(LOOPBACK, target.port, ssl=client_tls())
            writer.write(b"POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\na")
            await reader.readuntil(b"ok")
            writer.write(b"b")
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            await reader.readuntil(b"ok")
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    run(main())


def test_a_trailer_is_no_header(run: Run) -> None:
    """A front proxy removes headers that name a user, and may pass trailers on."""
    seen: list[tuple[bytes, bytes]] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        seen.extend(scope["headers"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body"})

    async def main() -> Wire:
        config = uvicorn.Config(app, ws="none", lifespan="off", interface="asgi3", log_config=None)
        config.load()
        connection = protocol.ServingProtocol(
            config=config, server_state=ServerState(), app_state={}
        )
        wire = Wire()
        connection.connection_made(wire)
        connection.data_received(CHUNKED + b"0\r\nX-Remote-User: admin\r\nA: b\r\n\r\n")
        await asyncio.gather(*connection.tasks)
        connection.connection_lost(None)
        return wire

    assert run(main()).sent.startswith(b"HTTP/1.1 200")
    assert seen == [(b"host", b"x"), (b"transfer-encoding", b"chunked")]
