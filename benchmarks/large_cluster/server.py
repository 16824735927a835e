"""An API server in memory, with the verbs of `ApiClient` that a scheduler uses.

    list_pages  ──> the objects of the beginning, decoded in slices
    watch       ──> bytes of events, for the client's own decoder
    post, patch, delete ──> Writes; answered in the next turn of the loop

Nothing is sent over a network, so what is measured is the scheduler. Objects that the scheduler
writes are the newest ones that its informers have.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any, Protocol, Self, cast

import msgspec

from kubesched.api.decoding import decoder_of
from kubesched.client.listing import SLICE_OBJECTS, ListPage
from kubesched.client.stream import StreamResponse
from kubesched.client.watch import WatchDecoder, WatchStream
from kubesched.errors import NotFoundError
from kubesched.kinds import KINDS
from kubesched.scheduler.api_calls import Binding

#: What a connection reads at once.
CHUNK_BYTES = 64 << 10

_encode = msgspec.json.Encoder().encode


class Writes(Protocol):
    """Carries out what the scheduler writes."""

    def bind(self, namespace: str, name: str, node_name: str) -> None:
        """Bind a pod."""

    def patch_status(self, namespace: str, name: str, status: dict[str, Any]) -> None:
        """Change the status of a pod."""

    def delete(self, namespace: str, name: str) -> None:
        """Delete a pod."""


class Feed:
    """The events of one kind that are not read yet, as the body of a watch."""

    def __init__(self) -> None:
        self._lines: deque[bytes] = deque()
        self._has_lines = asyncio.Event()

    def send(self, event: bytes, obj: bytes) -> None:
        """Send ADDED, MODIFIED or DELETED, with the object."""
        self._lines.append(b'{"type":"%b","object":%b}\n' % (event, obj))
        self._has_lines.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        await self._has_lines.wait()
        chunk, size = [], 0
        while self._lines and size < CHUNK_BYTES:
            chunk.append(self._lines.popleft())
            size += len(chunk[-1])
        if not self._lines:
            self._has_lines.clear()
        return b"".join(chunk)


class MemoryServer:
    """Lists, watches, and answers writes."""

    def __init__(self, contents: Callable[[str], Iterator[Any]]) -> None:
        """`contents` returns the objects of a kind: JSON, or decoded already."""
        self._contents = contents
        self._kinds = {kind.path.collection(): name for name, kind in KINDS.items()}
        self.feeds = {name: Feed() for name in KINDS}
        self.writes: Writes

    async def list_pages(
        self, path: str, item_type: type[Any], **_: object
    ) -> AsyncGenerator[ListPage[Any], None]:
        """Yield the objects of the beginning."""
        items: list[Any] = []
        first, decode = True, decoder_of(item_type).decode
        for each in self._contents(self._kinds[path]):
            items.append(decode(each) if isinstance(each, bytes) else each)
            if len(items) == SLICE_OBJECTS:
                yield _page(items, first=first)
                first, items = False, []
        yield _page(items, first=first)

    @asynccontextmanager
    async def watch(
        self, path: str, item_type: type[Any], *, resource_version: str, **_: object
    ) -> AsyncIterator[WatchStream[Any]]:
        """Stream the events of a kind."""
        decoder = WatchDecoder(item_type, resource_version=resource_version)
        feed = self.feeds[self._kinds[path]]
        yield WatchStream(cast("StreamResponse", feed), decoder)

    async def post(self, path: str, body: object, **_: object) -> None:
        """Bind a pod, or record an event."""
        encoded = _encode(body)
        await asyncio.sleep(0)
        if isinstance(body, Binding):
            self.writes.bind(body.metadata.namespace, body.metadata.name, body.target.name)
        elif not encoded:
            raise NotFoundError(f"{path}: nothing was sent", code=404)

    async def patch(self, path: str, body: object, **_: object) -> None:
        """Change the status of a pod; series of events are accepted."""
        _encode(body)
        await asyncio.sleep(0)
        if isinstance(body, dict) and "/pods/" in path:
            namespace, name = _pod_of(path)
            self.writes.patch_status(namespace, name, body["status"])

    async def delete(self, path: str, *_: object, **__: object) -> None:
        """Delete a pod."""
        await asyncio.sleep(0)
        self.writes.delete(*_pod_of(path))


def _page(items: list[Any], *, first: bool) -> ListPage[Any]:
    return ListPage(items=items, bad=[], waiting=0, resource_version="1", first=first)


def _pod_of(path: str) -> tuple[str, str]:
    parts = path.split("/")
    return parts[parts.index("namespaces") + 1], parts[parts.index("pods") + 1]
