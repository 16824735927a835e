"""Fixtures of the server's tests: event loops that notice what is left behind, authorities."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Protocol, TypeVar

import pytest
import trustme
import uvloop

T = TypeVar("T")


class Run(Protocol):
    """Runs a coroutine to its end."""

    def __call__(self, main: Coroutine[Any, Any, T]) -> T: ...


def _run(main: Coroutine[Any, Any, T], loop_factory: Callable[[], asyncio.AbstractEventLoop]) -> T:
    async def checked() -> T:
        async with asyncio.timeout(30):
            result = await main
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, f"tasks left behind: {left}"
        return result

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        result = runner.run(checked())
    gc.collect()  # sockets left open are warnings, and warnings are errors
    return result


@pytest.fixture(scope="session", autouse=True)
def _quick_collections() -> Iterator[None]:
    """Leave what was there before the tests out of the many garbage collections."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """Run on the standard event loop, and again on uvloop."""
    factory = uvloop.new_event_loop if request.param == "uvloop" else asyncio.new_event_loop
    return lambda main: _run(main, factory)


@pytest.fixture
def run_once() -> Run:
    """Run on the standard event loop only: nothing here depends on it."""
    return lambda main: _run(main, asyncio.new_event_loop)


@pytest.fixture(scope="session")
def client_authority() -> trustme.CA:
    """The authority of the cluster's clients."""
    return trustme.CA(organization_name="clients")


@pytest.fixture(scope="session")
def proxy_authority() -> trustme.CA:
    """The authority of front proxies."""
    return trustme.CA(organization_name="proxies")


@pytest.fixture(scope="session")
def strange_authority() -> trustme.CA:
    """An authority that nobody here trusts."""
    return trustme.CA(organization_name="strangers")
