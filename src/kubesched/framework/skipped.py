"""Sets of plugins that have nothing to do for a pod: the same ones are the same object.

Most pods skip what the pod before them skipped. So no set is made for them, and whoever wants to
know whether it is the same one need not compare names.
"""

from __future__ import annotations

from collections.abc import Sequence


class SkippedPlugins:
    """All sets that there were."""

    def __init__(self) -> None:
        self._known: dict[tuple[frozenset[str], tuple[str, ...]], frozenset[str]] = {}
        self._same: dict[frozenset[str], frozenset[str]] = {}

    def of(self, always: frozenset[str], now: Sequence[str]) -> frozenset[str]:
        """Return plugins that pods of a signature always skip, and those that this one does."""
        key = always, tuple(now)
        found = self._known.get(key)
        if found is None:
            made = always.union(now)
            found = self._known[key] = self._same.setdefault(made, made)
        return found
