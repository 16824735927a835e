"""An LRU cache."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(Generic[K, V]):
    """The most recently used entries."""

    def __init__(self, limit: int = 4096) -> None:
        #: above this number, entries are dropped with the next one that is added
        self.limit = limit
        self._entries: OrderedDict[K, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        """Return an entry and mark it as used."""
        value = self._entries.get(key)
        if value is not None:
            self._entries.move_to_end(key)
        return value

    def __setitem__(self, key: K, value: V) -> None:
        self._entries[key] = value
        while len(self._entries) > self.limit:
            self._entries.popitem(last=False)

    def items(self) -> list[tuple[K, V]]:
        """Return all entries, least recently used first."""
        return list(self._entries.items())

    def values(self) -> list[V]:
        """Return all values, least recently used first."""
        return list(self._entries.values())

    def clear(self) -> None:
        """Drop all entries."""
        self._entries.clear()
