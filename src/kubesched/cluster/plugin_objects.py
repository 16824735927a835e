"""Objects of kinds that only plugins read, and how a plugin reads them.

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
    """The objects of one kind, as the informer last showed them; read-only."""

    def __init__(self, store: NamedStore[T] | NamespacedStore[T]) -> None:
        self._store = store

    def get(self, name: str, *, namespace: str = "") -> T | None:
        """Return an object, None if there is none of that name."""
        if isinstance(self._store, NamespacedStore):
            return self._store.get(namespace, name)
        return self._store.get(name)

    def __iter__(self) -> Iterator[T]:
        return iter(self._store)

    def __len__(self) -> int:
        return len(self._store)

    @property
    def version(self) -> int:
        """Another one for each state of the objects: for `epoch` of a score that depends on it."""
        return self._store.changes.position


class PluginObjects:
    """The stores of all kinds that plugins watch, by the names of these."""

    def __init__(self) -> None:
        self._stores: dict[str, AnyStore] = {}
        self._has_informers = False

    def store(self, kind: str, *, namespaced: bool) -> AnyStore:
        """Return the store of a kind, made the first time that one asks for it.

        Raises ConfigError if it would stay empty, since informers were started without it.
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
        """Take note that informers fill the stores that there are, and no others."""
        self._has_informers = True

    @property
    def version(self) -> tuple[int, ...]:
        """Another one for each state of the objects."""
        return tuple([store.changes.position for store in self._stores.values()])

    def validate(self) -> None:
        """Check each store."""
        for store in self._stores.values():
            store.validate()
