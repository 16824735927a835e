"""Running a coroutine as a program: exit codes, errors as one line, signals."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import kubesched
from kubesched.cli import running
from kubesched.errors import ConfigError, UsageError
from tests.support.waiting import settle


def raising(error: BaseException) -> Any:
    async def main() -> None:
        raise error

    return main


def test_what_ends_well_ends_with_0() -> None:
    async def main() -> None:
        await asyncio.sleep(0)

    assert running.run(main) == 0


@pytest.mark.parametrize(
    "error",
    [
        ConfigError("no such field"),
        ExceptionGroup("tasks", [ConfigError("no such field"), UsageError("nor this")]),
        ExceptionGroup("outer", [ExceptionGroup("inner", [ConfigError("no such field")])]),
    ],
    ids=["alone", "one of several", "deep inside"],
)
def test_our_own_errors_are_one_line(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    assert running.run(raising(error)) == 1
    assert capsys.readouterr().err == "Error: no such field\n"


@pytest.mark.parametrize(
    "error",
    [
        ZeroDivisionError("a bug"),
        ExceptionGroup("mixed", [ConfigError("x"), ZeroDivisionError("a bug")]),
    ],
    ids=["alone", "among ours"],
)
def test_bugs_are_not_hidden(error: Exception) -> None:
    with pytest.raises(type(error)):
        running.run(raising(error))


def test_being_cancelled_by_somebody_else_is_not_the_end_of_a_signal() -> None:
    with pytest.raises(asyncio.CancelledError):
        running.run(raising(asyncio.CancelledError()))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_lets_the_work_be_finished(number: signal.Signals) -> None:
    finished = []

    async def main() -> None:
        asyncio.get_running_loop().call_soon(os.kill, os.getpid(), number)
        try:
            await asyncio.sleep(10)
        finally:
            await settle()
            finished.append("work")

    async def guarded() -> None:
        async with asyncio.timeout(5):
            await main()

    assert running.run(guarded) == 0
    assert finished == ["work"]


PROGRAM = textwrap.dedent(
    """
    import asyncio, sys
    from kubesched.cli import running

    async def main():
        print("ready", flush=True)
        try:
            await asyncio.sleep(60)
        finally:
            print("finishing", flush=True)
            await asyncio.sleep(60)

    sys.exit(running.run(main))
    """
)


@pytest.mark.parametrize(
    ("first", "second"),
    [(signal.SIGTERM, signal.SIGTERM), (signal.SIGINT, signal.SIGTERM)],
)
def test_the_second_signal_ends_the_process_at_once(
    first: signal.Signals, second: signal.Signals
) -> None:
    source = str(Path(kubesched.__file__).resolve().parents[1])
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": source},
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            assert process.stdout.readline() == "ready\n"
            process.send_signal(first)
            assert process.stdout.readline() == "finishing\n"
            process.send_signal(second)
            assert process.wait(5) == 1
            assert process.stderr.read() == ""
        finally:
            process.kill()


WITHOUT_MEMORY = textwrap.dedent(
    """
    import asyncio, sys
    from kubesched.cli import running
    from kubesched.scheduler.tasks import Tasks

    async def fail():
        raise MemoryError

    async def alone():
        await fail()

    async def among_others():
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(fail())

    async def in_the_background():
        tasks = Tasks()
        tasks.start(fail())
        await asyncio.sleep(60)

    sys.exit(running.run(globals()[sys.argv[1]]))
    """
)


@pytest.mark.parametrize("where", ["alone", "among_others", "in_the_background"])
def test_without_memory_the_process_ends_with_one_line(where: str) -> None:
    source = str(Path(kubesched.__file__).resolve().parents[1])
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT_MEMORY, where],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": source},
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (1, "Error: out of memory\n")


def test_it_works_without_uvloop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    kinds: list[str] = []

    async def main() -> None:
        kinds.append(type(asyncio.get_running_loop()).__module__)

    assert running.run(main) == 0
    assert kinds[0].startswith("asyncio.")
