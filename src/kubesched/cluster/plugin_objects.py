"""Objects of kinds that only plugins read, and the plugin's interface to them.

informer ──> store of the kind ──> Lister: get, iterate, version
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from kubesched.cluster.object_store import HasMeta, NamedStore, NamespacedStore
from kubesched.errors import ConfigError

T = TypeVar("T", bound=HasMeta)
AnyStore = NamedStore[Any] | NamespacedStore[Any]


class Lister(Generic[T]):
    """Read-only access to the objects of one kind, as the informer last reported them."""

    def __init__(self, store: NamedStore[T] | NamespacedStore[T]) -> None:
        self._store = store

    def get(self, name: str, *, namespace: str = "") -> T | None:
        """Return an object, None if not found."""
        if isinstance(self._store, NamespacedStore):
            return self._store.get(namespace, name)
        return self._store.get(name)

    def __iter__(self) -> Iterator[T]:
        return iter(self._store)

    def __len__(self) -> int:
        return len(self._store)

    @property
    def version(self) -> int:
        """A number that changes with every change of the objects: for the `epoch` of a score."""
        return self._store.changes.position


class PluginObjects:
    """The stores of all kinds that plugins watch, by kind."""

    def __init__(self) -> None:
        self._stores: dict[str, AnyStore] = {}
        self._has_informers = False

    def store(self, kind: str, *, namespaced: bool) -> AnyStore:
        """Return the store of a kind, created on first use.

        Raises ConfigError if the informers were started without the kind.
        """
        if kind not in self._stores:
            if self._has_informers:
                raise ConfigError(
                    f"{kind} objects are not watched yet: informers are started with the "
                    "scheduler, so restart it"
                )
            self._stores[kind] = NamespacedStore() if namespaced else NamedStore()
        return self._stores[kind]

    def informers_started(self) -> None:
        """Record that informers run: from now on, no new kind can be watched."""
        self._has_informers = True

    @property
    def version(self) -> tuple[int, ...]:
        """A value that changes with every change of the objects."""
        return tuple([store.changes.position for store in self._stores.values()])

    def validate(self) -> None:
        """Check each store."""
        for store in self._stores.values():
            store.validate()
