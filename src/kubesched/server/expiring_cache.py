"""A bounded cache whose entries expire."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

from kubesched.clock import Clock

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class ExpiringCache(Generic[K, V]):
    """An LRU cache with a time to live for each entry."""

    def __init__(self, size: int, clock: Clock) -> None:
        self._size = size
        self._clock = clock
        #: least recently used first; each with its expiry
        self._entries: OrderedDict[K, tuple[V, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        """Return an entry that has not expired."""
        found = self._entries.get(key)
        if found is None:
            return None
        value, over = found
        if self._clock.monotonic() >= over:
            del self._entries[key]
            return None
        self._entries.move_to_end(key)
        return value

    def put(self, key: K, value: V, ttl_s: float) -> None:
        """Store an entry for a while; not at all if `ttl_s` is 0."""
        if ttl_s <= 0:
            return
        self._entries[key] = (value, self._clock.monotonic() + ttl_s)
        self._entries.move_to_end(key)
        if len(self._entries) > self._size:
            self._entries.popitem(last=False)
