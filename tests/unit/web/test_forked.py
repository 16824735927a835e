"""Answers from a child: the state of the moment, limits, and an end in every case."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kubesched.errors import ObjectError
from kubesched.web.errors import BrokenError, BusyError, RefusedError, TooLongError
from kubesched.web.forked import ForkedAnswers
from tests.support.waiting import eventually

from .conftest import Run
from .forks import forks


async def answered(work: Callable[[], bytes], *, time_limit_s: float = 10.0) -> bytes:
    """Run something in a child, after which there must be none."""
    forked = ForkedAnswers(time_limit_s=time_limit_s)
    try:
        return await forked.run(work)
    finally:
        await forked.aclose()
        assert forks() == []


def sleeping() -> bytes:
    time.sleep(60)
    return b""


def test_the_child_sees_the_state_of_the_moment_and_changes_only_its_own(run: Run) -> None:
    state = ["before"]

    def work() -> bytes:
        state.append("child")
        return " ".join(state).encode()

    async def main() -> bytes:
        asking = asyncio.create_task(answered(work))
        await asyncio.sleep(0)
        state.append("after")
        return await asking

    assert run(main()) in (b"before child", b"before after child")
    assert state == ["before", "after"]


def test_an_answer_may_be_longer_than_a_pipe_holds(run: Run) -> None:
    assert run(answered(lambda: b"x" * 5_000_000)) == b"x" * 5_000_000


def test_what_is_refused_is_refused_in_the_same_words(run_once: Run) -> None:
    def refusing() -> bytes:
        raise ObjectError("pod a/b not found")

    with pytest.raises(RefusedError, match=r"^pod a/b not found$"):
        run_once(answered(refusing))


def test_a_bug_is_logged_and_not_told(run_once: Run, caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> bytes:
        raise ZeroDivisionError("secret")

    with pytest.raises(BrokenError) as told:
        run_once(answered(broken))

    assert "secret" not in str(told.value)
    assert "ZeroDivisionError: secret" in caplog.text


def test_a_child_that_ends_without_a_word_is_noticed(run_once: Run) -> None:
    def vanishing() -> bytes:
        os.kill(os.getpid(), signal.SIGKILL)
        return b""

    with pytest.raises(BrokenError, match="lost"):
        run_once(answered(vanishing))


def test_what_takes_too_long_is_ended(run: Run) -> None:
    with pytest.raises(TooLongError, match="no answer within 0 s"):
        run(answered(sleeping, time_limit_s=0.1))


def test_the_loop_goes_on_while_a_child_works(run: Run, tmp_path: Path) -> None:
    enough = tmp_path / "enough"

    def working() -> bytes:
        while not enough.exists():
            time.sleep(0.01)
        return b"done"

    async def main() -> bytes:
        asking = asyncio.create_task(answered(working))
        for _ in range(10):  # turns of a loop that is not held up
            await asyncio.sleep(0.01)
            assert not asking.done()
        enough.touch()
        return await asking

    assert run(main()) == b"done"


def test_only_so_many_at_a_time(run_once: Run) -> None:
    async def main() -> None:
        forked = ForkedAnswers(at_once=2)
        asking = [asyncio.create_task(forked.run(sleeping)) for _ in range(2)]
        await eventually(lambda: len(forks()) == 2)
        with pytest.raises(BusyError, match="2 questions"):
            await forked.run(sleeping)
        asking[0].cancel()
        await asyncio.gather(asking[0], return_exceptions=True)
        assert await forked.run(lambda: b"there is room again") == b"there is room again"
        await forked.aclose()
        asking[1].cancel()
        await asyncio.gather(asking[1], return_exceptions=True)
        assert forks() == []

    run_once(main())


def test_who_stops_waiting_ends_the_child(run: Run) -> None:
    async def main() -> None:
        asking = asyncio.create_task(answered(sleeping))
        await eventually(lambda: len(forks()) == 1)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)

    run(main())


def test_the_child_keeps_no_connection_open(run_once: Run) -> None:
    """One that the parent closes is closed, even while a child works."""
    ours, theirs = socket.socketpair()

    async def main() -> None:
        asking = asyncio.create_task(answered(sleeping))
        await eventually(forks)
        ours.close()
        theirs.settimeout(20)
        assert theirs.recv(1) == b""
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)

    with theirs:
        run_once(main())


def test_the_child_is_harmless() -> None:
    """It has no handlers of its parent's, is nice, and ends by itself if nobody ends it."""

    def work() -> bytes:
        handlers = [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)]
        remaining, _ = signal.getitimer(signal.ITIMER_REAL)
        facts = (
            handlers == [signal.SIG_DFL] * 2,
            signal.pthread_sigmask(signal.SIG_BLOCK, []) == set(),
            os.getpriority(os.PRIO_PROCESS, 0) >= 10,
            0 < remaining <= 20,
            not gc.isenabled(),
            len(list(Path("/proc/self/fd").iterdir())) <= 5,
        )
        return repr(facts).encode()

    async def main() -> bytes:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, lambda: None)
        try:
            return await answered(work)
        finally:
            loop.remove_signal_handler(signal.SIGTERM)

    assert asyncio.run(main()) == b"(True, True, True, True, True, True)"


def test_a_signal_to_the_child_is_none_to_the_parent(run: Run, tmp_path: Path) -> None:
    heard: list[str] = []
    begun = tmp_path / "begun"

    def working() -> bytes:
        begun.touch()
        return sleeping()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, heard.append, "parent")
        asking = asyncio.create_task(answered(working))
        await eventually(begun.exists)
        begun.unlink()
        os.kill(forks()[0], signal.SIGTERM)
        with pytest.raises(BrokenError, match="lost"):
            await asking
        loop.remove_signal_handler(signal.SIGTERM)

    run(main())

    assert heard == []


def test_nothing_that_waits_for_the_end_of_the_process_happens_in_the_child(
    run_once: Run, tmp_path: Path
) -> None:
    import atexit

    said = tmp_path / "said"
    atexit.register(said.touch)
    try:
        assert run_once(answered(lambda: b"done")) == b"done"
        with pytest.raises(BrokenError):
            run_once(answered(lambda: (_ for _ in ()).throw(SystemExit(3))))
    finally:
        atexit.unregister(said.touch)

    assert not said.exists()


def test_a_system_that_is_full_is_said_so(run_once: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> int:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    before = len(list(Path("/proc/self/fd").iterdir()))
    monkeypatch.setattr(os, "fork", full)
    with pytest.raises(BusyError, match="no room for another process: resource temporarily"):
        run_once(answered(lambda: b""))
    monkeypatch.undo()

    assert len(list(Path("/proc/self/fd").iterdir())) == before
