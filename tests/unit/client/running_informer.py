"""A running informer, the server that it follows, and what it tells."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from kubesched.client.informer import Informer
from kubesched.client.resources import ResourcePath
from kubesched.client.rest import ApiClient
from tests.support.servers import (
    Exchange,
    Handler,
    JsonObject,
    ScriptedServer,
    answer,
    failure,
    watch_answer,
)
from tests.support.waiting import eventually

from .objects import Thing, thing_list

THINGS = ResourcePath(version="v1", plural="things", namespaced=True)


class Diary:
    """A handler that writes down what it hears."""

    def __init__(self) -> None:
        self.entries: list[str] = []

    def on_add(self, obj: Thing, initial: bool) -> None:
        self.entries.append(f"{'initial' if initial else 'add'} {_short(obj)}")

    def on_update(self, old: Thing, new: Thing) -> None:
        self.entries.append(f"update {_short(old)} -> {_short(new)}")

    def on_delete(self, obj: Thing) -> None:
        self.entries.append(f"delete {_short(obj)}")


def _short(obj: Thing) -> str:
    return f"{obj.metadata.name}@{obj.metadata.resource_version}"


class Api:
    """A handler for the server: scripted lists and watches, each used once, and discovery."""

    def __init__(self) -> None:
        self.lists: list[bytes | Handler] = []
        self.watches: list[bytes | Handler] = []
        #: what discovery answers
        self.discovered = answer({"kind": "APIResourceList", "resources": [{"name": "things"}]})

    async def __call__(self, exchange: Exchange) -> bytes | None:
        if exchange.path == THINGS.group_path:
            return self.discovered
        watching = "watch" in exchange.query
        answers = self.watches if watching else self.lists
        if not answers:
            if watching:
                return await watch_answer(hold=True)(exchange)
            return failure(500, "Script", "the script has no more lists")
        chosen = answers.pop(0)
        return chosen if isinstance(chosen, bytes) else await chosen(exchange)


class Fixture:
    """A running informer and everything around it."""

    def __init__(
        self,
        server: ScriptedServer,
        informer: Informer[Thing],
        diary: Diary,
        task: asyncio.Task[None],
    ) -> None:
        self.server = server
        self.informer = informer
        self.diary = diary
        #: runs the informer
        self.task = task
        self.pauses: list[float] = []

    @property
    def entries(self) -> list[str]:
        return self.diary.entries

    def queries(self) -> list[dict[str, str]]:
        return [exchange.query for exchange in self.server.requests]

    def watched_from(self) -> list[str]:
        return [query["resourceVersion"] for query in self.queries() if "watch" in query]

    @property
    def lists(self) -> int:
        return sum("watch" not in query for query in self.queries())

    async def hears(self, *entries: str) -> None:
        with contextlib.suppress(AssertionError):
            await eventually(lambda: len(self.entries) >= len(entries))
        await asyncio.sleep(0.01)  # anything more than expected shows up, too
        assert self.entries == list(entries)


@asynccontextmanager
async def running(api: Handler, **options: Any) -> AsyncIterator[Fixture]:
    diary = Diary()
    async with ScriptedServer(api) as server, ApiClient(server.access) as client:
        fixture: Fixture

        async def sleep(seconds: float) -> None:
            fixture.pauses.append(seconds)
            await asyncio.sleep(0.005)

        informer = Informer(
            client, THINGS, Thing, handler=diary, sleep=sleep, rng=random.Random(1), **options
        )
        task = asyncio.create_task(informer.run())
        fixture = Fixture(server, informer, diary, task)
        try:
            yield fixture
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


def listed(*items: JsonObject, version: int, next_page: str = "") -> bytes:
    return answer(thing_list(*items, version=version, next_page=next_page))
