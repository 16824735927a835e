"""Numbers that stand for values: equal numbers mean equal values.

Unlike an id of a vocabulary, a number is never resolved to its value, so values may be evicted:
one that is seen again gets another number, and a number never denotes a second value.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, Generic, TypeVar

V = TypeVar("V", bound=Hashable)

#: How many values are cached.
LIMIT: Final = 65_536


class Numbering(Generic[V]):
    """Assigns numbers to values, from `first` on."""

    __slots__ = ("_known", "_limit", "_next")

    def __init__(self, *, first: int = 0, limit: int = LIMIT) -> None:
        self._known: dict[V, int] = {}
        self._limit = limit
        self._next = first

    def __call__(self, value: V) -> int:
        """Return the number of a value."""
        number = self._known.get(value)
        if number is None:
            if len(self._known) >= self._limit:
                self._known.clear()
            number = self._known[value] = self._next
            self._next += 1
        return number
