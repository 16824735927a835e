"""Empties namespaces that are being deleted, and then lets them go.

A controller in miniature: it hears of a namespace that terminates, deletes what is in it and, when
the last object is gone (pods may take their grace, finalizers as long as they like), the namespace.
"""

from __future__ import annotations

from typing import Final

from kubesched.embedded.deletion import Deletion
from kubesched.embedded.registry import Where
from kubesched.embedded.resources import BINDINGS, NAMESPACES, RESOURCES, Resource
from kubesched.embedded.shapes import DeleteOptions
from kubesched.embedded.store import Store
from kubesched.embedded.versions import Change
from kubesched.embedded.watching import Selection

#: How often a namespace that is not empty yet is looked at again.
_RETRY_S: Final = 0.1
_CONTENTS: Final = tuple(r for r in RESOURCES if r.namespaced and r is not BINDINGS)


class NamespaceController:
    """Finishes the deletion of namespaces."""

    def __init__(self, store: Store, deletion: Deletion) -> None:
        self._store = store
        self._deletion = deletion
        self._terminating: set[str] = set()

    async def run(self) -> None:
        """Work until cancelled."""
        selection = Selection(NAMESPACES)
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
        """Take notice of a namespace."""
        version = self._store.get(NAMESPACES, name)
        if version is not None and version.obj["metadata"].get("deletionTimestamp"):
            self._terminating.add(name)

    def work(self) -> None:
        """Delete what is in terminating namespaces, and those that are empty."""
        for name in sorted(self._terminating):
            if sum(self._empty(resource, name) for resource in _CONTENTS) == 0:
                self._terminating.discard(name)
                version = self._store.get(NAMESPACES, name)
                if version is not None:
                    self._store.remove(NAMESPACES, version)

    def _empty(self, resource: Resource, namespace: str) -> int:
        """Delete the objects of one kind; return how many are still there."""
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


def _changed_name(_kind: str, change: Change) -> str:
    return change.current.key
