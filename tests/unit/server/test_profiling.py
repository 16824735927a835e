"""Profiles of the running process."""

from __future__ import annotations

import asyncio
import re
import threading
import time
import tracemalloc

import pytest

from kubesched.server.answers import ServerAnswer
from kubesched.server.profiling import Profiler, redirect, sample
from tests.support.serving import request
from tests.support.waiting import settle

from .conftest import Run


async def ask(name: str, profiler: Profiler | None = None) -> ServerAnswer:
    return await (profiler or Profiler())(request(f"/debug/pprof/{name}"))


def spin(begun: threading.Event, until: threading.Event) -> None:
    begun.set()
    while not until.is_set():
        sum(range(1000))


class StopAfter(threading.Event):
    """Is set once it has been waited for so many times, however long that takes."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self._left = times
        self.pauses: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.pauses.append(timeout)
        if not self._left:
            self.set()
        self._left -= 1
        return super().wait(timeout)


def test_a_profile_shows_where_a_thread_spends_its_time() -> None:
    begun, done, stop = threading.Event(), threading.Event(), StopAfter(20)
    worker = threading.Thread(target=spin, args=(begun, done))
    worker.start()
    assert worker.ident is not None
    try:
        assert begun.wait(20)
        stacks = sample(worker.ident, 60, stop=stop)
    finally:
        done.set()
        worker.join()

    assert stacks.total() == 20
    assert set(stop.pauses) == {0.01}, "a hundred looks a second"
    assert all(f"{__name__}:spin" in stack for stack in stacks)


def test_a_profile_ends_in_time() -> None:
    began = time.monotonic()
    stacks = sample(threading.get_ident(), 0.05, stop=threading.Event())

    assert stacks.total() >= 1
    assert time.monotonic() - began >= 0.05


def test_a_profile_is_of_the_event_loop(run: Run) -> None:
    async def main() -> ServerAnswer:
        profiling = asyncio.create_task(ask("profile?seconds=0.2"))
        while not profiling.done():
            time.sleep(0.01)  # noqa: ASYNC251 (this is what is to be seen)
            await asyncio.sleep(0)
        return await profiling

    answer = run(main())

    lines = answer.body.decode().splitlines()
    assert lines
    assert all(re.fullmatch(r"\S+ \d+", line) for line in lines)
    assert any(f"{__name__}:test_a_profile_is_of_the_event_loop" in line for line in lines)


@pytest.mark.parametrize("seconds", ["0", "-1", "x", "nan", "inf", "3601"])
def test_a_time_that_makes_no_sense(run_once: Run, seconds: str) -> None:
    answer = run_once(ask(f"profile?seconds={seconds}"))

    assert answer.code == 400
    assert answer.body == b"seconds must be a number above 0 and at most 3600\n"


def test_one_profile_at_a_time_and_none_at_the_end(run_once: Run) -> None:
    async def main() -> tuple[ServerAnswer, ServerAnswer]:
        profiler = Profiler()
        first = asyncio.create_task(ask("profile?seconds=600", profiler))
        await settle()
        second = await ask("profile?seconds=1", profiler)
        profiler.stop()
        return await first, second

    first, second = run_once(main())

    assert first.code == 200
    assert second.code == 500
    assert second.body == b"Could not enable CPU profiling: cpu profiling already in use\n"


@pytest.mark.parametrize("name", ["tasks", "goroutine"])
def test_tasks_and_threads_with_their_stacks(run: Run, name: str) -> None:
    async def waits_for_nothing() -> None:
        await asyncio.Event().wait()

    async def main() -> ServerAnswer:
        task = asyncio.create_task(waits_for_nothing(), name="the one that waits")
        await asyncio.sleep(0)
        try:
            return await ask(name)
        finally:
            task.cancel()
            await asyncio.wait({task})

    text = run(main()).body.decode()

    assert text.startswith("2 tasks\n")
    assert "the one that waits" in text
    assert "await asyncio.Event().wait()" in text
    assert "MainThread" in text


def test_memory_that_is_not_traced(run_once: Run) -> None:
    assert "PYTHONTRACEMALLOC=1" in run_once(ask("heap")).body.decode()


def test_memory_by_line_of_code(run_once: Run) -> None:
    tracemalloc.start()
    try:
        kept = [bytes(1000) for _ in range(1000)]
        text = run_once(ask("heap")).body.decode()
    finally:
        tracemalloc.stop()

    assert kept
    assert re.search(r"test_profiling\.py:\d+: size=\d+ KiB, count=\d+", text), text


def test_the_index_lists_them(run_once: Run) -> None:
    text = run_once(ask("")).body.decode()

    for name in ("heap", "profile", "tasks"):
        assert f"<a href='{name}'>" in text


def test_there_are_no_others(run_once: Run) -> None:
    answer = run_once(ask("mutex"))

    assert (answer.code, answer.body) == (404, b"Unknown profile\n")


def test_the_index_is_a_folder() -> None:
    answer = redirect(request("/debug/pprof"))

    assert answer.code == 302
    assert answer.headers == (("location", "/debug/pprof/"),)
