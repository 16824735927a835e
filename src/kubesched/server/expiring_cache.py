"""Answers that are good for a while, as many as there is room for."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

from kubesched.clock import Clock

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class ExpiringCache(Generic[K, V]):
    """A mapping that forgets: what is over, and what was used longest ago when it is full."""

    def __init__(self, size: int, clock: Clock) -> None:
        self._size = size
        self._clock = clock
        #: least recently used first; each with the moment from which it is over
        self._entries: OrderedDict[K, tuple[V, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        """Return what is known and still good."""
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
        """Remember something for a while; not at all if that is no time."""
        if ttl_s <= 0:
            return
        self._entries[key] = (value, self._clock.monotonic() + ttl_s)
        self._entries.move_to_end(key)
        if len(self._entries) > self._size:
            self._entries.popitem(last=False)
