"""API objects by key, with a change log.

    put · remove ──> objects, indexes ──> changes ──> views derived from the objects

An *assume store* also holds decisions that are not written yet: an assumed copy hides the object it
was made from. The resource version identifies it; any other version of the object, and its
removal, discards the copy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Generic, Protocol, TypeVar

from kubesched.api.meta import ObjectMeta
from kubesched.cluster.incremental import NAMES_LENGTH, Log
from kubesched.errors import ObjectError, require


class HasMeta(Protocol):
    """An API object."""

    @property
    def metadata(self) -> ObjectMeta:
        """Its metadata."""


T = TypeVar("T", bound=HasMeta)
K = TypeVar("K", bound=Hashable)


class Index(Generic[T, K]):
    """Keys of objects by a property of the objects."""

    def __init__(self, of: Callable[[T], str]) -> None:
        #: returns the place of an object; "" is a place like any other
        self._of = of
        #: place → keys, in the order in which they came
        self._keys: dict[str, dict[K, None]] = {}

    def add(self, key: K, obj: T) -> None:
        """Add an object."""
        self._keys.setdefault(self._of(obj), {})[key] = None

    def remove(self, key: K, obj: T) -> None:
        """Remove an object."""
        place = self._of(obj)
        keys = self._keys[place]
        del keys[key]
        if not keys:
            del self._keys[place]

    def keys(self, place: str) -> Iterable[K]:
        """Return the keys at a place."""
        return self._keys.get(place, ())

    def moves(self, old: T, new: T) -> bool:
        """Return whether a new version of an object has another place."""
        return self._of(old) != self._of(new)

    def validate(self, objects: dict[K, T]) -> None:
        """Check that each object is at its place."""
        found = {key: place for place, keys in self._keys.items() for key in keys}
        require(found == {key: self._of(obj) for key, obj in objects.items()}, "index")
        require(sum(map(len, self._keys.values())) == len(objects), "each key once")


class ObjectStore(ABC, Generic[T, K]):
    """Objects as the informer last reported them."""

    def __init__(self, changes: Log[K] | None = None) -> None:
        """`changes` is the log to record changes in, if shared with other stores."""
        self._objects: dict[K, T] = {}
        self._indexes: list[Index[T, K]] = []
        #: keys of objects that changed
        self.changes: Log[K] = Log(NAMES_LENGTH) if changes is None else changes
        #: called with the key of each changed object, after the change
        self.listeners: list[Callable[[K], None]] = []

    @staticmethod
    @abstractmethod
    def key_of(obj: HasMeta) -> K:
        """Return the key of an object."""

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[T]:
        return iter(list(self._objects.values()))

    def newest(self, key: K) -> T | None:
        """Return the newest version of an object that was read or written."""
        return self._objects.get(key)

    def put(self, obj: T) -> None:
        """Add or update an object."""
        key = self.key_of(obj)
        old = self._objects.get(key)
        self._objects[key] = obj
        for index in self._indexes:
            if old is None:
                index.add(key, obj)
            elif index.moves(old, obj):
                index.remove(key, old)
                index.add(key, obj)
        self._changed(key)

    def remove(self, obj: HasMeta) -> None:
        """Remove an object, if present."""
        key = self.key_of(obj)
        old = self._objects.pop(key, None)
        if old is not None:
            for index in self._indexes:
                index.remove(key, old)
            self._changed(key)

    def _changed(self, key: K) -> None:
        self.changes.record(key)
        for notify in self.listeners:
            notify(key)

    def _indexed(self, of: Callable[[T], str]) -> Index[T, K]:
        index: Index[T, K] = Index(of)
        self._indexes.append(index)
        return index

    def validate(self) -> None:
        """Check that the indexes agree with the objects."""
        for key, obj in self._objects.items():
            require(self.key_of(obj) == key, f"{key} is the key of its object")
        for index in self._indexes:
            index.validate(self._objects)


class NamedStore(ObjectStore[T, str]):
    """Objects of a cluster-scoped kind."""

    @staticmethod
    def key_of(obj: HasMeta) -> str:
        """Return the object's name."""
        return obj.metadata.name

    def get(self, name: str) -> T | None:
        """Return an object."""
        return self._objects.get(name)


class NamespacedStore(ObjectStore[T, tuple[str, str]]):
    """Objects of a namespaced kind."""

    @staticmethod
    def key_of(obj: HasMeta) -> tuple[str, str]:
        """Return the object's namespace and name."""
        return obj.metadata.namespace, obj.metadata.name

    def get(self, namespace: str, name: str) -> T | None:
        """Return an object."""
        return self._objects.get((namespace, name))


class Assumptions(ObjectStore[T, K]):
    """Mixin for a store: decisions that are not written yet."""

    def __init__(self, changes: Log[K] | None = None) -> None:
        super().__init__(changes)
        #: key → assumed copy, of the same resource version as the object under that key
        self._assumed: dict[K, T] = {}

    def __iter__(self) -> Iterator[T]:
        return iter([self._assumed.get(key, obj) for key, obj in self._objects.items()])

    def put(self, obj: T) -> None:
        """Add or update an object; a new version discards the assumed copy."""
        key = self.key_of(obj)
        assumed = self._assumed.get(key)
        if assumed is not None and not _same_version(assumed, obj):
            del self._assumed[key]
        super().put(obj)

    def remove(self, obj: HasMeta) -> None:
        """Remove an object and its assumed copy."""
        self._assumed.pop(self.key_of(obj), None)
        super().remove(obj)

    def assume(self, obj: T) -> None:
        """Hide an object by an assumed copy of it.

        Raises ObjectError if the copy was not made from the current version.
        """
        key = self.key_of(obj)
        seen = self._objects.get(key)
        shown = "/".join(filter(None, (obj.metadata.namespace, obj.metadata.name)))
        if seen is None:
            raise ObjectError(f'"{shown}" not found')
        if not _same_version(seen, obj):
            raise ObjectError(
                f'"{shown}" is out of sync (stored: {seen.metadata.resource_version}, '
                f"assume: {obj.metadata.resource_version})"
            )
        self._assumed[key] = obj
        self._changed(key)

    def restore(self, key: K) -> None:
        """Discard the assumed copy of an object."""
        if self._assumed.pop(key, None) is not None:
            self._changed(key)

    def is_assumed(self, key: K) -> bool:
        """Return whether an object has an assumed copy."""
        return key in self._assumed

    def _shown(self, key: K) -> T | None:
        return self._assumed.get(key) or self._objects.get(key)

    def _shown_at(self, keys: Iterable[K]) -> list[T]:
        return [self._assumed.get(key) or self._objects[key] for key in keys]

    def validate(self) -> None:
        """Check that each copy was made from the object it hides."""
        super().validate()
        for key, copy in self._assumed.items():
            require(self.key_of(copy) == key, f"{key} is the key of its copy")
            require(key in self._objects, f"there is an object for the copy {key}")
            require(_same_version(copy, self._objects[key]), f"version of the copy {key}")


def _same_version(first: HasMeta, second: HasMeta) -> bool:
    return first.metadata.resource_version == second.metadata.resource_version
