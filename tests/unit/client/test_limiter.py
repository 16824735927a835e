"""The rate limit: a burst, then a steady rate, in the order of asking."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.client.limiter import RateLimiter
from kubesched.clock import VirtualClock
from tests.support.waiting import settle

from .conftest import Run
from .virtual_sleep import VirtualSleep


def test_a_burst_passes_and_the_next_waits_its_turn() -> None:
    clock = VirtualClock()
    limiter = RateLimiter(10, 3, clock=clock)

    delays = [limiter.reserve() for _ in range(5)]

    assert delays == pytest.approx([0, 0, 0, 0.1, 0.2])


def test_time_fills_the_bucket_up_to_the_burst() -> None:
    clock = VirtualClock()
    limiter = RateLimiter(10, 3, clock=clock)
    for _ in range(3):
        limiter.reserve()

    clock.advance(60)
    delays = [limiter.reserve() for _ in range(4)]

    assert delays == pytest.approx([0, 0, 0, 0.1])


@pytest.mark.parametrize("qps", [0, -1])
def test_no_limit(qps: float) -> None:
    limiter = RateLimiter(qps, 0)

    assert limiter.unlimited
    assert [limiter.reserve() for _ in range(10_000)] == [0.0] * 10_000


def test_a_limit_without_burst_would_never_let_anybody_through() -> None:
    with pytest.raises(ValueError, match="burst must be at least 1"):
        RateLimiter(5, 0)


def test_turns_come_in_the_order_of_asking(run_once: Run) -> None:
    async def main() -> None:
        clock = VirtualClock()
        sleep = VirtualSleep(clock)
        limiter = RateLimiter(1, 1, clock=clock, sleep=sleep)
        passed: list[tuple[int, float]] = []

        async def caller(number: int) -> None:
            await limiter.wait(limiter.reserve())
            passed.append((number, clock.monotonic()))

        tasks = [asyncio.create_task(caller(number)) for number in range(4)]
        await sleep.advance(10)
        await asyncio.gather(*tasks)

        assert passed == [(0, 0.0), (1, 1.0), (2, 2.0), (3, 3.0)]

    run_once(main())


def test_who_gives_up_gives_the_token_back(run_once: Run) -> None:
    async def main() -> None:
        clock = VirtualClock()
        sleep = VirtualSleep(clock)
        limiter = RateLimiter(1, 1, clock=clock, sleep=sleep)
        assert limiter.reserve() == 0
        task = asyncio.create_task(limiter.wait(limiter.reserve()))
        await settle()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        assert limiter.reserve() == pytest.approx(1.0)

    run_once(main())


@given(
    qps=st.integers(1, 50),
    burst=st.integers(1, 20),
    pauses=st.lists(st.floats(0, 2), min_size=1, max_size=60),
)
def test_no_window_holds_more_than_its_share(qps: int, burst: int, pauses: list[float]) -> None:
    clock = VirtualClock()
    limiter = RateLimiter(qps, burst, clock=clock)
    turns: list[float] = []
    for pause in pauses:
        clock.advance(pause)
        turns.append(clock.monotonic() + limiter.reserve())

    assert turns == sorted(turns)
    for first, start in enumerate(turns):
        for last in range(first, len(turns)):
            allowed = burst + (turns[last] - start) * qps
            assert last - first + 1 <= allowed + 1e-6
