"""Fixtures that run coroutines, on event loops that notice what is left behind.

A package's conftest imports those that its tests use.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Protocol, TypeVar

import pytest
import uvloop

T = TypeVar("T")

TIMEOUT_S = 30.0


class Run(Protocol):
    """Runs a coroutine to its end."""

    def __call__(self, main: Coroutine[Any, Any, T]) -> T: ...


def run_on(
    loop_factory: Callable[[], asyncio.AbstractEventLoop], main: Coroutine[Any, Any, T]
) -> T:
    """Run to the end; neither time, nor tasks, nor sockets may be lost."""

    async def checked() -> T:
        async with asyncio.timeout(TIMEOUT_S):
            result = await main
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, f"tasks left behind: {left}"
        return result

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        result = runner.run(checked())
    gc.collect()  # sockets left open are warnings, and warnings are errors
    return result


@pytest.fixture(scope="session", autouse=True)
def quick_collections() -> Iterator[None]:
    """Leave what was there before the tests out of the many garbage collections."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """Run on the standard event loop, and again on uvloop."""
    factory = uvloop.new_event_loop if request.param == "uvloop" else asyncio.new_event_loop
    return lambda main: run_on(factory, main)


@pytest.fixture
def run_once() -> Run:
    """Run on the standard event loop only: nothing here depends on it."""
    return lambda main: run_on(asyncio.new_event_loop, main)
