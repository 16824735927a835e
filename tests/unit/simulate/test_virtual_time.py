"""asyncio in virtual time: a day takes no time, and keeps its order."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import sys
import time
from collections.abc import Iterator

import pytest

from kubesched.clock import VirtualClock
from kubesched.errors import InvariantError
from kubesched.simulate.virtual_time import run_in_virtual_time

DAY_S = 86_400.0
EPOCH_S = 1_767_225_600.0


def test_a_day_takes_no_time() -> None:
    clock = VirtualClock(EPOCH_S)
    started = time.perf_counter()

    run_in_virtual_time(clock, asyncio.sleep(DAY_S))

    assert clock.time() == EPOCH_S + DAY_S
    assert time.perf_counter() - started < 5.0


def test_things_happen_in_the_order_of_their_times() -> None:
    happened: list[tuple[str, float]] = []
    clock = VirtualClock(EPOCH_S)

    async def at(delay_s: float, name: str) -> None:
        await asyncio.sleep(delay_s)
        happened.append((name, clock.time() - EPOCH_S))

    async def main() -> None:
        await asyncio.gather(at(30, "last"), at(0.25, "first"), at(7, "second"), at(7, "third"))

    run_in_virtual_time(clock, main())

    assert happened == [("first", 0.25), ("second", 7.0), ("third", 7.0), ("last", 30.0)]


def test_what_is_computed_takes_no_virtual_time() -> None:
    clock = VirtualClock()

    async def main() -> float:
        for _ in range(1000):
            await asyncio.sleep(0)
        return asyncio.get_running_loop().time()

    assert run_in_virtual_time(clock, main()) == 0.0


def test_timeouts_are_of_virtual_time() -> None:
    async def main() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3600):
                await asyncio.Event().wait()
        return asyncio.get_running_loop().time()

    assert run_in_virtual_time(VirtualClock(), main()) == 3600.0


def test_waiting_for_what_never_happens_is_an_error_and_does_not_hang() -> None:
    async def main() -> None:
        await asyncio.Event().wait()

    with pytest.raises(InvariantError, match="deadlock"):
        run_in_virtual_time(VirtualClock(), main())


def test_tiny_steps_late_in_the_epoch_make_headway() -> None:
    """A float of seconds since 1970 is no finer than a quarter of a microsecond."""
    clock = VirtualClock(EPOCH_S)

    async def main() -> None:
        for _ in range(100):
            await asyncio.sleep(1e-9)
            await asyncio.sleep(0.1)

    run_in_virtual_time(clock, main())

    assert clock.time() == pytest.approx(EPOCH_S + 10.0, abs=1e-3)


@pytest.fixture
def _exits_on_sigterm() -> Iterator[None]:
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("_exits_on_sigterm")
def test_a_signal_in_a_task_ends_it_without_a_traceback(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        await asyncio.sleep(1.0)
        signal.raise_signal(signal.SIGTERM)

    async def main() -> None:
        task = asyncio.create_task(work())
        try:
            await asyncio.sleep(DAY_S)
        finally:
            await task

    with caplog.at_level(logging.ERROR), pytest.raises(SystemExit) as ended:
        run_in_virtual_time(VirtualClock(), main())
    code = ended.value.code
    del ended
    gc.collect()

    assert code == 128 + signal.SIGTERM
    assert not caplog.records
