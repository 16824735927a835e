"""The delays between attempts to list and watch: client-go's, with jitter."""

from __future__ import annotations

import random

from kubesched.client.backoff import ReflectorBackoff


class NoJitter(random.Random):
    """Returns 0."""

    def random(self) -> float:
        return 0.0


def test_delays_double_up_to_the_limit() -> None:
    backoff = ReflectorBackoff(rng=NoJitter())

    assert [backoff.next_s() for _ in range(8)] == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]


def test_a_reset_starts_with_the_shortest_delay() -> None:
    backoff = ReflectorBackoff(first_s=1.0, rng=NoJitter())
    backoff.next_s()
    backoff.next_s()
    backoff.reset()

    assert backoff.next_s() == 1.0


def test_jitter_at_most_doubles_a_delay() -> None:
    backoff = ReflectorBackoff(first_s=1.0, limit_s=1.0)

    assert all(1.0 <= backoff.next_s() < 2.0 for _ in range(100))
