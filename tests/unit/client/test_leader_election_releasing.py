"""How a leader leaves, and what it tells of itself."""

from __future__ import annotations

import asyncio
import logging

import pytest

from kubesched.client.events import EventRecorder
from kubesched.client.leader_election import LeaderElector
from kubesched.errors import LeadershipLostError
from tests.support.servers import Exchange

from .conftest import Run
from .election_lab import DEADLINE_S, LONGEST_PAUSE_S, RETRY_S, Counts, durations, lab, shown


class TestReleasing:
    def test_a_released_lease_is_free(self, run: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                it.held_by("")
                elector = await it.leader()
                it.clock.advance(3)
                await elector.release()
                assert await it.spec() == {
                    "holderIdentity": "",
                    "leaseDurationSeconds": 1,
                    "acquireTime": "2023-11-14T22:13:23.000000Z",
                    "renewTime": "2023-11-14T22:13:23.000000Z",
                    "leaseTransitions": 4,
                }
                assert not elector.may_act()
                assert not elector.leading
                assert elector.leader == ""

        run(main())

    def test_the_next_candidate_does_not_wait_for_the_lease_to_expire(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                first = await it.leader("first")
                second = it.candidate("second")
                acquiring = await it.time.start(second.acquire())
                await first.release()
                await it.time.advance(LONGEST_PAUSE_S)
                await acquiring
                assert (await it.spec())["leaseTransitions"] == 1

        run_once(main())

    def test_nothing_is_done_any_more_before_the_release_is_sent(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                elector = await it.leader()
                acting: list[bool] = []

                async def look(_: Exchange) -> None:
                    acting.append(elector.may_act())

                it.before = look
                await elector.release()
                assert acting == [False, False]

        run_once(main())

    def test_another_holders_lease_is_left_alone(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                elector = await it.leader()
                await it.change(holderIdentity="other")
                before = await it.lease()
                await elector.release()
                assert await it.lease() == before

        run_once(main())

    def test_who_never_wrote_does_not_ask(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                it.held_by("other")
                elector = it.candidate()
                acquiring = await it.time.start(elector.acquire())
                acquiring.cancel()
                it.requests.clear()
                await elector.release()
                assert it.requests == []

        run_once(main())

    def test_a_write_that_was_never_answered_is_taken_back(self, run_once: Run) -> None:
        """Stopped while acquiring: the server may know us as the holder, and we do not."""

        async def main() -> None:
            async with lab() as it:
                it.loses_answer = lambda each: each.method == "POST"
                elector = it.candidate()
                acquiring = await it.time.start(elector.acquire())
                acquiring.cancel()
                assert (await it.spec())["holderIdentity"] == "us"
                await elector.release()
                assert (await it.spec())["holderIdentity"] == ""

        run_once(main())

    def test_after_a_loss_what_is_still_ours_is_given_back(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                elector = await it.leader(is_progressing=lambda: False)
                holding = await it.time.start(elector.hold())
                await it.time.advance(DEADLINE_S)
                with pytest.raises(LeadershipLostError):
                    await holding
                await elector.release()
                assert (await it.spec())["holderIdentity"] == ""

        run_once(main())

    def test_a_writer_in_between_is_no_obstacle(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                elector = await it.leader()
                others = iter(["quicker", "again", "and again"])

                async def write_first(exchange: Exchange) -> None:
                    if exchange.method == "PUT" and (note := next(others, "")):
                        await it.annotate("note", note)

                it.before = write_first
                await elector.release()
                assert it.requests == ["GET", "PUT"] * 4
                assert (await it.spec())["holderIdentity"] == ""

        run_once(main())

    def test_without_an_api_server_it_is_left_to_expire(
        self, run_once: Run, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def main() -> None:
            async with lab() as it:
                elector = await it.leader()
                it.api_server_is_away()
                await elector.release()
                assert not elector.may_act()

        run_once(main())
        assert '"Failed to release lease" err="' in shown(caplog.records[-1])

    def test_a_server_that_never_answers_does_not_hold_up_the_end(
        self, run_once: Run, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def main() -> None:
            async with lab() as it:
                elector = LeaderElector(it.client, durations(1, 0.2, 0.1), identity="us")
                await elector.acquire()
                it.hangs = lambda _: True
                async with asyncio.timeout(5):
                    await elector.release()

        run_once(main())
        assert 'err="no answer in time"' in shown(caplog.records[-1])


class TestTelling:
    def test_new_leaders_are_told_once(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                it.held_by("first")
                told: list[str] = []
                elector = it.candidate(on_new_leader=told.append)
                acquiring = await it.time.start(elector.acquire())
                await it.time.advance(10)
                await it.change(holderIdentity="second")
                await it.time.advance(10)
                await it.change(holderIdentity="")
                await it.time.advance(LONGEST_PAUSE_S)
                await acquiring
                await it.time.start(elector.hold())
                await it.time.advance(10)
                assert told == ["first", "second", "us"]

        run_once(main())

    def test_metrics_hear_who_leads(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                counts = Counts()
                elector = it.candidate(observer=counts)
                assert counts.leading == [False]
                await elector.acquire()
                assert counts.leading == [False, True]
                await elector.release()
                await elector.release()
                assert counts.leading == [False, True, False]

        run_once(main())

    def test_events_about_the_lease(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                recorder = EventRecorder(
                    it.client, controller="default-scheduler", instance="", core_v1=True
                )
                recording = asyncio.create_task(recorder.run())
                elector = await it.leader("host_1", events=recorder)
                await elector.release()
                await elector.release()
                assert await recorder.flush(5)
                recording.cancel()
                await asyncio.gather(recording, return_exceptions=True)

                events = await it.events()
                notes = [each["message"] for each in events]
                assert notes == ["host_1 became leader", "host_1 stopped leading"]
                uid = (await it.lease())["metadata"]["uid"]
                for event in events:
                    assert (event["type"], event["reason"]) == ("Normal", "LeaderElection")
                    assert event["source"] == {"component": "default-scheduler"}
                    about = event["involvedObject"]
                    assert about.pop("resourceVersion")
                    assert about == {
                        "kind": "Lease",
                        "apiVersion": "coordination.k8s.io/v1",
                        "namespace": "kube-system",
                        "name": "kube-scheduler",
                        "uid": uid,
                    }

        run_once(main())

    def test_lines_that_operators_look_for(
        self, run_once: Run, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def main() -> None:
            async with lab() as it:
                elector = await it.leader()
                holding = await it.time.start(elector.hold())
                await it.change(holderIdentity="other")
                await it.time.advance(RETRY_S)
                with pytest.raises(LeadershipLostError):
                    await holding

        with caplog.at_level(logging.INFO, logger="kubesched.client.leader_election"):
            run_once(main())
        ours = [r for r in caplog.records if r.name == "kubesched.client.leader_election"]
        lock = 'lock="kube-system/kube-scheduler"'
        assert [(each.levelname, shown(each)) for each in ours] == [
            ("INFO", f'"Attempting to acquire leader lease..." {lock}'),
            ("INFO", f'"New leader elected" {lock} identity="us"'),
            ("INFO", f'"Successfully acquired lease" {lock}'),
            ("INFO", f'"New leader elected" {lock} identity="other"'),
            ("INFO", f'"Failed to renew lease" {lock} err="other holds it"'),
            ("ERROR", '"Leaderelection lost"'),
        ]
