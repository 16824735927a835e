"""An informer's local copy of one resource; updates yield the changes.

    apply(object)              ──>  Added · Updated · nothing (same resource version)
    remove(object │ key)       ──>  Deleted
    retain(keys of a list)     ──>  Deleted, for each object that the list no longer has

Keys are (namespace, name). An object of the same name and another uid is another object: the old
one is deleted before the new one is added, even if no deletion was observed. Each change is in the
store when it is yielded, so a handler sees the new state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Generic, TypeVar

from msgspec import Struct

from kubesched.client.meta import ApiObject

T = TypeVar("T", bound=ApiObject)

Key = tuple[str, str]


class Added(Struct, Generic[T], frozen=True, gc=False):
    """A new object."""

    object: T


class Updated(Struct, Generic[T], frozen=True, gc=False):
    """A changed object and its previous version."""

    old: T
    new: T


class Deleted(Struct, Generic[T], frozen=True, gc=False):
    """A deleted object in its last known state."""

    object: T


Change = Added[T] | Updated[T] | Deleted[T]


def key_of(obj: ApiObject) -> Key:
    """Return the key of an object."""
    return obj.metadata.namespace, obj.metadata.name


class InformerStore(Generic[T]):
    """Objects by key; updates yield the differences."""

    def __init__(self) -> None:
        self._objects: dict[Key, T] = {}

    @property
    def objects(self) -> Mapping[Key, T]:
        """The current objects; a view, not a copy."""
        return MappingProxyType(self._objects)

    def apply(self, obj: T) -> Iterator[Change[T]]:
        """Add or update an object."""
        key = key_of(obj)
        old = self._objects.get(key)
        if old is not None and old.metadata.uid != obj.metadata.uid:
            del self._objects[key]
            yield Deleted(old)
            old = None
        if old is None:
            self._objects[key] = obj
            yield Added(obj)
        elif old.metadata.resource_version != obj.metadata.resource_version:
            self._objects[key] = obj
            yield Updated(old, obj)

    def remove(self, obj: T) -> Iterator[Change[T]]:
        """Remove an object; `obj` may be its last state."""
        old = self._objects.pop(key_of(obj), None)
        if old is not None:
            yield Deleted(obj if obj.metadata.uid == old.metadata.uid else old)

    def remove_key(self, key: Key) -> Iterator[Change[T]]:
        """Remove an object whose last state cannot be decoded."""
        old = self._objects.pop(key, None)
        if old is not None:
            yield Deleted(old)

    def retain(self, keys: set[Key]) -> Iterator[Change[T]]:
        """Remove objects that a complete list no longer has."""
        for key in [key for key in self._objects if key not in keys]:
            yield Deleted(self._objects.pop(key))
