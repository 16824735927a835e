"""Background tasks: run until they end, or until shutdown."""

from __future__ import annotations

import asyncio
import gc

import pytest

from kubesched.scheduler.tasks import Tasks


def test_a_task_stays_alive_until_it_ends() -> None:
    async def test() -> None:
        tasks, done = Tasks(), asyncio.Event()

        async def work() -> None:
            await asyncio.sleep(0)
            done.set()

        tasks.start(work())
        gc.collect()
        assert len(tasks) == 1
        await asyncio.wait_for(done.wait(), 5)
        await tasks.drain(5)
        assert len(tasks) == 0

    asyncio.run(test())


def test_a_drain_waits_for_tasks_that_tasks_start() -> None:
    async def test() -> None:
        tasks, ended = Tasks(), list[str]()

        async def second() -> None:
            ended.append("second")

        async def first() -> None:
            tasks.start(second())
            ended.append("first")

        tasks.start(first())
        await tasks.drain(5)
        assert ended == ["first", "second"]

    asyncio.run(test())


def test_a_drain_cancels_tasks_that_take_too_long() -> None:
    async def test() -> None:
        tasks = Tasks()
        task = tasks.start(asyncio.Event().wait())  # type: ignore[arg-type]
        await tasks.drain(0.01)
        assert task.cancelled()
        assert len(tasks) == 0

    asyncio.run(test())


def test_an_exception_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async def bug() -> None:
            raise ZeroDivisionError

        tasks = Tasks()
        tasks.start(bug())
        await tasks.drain(5)

    asyncio.run(test())

    assert [each.message for each in caplog.records] == ["a background task failed unexpectedly"]


def test_the_end_of_the_process_is_no_failure_of_a_task(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async def ends() -> None:
            raise SystemExit(143)

        tasks = Tasks()
        tasks.start(ends())
        await tasks.drain(5)

    with pytest.raises(SystemExit):
        asyncio.run(test())

    assert not caplog.records
