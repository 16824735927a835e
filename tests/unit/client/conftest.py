"""Fixtures of the client's tests: event loops that notice what is left behind."""

from __future__ import annotations

import asyncio
import gc
import ssl
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
        async with asyncio.timeout(20):
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

    def runner(main: Coroutine[Any, Any, T]) -> T:
        return _run(main, factory)

    return runner


@pytest.fixture
def run_once() -> Run:
    """Run on the standard event loop only: nothing here depends on it."""

    def runner(main: Coroutine[Any, Any, T]) -> T:
        return _run(main, asyncio.new_event_loop)

    return runner


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    """The certificate authority of the tests' cluster."""
    return trustme.CA()


@pytest.fixture(scope="session")
def server_tls(authority: trustme.CA) -> ssl.SSLContext:
    """What a server on 127.0.0.1 shows."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1", "kubernetes.default").configure_cert(context)
    return context


@pytest.fixture
def authority_pem(authority: trustme.CA) -> str:
    """The authority's certificate."""
    return authority.cert_pem.bytes().decode()
