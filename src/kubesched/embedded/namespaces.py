"""Empties terminating namespaces, and then deletes them.

A small controller: it watches for terminating namespaces, deletes their objects and, when the last
one is gone (pods may take their grace period, finalizers any time), the namespace.
"""

from __future__ import annotations

from typing import Final

from kubesched.embedded.deletion import ObjectDeletion
from kubesched.embedded.registry import Where
from kubesched.embedded.resources import BINDINGS, NAMESPACES, RESOURCES, ServedResource
from kubesched.embedded.schemas import DeleteOptions
from kubesched.embedded.store import VersionedStore
from kubesched.embedded.versions import VersionChange
from kubesched.embedded.watching import WatchSelection

#: How often a namespace that is not empty yet is checked again.
_RETRY_S: Final = 0.1
_CONTENTS: Final = tuple(r for r in RESOURCES if r.namespaced and r is not BINDINGS)


class NamespaceController:
    """Finishes the deletion of namespaces."""

    def __init__(self, store: VersionedStore, deletion: ObjectDeletion) -> None:
        self._store = store
        self._deletion = deletion
        self._terminating: set[str] = set()

    async def run(self) -> None:
        """Work until cancelled."""
        selection = WatchSelection(NAMESPACES)
        revision = self._store.revision
        for version in self._store.collection(NAMESPACES).versions():
            self.observe(version.obj["metadata"]["name"])
        watcher = self._store.watch(NAMESPACES, selection, _changed_name, since=revision)
        try:
            while not watcher.closed:
                await watcher.wait(_RETRY_S if self._terminating else None)
                for name in watcher.take():
                    self.observe(name)
                self.work()
        finally:
            self._store.collection(NAMESPACES).unwatch(watcher)

    def observe(self, name: str) -> None:
        """Add a namespace, if it terminates."""
        version = self._store.get(NAMESPACES, name)
        if version is not None and version.obj["metadata"].get("deletionTimestamp"):
            self._terminating.add(name)

    def work(self) -> None:
        """Delete the objects in terminating namespaces, and empty namespaces."""
        for name in sorted(self._terminating):
            if sum(self._empty(resource, name) for resource in _CONTENTS) == 0:
                self._terminating.discard(name)
                version = self._store.get(NAMESPACES, name)
                if version is not None:
                    self._store.remove(NAMESPACES, version)

    def _empty(self, resource: ServedResource, namespace: str) -> int:
        """Delete the objects of one kind; return how many are left."""
        collection = self._store.collection(resource)
        if not len(collection):
            return 0
        for key in collection.keys(namespace):
            version = collection.get(key)
            if version is None or version.obj["metadata"].get("deletionTimestamp"):
                continue
            where = Where(resource, namespace, version.obj["metadata"]["name"])
            self._deletion.delete(where, DeleteOptions())
        return len(collection.keys(namespace))


def _changed_name(_kind: str, change: VersionChange) -> str:
    return change.current.key
