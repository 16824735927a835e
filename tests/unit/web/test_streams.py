"""News: once a second, the same for all, only what changed, and only so many listeners."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

import msgspec
import pytest

from kubesched.web import telling
from kubesched.web.page import WebPage
from kubesched.web.streams import Streams
from kubesched.web.world_state import WorldState
from tests.support.objects import node, pod
from tests.support.waiting import eventually
from tests.support.worlds import world_of

from .conftest import Run
from .harness import living, request

Event = tuple[str, Any]
PERIOD_S = 0.02


class Watched:
    """A cluster that a test changes, and its streams."""

    def __init__(self, *, most: int = 32) -> None:
        self.world = world_of(node("n1"), node("n2"), pod("waiting", cpu="9"))
        self.state = WorldState(self.world)
        self.source = living(self.state)
        self.streams = Streams(self.source, most=most, period_s=PERIOD_S)

    async def events(
        self, version: int | None = None, gone: asyncio.Event | None = None
    ) -> AsyncGenerator[Event, None]:
        pieces = self.streams.follow(request("/ui/api/stream", gone=gone), version)
        async with aclosing(pieces):
            async for piece in pieces:
                event = read(piece)
                if event is not None:
                    yield event


def read(piece: bytes) -> Event | None:
    """Read an event; None for what is none."""
    assert piece.endswith(b"\n\n")
    fields = dict(line.split(": ", 1) for line in piece.decode().splitlines() if ": " in line)
    if "event" not in fields:
        return None
    told = msgspec.json.decode(fields["data"])
    if fields["event"] == "nodes":
        assert fields["id"] == str(told["version"])
    return fields["event"], told


async def first(
    events: AsyncIterator[Event], name: str, wanted: Callable[[Any], bool] = lambda _: True
) -> Any:
    async with asyncio.timeout(20):
        async for event, told in events:
            if event == name and wanted(told):
                return told
    raise AssertionError(name)


def test_whoever_has_no_nodes_is_told_to_ask_for_them(run: Run) -> None:
    async def main() -> None:
        async with aclosing(Watched().events()) as events:
            assert (await anext(events))[0] == "overview"
            event, told = await anext(events)
            assert (event, told["reload"]) == ("nodes", True)
            event, told = await anext(events)
            assert (event, told["total"]) == ("queue", 1)
            assert (await anext(events))[0] == "overview"

    run(main())


def test_whoever_has_nodes_is_told_what_changed_since(run: Run) -> None:
    async def main() -> None:
        watched = Watched()
        version = watched.state.columns.all().version
        watched.world.cluster.put_pod(pod("early", node="n1", cpu="1"))
        async with aclosing(watched.events(version)) as events:
            told = await first(events, "nodes")
            assert (told["reload"], told["changed"]["names"]) == (False, ["n1"])
            watched.world.cluster.put_pod(pod("late", node="n2", cpu="1"))
            told = await first(events, "nodes")
            assert told["changed"]["names"] == ["n2"]
            assert told["changed"]["resources"]["cpu"]["requested"] == [1000]

    run(main())


def test_while_nothing_changes_only_the_overview_is_told(run_once: Run) -> None:
    async def main() -> list[str]:
        watched = Watched()
        version = watched.state.columns.all().version
        told = []
        async with aclosing(watched.events(version)) as events:
            async for event, _ in events:
                told.append(event)
                if len(told) == 8:
                    return told
        return told

    assert run_once(main()) == ["overview", "queue", *["overview"] * 6]


def test_nodes_that_come_are_a_reason_to_reload(run_once: Run) -> None:
    async def main() -> None:
        watched = Watched()
        version = watched.state.columns.all().version
        async with aclosing(watched.events(version)) as events:
            await anext(events)
            watched.world.cluster.put_node(node("n3"))
            assert (await first(events, "nodes"))["reload"] is True

    run_once(main())


def test_what_all_are_told_is_put_together_once(
    run_once: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_together = 0
    original = telling.overview

    def counted(*arguments: Any) -> Any:
        nonlocal put_together
        put_together += 1
        return original(*arguments)

    monkeypatch.setattr(telling, "overview", counted)

    async def main() -> int:
        watched = Watched()
        watched.streams._period_s = 0.2
        told = 0

        async def listen() -> None:
            nonlocal told
            async for event, _ in watched.events():
                told += event == "overview"

        listening = [asyncio.create_task(listen()) for _ in range(20)]
        await eventually(lambda: told >= 100)
        for task in listening:
            task.cancel()
        await asyncio.gather(*listening, return_exceptions=True)
        return told

    assert run_once(main()) >= 100
    assert put_together <= 8


def test_a_stream_ends_when_its_client_is_gone(run: Run) -> None:
    async def main() -> None:
        watched, gone = Watched(), asyncio.Event()
        events = watched.events(gone=gone)
        await anext(events)
        assert watched.streams.count == 1
        gone.set()
        async with asyncio.timeout(5):
            async for _ in events:
                pass
        assert watched.streams.count == 0

    run(main())


def test_there_are_only_so_many(run_once: Run) -> None:
    async def main() -> None:
        watched = Watched(most=1)
        page = WebPage(watched.source, streams=watched.streams)
        async with page:
            answer = await page.answer(request("/ui/api/stream"))
            assert answer.pieces is not None
            await anext(answer.pieces)
            refused = await page.answer(request("/ui/api/stream"))
            assert refused.code == 429
            await answer.pieces.aclose()  # type: ignore[attr-defined]  # a generator
            assert (await page.answer(request("/ui/api/stream"))).code == 200

    run_once(main())


def test_a_browser_that_connects_again_goes_on_where_it_was(run_once: Run) -> None:
    async def main() -> None:
        watched = Watched()
        page = WebPage(watched.source, streams=watched.streams)
        version = watched.state.columns.all().version
        watched.world.cluster.put_pod(pod("p", node="n2"))
        async with page:
            headers = {"Last-Event-ID": str(version)}
            answer = await page.answer(request("/ui/api/stream?version=0", headers=headers))
            assert answer.pieces is not None
            async with asyncio.timeout(5):
                async for piece in answer.pieces:
                    event = read(piece)
                    if event is not None and event[0] == "nodes":
                        assert event[1]["changed"]["names"] == ["n2"]
                        break
            await answer.pieces.aclose()  # type: ignore[attr-defined]

    run_once(main())


def test_a_stream_ends_after_a_while_so_that_rights_are_checked_again(run_once: Run) -> None:
    async def main() -> int:
        watched = Watched()
        watched.streams._life_s = 0.8
        async with asyncio.timeout(20):
            return len([event async for event in watched.events()])

    assert run_once(main()) > 3
