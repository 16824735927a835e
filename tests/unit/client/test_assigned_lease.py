"""In coordinated leader election the API server says who leads; candidates only confirm it."""

from __future__ import annotations

import pytest

from kubesched.errors import LeadershipLostError
from kubesched.logs.levels import verbose

from .conftest import Run
from .election_lab import DEADLINE_S, LEASE_S, LONGEST_PAUSE_S, RETRY_S, Counts, lab, shown

STRATEGY = "OldestEmulationVersion"


def test_a_lease_that_is_not_there_is_waited_for_and_not_created(run_once: Run) -> None:
    async def main() -> None:
        async with lab() as it:
            elector = it.candidate(coordinated=True)
            acquiring = await it.time.start(elector.acquire())
            await it.time.advance(60)
            assert not acquiring.done()
            assert set(it.requests) == {"GET"}
            it.held_by("us", strategy=STRATEGY)
            await it.time.advance(LONGEST_PAUSE_S)
            await acquiring
            assert elector.may_act()

    run_once(main())


@pytest.mark.parametrize("holder", ["another", ""])
def test_a_lease_that_is_not_ours_is_never_taken(run_once: Run, holder: str) -> None:
    async def main() -> None:
        async with lab() as it:
            it.held_by(holder, strategy=STRATEGY)
            acquiring = await it.time.start(it.candidate(coordinated=True).acquire())
            await it.time.advance(10 * LEASE_S)
            assert not acquiring.done()
            assert set(it.requests) == {"GET"}
            assert (await it.spec())["holderIdentity"] == holder

    run_once(main())


def test_a_lease_that_is_given_to_us_is_confirmed(run_once: Run) -> None:
    async def main() -> None:
        async with lab() as it:
            it.held_by("us", strategy=STRATEGY)
            counts = Counts()
            elector = it.candidate(coordinated=True, observer=counts)
            before = await it.spec()
            await elector.acquire()
            assert it.requests == ["GET", "PUT"]
            after = await it.spec()
            assert after["renewTime"] > before["renewTime"]
            for kept in ("strategy", "acquireTime", "leaseTransitions", "leaseDurationSeconds"):
                assert after[kept] == before[kept]
            await it.time.start(elector.hold())
            it.requests.clear()
            await it.time.advance(2 * RETRY_S + 0.1)
            assert it.requests == ["GET", "PUT"] * 2, "every renewal looks first"
            assert counts.slow_paths == 4
            assert (await it.spec())["strategy"] == STRATEGY

    run_once(main())


def test_a_lease_that_was_ours_long_ago_is_not_confirmed(run_once: Run) -> None:
    async def main() -> None:
        async with lab() as it:
            it.held_by("us", strategy=STRATEGY)
            it.breaks = lambda each: each.method == "PUT"
            elector = it.candidate(coordinated=True)
            acquiring = await it.time.start(elector.acquire())
            await it.time.advance(LEASE_S)
            it.api_server_is_away(False)
            it.requests.clear()
            await it.time.advance(10)
            assert set(it.requests) == {"GET"}, "it has expired, and may be another's any time"
            assert not acquiring.done()

    run_once(main())


def test_a_leader_lets_go_when_another_is_preferred(
    run_once: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with lab() as it:
            it.held_by("us", strategy=STRATEGY)
            elector = await it.leader(coordinated=True)
            holding = await it.time.start(elector.hold())
            await it.change(preferredHolder="older")
            renewed = (await it.spec())["renewTime"]
            await it.time.advance(RETRY_S + DEADLINE_S - 0.1)
            assert not holding.done()
            await it.time.advance(RETRY_S)
            with pytest.raises(LeadershipLostError, match="older is to hold it"):
                await holding
            assert not elector.may_act()
            assert (await it.spec())["renewTime"] == renewed

    with caplog.at_level(verbose(4)):
        run_once(main())
    lines = [shown(each) for each in caplog.records]
    assert '"Lease is marked as \'end of term\'" lock="kube-system/kube-scheduler"' in lines


def test_timers_that_are_early_do_not_hide_why_it_let_go(run_once: Run) -> None:
    """The event loop counts in whole milliseconds, and a deadline is between two of them."""

    async def main() -> None:
        async with lab() as it:

            async def early(seconds: float) -> None:
                await it.time.sleep(max(0.0, seconds - 0.0004))

            it.held_by("us", strategy=STRATEGY)
            elector = await it.leader(coordinated=True, sleep=early)
            holding = await it.time.start(elector.hold())
            await it.change(preferredHolder="older")
            await it.time.advance(RETRY_S + DEADLINE_S)
            with pytest.raises(LeadershipLostError, match="older is to hold it"):
                await holding

    run_once(main())


def test_a_leader_that_is_asked_to_end_gives_the_lease_back(run_once: Run) -> None:
    async def main() -> None:
        async with lab() as it:
            it.held_by("us", strategy=STRATEGY)
            elector = await it.leader(coordinated=True)
            await elector.release()
            spec = await it.spec()
            assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == ("", 1)
            assert "strategy" not in spec, "as kube-scheduler leaves it"

    run_once(main())


def test_a_lease_that_goes_to_another_is_lost_at_once(run_once: Run) -> None:
    async def main() -> None:
        async with lab() as it:
            it.held_by("us", strategy=STRATEGY)
            elector = await it.leader(coordinated=True)
            holding = await it.time.start(elector.hold())
            await it.change(holderIdentity="another")
            await it.time.advance(RETRY_S)
            with pytest.raises(LeadershipLostError, match="another holds it"):
                await holding

    run_once(main())
