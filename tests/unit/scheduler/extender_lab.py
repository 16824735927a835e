"""What the tests of extenders share: an event loop, objects, and extenders on loopback."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import msgspec

from kubesched.api.core import Pod
from kubesched.config.types import Extender
from kubesched.scheduler.extenders import HttpExtenders
from tests.support.servers import Handler, Script, ScriptedServer, answer

T = TypeVar("T")

#: No proxy, whatever the machine that runs the tests has.
NO_ENVIRONMENT: Mapping[str, str] = {}


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run to the end; neither time, nor tasks, nor sockets may be lost."""

    async def checked() -> T:
        async with asyncio.timeout(10):
            result = await main
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, f"tasks left behind: {left}"
        return result

    result = asyncio.run(checked())
    gc.collect(1)  # sockets left open are warnings, and warnings are errors
    return result


class Objects:
    """Whole objects without an API server."""

    def __init__(self, *, error: Exception | None = None) -> None:
        self._error = error
        self.pods_asked: list[str] = []
        self.nodes_asked: list[list[str]] = []

    async def pod_json(self, pod: Pod) -> bytes:
        self.pods_asked.append(pod.metadata.name)
        if self._error is not None:
            raise self._error
        return b'{"metadata":{"name":"%b"}}' % pod.metadata.name.encode()

    async def nodes_json(self, names: Sequence[str]) -> list[bytes]:
        self.nodes_asked.append(list(names))
        return [b'{"metadata":{"name":"%b"},"spec":{}}' % name.encode() for name in names]


def say(value: object) -> bytes:
    """An answer with JSON."""
    return answer(msgspec.json.encode(value))


def extender(server: ScriptedServer, path: str = "", **fields: Any) -> Extender:
    """Configuration of an extender on a server; it knows nodes by name unless told otherwise."""
    return Extender(url_prefix=server.url + path, **{"node_cache_capable": True, **fields})


@asynccontextmanager
async def serving(script: Script | Handler) -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer(script) as server:
        yield server


@asynccontextmanager
async def connected(
    *configs: Extender, objects: Objects | None = None
) -> AsyncIterator[HttpExtenders]:
    """All these extenders, closed at the end."""
    extenders = HttpExtenders(configs, objects or Objects(), environment=NO_ENVIRONMENT)
    try:
        yield extenders
    finally:
        await extenders.aclose()
