"""Waits between tries, longer and longer, never in step with other clients."""

from __future__ import annotations

import random


class Backoff:
    """client-go's reflector pauses: 0.8 s doubled up to 30 s, each stretched by up to as much."""

    def __init__(
        self,
        *,
        first_s: float = 0.8,
        limit_s: float = 30.0,
        rng: random.Random | None = None,
    ) -> None:
        self._first_s = first_s
        self._limit_s = limit_s
        self._rng = rng or random.Random()  # noqa: S311 - spreads load, hides nothing
        self._tries = 0

    def next_s(self) -> float:
        """How long to wait now."""
        pause_s = min(self._limit_s, self._first_s * 2.0**self._tries)
        if pause_s < self._limit_s:
            self._tries += 1
        return pause_s * (1.0 + self._rng.random())

    def reset(self) -> None:
        """Begin again with the shortest wait."""
        self._tries = 0
