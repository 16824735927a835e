"""The smallest part of a list that still shows something."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def smallest(items: Sequence[T], shows: Callable[[list[T]], bool]) -> list[T]:
    """Leave out as much as possible: first halves, then quarters, at last single items.

    `shows` must be true of all of `items`. Of the result it is true, and of the result without any
    one item it is not, if it answers alike each time.
    """
    left, size = list(items), max(len(items) // 2, 1)
    while left:
        start, found = 0, False
        while start < len(left):
            fewer = left[:start] + left[start + size :]
            if shows(fewer):
                left, found = fewer, True
            else:
                start += size
        if size == 1 and not found:
            break
        size = size if found and size == 1 else max(size // 2, 1)
    return left
