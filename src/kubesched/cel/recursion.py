"""Room for deep recursion.

An expression may nest 250 levels deep, and each level takes a few Python calls to check and to
evaluate. That is more than Python's default limit, and far less than what it can do.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

#: Calls that one level of nesting takes at most, times the levels, and what the caller has used.
_DEPTH: Final = 20_000


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Raise Python's recursion limit for the time being."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _DEPTH))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
