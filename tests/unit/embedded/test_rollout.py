"""How many pods of each revision a Deployment wants next."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.embedded.rollout import Revision, RollingLimits, next_sizes


@pytest.mark.parametrize(
    ("surge", "unavailable", "replicas", "limits"),
    [
        ("25%", "25%", 10, (3, 2)),
        ("25%", "25%", 1, (1, 0)),
        (2, 1, 10, (2, 1)),
        (0, 0, 10, (0, 1)),
        ("0%", "10%", 3, (0, 1)),
    ],
)
def test_limits(
    surge: str | int, unavailable: str | int, replicas: int, limits: tuple[int, int]
) -> None:
    assert RollingLimits.of(surge, unavailable, replicas) == limits


def test_without_limits_the_old_go_first() -> None:
    assert next_sizes(3, Revision(0, 0), [Revision(3, 3)], None) == (0, [0])
    assert next_sizes(3, Revision(0, 0), [Revision(0, 0)], None) == (3, [0])


def test_pods_that_are_not_ready_go_first() -> None:
    sizes = next_sizes(4, Revision(1, 0), [Revision(2, 2), Revision(2, 0)], RollingLimits(1, 1))

    assert sizes == (1, [2, 1])


@given(
    wanted=st.integers(1, 20),
    limits=st.builds(RollingLimits, st.integers(0, 5), st.integers(0, 5)).filter(any),
    old=st.integers(0, 20),
)
def test_a_rollout_keeps_its_limits_and_comes_to_an_end(
    wanted: int, limits: RollingLimits, old: int
) -> None:
    new, before = Revision(0, 0), Revision(old, old)
    for _ in range(100):
        grown, (shrunk,) = next_sizes(wanted, new, [before], limits)
        assert grown + shrunk <= max(wanted + limits.surge, new.replicas + before.replicas)
        ready = new.available + min(before.available, shrunk)
        assert ready >= min(wanted - limits.unavailable, new.available + before.available)
        # All that was asked for gets ready.
        new, before = Revision(grown, grown), Revision(shrunk, shrunk)
    assert (new.replicas, before.replicas) == (wanted, 0)
