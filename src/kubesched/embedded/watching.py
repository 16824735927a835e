"""Watchers: a selection of changes, queued for a consumer.

    VersionedStore ──change──▶ ChangeWatcher.offer ──(selected, as seen by it)──▶ pending
                                                              wait(), take() ◀──┘

A watcher that does not keep up is closed, so that memory is bounded: its client resumes from the
last revision it saw, or lists again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from kubesched.embedded.resources import ServedResource
from kubesched.embedded.selectors import FieldSelector, QuerySelector
from kubesched.embedded.versions import ADDED, DELETED, MODIFIED, Version, VersionChange

JsonObject = dict[str, Any]
T = TypeVar("T")

#: Queued changes before a slow watcher is closed.
PENDING_LIMIT: Final = 16384
ALL_KINDS: Final = frozenset({ADDED, MODIFIED, DELETED})


class WatchSelection:
    """The objects of a collection that a request selects."""

    __slots__ = ("_fields", "_labels", "_prefix", "everything", "selective")

    def __init__(
        self,
        resource: ServedResource,
        *,
        namespace: str = "",
        labels: QuerySelector | None = None,
        fields: FieldSelector | None = None,
    ) -> None:
        self._prefix = f"{namespace}/" if namespace else ""
        self._labels = labels if labels is not None and labels.requirements else None
        terms = fields.terms if fields is not None else ()
        self._fields = [(resource.field_reader(t.field), t.value, t.equal) for t in terms]
        #: whether there is a selector, so that objects may start or stop matching
        self.selective = bool(self._labels or self._fields)
        self.everything = not self._prefix and not self.selective

    def matches(self, version: Version) -> bool:
        """Tell whether the object is selected in this state."""
        return version.key.startswith(self._prefix) and self._content_matches(version.obj)

    def seen(self, change: VersionChange) -> str | None:
        """Return the kind of a change as seen through the selection."""
        if self.everything:
            return change.kind
        if not change.current.key.startswith(self._prefix):
            return None
        if not self.selective:
            return change.kind
        before = change.previous is not None and self._content_matches(change.previous.obj)
        after = change.kind != DELETED and self._content_matches(change.current.obj)
        if after:
            return MODIFIED if before else ADDED
        return DELETED if before else None

    def _content_matches(self, obj: JsonObject) -> bool:
        if self._labels is not None:
            labels = obj["metadata"].get("labels")
            if not self._labels.matches(labels or {}):
                return False
        return all((read(obj) == value) == equal for read, value, equal in self._fields)


class ChangeWatcher(Generic[T]):
    """A queue of changes for one consumer, as rendered by ``render``."""

    def __init__(
        self,
        selection: WatchSelection,
        render: Callable[[str, VersionChange], T],
        *,
        since: int,
        limit: int = PENDING_LIMIT,
        kinds: frozenset[str] = ALL_KINDS,
    ) -> None:
        self._selection = selection
        self._kinds = kinds
        self._render = render
        self._limit = limit
        self._pending: list[T] = []
        self._wake: asyncio.Future[None] | None = None
        #: changes up to this revision are skipped
        self.since = since
        #: closed by the store, or because it was too slow
        self.closed = False

    def offer(self, change: VersionChange) -> None:
        """Queue a change if it is selected."""
        if change.revision <= self.since:
            return
        kind = self._selection.seen(change)
        if kind is None or kind not in self._kinds:
            return
        if len(self._pending) >= self._limit:
            self._pending.clear()
            self.close()
            return
        self._pending.append(self._render(kind, change))
        self._notify()

    def take(self) -> list[T]:
        """Return the queued changes, possibly none."""
        pending, self._pending = self._pending, []
        return pending

    async def wait(self, timeout_s: float | None = None) -> None:
        """Return once something is queued, the watcher is closed, or on timeout."""
        if self._pending or self.closed:
            return
        self._wake = asyncio.get_running_loop().create_future()
        handle = None
        if timeout_s is not None:
            handle = self._wake.get_loop().call_later(timeout_s, self._notify)
        try:
            await self._wake
        finally:
            self._wake = None
            if handle is not None:
                handle.cancel()

    def close(self) -> None:
        """Close it; a pending ``wait`` returns."""
        self.closed = True
        self._notify()

    def _notify(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)
