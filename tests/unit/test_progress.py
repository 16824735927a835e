"""A loop that has come round lately is progressing; one that never started is not stuck."""

from __future__ import annotations

import pytest

from kubesched.clock import VirtualClock
from kubesched.progress import LoopProgress


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(100.0)


def test_nothing_is_expected_of_a_loop_that_does_not_run(clock: VirtualClock) -> None:
    progress = LoopProgress(clock, limit_s=10)
    clock.advance(1000)

    assert progress.is_progressing()
    assert progress.silent_s == 0


def test_a_loop_may_take_as_long_as_the_limit_for_a_turn(clock: VirtualClock) -> None:
    progress = LoopProgress(clock, limit_s=10)
    progress.beat()
    clock.advance(10)
    assert progress.is_progressing()

    clock.advance(0.001)
    assert not progress.is_progressing()
    assert progress.silent_s == pytest.approx(10.001)


def test_a_loop_that_comes_round_again_is_progressing_again(clock: VirtualClock) -> None:
    progress = LoopProgress(clock, limit_s=10)
    progress.beat()
    clock.advance(60)
    assert not progress.is_progressing()

    progress.beat()
    assert progress.is_progressing()


def test_the_silence_of_a_loop_that_has_ended_means_nothing(clock: VirtualClock) -> None:
    progress = LoopProgress(clock, limit_s=10)
    progress.beat()
    clock.advance(60)
    progress.rest()

    assert progress.is_progressing()
    assert progress.silent_s == 0


@pytest.mark.parametrize("limit_s", [0, -1])
def test_a_limit_leaves_time_for_a_turn(clock: VirtualClock, limit_s: float) -> None:
    with pytest.raises(ValueError, match="needs time for a turn"):
        LoopProgress(clock, limit_s)
