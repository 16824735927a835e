"""How a candidate comes to lead: whose lease may be taken, and when."""

from __future__ import annotations

import asyncio
import logging
import re
import socket

import pytest

from kubesched.client.access import ClusterAccess
from kubesched.client.leader_election import LeaderElector, make_identity
from kubesched.client.rest import ApiClient
from kubesched.errors import ConfigError
from tests.support.servers import JsonObject

from .conftest import Run
from .election_lab import (
    DEADLINE_S,
    DEFAULTS,
    LEASE_S,
    LONGEST_PAUSE_S,
    RETRY_S,
    START_TEXT,
    durations,
    lab,
    shown,
)


class TestConfiguration:
    @pytest.mark.parametrize(
        ("lease_s", "deadline_s", "retry_s", "complaint"),
        [
            (10, 10, 2, "leaseDuration must be greater than renewDeadline"),
            (15, 2.4, 2, "renewDeadline must be greater than retryPeriod*JitterFactor"),
            (15, 10, 9, "renewDeadline must be greater than retryPeriod*JitterFactor"),
            (0, -1, -2, "leaseDuration must be greater than zero"),
            (1, 0, -1, "renewDeadline must be greater than zero"),
            (15, 10, 0, "retryPeriod must be greater than zero"),
            (0.9, 0.5, 0.1, "leaseDuration must be at least 1s, a Lease counts seconds: 900ms"),
        ],
    )
    def test_durations_must_fit_together(
        self, lease_s: float, deadline_s: float, retry_s: float, complaint: str
    ) -> None:
        client = ApiClient(ClusterAccess.plain("http://127.0.0.1:1"))
        with pytest.raises(ConfigError) as refused:
            LeaderElector(client, durations(lease_s, deadline_s, retry_s), identity="us")
        assert str(refused.value) == complaint

    def test_the_deadline_must_exceed_the_jittered_period_by_no_more_than_a_hair(self) -> None:
        client = ApiClient(ClusterAccess.plain("http://127.0.0.1:1"))
        LeaderElector(client, durations(15, 2.400000001, 2), identity="us")

    def test_an_identity_is_needed(self) -> None:
        client = ApiClient(ClusterAccess.plain("http://127.0.0.1:1"))
        with pytest.raises(ConfigError, match="Lock identity is empty"):
            LeaderElector(client, DEFAULTS, identity="")

    def test_an_identity_is_host_name_and_uuid(self) -> None:
        uuid = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
        assert re.fullmatch(f"{re.escape(socket.gethostname())}_{uuid}", make_identity())
        assert make_identity() != make_identity()


class TestAcquiring:
    def test_a_missing_lease_is_created(self, run: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                elector = it.candidate("host_1")
                await elector.acquire()

                assert await it.spec() == {
                    "holderIdentity": "host_1",
                    "leaseDurationSeconds": 15,
                    "acquireTime": START_TEXT,
                    "renewTime": START_TEXT,
                    "leaseTransitions": 0,
                }
                assert it.requests == ["GET", "POST"]
                assert elector.leading
                assert elector.leader == "host_1"

        run(main())

    @pytest.mark.parametrize("renewed", ["1999-01-01T00:00:00.000000Z", "2099-01-01T00:00:00Z"])
    def test_a_lease_expires_by_our_own_observation(self, run_once: Run, renewed: str) -> None:
        async def main() -> None:
            async with lab() as it:
                it.held_by("other", renewTime=renewed)
                elector = it.candidate()
                acquiring = await it.time.start(elector.acquire())
                await it.time.advance(LEASE_S - 0.001)
                assert (await it.spec())["holderIdentity"] == "other"
                assert not elector.may_act()

                await it.time.advance(LONGEST_PAUSE_S)
                await acquiring
                spec = await it.spec()
                assert spec["holderIdentity"] == "us"
                assert spec["leaseTransitions"] == 4
                assert spec["acquireTime"] == spec["renewTime"]
                assert spec["acquireTime"] > "2023-11-14T22:13:35"

        run_once(main())

    def test_the_holders_own_duration_counts(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                it.held_by("other", leaseDurationSeconds=60)
                acquiring = await it.time.start(it.candidate().acquire())
                await it.time.advance(59)
                assert not acquiring.done()
                await it.time.advance(1 + LONGEST_PAUSE_S)
                await acquiring

        run_once(main())

    def test_a_holder_that_shows_life_keeps_its_lease(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                it.held_by("other")
                acquiring = await it.time.start(it.candidate().acquire())
                for second in range(10):
                    await it.time.advance(LEASE_S - LONGEST_PAUSE_S)
                    await it.change(renewTime=f"1999-01-01T00:00:{second:02d}.000000Z")
                assert not acquiring.done()

        run_once(main())

    def test_what_others_write_around_the_record_is_no_sign_of_life(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                it.held_by("other")
                acquiring = await it.time.start(it.candidate().acquire())
                for second in range(20):
                    await it.annotate("seen", str(second))
                    await it.time.advance(1)
                await acquiring
                assert (await it.spec())["holderIdentity"] == "us"

        run_once(main())

    def test_a_released_lease_is_taken_at_once(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                it.held_by("")
                await it.candidate().acquire()
                spec = await it.spec()
                assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("us", 4)
                assert spec["acquireTime"] == START_TEXT

        run_once(main())

    @pytest.mark.parametrize("spec", [None, {}])
    def test_a_lease_that_says_nothing_is_taken_at_once(
        self, run_once: Run, spec: JsonObject | None
    ) -> None:
        async def main() -> None:
            async with lab() as it:
                it.create(spec=spec)
                await it.candidate().acquire()
                assert (await it.spec())["holderIdentity"] == "us"
                assert (await it.spec())["leaseTransitions"] == 1

        run_once(main())

    def test_what_others_keep_in_the_lease_survives_but_for_who_is_to_hold_it(
        self, run_once: Run
    ) -> None:
        async def main() -> None:
            async with lab() as it:
                assigned = {"strategy": "OldestEmulationVersion", "preferredHolder": "someone"}
                it.create(
                    spec={"holderIdentity": "", **assigned},
                    labels={"team": "a"},
                    annotations={"note": "b"},
                    finalizers=["example.com/keep"],
                )
                elector = await it.leader()
                holding = await it.time.start(elector.hold())
                await it.time.advance(10)
                lease = await it.lease()
                assert not assigned.keys() & lease["spec"].keys(), "nobody assigned it to us"
                assert lease["metadata"]["labels"] == {"team": "a"}
                assert lease["metadata"]["annotations"] == {"note": "b"}
                assert lease["metadata"]["finalizers"] == ["example.com/keep"]
                holding.cancel()
                await elector.release()
                assert (await it.lease())["metadata"]["labels"] == {"team": "a"}

        run_once(main())

    def test_candidates_come_back_after_one_to_two_point_two_periods(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                it.held_by("other", leaseDurationSeconds=100_000)
                await it.time.start(it.candidate().acquire())
                await it.time.advance(300)
                assert all(RETRY_S <= pause <= LONGEST_PAUSE_S for pause in it.time.pauses)
                assert min(it.time.pauses) < 1.2 * RETRY_S
                assert max(it.time.pauses) > 2 * RETRY_S

        run_once(main())

    def test_of_two_that_come_together_one_is_refused(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                it.held_by("")
                both = [it.candidate("a"), it.candidate("b")]
                tasks = [asyncio.create_task(each.acquire()) for each in both]
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                await it.time.start(asyncio.sleep(0))
                assert sum(each.may_act() for each in both) == 1
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

        run_once(main())

    def test_an_api_server_that_is_away_is_waited_for(
        self, run_once: Run, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def main() -> None:
            async with lab() as it:
                it.api_server_is_away()
                acquiring = await it.time.start(it.candidate().acquire())
                await it.time.advance(600)
                assert not acquiring.done()
                it.api_server_is_away(False)
                await it.time.advance(LONGEST_PAUSE_S)
                await acquiring

        with caplog.at_level(logging.INFO):
            run_once(main())
        complaints = [shown(each) for each in caplog.records if each.levelno >= logging.WARNING]
        assert len(complaints) == 1, "one line for one trouble"
        assert complaints[0].startswith('"Error retrieving lease lock" err="')
        assert complaints[0].endswith('" lock="kube-system/kube-scheduler"')

    @pytest.mark.parametrize("method", ["POST", "PUT"])
    def test_a_write_whose_answer_was_lost_is_found(self, run_once: Run, method: str) -> None:
        async def main() -> None:
            async with lab() as it:
                if method == "PUT":
                    it.held_by("")
                lost = iter([True])
                it.loses_answer = lambda each: each.method == method and next(lost, False)
                elector = it.candidate()
                acquiring = await it.time.start(elector.acquire())
                await it.time.advance(LONGEST_PAUSE_S)
                await acquiring
                spec = await it.spec()
                assert spec["leaseTransitions"] == (4 if method == "PUT" else 0)
                assert spec["acquireTime"] == START_TEXT

        run_once(main())

    def test_an_answer_that_comes_too_late_makes_no_leader(self, run_once: Run) -> None:
        """The event loop was blocked while the server answered: the Lease may be gone again."""

        async def main() -> None:
            async with lab() as it:
                it.delays_s["POST"] = DEADLINE_S
                elector = it.candidate()
                acquiring = await it.time.start(elector.acquire())
                assert not acquiring.done()
                assert not elector.leading
                assert not elector.may_act()

                await it.time.advance(LONGEST_PAUSE_S)
                await acquiring
                assert elector.may_act()

        run_once(main())
