"""Turns: a few at a time, those of the lowest rank first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from kubesched.scheduler.turns import Turns


class Bench:
    """Tasks that take a turn each, which the test ends."""

    def __init__(self, at_once: int) -> None:
        self.turns = Turns(at_once)
        self.began: list[str] = []
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self._ends: dict[str, asyncio.Event] = {}

    async def start(self, name: str, *rank: int) -> None:
        self._ends[name] = asyncio.Event()
        self.tasks[name] = asyncio.create_task(self._work(name, rank))
        await settle()

    async def _work(self, name: str, rank: tuple[int, ...]) -> None:
        async with self.turns.take(rank):
            self.began.append(name)
            await self._ends[name].wait()

    async def end(self, *names: str) -> None:
        for name in names:
            self._ends[name].set()
        await settle()


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def with_bench(at_once: int, steps: Callable[[Bench], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        await steps(Bench(at_once))

    asyncio.run(run())


def test_the_lowest_rank_goes_first_and_in_order_of_arrival_within_it() -> None:
    async def steps(bench: Bench) -> None:
        await bench.start("a", 9)
        for name, rank in (("b", 2), ("c", 1), ("d", 2), ("e", 1)):
            await bench.start(name, rank)
        assert bench.began == ["a"]
        await bench.end("a", "c", "e", "b", "d")
        assert bench.began == ["a", "c", "e", "b", "d"]

    with_bench(1, steps)


def test_only_so_many_at_a_time() -> None:
    async def steps(bench: Bench) -> None:
        for name in "abcd":
            await bench.start(name, 0)
        assert bench.began == ["a", "b"]
        await bench.end("b")
        assert bench.began == ["a", "b", "c"]
        await bench.end("a", "c", "d")
        await bench.start("e", 0)
        await bench.start("f", 0)
        await bench.start("g", 0)
        assert bench.began[3:] == ["d", "e", "f"], "turns that nothing waited for are not lost"

    with_bench(2, steps)


def test_a_waiter_that_gives_up_passes_its_turn_on() -> None:
    async def steps(bench: Bench) -> None:
        for name in "abc":
            await bench.start(name, 0)
        bench.tasks["b"].cancel()
        await bench.end("a")
        assert bench.began == ["a", "c"]

    with_bench(1, steps)


def test_a_waiter_that_gives_up_when_it_is_served_passes_its_turn_on() -> None:
    async def steps(bench: Bench) -> None:
        for name in "abc":
            await bench.start(name, 0)
        bench.tasks["a"].cancel()
        await asyncio.sleep(0)  # a ends, so that it is b's turn, which has not run yet
        bench.tasks["b"].cancel()
        await settle()
        assert bench.began == ["a", "c"]

    with_bench(1, steps)
