"""Waiting until claims are as they have to be."""

from __future__ import annotations

import asyncio

import pytest

from kubesched.scheduler.claim_waiting import ClaimWaiting

C, D = ("default", "c"), ("default", "d")
LONG_S = 60.0


def run(test: object) -> None:
    asyncio.run(test)  # type: ignore[arg-type]


def test_what_is_so_already_is_not_waited_for() -> None:
    async def test() -> None:
        waiting = ClaimWaiting()
        assert await waiting.until(lambda: True, claims=[C], timeout_s=LONG_S, interval_s=LONG_S)
        assert waiting.claims == frozenset()

    run(test())


def test_a_change_of_a_claim_wakes_those_that_wait_for_it() -> None:
    async def test() -> None:
        waiting, is_so, looks = ClaimWaiting(), False, 0

        def check() -> bool:
            nonlocal looks
            looks += 1
            return is_so

        task = asyncio.create_task(
            waiting.until(check, claims=[C], timeout_s=LONG_S, interval_s=LONG_S)
        )
        await asyncio.sleep(0)
        assert waiting.claims == {C}
        waiting.changed(D)
        await asyncio.sleep(0)
        assert looks == 1, "another claim changed"
        waiting.changed(C)
        for _ in range(5):
            await asyncio.sleep(0)
        assert looks == 2
        is_so = True
        waiting.changed(C)
        assert await task
        assert waiting.claims == frozenset()

    run(test())


def test_without_changes_it_looks_from_time_to_time() -> None:
    async def test() -> None:
        waiting, answers = ClaimWaiting(), iter([False, False, True])
        assert await waiting.until(
            lambda: next(answers), claims=[C], timeout_s=LONG_S, interval_s=0.001
        )

    run(test())


def test_it_ends_when_time_is_up() -> None:
    async def test() -> None:
        waiting = ClaimWaiting()
        assert not await waiting.until(lambda: False, claims=[C], timeout_s=0.01, interval_s=LONG_S)
        assert waiting.claims == frozenset()

    run(test())


def test_what_the_check_raises_ends_it() -> None:
    async def test() -> None:
        waiting = ClaimWaiting()

        def fails() -> bool:
            raise ValueError("broken")

        with pytest.raises(ValueError, match="broken"):
            await waiting.until(fails, claims=[C, D], timeout_s=LONG_S, interval_s=LONG_S)
        assert waiting.claims == frozenset()

    run(test())
