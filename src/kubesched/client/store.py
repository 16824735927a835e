"""The last known state of one resource: what came in, and what changed by it.

    apply(object)              ──>  Added · Updated · nothing (same resource version)
    remove(object │ key)       ──>  Deleted
    retain(keys of a list)     ──>  Deleted, for each object that the list no longer has

Keys are (namespace, name). An object of the same name and another uid is another object: the old
one is deleted before the new one is added, even if nobody saw it go. Each change is in the store
when it is yielded, so whoever hears of it sees the state that it made.
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
    """An object that was not there before."""

    object: T


class Updated(Struct, Generic[T], frozen=True, gc=False):
    """An object and what it was before."""

    old: T
    new: T


class Deleted(Struct, Generic[T], frozen=True, gc=False):
    """An object that is gone, as it was last seen."""

    object: T


Change = Added[T] | Updated[T] | Deleted[T]


def key_of(obj: ApiObject) -> Key:
    """Where an object is kept."""
    return obj.metadata.namespace, obj.metadata.name


class ObjectStore(Generic[T]):
    """Objects by key, and the differences that news make."""

    def __init__(self) -> None:
        self._objects: dict[Key, T] = {}

    @property
    def objects(self) -> Mapping[Key, T]:
        """What is there now; a view, not a copy."""
        return MappingProxyType(self._objects)

    def apply(self, obj: T) -> Iterator[Change[T]]:
        """Take an object as it is now."""
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
        """Take notice that an object is gone; the news may hold its last state."""
        old = self._objects.pop(key_of(obj), None)
        if old is not None:
            yield Deleted(obj if obj.metadata.uid == old.metadata.uid else old)

    def remove_key(self, key: Key) -> Iterator[Change[T]]:
        """The same when the news cannot be read."""
        old = self._objects.pop(key, None)
        if old is not None:
            yield Deleted(old)

    def retain(self, keys: set[Key]) -> Iterator[Change[T]]:
        """Drop what a complete list no longer has."""
        for key in [key for key in self._objects if key not in keys]:
            yield Deleted(self._objects.pop(key))
