"""The clock alone decides who may act, and never two at once."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
import uvloop
from hypothesis import given, settings, strategies

from kubesched.client.leader_election import LeaderElector
from kubesched.errors import LeadershipLostError
from tests.support.event_loops import Run, run_on
from tests.support.servers import Exchange

from .election_lab import DEADLINE_S, START, Lab, lab


class TestMayAct:
    """The clock alone decides, whatever a task has or has not found out."""

    def test_only_a_leader_may_act(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                elector = it.candidate()
                assert not elector.may_act()
                await elector.acquire()
                assert elector.may_act()

        run_once(main())

    def test_it_ends_with_the_deadline_by_itself(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                elector = await it.leader()
                now = it.clock.monotonic()
                assert elector.may_act(now + DEADLINE_S - 0.001)
                assert not elector.may_act(now + DEADLINE_S)
                it.clock.advance(DEADLINE_S)
                assert not elector.may_act()

        run_once(main())

    def test_it_counts_from_when_the_renewal_was_sent(self, run_once: Run) -> None:
        """Others may have seen a renewal long before its answer reached us."""

        async def main() -> None:
            async with lab() as it:
                it.delays_s["POST"] = 4
                elector = await it.leader()
                assert elector.may_act(START + DEADLINE_S - 0.001)
                assert not elector.may_act(START + DEADLINE_S)

        run_once(main())

    def test_a_refused_renewal_does_not_prolong_it(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                elector = await it.leader()
                it.breaks = lambda each: each.method == "PUT"
                await it.time.start(elector.hold())
                await it.time.advance(DEADLINE_S - 0.5)
                assert elector.may_act(START + DEADLINE_S - 0.001)
                assert not elector.may_act(START + DEADLINE_S)

        run_once(main())

    def test_a_loop_that_was_blocked_too_long_has_lost_before_it_asks(self, run_once: Run) -> None:
        """Time passes and no task gets a turn: that is what blocking looks like from inside."""

        async def main() -> None:
            async with lab() as it:
                elector = await it.leader()
                holding = await it.time.start(elector.hold())
                it.requests.clear()
                it.clock.advance(DEADLINE_S)  # nobody's turn comes
                assert not elector.may_act()
                await it.time.advance(0)
                with pytest.raises(LeadershipLostError, match=r"10\.0 s: the process was held up"):
                    await holding
                assert it.requests == []

        run_once(main())

    def test_a_loop_that_was_blocked_during_a_renewal_has_lost(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                elector = await it.leader()
                it.delays_s["PUT"] = DEADLINE_S
                holding = await it.time.start(elector.hold())
                with pytest.raises(LeadershipLostError, match="the process was held up"):
                    await holding
                assert it.requests == ["PUT"]

        run_once(main())

    def test_a_loop_that_was_blocked_for_less_goes_on(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                elector = await it.leader()
                holding = await it.time.start(elector.hold())
                it.clock.advance(DEADLINE_S - 0.001)
                assert elector.may_act()
                await it.time.advance(0)
                assert not holding.done()
                assert elector.may_act(it.clock.monotonic() + DEADLINE_S - 0.001)

        run_once(main())

    @settings(max_examples=25)
    @given(data=strategies.data())
    def test_two_never_may_act_at_once(self, data: strategies.DataObject) -> None:
        """Outages, lost answers, processes that are held up and foreign writes, in any order."""

        async def main() -> None:
            async with lab() as it:
                it.held_by("")
                late_s: dict[str, float] = {}
                electors = [_late_candidate(it, name, late_s) for name in ("a", "b")]
                acting: set[int] = set()

                def look() -> None:
                    acting.add(sum(each.may_act() for each in electors))

                async def look_first(_: Exchange) -> None:
                    look()

                it.before = look_first
                for each in electors:
                    await it.time.start(_forever(each, it.time.sleep))
                for _ in range(data.draw(strategies.integers(1, 12))):
                    trouble = data.draw(strategies.sampled_from(_TROUBLES))
                    seconds = data.draw(strategies.floats(0, 20))
                    await _cause(it, trouble, seconds, late_s)
                    await it.time.advance(data.draw(strategies.floats(0, 20)))
                    look()
                assert acting <= {0, 1}

        run_on(uvloop.new_event_loop, main())


_TROUBLES = ("outage", "lost answers", "peace", "all held up", "a held up", "b held up", "noted")


def _late_candidate(it: Lab, identity: str, late_s: dict[str, float]) -> LeaderElector:
    """A candidate whose next pause takes longer than it asked for: its process is held up."""

    async def sleep(seconds: float) -> None:
        await it.time.sleep(seconds + late_s.pop(identity, 0.0))

    return it.candidate(identity, sleep=sleep)


async def _cause(it: Lab, trouble: str, seconds: float, late_s: dict[str, float]) -> None:
    match trouble:
        case "outage":
            it.api_server_is_away()
        case "lost answers":
            it.loses_answer = lambda each: each.method == "PUT"
        case "peace":
            it.api_server_is_away(False)
            it.loses_answer = lambda _: False
        case "all held up":
            it.clock.advance(seconds)
        case "a held up" | "b held up":
            late_s[trouble[0]] = seconds
        case "noted":
            await it.annotate("note", str(it.clock.monotonic()))


async def _forever(elector: LeaderElector, sleep: Callable[[float], Any]) -> None:
    """A process that begins again whenever it has lost."""
    while True:
        await elector.acquire()
        with contextlib.suppress(LeadershipLostError):
            await elector.hold()
        await sleep(1.0)
