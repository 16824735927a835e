"""Waiting until something is so that another task, thread or process brings about.

    until(log.exists)                            where a test may block
    await eventually(lambda: server.requests)    on an event loop

Both return the first true answer, and fail with what they waited for when the time is over.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(probe: Callable[[], T | None], *, seconds: float = 30.0, every: float = 0.02) -> T:
    """Ask again and again until the answer is true, and return it."""
    deadline = time.monotonic() + seconds
    while not (answer := probe()):
        assert time.monotonic() < deadline, _overdue(probe, answer, seconds)
        time.sleep(every)
    return answer


async def eventually(
    probe: Callable[[], T | None], *, seconds: float = 20.0, every: float = 0.002
) -> T:
    """Ask again and again, with turns for other tasks in between, until the answer is true."""
    # Not the loop's time: in virtual time the deadline would pass at once, or never.
    deadline = time.monotonic() + seconds
    while not (answer := probe()):
        assert time.monotonic() < deadline, _overdue(probe, answer, seconds)
        await asyncio.sleep(every)
    return answer


def stays(probe: Callable[[], object], *, seconds: float, every: float = 0.1) -> None:
    """Fail if something that is so ceases to be within some time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert probe(), f"it did not stay so: {_source(probe)}"
        time.sleep(every)


async def settle(rounds: int = 20) -> None:
    """Let everything that is ready to happen happen."""
    for _ in range(rounds):
        await asyncio.sleep(0)


def _overdue(probe: Callable[[], object], answer: object, seconds: float) -> str:
    return f"not within {seconds:g} s: {_source(probe)}; the last answer was {answer!r}"


def _source(probe: Callable[[], object]) -> str:
    """Return the lines that a probe was written in, its name if it was not written in Python."""
    try:
        return inspect.getsource(probe).strip()
    except (OSError, TypeError):
        return repr(probe)
