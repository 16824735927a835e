"""Watches that are not read while nothing waits for their events."""

from __future__ import annotations

import asyncio

import pytest

from kubesched.client import held_watches
from kubesched.client.held_watches import HeldWatches
from tests.support.servers import CHUNKED_HEAD, Exchange, chunk, event_line
from tests.support.waiting import eventually, settle

from .conftest import Run
from .objects import thing
from .running_informer import Api, Fixture, listed, running


class Two:
    """A watch of two events, of which the second is sent when the test says so."""

    def __init__(self, *, may_hold: bool = True) -> None:
        self.held = HeldWatches(lambda: may_hold)
        self.api = Api()
        self.api.lists = [listed(version=1)]
        self.api.watches = [self._watch]
        self._next = asyncio.Event()
        self._sent = asyncio.Event()

    async def _watch(self, exchange: Exchange) -> None:
        await exchange.send(CHUNKED_HEAD + _added("first", version=2))
        await self._next.wait()
        await exchange.send(_added("second", version=3))
        self._sent.set()
        await asyncio.sleep(3600)

    async def send_second(self, fixture: Fixture) -> None:
        """Send the second event when the first one is handled."""
        await eventually(lambda: fixture.entries == ["add first@2"])
        self._next.set()
        await self._sent.wait()
        await settle()


def _added(name: str, *, version: int) -> bytes:
    return chunk(event_line("ADDED", thing(name, version=version)))


@pytest.fixture
def for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing be read again just because time passes."""
    monkeypatch.setattr(held_watches, "HOLD_S", 3600.0)


@pytest.mark.usefixtures("for_long")
def test_after_an_event_the_next_waits_until_a_decision_is_made(run: Run) -> None:
    async def main() -> None:
        two = Two()
        async with running(two.api, held_watches=two.held) as fixture:
            await two.send_second(fixture)
            assert fixture.entries == ["add first@2"]
            assert two.held.is_holding
            await two.held.catch_up()
            assert fixture.entries == ["add first@2", "add second@3"]

    run(main())


@pytest.mark.usefixtures("for_long")
def test_nothing_is_held_while_something_waits_for_it(run: Run) -> None:
    async def main() -> None:
        two = Two(may_hold=False)
        async with running(two.api, held_watches=two.held) as fixture:
            await two.send_second(fixture)
            await fixture.hears("add first@2", "add second@3")
            assert not two.held.is_holding

    run(main())


def test_events_are_read_after_a_while_even_without_a_decision(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_watches, "HOLD_S", 0.01)

    async def main() -> None:
        two = Two()
        async with running(two.api, held_watches=two.held) as fixture:
            await two.send_second(fixture)
            await fixture.hears("add first@2", "add second@3")

    run(main())


@pytest.mark.usefixtures("for_long")
def test_a_watch_that_breaks_meanwhile_is_watched_again(run: Run) -> None:
    async def main() -> None:
        two = Two()

        async def ends(exchange: Exchange) -> None:
            await exchange.send(CHUNKED_HEAD + _added("first", version=2))
            await eventually(lambda: two.held.is_holding)
            await exchange.send(_added("last", version=3))
            exchange.hang_up()

        two.api.watches = [ends]
        async with running(two.api, held_watches=two.held) as fixture:
            await eventually(lambda: fixture.watched_from() == ["1", "3"])
            assert fixture.entries == ["add first@2", "add last@3"]
            await two.held.catch_up()  # what has ended is let go as well

    run(main())
