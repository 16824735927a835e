"""Being elected: what happens to the scheduling when the lease is held, lost, or given up."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn, cast

import pytest

from kubesched.cli import election
from kubesched.cli.election import Election
from kubesched.cli.options import make_options
from kubesched.client.access import ClusterAccess
from kubesched.errors import ClientError, LeadershipLostError
from kubesched.metrics.recorder import Metrics
from tests.support.scheduling import DEFAULT_GATES
from tests.support.waiting import eventually, settle


class Elector:
    """An election whose outcome a test decides."""

    def __init__(self, journal: list[str]) -> None:
        self._journal = journal
        self.elected, self.ended = asyncio.Event(), asyncio.Event()
        self.failure: Exception = LeadershipLostError("lost")
        self.leading = False

    def may_act(self) -> bool:
        return self.leading

    async def acquire(self) -> None:
        await self.elected.wait()
        self.leading = True
        self._journal.append("elected")

    async def hold(self) -> NoReturn:
        await self.ended.wait()
        self.leading = False
        raise self.failure

    async def release(self) -> None:
        self.leading = False
        self._journal.append("released")


class App:
    """Something that schedules, and takes a moment to end."""

    def __init__(self, journal: list[str]) -> None:
        self._journal = journal
        self.failure: Exception | None = None

    async def run(self, our_turn: Callable[[], Awaitable[None]]) -> None:
        if self.failure is not None:
            raise self.failure
        await our_turn()
        self._journal.append("schedules")
        try:
            await asyncio.Event().wait()
        finally:
            await settle()
            self._journal.append("drained")


class Bench:
    """An election of which the test has both ends."""

    def __init__(self, *flags: str) -> None:
        self.journal: list[str] = []
        access = ClusterAccess.plain("http://127.0.0.1:9")  # nobody is asked
        self.election = Election(access, make_options(flags), Metrics(DEFAULT_GATES))
        self.elector = Elector(self.journal)
        elector: Any = self.elector
        self.election.elector = elector
        self.app = App(self.journal)

    def start(self) -> asyncio.Task[None]:
        app: Any = self.app
        return asyncio.create_task(self.election.run(app))

    async def until(self, entry: str) -> None:
        await eventually(lambda: entry in self.journal, seconds=5)


def test_until_it_is_elected_it_waits() -> None:
    async def main() -> None:
        bench = Bench()
        running = bench.start()
        await settle()
        assert bench.journal == []
        assert bench.election.is_sound
        bench.elector.elected.set()
        await bench.until("schedules")
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(main())


def test_stopped_it_finishes_its_work_before_it_gives_up_the_lease() -> None:
    async def main() -> None:
        bench = Bench()
        bench.elector.elected.set()
        running = bench.start()
        await bench.until("schedules")
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert bench.journal == ["elected", "schedules", "drained", "released"]

    asyncio.run(main())


def test_a_standby_that_is_stopped_has_nothing_to_finish() -> None:
    async def main() -> None:
        bench = Bench()
        running = bench.start()
        await settle()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert bench.journal == ["released"]

    asyncio.run(main())


def test_having_lost_the_lease_it_ends_with_an_error() -> None:
    async def main() -> None:
        bench = Bench()
        bench.elector.elected.set()
        running = bench.start()
        await bench.until("schedules")
        bench.elector.ended.set()
        with pytest.raises(LeadershipLostError, match="leaderelection lost"):
            await asyncio.wait_for(running, 5)
        assert bench.journal == ["elected", "schedules", "drained", "released"]

    asyncio.run(main())


def test_a_bug_in_holding_the_lease_is_a_loss(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody may go on scheduling without anybody who renews the lease."""

    async def main() -> None:
        bench = Bench()
        bench.elector.elected.set()
        bench.elector.failure = ZeroDivisionError("a bug")
        running = bench.start()
        await bench.until("schedules")
        bench.elector.ended.set()
        with pytest.raises(LeadershipLostError):
            await asyncio.wait_for(running, 5)

    with caplog.at_level(logging.ERROR, logger=election.__name__):
        asyncio.run(main())
    assert "holding the lease failed unexpectedly" in caplog.text


def test_a_scheduler_that_fails_gives_up_the_lease() -> None:
    async def main() -> None:
        bench = Bench()
        bench.app.failure = ClientError("refused")
        with pytest.raises(ClientError, match="refused"):
            await asyncio.wait_for(bench.start(), 5)
        assert bench.journal == ["released"]

    asyncio.run(main())


# --- coordinated --------------------------------------------------------------------------------


def test_nobody_stands_as_a_candidate_unless_told_to() -> None:
    assert Bench().election.candidate is None


def test_with_the_gate_it_stands_as_a_candidate_while_it_is_there() -> None:
    async def main() -> None:
        bench = Bench("--feature-gates=CoordinatedLeaderElection=true")
        assert bench.election.candidate is not None
        bench.election.candidate = cast("Any", Candidate(bench.journal))
        running = bench.start()
        await bench.until("stands")
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert bench.journal.index("stands no more") < bench.journal.index("released")

    asyncio.run(main())


def test_a_candidate_that_fails_does_not_end_the_scheduler() -> None:
    async def main() -> None:
        bench = Bench("--feature-gates=CoordinatedLeaderElection=true")
        bench.election.candidate = cast("Any", Candidate(bench.journal, bug=ValueError("a bug")))
        running = bench.start()
        await bench.until("stands")
        await settle()
        assert not running.done()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(main())


class Candidate:
    """Notes that it stands."""

    def __init__(self, journal: list[str], bug: Exception | None = None) -> None:
        self._journal = journal
        self._bug = bug

    async def run(self) -> None:
        self._journal.append("stands")
        if self._bug is not None:
            raise self._bug
        try:
            await asyncio.Event().wait()
        finally:
            self._journal.append("stands no more")
