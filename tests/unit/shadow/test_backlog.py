"""News are applied in the order in which they came, whoever takes long or fails."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from kubesched.clock import VirtualClock
from kubesched.shadow.backlog import Backlog, QueuedEvent


def test_in_order_and_a_turn_at_a_time() -> None:
    clock = VirtualClock()
    applied: list[str] = []
    backlog = Backlog(clock.monotonic)

    def slow(name: str) -> None:
        applied.append(name)
        clock.advance(0.008)

    for name in "abcd":
        backlog.put(partial(slow, name), seen=True)
    backlog.work(0.01)
    assert applied == ["a", "b"]
    assert len(backlog) == 2

    backlog.work(1.0)
    assert applied == ["a", "b", "c", "d"]
    assert len(backlog) == 0


def test_it_is_known_what_is_being_applied() -> None:
    clock = VirtualClock(5.0)
    seen: list[QueuedEvent] = []
    backlog = Backlog(clock.monotonic)
    backlog.put(lambda: seen.append(backlog.current), seen=True)
    clock.advance(2.0)

    backlog.work(1.0)

    assert (seen[0].arrived, seen[0].seen) == (5.0, True)


def test_one_that_fails_does_not_stop_the_next(caplog: pytest.LogCaptureFixture) -> None:
    applied: list[str] = []
    backlog = Backlog(lambda: 0.0)

    def fail() -> None:
        raise IndexError

    backlog.put(fail, seen=True)
    backlog.put(lambda: applied.append("next"), seen=True)

    backlog.work(1.0)

    assert applied == ["next"]
    assert "IndexError" in caplog.text


def test_drained_waits_for_everything_that_has_come() -> None:
    async def run() -> list[int]:
        applied: list[int] = []
        backlog = Backlog(asyncio.get_running_loop().time)
        working = asyncio.create_task(backlog.run())
        await backlog.drained()
        for number in range(3):
            backlog.put(partial(applied.append, number), seen=True)
        await asyncio.wait_for(backlog.drained(), 5)
        working.cancel()
        return applied

    assert asyncio.run(run()) == [0, 1, 2]
