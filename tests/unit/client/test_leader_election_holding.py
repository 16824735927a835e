"""How a leader stays one: renewals, and when it has to take the leadership for lost."""

from __future__ import annotations

import pytest

from kubesched.client.leader_election import LeaderElector
from kubesched.clock import RealClock
from kubesched.errors import ClientError, LeadershipLostError
from kubesched.progress import LoopProgress

from .conftest import Run
from .election_lab import DEADLINE_S, RETRY_S, START_TEXT, Counts, durations, lab


class TestHolding:
    def test_each_period_one_put_and_nothing_else(self, run: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                counts = Counts()
                elector = await it.leader(observer=counts)
                it.clock.advance(1)
                await it.time.start(elector.hold())
                assert it.requests == ["PUT"], "the first renewal does not wait"
                await it.time.advance(5 * RETRY_S)
                assert it.requests == ["PUT"] * 6
                spec = await it.spec()
                assert spec["acquireTime"] == START_TEXT
                assert spec["renewTime"] == "2023-11-14T22:13:31.000000Z"
                assert spec["leaseTransitions"] == 0
                assert counts.slow_paths == 0

        run(main())

    def test_after_somebody_elses_write_the_lease_is_read_again(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                counts = Counts()
                elector = await it.leader(observer=counts)
                await it.time.start(elector.hold())
                it.requests.clear()
                await it.annotate("note", "mine")
                await it.time.advance(RETRY_S)
                assert it.requests == ["PUT", "GET", "PUT"]
                assert counts.slow_paths == 1
                lease = await it.lease()
                assert lease["metadata"]["annotations"] == {"note": "mine"}
                assert lease["spec"]["acquireTime"] == START_TEXT
                assert lease["spec"]["leaseTransitions"] == 0
                it.requests.clear()
                await it.time.advance(RETRY_S)
                assert it.requests == ["PUT"], "fast again"

        run_once(main())

    def test_without_an_api_server_it_is_over_after_the_deadline(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                elector = await it.leader()
                holding = await it.time.start(elector.hold())
                it.api_server_is_away()
                await it.time.advance(RETRY_S)  # the first attempt that fails
                await it.time.advance(DEADLINE_S - 0.001)
                assert not holding.done()
                await it.time.advance(0.001)
                with pytest.raises(LeadershipLostError) as lost:
                    await holding
                assert str(lost.value).startswith(
                    "lost the leadership, lease kube-system/kube-scheduler: not renewed within 10s"
                )
                assert isinstance(lost.value, ClientError)
                assert not elector.leading
                assert not elector.may_act()

        run_once(main())

    def test_between_deadline_and_loss_nothing_is_done_but_renewing(self, run_once: Run) -> None:
        """Attempts go on for renewDeadline; acting ended renewDeadline after the last renewal."""

        async def main() -> None:
            async with lab() as it:
                elector = await it.leader(config=durations(15, 10, 3))
                holding = await it.time.start(elector.hold())
                it.api_server_is_away()
                await it.time.advance(DEADLINE_S)  # attempts at 3, 6, 9
                assert not elector.may_act()
                it.api_server_is_away(False)
                await it.time.advance(2)  # and at 12
                assert elector.may_act()
                assert not holding.done()

        run_once(main())

    def test_an_outage_shorter_than_the_deadline_costs_nothing(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                elector = await it.leader()
                holding = await it.time.start(elector.hold())
                it.api_server_is_away()
                await it.time.advance(DEADLINE_S - 0.5)
                it.api_server_is_away(False)
                await it.time.advance(RETRY_S)
                assert elector.may_act()
                await it.time.advance(60)
                assert not holding.done()
                assert (await it.spec())["leaseTransitions"] == 0

        run_once(main())

    @pytest.mark.parametrize("seconds", [15, None])
    def test_a_leader_that_finds_another_holder_has_lost_at_once(
        self, run_once: Run, seconds: int | None
    ) -> None:
        """Even if that one's lease is worth nothing: it may have acted meanwhile."""

        async def main() -> None:
            async with lab() as it:
                elector = await it.leader()
                holding = await it.time.start(elector.hold())
                await it.change(holderIdentity="other", leaseDurationSeconds=seconds)
                await it.time.advance(RETRY_S)
                with pytest.raises(LeadershipLostError, match="other holds it"):
                    await holding
                assert not elector.may_act()
                assert (await it.spec())["holderIdentity"] == "other"

        run_once(main())

    def test_a_lease_that_was_cleared_is_taken_back(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                elector = await it.leader()
                holding = await it.time.start(elector.hold())
                await it.change(holderIdentity="")
                await it.time.advance(RETRY_S)
                assert not holding.done()
                spec = await it.spec()
                assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("us", 1)

        run_once(main())

    def test_a_lease_that_was_deleted_is_created_again(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                elector = await it.leader()
                holding = await it.time.start(elector.hold())
                await it.delete()
                await it.time.advance(RETRY_S)
                assert not holding.done()
                assert (await it.spec())["holderIdentity"] == "us"

        run_once(main())

    def test_a_renewal_whose_answer_was_lost_is_done_again(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                counts = Counts()
                elector = await it.leader(observer=counts)
                it.clock.advance(1)
                lost = iter([True])
                it.loses_answer = lambda each: each.method == "PUT" and next(lost, False)
                holding = await it.time.start(elector.hold())
                await it.time.advance(RETRY_S)
                assert not holding.done()
                assert counts.slow_paths == 1
                assert elector.may_act()

        run_once(main())

    def test_a_server_that_never_answers_cannot_hold_up_the_deadline(self, run: Run) -> None:
        """In real time: the server takes every request and is silent."""

        async def main() -> None:
            async with lab() as it:
                elector = LeaderElector(it.client, durations(10, 1, 0.2), identity="us")
                await elector.acquire()
                it.hangs = lambda _: True
                started = RealClock().monotonic()
                with pytest.raises(LeadershipLostError, match="no answer in time"):
                    await elector.hold()
                # The event loop's timers are early by a hair now and then.
                assert 0.99 <= RealClock().monotonic() - started < 3

        run(main())

    def test_slow_answers_bring_the_next_renewal_forward(self, run_once: Run) -> None:
        """Else a lease would be overdue by the time that its turn comes."""

        async def main() -> None:
            async with lab() as it:
                elector = await it.leader(config=durations(15, 10, 8))
                it.every_delay_s = 4
                holding = await it.time.start(elector.hold())
                await it.time.advance(60)
                assert not holding.done()
                assert max(it.time.pauses) == pytest.approx(5)

        run_once(main())

    def test_a_duration_that_is_no_whole_seconds_can_be_held(self, run_once: Run) -> None:
        """The Lease says 2 s, and so others take it after 2 s, not after 2.9 s."""

        async def main() -> None:
            async with lab() as it:
                elector = await it.leader(config=durations(2.9, 2.5, 2))
                assert (await it.spec())["leaseDurationSeconds"] == 2
                holding = await it.time.start(elector.hold())
                await it.time.advance(30)
                assert not holding.done()
                assert elector.may_act()
                it.clock.advance(2)
                assert not elector.may_act()

        run_once(main())


class TestProgress:
    """A leader that does nothing any more makes room."""

    def test_without_progress_nothing_is_renewed_and_leadership_ends(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                progress = LoopProgress(it.clock, limit_s=5)
                progress.beat()
                elector = await it.leader(is_progressing=progress.is_progressing)
                holding = await it.time.start(elector.hold())
                await it.time.advance(5)
                renewals = len(it.requests)
                assert renewals == 3  # at 0, 2 and 4
                await it.time.advance(1 + DEADLINE_S)  # attempts from 6 to 16
                with pytest.raises(LeadershipLostError, match="scheduling loop makes no progress"):
                    await holding
                assert len(it.requests) == renewals
                assert not elector.may_act()

        run_once(main())

    def test_another_candidate_takes_over_from_a_stuck_leader(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                progress = LoopProgress(it.clock, limit_s=5)
                progress.beat()
                stuck = await it.leader("stuck", is_progressing=progress.is_progressing)
                holding = await it.time.start(stuck.hold())
                other = it.candidate("other")
                acquiring = await it.time.start(other.acquire())
                for _ in range(400):
                    await it.time.advance(0.1)
                    assert not (stuck.may_act() and other.may_act())
                    if acquiring.done():
                        break
                assert other.leading
                with pytest.raises(LeadershipLostError):
                    await holding

        run_once(main())

    def test_a_loop_that_recovers_keeps_the_leadership(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                progress = LoopProgress(it.clock, limit_s=5)
                progress.beat()
                elector = await it.leader(is_progressing=progress.is_progressing)
                holding = await it.time.start(elector.hold())
                await it.time.advance(12)
                progress.beat()
                await it.time.advance(4)
                assert not holding.done()
                assert elector.may_act()

        run_once(main())
