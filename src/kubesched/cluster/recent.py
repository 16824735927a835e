"""A mapping that forgets what was not used for long."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(Generic[K, V]):
    """The most recently used entries."""

    def __init__(self, limit: int = 4096) -> None:
        self._limit = limit
        self._entries: OrderedDict[K, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        """Return an entry, which makes it recent."""
        value = self._entries.get(key)
        if value is not None:
            self._entries.move_to_end(key)
        return value

    def __setitem__(self, key: K, value: V) -> None:
        self._entries[key] = value
        if len(self._entries) > self._limit:
            self._entries.popitem(last=False)

    def items(self) -> list[tuple[K, V]]:
        """Return all entries, the least recent first."""
        return list(self._entries.items())

    def values(self) -> list[V]:
        """Return what the entries hold, the least recent first."""
        return list(self._entries.values())

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
