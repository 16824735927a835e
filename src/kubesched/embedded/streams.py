"""The response to a watch: lines of JSON, until the client disconnects.

First the existing objects (if requested), then every change, and periodic bookmarks. All pending
lines are sent in one chunk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from kubesched.embedded.options import ListOptions
from kubesched.embedded.refusals import StatusError
from kubesched.embedded.resources import ServedResource
from kubesched.embedded.store import VersionedStore
from kubesched.embedded.versions import ADDED, Version, VersionChange, encode
from kubesched.embedded.watching import ChangeWatcher

JsonObject = dict[str, Any]
#: (kind of change, state) → line
Render = Callable[[str, Version], bytes]

#: Interval of bookmarks, for clients that allow them.
BOOKMARK_S: Final = 10.0
#: The last bookmark is sent this long before the watch ends.
_BEFORE_END_S: Final = 2.0
#: Default duration of a watch.
DEFAULT_TIMEOUT_S: Final = 30 * 60
_INITIAL_END: Final = "k8s.io/initial-events-end"


class WatchResponse:
    """One watch: its start, its pending lines, its end."""

    def __init__(
        self,
        store: VersionedStore,
        resource: ServedResource,
        options: ListOptions,
        *,
        render: Render,
        shared: Callable[[str, VersionChange], bytes] | None = None,
    ) -> None:
        """``shared`` renders a change to bytes that all watchers of this format share."""
        self._store = store
        self._options = options
        self._render = render
        self._resource = resource
        self._loop = asyncio.get_running_loop()
        timeout_s = options.timeout_s or DEFAULT_TIMEOUT_S
        self._end = self._loop.time() + timeout_s
        self._next_bookmark = self._bookmark_time()
        self._first: list[bytes] = []
        self._watcher: ChangeWatcher[bytes] | None = None
        self._begin(shared or (lambda kind, change: render(kind, change.state(kind))))

    def _begin(self, render_change: Callable[[str, VersionChange], bytes]) -> None:
        options, since = self._options, self._options.resource_version or 0
        if options.initial_events:
            since = self._store.revision
            self._first = self._initial_lines(since)
        elif not since:
            since = self._store.revision
        try:
            self._watcher = self._store.watch(
                self._resource, options.selection, render_change, since=since
            )
        except StatusError as refusal:
            self._first.append(error_line(refusal))

    def _initial_lines(self, revision: int) -> list[bytes]:
        collection = self._store.collection(self._resource)
        versions = collection.snapshot(at=revision, namespace=self._options.namespace)
        selection = self._options.selection
        lines = [self._render(ADDED, v) for v in versions if selection.matches(v)]
        if self._options.bookmarks:
            lines.append(self._bookmark({_INITIAL_END: "true"}))
        return lines

    def _bookmark(self, annotations: JsonObject | None = None) -> bytes:
        meta: JsonObject = {"resourceVersion": str(self._store.revision)}
        if annotations:
            meta["annotations"] = annotations
        obj = {"metadata": meta}
        return self._render("BOOKMARK", Version("", obj, self._store.revision, encode(obj)))

    def _bookmark_time(self) -> float:
        now = self._loop.time()
        last = self._end - _BEFORE_END_S
        return min(now + BOOKMARK_S, last) if last > now else now + 1.0

    async def next(self) -> bytes | None:
        """Wait for something to send, and return it; None when the watch is over."""
        if self._first:
            first, self._first = self._first, []
            return b"".join(first)
        watcher = self._watcher
        while watcher is not None and not watcher.closed:
            now = self._loop.time()
            if now >= self._end:
                return None
            until = min(self._end, self._next_bookmark) if self._options.bookmarks else self._end
            await watcher.wait(max(until - now, 0))
            lines = watcher.take()
            if self._options.bookmarks and self._loop.time() >= self._next_bookmark:
                self._next_bookmark = self._bookmark_time()
                lines.append(self._bookmark())
            if lines:
                return b"".join(lines)
        return None

    def cancel(self) -> None:
        """Make ``next`` return: the client is gone, or the server stops."""
        if self._watcher is not None:
            self._watcher.close()

    def close(self) -> None:
        """Stop listening to changes."""
        if self._watcher is not None:
            self._store.collection(self._resource).unwatch(self._watcher)


def error_line(refusal: StatusError) -> bytes:
    """Return the event that ends a failed watch."""
    return b'{"type":"ERROR","object":%b}\n' % refusal.body()
