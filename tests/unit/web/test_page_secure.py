"""The page behind the scheduler's own authentication and authorization."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kubesched.server import app as server_app
from kubesched.server.options import AuthenticationOptions, AuthorizationOptions
from kubesched.server.sources import Sources
from kubesched.web.page import WebPage
from kubesched.web.streams import Streams
from kubesched.web.world_state import WorldState
from tests.support.objects import node, pod
from tests.support.serving import Reviewer, Target, client_tls, reviewing, served
from tests.support.waiting import eventually
from tests.support.worlds import world_of

from .conftest import Run
from .harness import living

PATHS = ("/ui", "/ui/", "/ui/api/overview", "/ui/api/nodes", "/ui/api/stream", "/ui/x.js")


@contextlib.asynccontextmanager
async def guarded(folder: Path, *, nodes: int = 1) -> AsyncIterator[tuple[Target, Streams]]:
    """Serve a page to a user who may see some of it, and to one who may see nothing."""
    world = world_of(*(node(f"secret-{number:04}") for number in range(nodes)), pod("p", cpu="99"))
    source = living(WorldState(world))
    streams = Streams(source, period_s=0.02)
    page = WebPage(source, streams=streams)
    reviewer = Reviewer(
        tokens={"good": {"username": "ann"}, "poor": {"username": "eve"}},
        rights={("ann", path) for path in PATHS},
    )
    async with reviewing(reviewer, folder) as kubeconfig:
        sources = Sources(web_page=page.answer)
        authentication = AuthenticationOptions(kubeconfig=kubeconfig, skip_lookup=True)
        authorization = AuthorizationOptions(kubeconfig=kubeconfig)
        async with (
            served(sources, authentication=authentication, authorization=authorization) as target,
            page,
        ):
            yield target, streams


def test_only_who_may_sees_anything(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        async with guarded(tmp_path) as (target, _):
            for path in PATHS:
                for token, code in (("", 403), ("wrong", 401), ("poor", 403)):
                    reply = await target.ask(path, token=token)
                    assert reply.code == code, (path, token)
                    assert "secret" not in reply.text
                    assert "<html" not in reply.text
            told = await target.ask("/ui/api/nodes", token="good")
            assert told.code == 200
            assert "secret-0000" in told.text
            assert told.headers["cache-control"] == "no-store"
            # The right to look at the page is not the right to everything below its name.
            assert (await target.ask("/ui/api/queue", token="good")).code == 403
            assert (await target.ask("/uix", token="good")).code == 403

    run(main())


def test_without_a_page_there_is_nothing(run_once: Run) -> None:
    async def main() -> None:
        async with served(Sources()) as target:
            for path in PATHS:
                assert (await target.ask(path)).code == 404

    run_once(main())


@contextlib.asynccontextmanager
async def following(target: Target) -> AsyncIterator[tuple[asyncio.StreamReader, Any]]:
    """Open a stream; yields the connection's reader and transport."""
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", target.port, ssl=client_tls(), server_hostname=""
    )
    head = "GET /ui/api/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer good\r\n\r\n"
    writer.write(head.encode())
    try:
        yield reader, writer.transport
    finally:
        writer.transport.abort()
        await asyncio.sleep(0.05)  # the end of a TLS connection takes a few turns more


def test_a_client_that_reads_nothing_is_let_go(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it does not take does not pile up either."""
    monkeypatch.setattr(server_app, "_STALL_TIMEOUT_S", 1.0)
    monkeypatch.setattr("kubesched.web.telling.overview", lambda *_: "x" * 500_000)

    async def main() -> None:
        async with (
            guarded(tmp_path) as (target, streams),
            following(target) as (reader, transport),
        ):
            await reader.readuntil(b"retry")
            transport.pause_reading()
            await eventually(lambda: streams.count == 1)
            await eventually(lambda: streams.count == 0)

    run(main())


def test_the_server_ends_at_once_although_somebody_watches(run: Run, tmp_path: Path) -> None:
    async def main() -> float:
        loop = asyncio.get_running_loop()
        async with contextlib.AsyncExitStack() as clients:
            async with guarded(tmp_path) as (target, _):
                reader, _ = await clients.enter_async_context(following(target))
                await reader.readuntil(b"event: queue")
                began = loop.time()
            return loop.time() - began

    assert run(main()) < 2.5
