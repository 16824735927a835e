"""Answers that are read while they come."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable

import pytest

from kubesched.client.access import tls_context
from kubesched.client.pool import _SPARE
from kubesched.client.stream import HELD_BYTES
from kubesched.client.transport import Transport
from kubesched.errors import ConnectionFailedError, RequestTimeoutError
from tests.support.servers import (
    CHUNKED_HEAD,
    Exchange,
    Handler,
    ScriptedServer,
    answer,
    chunk,
    watch_answer,
)
from tests.support.waiting import eventually, settle

from .conftest import Run


async def _with_pool(
    handler: Handler, test: Callable[[ScriptedServer, Transport], Awaitable[None]]
) -> None:
    async with ScriptedServer(handler) as server:
        pool = Transport(server.access, max_connections=1)
        try:
            await test(server, pool)
        finally:
            await pool.aclose()
        await eventually(lambda: server.open_connections == 0)


def test_pieces_come_before_the_end(run: Run) -> None:
    more = asyncio.Event()

    async def slowly(exchange: Exchange) -> None:
        await exchange.send(CHUNKED_HEAD + chunk(b"one"))
        await more.wait()
        await exchange.send(chunk(b"two") + b"0\r\n\r\n")

    async def test(server: ScriptedServer, pool: Transport) -> None:
        async with pool.stream("GET", "/") as stream:
            assert stream.status == 200
            assert stream.header("transfer-encoding") == "chunked"
            assert await anext(stream) == b"one"
            more.set()
            assert [piece async for piece in stream] == [b"two"]

    run(_with_pool(slowly, test))


def test_streams_do_not_use_up_the_pool(run: Run) -> None:
    async def handler(exchange: Exchange) -> bytes | None:
        if exchange.path == "/watch":
            return await watch_answer(b"x", hold=True)(exchange)
        return answer()

    async def test(server: ScriptedServer, pool: Transport) -> None:
        async with pool.stream("GET", "/watch") as one, pool.stream("GET", "/watch") as two:
            assert await anext(one) == await anext(two) == b"x"
            assert (await pool.request("GET", "/")).status == 200

    run(_with_pool(handler, test))


@pytest.mark.parametrize("has_tls", [False, True])
def test_a_stream_takes_an_idle_connection_and_leaves_some_for_requests(
    run: Run, server_tls: ssl.SSLContext, authority_pem: str, has_tls: bool
) -> None:
    async def handler(exchange: Exchange) -> bytes | None:
        if exchange.path == "/watch":
            return await watch_answer(b"x", hold=True)(exchange)
        return answer()

    async def main() -> None:
        async with ScriptedServer(handler, tls=server_tls if has_tls else None) as server:
            trusted = tls_context(ca_pem=authority_pem)
            pool = Transport(server.tls_access(trusted) if has_tls else server.access)
            await asyncio.gather(*(pool.request("GET", "/") for _ in range(_SPARE + 1)))
            async with pool.stream("GET", "/watch") as one:
                assert await anext(one) == b"x"
                assert server.connections == _SPARE + 1
                async with pool.stream("GET", "/watch") as two:
                    assert await anext(two) == b"x"
                    assert server.connections == _SPARE + 2
                    await asyncio.gather(*(pool.request("GET", "/") for _ in range(_SPARE)))
                    assert server.connections == _SPARE + 2
            await pool.aclose()
            await eventually(lambda: server.open_connections == 0)

    run(main())


def test_a_stream_on_an_idle_connection_that_turns_out_to_be_stale_opens_another(run: Run) -> None:
    async def handler(exchange: Exchange) -> bytes | None:
        if exchange.path == "/watch" and exchange.number:
            exchange.hang_up()
            return None
        return answer({"fine": True})

    async def main() -> None:
        async with ScriptedServer(handler) as server:
            pool = Transport(server.access)
            await asyncio.gather(*(pool.request("GET", "/") for _ in range(_SPARE + 1)))
            async with pool.stream("GET", "/watch") as stream:
                assert await stream.read() == b'{"fine":true}'
            assert server.connections == _SPARE + 2
            await pool.aclose()

    run(main())


def test_silence_is_noticed(run: Run) -> None:
    async def test(server: ScriptedServer, pool: Transport) -> None:
        async def read() -> None:
            async with pool.stream("GET", "/w?x=1", inactivity_timeout_s=0.05) as stream:
                async for _ in stream:
                    pass

        with pytest.raises(RequestTimeoutError, match=r"GET /w: .*nothing came for 0.05 s"):
            await read()

    run(_with_pool(watch_answer(b"x", 0.01, b"y", hold=True), test))


def test_silence_before_the_head_is_noticed(run: Run) -> None:
    async def never(_: Exchange) -> None:
        await asyncio.sleep(3600)

    async def test(server: ScriptedServer, pool: Transport) -> None:
        with pytest.raises(RequestTimeoutError):
            async with pool.stream("GET", "/", inactivity_timeout_s=0.05):
                pytest.fail("there is no answer")

    run(_with_pool(never, test))


def test_a_slow_trickle_is_not_silence(run: Run) -> None:
    pieces = [piece for _ in range(6) for piece in (b"x", 0.2)]

    async def test(server: ScriptedServer, pool: Transport) -> None:
        async with pool.stream("GET", "/", inactivity_timeout_s=1.0) as stream:
            assert b"".join([piece async for piece in stream]) == b"xxxxxx"

    run(_with_pool(watch_answer(*pieces), test))


@pytest.mark.parametrize("reset", [True, False])
def test_a_break_is_an_error_after_what_came(run: Run, reset: bool) -> None:
    pieces: list[bytes] = []

    async def breaks(exchange: Exchange) -> None:
        await exchange.send(CHUNKED_HEAD + chunk(b"one"))
        # A reset takes along what the other side has not read yet.
        await eventually(lambda: bool(pieces))
        if reset:
            exchange.reset()
        else:
            exchange.hang_up()

    async def test(server: ScriptedServer, pool: Transport) -> None:
        async def read() -> None:
            async with pool.stream("GET", "/") as stream:
                async for piece in stream:
                    pieces.append(piece)  # noqa: PERF401 - it ends with an error

        with pytest.raises(ConnectionFailedError, match="in the middle of an answer"):
            await read()
        assert pieces == [b"one"]

    run(_with_pool(breaks, test))


def test_a_complete_answer_on_a_connection_that_ends_at_once(run: Run) -> None:
    async def all_at_once(exchange: Exchange) -> None:
        await exchange.send(answer("whole", status=403, headers={"Connection": "close"}))
        exchange.hang_up()

    async def test(server: ScriptedServer, pool: Transport) -> None:
        async with pool.stream("GET", "/") as stream:
            assert stream.status == 403
            assert await stream.read() == b"whole"

    run(_with_pool(all_at_once, test))


def test_an_error_body_is_bounded(run: Run) -> None:
    async def test(server: ScriptedServer, pool: Transport) -> None:
        with pytest.raises(ConnectionFailedError, match="larger than 10 bytes"):
            async with pool.stream("GET", "/") as stream:
                await stream.read(limit_bytes=10)

    run(_with_pool(watch_answer(b"x" * 100), test))


def test_a_reader_that_is_slow_slows_the_server(run: Run) -> None:
    sent = 0
    total = 64 << 20

    async def floods(exchange: Exchange) -> None:
        nonlocal sent
        await exchange.send(CHUNKED_HEAD)
        piece = b"x" * (1 << 18)
        while sent < total:
            await exchange.send(chunk(piece))
            sent += len(piece)
        await exchange.send(b"0\r\n\r\n")

    async def test(server: ScriptedServer, pool: Transport) -> None:
        async with pool.stream("GET", "/") as stream:
            received = len(await anext(stream))
            await asyncio.sleep(0.2)  # time in which the server fills all buffers
            assert sent < total / 2, "the server could send nearly all of it to nobody"
            async for piece in stream:
                received += len(piece)
        assert received == total

    run(_with_pool(floods, test))


def test_leaving_closes_the_connection(run: Run) -> None:
    async def test(server: ScriptedServer, pool: Transport) -> None:
        async with pool.stream("GET", "/") as stream:
            await anext(stream)
            assert server.open_connections == 1
        await eventually(lambda: server.open_connections == 0)

    run(_with_pool(watch_answer(b"x", hold=True), test))


def test_closing_the_client_ends_streams(run: Run) -> None:
    async def test(server: ScriptedServer, pool: Transport) -> None:
        received = asyncio.Event()

        async def read() -> None:
            async with pool.stream("GET", "/") as stream:
                async for _ in stream:
                    received.set()

        task = asyncio.create_task(read())
        await received.wait()
        await pool.aclose()
        with pytest.raises(ConnectionFailedError):
            await task

    run(_with_pool(watch_answer(b"x", hold=True), test))


class TestHeld:
    def test_what_comes_is_not_read_before_the_release(self, run: Run) -> None:
        more = asyncio.Event()

        async def slowly(exchange: Exchange) -> None:
            await exchange.send(CHUNKED_HEAD + chunk(b"one"))
            await more.wait()
            await exchange.send(chunk(b"two") + b"0\r\n\r\n")

        async def test(server: ScriptedServer, pool: Transport) -> None:
            async with pool.stream("GET", "/") as stream:
                assert await anext(stream) == b"one"
                stream.hold()
                more.set()
                reading = asyncio.ensure_future(anext(stream))
                await settle()
                assert not reading.done()
                stream.release()
                assert await reading == b"two"

        run(_with_pool(slowly, test))

    def test_a_lot_is_read_all_the_same(self, run: Run) -> None:
        more = asyncio.Event()
        lot = b"x" * (4 * HELD_BYTES)

        async def slowly(exchange: Exchange) -> None:
            await exchange.send(CHUNKED_HEAD + chunk(b"one"))
            await more.wait()
            await exchange.send(chunk(lot))
            await asyncio.sleep(3600)

        async def test(server: ScriptedServer, pool: Transport) -> None:
            async with pool.stream("GET", "/") as stream:
                assert await anext(stream) == b"one"
                stream.hold()
                more.set()
                assert len(await anext(stream)) >= HELD_BYTES / 2

        run(_with_pool(slowly, test))

    @pytest.mark.parametrize("reset", [True, False])
    def test_the_end_of_the_connection_is_noticed(self, run: Run, reset: bool) -> None:
        held = asyncio.Event()

        async def breaks(exchange: Exchange) -> None:
            await exchange.send(CHUNKED_HEAD + chunk(b"one"))
            await held.wait()
            if reset:
                exchange.reset()
            else:
                exchange.hang_up()

        async def test(server: ScriptedServer, pool: Transport) -> None:
            async def read() -> None:
                async with pool.stream("GET", "/") as stream:
                    await anext(stream)
                    stream.hold()
                    held.set()
                    try:
                        await anext(stream)
                    finally:
                        stream.release()  # of no use, and without harm

            with pytest.raises(ConnectionFailedError, match="in the middle of an answer"):
                await read()

        run(_with_pool(breaks, test))
