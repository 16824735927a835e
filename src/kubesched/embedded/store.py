"""The objects, in memory, with their recent history.

One counter numbers every write, as etcd's revision does: ``metadata.resourceVersion`` of an object
is the number of its last write. A collection holds the newest version of each object and the last
changes, from which watches resume and older states of the collection are rebuilt, so that a paged
list is consistent. Requests for older changes get ``Expired``.

The store takes ownership of objects that are passed in; they are never modified again. Everything
happens in one thread: a write and its watchers' queues change together.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeVar

from kubesched.embedded.refusals import expired
from kubesched.embedded.resources import RESOURCES, ServedResource
from kubesched.embedded.versions import ADDED, DELETED, MODIFIED, Version, VersionChange, encode
from kubesched.embedded.watching import ALL_KINDS, PENDING_LIMIT, ChangeWatcher, WatchSelection

JsonObject = dict[str, Any]
T = TypeVar("T")

#: Number of changes that each collection keeps.
HISTORY: Final = 16384
#: The character after "/", for the end of a range of keys.
_AFTER_SLASH: Final = "0"


class ObjectCollection:
    """All objects of one kind: the newest versions, and the changes that led there."""

    def __init__(self, history: int) -> None:
        self._items: dict[str, Version] = {}
        #: the keys in order; None after a key was added or removed
        self._order: list[str] | None = None
        #: changes after ``forgotten``, oldest first
        self._changes: deque[VersionChange] = deque()
        self._history = history
        #: the last revision whose change is discarded
        self.forgotten = 0
        self._watchers: list[ChangeWatcher[Any]] = []

    def __len__(self) -> int:
        return len(self._items)

    def get(self, key: str) -> Version | None:
        """Return the newest version of an object."""
        return self._items.get(key)

    def versions(self) -> Iterable[Version]:
        """Return the newest versions, in no order; invalid after a write."""
        return self._items.values()

    def oldest(self) -> Version:
        """Return the oldest object by creation; there must be one."""
        return next(iter(self._items.values()))

    def keys(self, namespace: str = "") -> Sequence[str]:
        """Return the keys in order, of one namespace or of all."""
        if self._order is None:
            self._order = sorted(self._items)
        return _within(self._order, namespace)

    def record(self, change: VersionChange) -> None:
        """Apply and store a change, and notify the watchers."""
        key = change.current.key
        if change.kind == DELETED:
            del self._items[key]
        else:
            self._items[key] = change.current
        if change.kind != MODIFIED:
            self._order = None
        self._changes.append(change)
        if len(self._changes) > self._history:
            self.forgotten = self._changes.popleft().revision
        self._publish(change)

    def forget(self, revision: int) -> None:
        """Discard the changes up to a revision."""
        while self._changes and self._changes[0].revision <= revision:
            self._changes.popleft()
        self.forgotten = max(self.forgotten, revision)

    def changes_since(self, revision: int) -> Iterator[VersionChange]:
        """Return the changes after a revision, oldest first; raises StatusError."""
        if revision < self.forgotten:
            raise expired(f"too old resource version: {revision} ({self.forgotten})")
        return (change for change in self._changes if change.revision > revision)

    def snapshot(self, *, at: int, namespace: str = "") -> list[Version]:
        """Return the objects as they were at a revision, in the order of their keys.

        The revision must be available: see ``remembers``.
        """
        if not self._changes or self._changes[-1].revision <= at:
            return [self._items[key] for key in self.keys(namespace)]
        items = self._rewound(at)
        return [items[key] for key in _within(sorted(items), namespace)]

    def remembers(self, revision: int) -> bool:
        """Tell whether the state at a revision is available."""
        return revision >= self.forgotten

    def _rewound(self, revision: int) -> dict[str, Version]:
        items = dict(self._items)
        for change in reversed(self._changes):
            if change.revision <= revision:
                break
            if change.previous is None:
                del items[change.current.key]
            else:
                items[change.current.key] = change.previous
        return items

    def watch(self, watcher: ChangeWatcher[Any]) -> None:
        """Add a watcher of all changes from now on."""
        self._watchers.append(watcher)

    def unwatch(self, watcher: ChangeWatcher[Any]) -> None:
        """Remove a watcher."""
        if watcher in self._watchers:
            self._watchers.remove(watcher)

    @property
    def changed(self) -> int:
        """The revision of the last change."""
        return self._changes[-1].revision if self._changes else self.forgotten

    def close_watchers(self) -> None:
        """End all watches."""
        for watcher in self._watchers:
            watcher.close()
        self._watchers.clear()

    def _publish(self, change: VersionChange) -> None:
        overrun = False
        for watcher in self._watchers:
            watcher.offer(change)
            overrun = overrun or watcher.closed
        change.forget_line()
        if overrun:
            self._watchers = [watcher for watcher in self._watchers if not watcher.closed]


class VersionedStore:
    """All collections and the counter that they share."""

    def __init__(self, *, history: int = HISTORY) -> None:
        #: the number of the last write
        self.revision = 0
        self._collections = {resource.storage: ObjectCollection(history) for resource in RESOURCES}

    def collection(self, resource: ServedResource) -> ObjectCollection:
        """Return the collection of a resource."""
        return self._collections[resource.storage]

    def get(self, resource: ServedResource, key: str) -> Version | None:
        """Return the newest version of an object."""
        return self._collections[resource.storage].get(key)

    def add(self, resource: ServedResource, key: str, obj: JsonObject) -> Version:
        """Store a new object; its metadata must not be shared."""
        version = self._next(key, obj)
        self.collection(resource).record(VersionChange(ADDED, version, None))
        return version

    def replace(self, resource: ServedResource, old: Version, obj: JsonObject) -> Version:
        """Store a new version; its metadata must not be shared."""
        version = self._next(old.key, obj)
        self.collection(resource).record(VersionChange(MODIFIED, version, old))
        return version

    def remove(self, resource: ServedResource, old: Version) -> Version:
        """Delete an object; return its last state with the revision of the deletion."""
        obj = {**old.obj, "metadata": dict(old.obj["metadata"])}
        version = self._next(old.key, obj)
        self.collection(resource).record(VersionChange(DELETED, version, old))
        return version

    def _next(self, key: str, obj: JsonObject) -> Version:
        self.revision += 1
        obj["metadata"]["resourceVersion"] = str(self.revision)
        return Version(key, obj, self.revision, encode(obj))

    def watch(
        self,
        resource: ServedResource,
        selection: WatchSelection,
        render: Callable[[str, VersionChange], T],
        *,
        since: int,
        limit: int = PENDING_LIMIT,
        kinds: frozenset[str] = ALL_KINDS,
    ) -> ChangeWatcher[T]:
        """Return a watcher for all changes after a revision; raises StatusError if it is too old.

        Changes that already happened are queued in it, regardless of the limit.
        """
        collection = self.collection(resource)
        known = list(collection.changes_since(since))
        bound = max(limit, len(known))
        watcher = ChangeWatcher(selection, render, since=since, limit=bound, kinds=kinds)
        for change in known:
            watcher.offer(change)
            change.forget_line()
        collection.watch(watcher)
        return watcher

    def compact(self) -> None:
        """Discard all changes, as etcd's compaction does."""
        for collection in self._collections.values():
            collection.forget(self.revision)

    def close_watchers(self) -> None:
        """End all watches."""
        for collection in self._collections.values():
            collection.close_watchers()


def _within(keys: list[str], namespace: str) -> list[str]:
    if not namespace:
        return keys
    start = bisect_left(keys, f"{namespace}/")
    return keys[start : bisect_left(keys, f"{namespace}{_AFTER_SLASH}", lo=start)]
