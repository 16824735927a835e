"""Exponential backoff with jitter."""

from __future__ import annotations

import random


class ReflectorBackoff:
    """client-go's reflector backoff: 0.8 s doubled up to 30 s, with up to 100 % jitter."""

    def __init__(
        self,
        *,
        first_s: float = 0.8,
        limit_s: float = 30.0,
        rng: random.Random | None = None,
    ) -> None:
        self._first_s = first_s
        self._limit_s = limit_s
        self._rng = rng or random.Random()  # noqa: S311 - jitter, not a secret
        self._tries = 0

    def next_s(self) -> float:
        """Return the next delay."""
        pause_s = min(self._limit_s, self._first_s * 2.0**self._tries)
        if pause_s < self._limit_s:
            self._tries += 1
        return pause_s * (1.0 + self._rng.random())

    def reset(self) -> None:
        """Start over with the shortest delay."""
        self._tries = 0
