"""Objects of any kind, created, replaced and deleted over one connection pool.

    object ──kind──> discovery (asked once a version) ──> path ──> POST · PUT · DELETE

Objects are created concurrently, so that creation is not the bottleneck.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

import msgspec

from kubesched.bench.operations import JsonObject
from kubesched.client.resources import ResourcePath
from kubesched.client.rest import ApiClient
from kubesched.errors import ConfigError, NotFoundError

T = TypeVar("T")

#: Number of concurrent requests.
HANDS = 32

_NO_GRACE = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}


class _Resource(msgspec.Struct, frozen=True, gc=False):
    name: str
    kind: str
    namespaced: bool


class _Resources(msgspec.Struct, frozen=True):
    resources: tuple[_Resource, ...] = ()


class _NamedMeta(msgspec.Struct, frozen=True, gc=False):
    name: str
    uid: str = ""


class Named(msgspec.Struct, frozen=True, gc=False):
    """The part of a response that is read: the name."""

    metadata: _NamedMeta


class BenchObjects:
    """Client for an API server's objects of any kind."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._resources: dict[str, dict[str, ResourcePath]] = {}

    async def resource_of(self, obj: JsonObject) -> ResourcePath:
        """Return the path of a kind; raises ConfigError if the server does not serve it."""
        version, kind = str(obj.get("apiVersion")), str(obj.get("kind"))
        if version not in self._resources:
            self._resources[version] = await self._discover(version)
        found = self._resources[version].get(kind)
        if found is None:
            raise ConfigError(f"the API server has no kind {kind!r} in {version!r}")
        return found

    async def _discover(self, api_version: str) -> dict[str, ResourcePath]:
        group, _, version = api_version.rpartition("/")
        path = f"/apis/{api_version}" if group else f"/api/{version}"
        try:
            answer = await self._client.get(path, _Resources)
        except NotFoundError:
            return {}
        return {
            each.kind: ResourcePath(
                group=group, version=version, plural=each.name, namespaced=each.namespaced
            )
            for each in answer.resources
            if "/" not in each.name
        }

    async def create(self, obj: JsonObject, *, namespace: str = "") -> Named:
        """Create an object."""
        resource = await self.resource_of(obj)
        path = resource.collection(namespace if resource.namespaced else "")
        return await self._client.post(path, obj, type=Named)

    async def replace(self, obj: JsonObject, *, namespace: str = "", subresource: str = "") -> None:
        """Replace an object, or a subresource of it."""
        resource = await self.resource_of(obj)
        name = str(obj.get("metadata", {}).get("name", ""))
        where = namespace if resource.namespaced else ""
        await self._client.put(resource.item(name, namespace=where, subresource=subresource), obj)

    async def read(self, path: str) -> JsonObject:
        """Read an object, or a list of them."""
        answer: JsonObject = await self._client.get(path, dict)
        return answer

    async def post(self, path: str, body: bytes) -> Named:
        """Create an encoded object."""
        return await self._client.post(path, body, type=Named)

    async def patch_status(self, path: str, status: JsonObject) -> None:
        """Merge into an object's status."""
        await self._client.patch(f"{path}/status", {"status": status})

    async def patch(self, path: str, change: JsonObject) -> None:
        """Merge into an object."""
        await self._client.patch(path, change)

    async def delete(self, path: str, *, at_once: bool = False) -> None:
        """Delete an object or a collection; a missing one is fine."""
        try:
            await self._client.delete(path, _NO_GRACE if at_once else {}, timeout_s=600)
        except NotFoundError:
            return


async def each_of(
    things: Iterable[T],
    do: Callable[[T], Awaitable[None]],
    *,
    done: Callable[[int], None] = lambda _: None,
    hands: int = HANDS,
) -> None:
    """Process all items concurrently; ``done`` is called with the count."""
    rest = iter(things)
    finished = 0

    async def hand() -> None:
        nonlocal finished
        for thing in rest:
            await do(thing)
            finished += 1
            done(finished)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(hands):
            tasks.create_task(hand())


def encoded(objects: Sequence[JsonObject]) -> list[bytes]:
    """Encode objects; repeated ones are encoded once."""
    bodies: dict[int, bytes] = {}
    for obj in objects:
        if id(obj) not in bodies:
            bodies[id(obj)] = msgspec.json.encode(obj)
    return [bodies[id(obj)] for obj in objects]
