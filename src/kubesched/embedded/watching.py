"""Watchers: who wants to hear of which changes, and the changes that wait for them.

    Store.commit ──change──▶ Watcher.offer ──(selected, as seen by this watcher)──▶ pending
                                                                    wait(), take() ◀────┘

A watcher that does not keep up is cut off, so that memory is bounded: its client comes back with
the last revision it saw, or lists again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from kubesched.embedded.resources import Resource
from kubesched.embedded.selectors import FieldSelector, LabelSelector
from kubesched.embedded.versions import ADDED, DELETED, MODIFIED, Change, Version

JsonObject = dict[str, Any]
T = TypeVar("T")

#: Changes that may wait for one watcher before it is cut off.
PENDING_LIMIT: Final = 16384
ALL_KINDS: Final = frozenset({ADDED, MODIFIED, DELETED})


class Selection:
    """Which objects of a collection a request is about."""

    __slots__ = ("_fields", "_labels", "_prefix", "everything", "selective")

    def __init__(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        labels: LabelSelector | None = None,
        fields: FieldSelector | None = None,
    ) -> None:
        self._prefix = f"{namespace}/" if namespace else ""
        self._labels = labels if labels is not None and labels.requirements else None
        terms = fields.terms if fields is not None else ()
        self._fields = [(resource.field_reader(t.field), t.value, t.equal) for t in terms]
        #: there is a selector, so objects come and go by what is in them
        self.selective = bool(self._labels or self._fields)
        self.everything = not self._prefix and not self.selective

    def matches(self, version: Version) -> bool:
        """Tell whether the object is selected in this state."""
        return version.key.startswith(self._prefix) and self._content_matches(version.obj)

    def seen(self, change: Change) -> str | None:
        """Return what kind of change this is to somebody who sees only what is selected."""
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


class Watcher(Generic[T]):
    """A queue of changes for one consumer, in the form that ``render`` gives them."""

    def __init__(
        self,
        selection: Selection,
        render: Callable[[str, Change], T],
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
        #: changes up to this revision are not offered
        self.since = since
        #: cut off, by the store or because it was too slow
        self.closed = False

    def offer(self, change: Change) -> None:
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
        """Return what waits now, perhaps nothing."""
        pending, self._pending = self._pending, []
        return pending

    async def wait(self, timeout_s: float | None = None) -> None:
        """Return once something waits, the watcher is closed or the time is over."""
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
        """Cut it off; whoever waits returns."""
        self.closed = True
        self._notify()

    def _notify(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)
