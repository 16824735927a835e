"""The page on loopback: a token gets in, and nothing else does."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import tracemalloc
from collections.abc import AsyncIterator

import pytest

from kubesched.errors import UsageError
from kubesched.web.local import LOOPBACK, LocalServer
from kubesched.web.page import WebPage
from kubesched.web.world_state import WorldState
from tests.support.objects import node
from tests.support.waiting import eventually
from tests.support.worlds import world_of

from .conftest import Run
from .harness import living
from .local_page import Reply, Target, served


def test_the_printed_address_leads_in(run: Run) -> None:
    async def main() -> None:
        async with served() as target:
            reply = await target.ask(f"/ui/?token={target.token}")
            assert (reply.code, reply.headers["location"]) == (303, "/ui/")
            cookie = reply.headers["set-cookie"]
            assert "HttpOnly" in cookie
            assert "SameSite=Strict" in cookie
            assert target.token not in cookie
            shown = cookie.partition(";")[0]
            assert (await target.ask("/ui/", Cookie=shown)).code == 200
            overview = await target.ask("/ui/api/overview", Cookie=f"other=1; {shown}")
            assert overview.code == 200
            assert '"nodes":1' in overview.body
            assert (await target.ask("/", Cookie=shown)).headers["location"] == "/ui/"
            assert (await target.ask("/elsewhere", Cookie=shown)).code == 404

    run(main())


def test_a_link_of_another_site_leads_in_without_a_redirect(run_once: Run) -> None:
    """A browser would keep the cookie to itself otherwise."""

    async def main() -> None:
        async with served() as target:
            reply = await target.ask(f"/ui/?token={target.token}", Sec_Fetch_Site="cross-site")
            assert (reply.code, reply.headers["refresh"]) == (200, "0; url=/ui/")
            assert reply.headers["set-cookie"]

    run_once(main())


PATHS = (
    "/",
    "/ui",
    "/ui/",
    "/ui/?token=",
    "/ui/?token=wrong",
    "/ui/?token=%C3%A9",
    "/ui/api/overview",
    "/ui/api/nodes",
    "/ui/api/stream",
    "/ui/api/pods/default/waiting/explanation",
    "/ui/api/nothing",
    "/nothing",
)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Cookie": "kubesched-1=x; kubesched="},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Basic eDp5"},
        {"Cookie": "\xff"},
    ],
)
def test_nobody_else_sees_anything(run_once: Run, headers: dict[str, str]) -> None:
    async def main() -> None:
        async with served() as target:
            for path in PATHS:
                for method in ("GET", "POST"):
                    reply = await target.ask(path, method, body=b"", **headers)
                    assert reply.code == 401, path
                    assert "secret" not in reply.body
                    assert "set-cookie" not in reply.headers
                    assert "content-security-policy" in reply.headers

    run_once(main())


def test_a_cookie_of_an_earlier_page_is_worth_nothing(run_once: Run) -> None:
    async def main() -> None:
        async with served() as earlier:
            cookie = await earlier.enter()
            value = cookie.partition("=")[2]
        async with served() as target:
            shown = f"kubesched-{target.server.port}={value}"
            assert (await target.ask("/ui/", Cookie=shown)).code == 401

    run_once(main())


def test_another_name_for_loopback_is_refused(run_once: Run) -> None:
    """A site may let its own name point to 127.0.0.1, and its page then counts as ours."""

    async def main() -> None:
        async with served() as target:
            port = target.server.port
            cookie = await target.enter()
            for host in ("evil.example", f"evil.example:{port}", LOOPBACK, f"{LOOPBACK}:1", ""):
                reply = await target.ask("/ui/api/overview", Cookie=cookie, Host=host)
                assert reply.code in (400, 421), host
                assert "nodes" not in reply.body
            for host in (f"localhost:{port}", f"[::1]:{port}", f"LOCALHOST:{port}"):
                assert (await target.ask("/ui/api/overview", Cookie=cookie, Host=host)).code == 200

    run_once(main())


def test_another_site_cannot_ask_what_if(run_once: Run) -> None:
    async def main() -> None:
        async with served() as target:
            sent = {"Cookie": await target.enter(), "Content_Type": "application/json"}
            body = b'{"kind":"loss","node":"secret-node"}'
            for origin, code in (
                ("https://evil.example", 403),
                (f"http://{LOOPBACK}:{target.server.port}", 200),
            ):
                path = "/ui/api/what-if"
                reply = await target.ask(path, "POST", body=body, Origin=origin, **sent)
                assert reply.code == code

    run_once(main())


def test_a_bug_is_told_without_a_traceback(
    run_once: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from kubesched.web import telling

    def broken(*_: object) -> None:
        raise ZeroDivisionError("inside")

    monkeypatch.setattr(telling, "overview", broken)

    async def main() -> Reply:
        async with served() as target:
            return await target.ask("/ui/api/overview", Authorization=f"Bearer {target.token}")

    reply = run_once(main())

    assert reply.code == 500
    assert "inside" not in reply.body
    assert "Traceback" not in reply.body
    assert "ZeroDivisionError: inside" in caplog.text


def test_a_port_that_is_taken_is_said_so() -> None:
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            UsageError, match=f"cannot serve the page on 127.0.0.1:{port}: the port is in use"
        ):
            LocalServer(WebPage(living(WorldState(world_of(node("n"))))), port=port)


@contextlib.asynccontextmanager
async def watching(target: Target, count: int) -> AsyncIterator[list[asyncio.StreamReader]]:
    """Open streams, and read until each has begun."""
    head = (
        f"GET /ui/api/stream HTTP/1.1\r\nHost: {LOOPBACK}:{target.server.port}\r\n"
        f"Authorization: Bearer {target.token}\r\n\r\n"
    )
    readers, writers = [], []
    for _ in range(count):
        reader, writer = await target.connect()
        writer.write(head.encode())
        readers.append(reader)
        writers.append(writer)
    for reader in readers:
        await reader.readuntil(b"event: queue")
    try:
        yield readers
    finally:
        for writer in writers:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


def test_streams_are_let_go_when_their_clients_are(run: Run) -> None:
    async def main() -> None:
        async with served() as target:
            async with watching(target, 3):
                assert target.streams.count == 3
            await eventually(lambda: not target.streams.count)

    run(main())


def test_the_end_does_not_wait_for_those_who_watch(run: Run) -> None:
    async def main() -> float:
        loop = asyncio.get_running_loop()
        async with contextlib.AsyncExitStack() as stack:
            target = await stack.enter_async_context(served())
            await stack.enter_async_context(watching(target, 2))
            began = loop.time()
            await target.server.__aexit__()
        return loop.time() - began

    assert run(main()) < 1.5


def test_many_streams_cost_little_memory(run_once: Run) -> None:
    async def main() -> int:
        async with served() as target:
            async with watching(target, 1):
                pass
            gc.collect()
            tracemalloc.start()
            before = tracemalloc.get_traced_memory()[0]
            async with watching(target, 20) as readers:
                for _ in range(3):
                    for reader in readers:
                        await reader.readuntil(b"event: overview")
                gc.collect()
                used = tracemalloc.get_traced_memory()[0] - before
            tracemalloc.stop()
            return used

    assert run_once(main()) < 8_000_000
