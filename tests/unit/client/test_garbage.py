"""The client leaves nothing behind that only the garbage collector could free."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import pytest

from kubesched.api.core import Node
from kubesched.client.rest import ApiClient
from kubesched.client.transport import Transport
from kubesched.client.watch import WatchDecoder
from kubesched.errors import KubeschedError
from tests.support.reference_cycles import no_cycles
from tests.support.servers import (
    CHUNKED_HEAD,
    LAST_CHUNK,
    Exchange,
    ScriptedServer,
    answer,
    chunk,
    event_line,
    failure,
)
from tests.support.waiting import eventually, settle

from .conftest import Run

TIMES = 5


async def _bye(_: Exchange) -> bytes:
    return answer(headers={"Connection": "close"})


async def _refusal(_: Exchange) -> bytes:
    return failure(409, "Conflict", "no", Connection="close")


async def _busy(_: Exchange) -> bytes:
    return failure(429, "TooManyRequests", "later", Connection="close")


async def _hang_up(exchange: Exchange) -> None:
    exchange.hang_up()


async def _reset(exchange: Exchange) -> None:
    exchange.reset()


async def _half_an_answer(exchange: Exchange) -> None:
    await exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
    exchange.hang_up()


async def _nonsense(_: Exchange) -> bytes:
    return b"SSH-2.0-OpenSSH\r\n"


async def _silence(_: Exchange) -> None:
    return None


ANSWERS = [_bye, _refusal, _busy, _hang_up, _reset, _half_an_answer, _nonsense, _silence]


def _named(handler: Callable[..., object]) -> str:
    return handler.__name__.strip("_")


async def _many(server: ScriptedServer, work: Callable[[ApiClient], Awaitable[object]]) -> None:
    """Do something that may fail a few times, with a client of its own."""
    async with ApiClient(server.access, timeout_s=0.2) as client:
        for _ in range(TIMES):
            with contextlib.suppress(KubeschedError, TimeoutError):
                await work(client)
    await settle()


@pytest.mark.parametrize("handler", ANSWERS, ids=_named)
def test_a_request_leaves_no_cycle(
    run: Run, handler: Callable[[Exchange], Awaitable[bytes | None]]
) -> None:
    async def test() -> None:
        async with ScriptedServer(handler) as server:
            await _many(server, lambda client: client.request("GET", "/"))
            with no_cycles():
                await _many(server, lambda client: client.request("GET", "/"))

    run(test())


def test_a_connection_that_rested_too_long_leaves_no_cycle(run: Run) -> None:
    async def test() -> None:
        async def ok(_: Exchange) -> bytes:
            return answer()

        async with ScriptedServer(ok) as server:
            with no_cycles():
                transport = Transport(server.access, idle_timeout_s=0.01)
                await transport.request("GET", "/")
                await eventually(lambda: server.open_connections == 0)
                await settle()
                await transport.aclose()

    run(test())


def test_a_refused_connection_leaves_no_cycle(run: Run) -> None:
    async def test() -> None:
        async with ScriptedServer(_bye) as server:
            pass
        with no_cycles():
            await _many(server, lambda client: client.request("GET", "/"))

    run(test())


def test_a_cancelled_request_leaves_no_cycle(run: Run) -> None:
    async def give_up(client: ApiClient) -> None:
        async with asyncio.timeout(0.02):
            await client.request("GET", "/", timeout_s=5)

    async def test() -> None:
        async with ScriptedServer(_silence) as server:
            with no_cycles():
                await _many(server, give_up)

    run(test())


class TestWatches:
    @staticmethod
    async def _read(client: ApiClient) -> None:
        watch = client.watch(
            "/api/v1/nodes", Node, resource_version="1", timeout_s=1, stall_timeout_s=0.05
        )
        async with watch as stream:
            async for events in stream:
                list(events)

    @staticmethod
    async def _ends(_: Exchange) -> bytes:
        node = {"metadata": {"name": "n", "resourceVersion": "2"}}
        lines = event_line("ADDED", node) + event_line("BOOKMARK", node)
        return CHUNKED_HEAD + chunk(lines) + LAST_CHUNK

    @staticmethod
    async def _breaks(exchange: Exchange) -> None:
        await exchange.send(CHUNKED_HEAD + chunk(b'{"type":'))
        exchange.reset()

    @staticmethod
    async def _falls_silent(exchange: Exchange) -> None:
        await exchange.send(CHUNKED_HEAD)

    @staticmethod
    async def _gone(_: Exchange) -> bytes:
        status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
        return CHUNKED_HEAD + chunk(event_line("ERROR", status)) + LAST_CHUNK

    @pytest.mark.parametrize(
        "handler",
        [_ends, _breaks, _falls_silent, _gone, staticmethod(_refusal), staticmethod(_hang_up)],
        ids=lambda handler: _named(handler.__func__),
    )
    def test_a_watch_that_ends_leaves_no_cycle(
        self, run: Run, handler: staticmethod[[Exchange], Awaitable[bytes | None]]
    ) -> None:
        async def test() -> None:
            async with ScriptedServer(handler.__func__) as server:
                await _many(server, self._read)
                with no_cycles():
                    await _many(server, self._read)

        run(test())

    def test_watches_of_one_type_share_their_decoder(self) -> None:
        """A watch lasts some minutes; a decoder takes as much memory as all types it knows."""
        one, other = (WatchDecoder(Node) for _ in range(2))
        assert one._decode.__self__ is other._decode.__self__  # type: ignore[attr-defined]
