"""Interned sets of skipped plugins: equal sets are the same object.

Most pods skip what the previous pod skipped. So no new set is built for them, and sets are compared
by identity.
"""

from __future__ import annotations

from collections.abc import Sequence


class SkippedPlugins:
    """The sets of skipped plugins, interned."""

    def __init__(self) -> None:
        self._known: dict[tuple[frozenset[str], tuple[str, ...]], frozenset[str]] = {}
        self._same: dict[frozenset[str], frozenset[str]] = {}

    def of(self, always: frozenset[str], now: Sequence[str]) -> frozenset[str]:
        """Return the union of the plugins that a signature always skips and those skipped now."""
        key = always, tuple(now)
        found = self._known.get(key)
        if found is None:
            made = always.union(now)
            found = self._known[key] = self._same.setdefault(made, made)
        return found
