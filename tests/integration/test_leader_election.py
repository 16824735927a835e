"""Leader election against a real API server, as the user system:kube-scheduler.

Candidates run in the test's event loop, or in a thread with a loop of its own where that loop is to
be blocked. Durations are short, so bounds have room for a slow machine on one side only: nobody may
take over early, however slow things are. Where a test sleeps, a part of a lease's life passes:
that is what is tested.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import pytest
from msgspec.structs import replace

from kubesched.client import kubeconfig
from kubesched.client.events import EventRecorder
from kubesched.client.leader_election import LeaderElector, make_identity
from kubesched.client.rest import ApiClient
from kubesched.clock import RealClock
from kubesched.config.durations import Duration
from kubesched.config.types import LeaderElection
from kubesched.errors import LeadershipLostError
from kubesched.logs.formats import ERR, FIELDS
from kubesched.progress import LoopProgress
from tests.support.waiting import until

from .control_plane import MERGE_PATCH, ControlPlane, JsonObject, PlaneApiError

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
LEASE = f"{LEASES}/kube-scheduler"
EVENTS = "/api/v1/namespaces/kube-system/events"

LEASE_S, DEADLINE_S, RETRY_S = 3, 2.0, 0.25
CONFIG = LeaderElection(
    lease_duration=Duration.of_seconds(LEASE_S),
    renew_deadline=Duration.of_seconds(DEADLINE_S),
    retry_period=Duration.of_seconds(RETRY_S),
)
#: What a machine that is busy with other things may add.
SLACK_S = 5.0


@pytest.fixture(autouse=True)
def _no_lease(control_plane: ControlPlane) -> Iterator[None]:
    """Begin and end without a Lease."""
    _delete_lease(control_plane)
    yield
    _delete_lease(control_plane)


def _delete_lease(plane: ControlPlane) -> None:
    with contextlib.suppress(PlaneApiError):
        plane.request("DELETE", LEASE)


def _spec(plane: ControlPlane) -> JsonObject:
    spec: JsonObject = plane.request("GET", LEASE)["spec"]
    return spec


def _moment(micro_time: str) -> float:
    return datetime.fromisoformat(micro_time).timestamp()


@asynccontextmanager
async def _candidate(
    plane: ControlPlane, identity: str = "", config: LeaderElection = CONFIG, **options: Any
) -> AsyncIterator[LeaderElector]:
    async with ApiClient(kubeconfig.load(plane.scheduler_kubeconfig)) as client:
        yield LeaderElector(client, config, identity=identity or make_identity(), **options)


@asynccontextmanager
async def _holding(elector: LeaderElector) -> AsyncIterator[asyncio.Task[None]]:
    """Hold the lease until the end of the block, and then just fall silent."""
    task: asyncio.Task[None] = asyncio.create_task(elector.hold())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class TestOneAfterTheOther:
    def test_a_leader_that_dies_is_followed_when_its_lease_is_over(
        self, control_plane: ControlPlane
    ) -> None:
        async def main() -> None:
            async with (
                _candidate(control_plane, "first") as first,
                _candidate(control_plane, "second") as second,
            ):
                await first.acquire()
                waiting = asyncio.create_task(second.acquire())
                async with _holding(first):
                    await asyncio.sleep(1.2 * LEASE_S)
                    assert first.may_act()
                    assert not waiting.done(), "a lease that is renewed does not expire"
                before = await asyncio.to_thread(_spec, control_plane)
                await asyncio.wait_for(waiting, LEASE_S + 2.2 * RETRY_S + SLACK_S)
                assert second.may_act()
                assert not first.may_act()
            after = _spec(control_plane)
            assert _moment(after["acquireTime"]) - _moment(before["renewTime"]) >= LEASE_S
            assert after["holderIdentity"] == "second"
            assert after["leaseTransitions"] == before["leaseTransitions"] + 1 == 1
            assert after["leaseDurationSeconds"] == LEASE_S

        asyncio.run(main())

    def test_a_leader_that_releases_is_followed_at_once(self, control_plane: ControlPlane) -> None:
        long = replace(
            CONFIG,
            lease_duration=Duration.of_seconds(60),
            renew_deadline=Duration.of_seconds(40),
        )

        async def main() -> None:
            async with (
                _candidate(control_plane, "first", long) as first,
                _candidate(control_plane, "second", long) as second,
            ):
                await first.acquire()
                waiting = asyncio.create_task(second.acquire())
                async with _holding(first):
                    await asyncio.sleep(2 * RETRY_S)
                assert first.may_act(), "the lease is still ours"
                await first.release()
                assert not first.may_act()
                await asyncio.wait_for(waiting, 2.2 * RETRY_S + SLACK_S)
                assert second.may_act()

        asyncio.run(main())
        assert _spec(control_plane)["leaseTransitions"] == 1

    def test_what_a_release_leaves_behind(self, control_plane: ControlPlane) -> None:
        async def main() -> None:
            async with _candidate(control_plane, "us") as elector:
                await elector.acquire()
                await elector.release()

        asyncio.run(main())
        spec = _spec(control_plane)
        assert spec["acquireTime"] == spec["renewTime"]
        # The API server leaves out no empty string that was sent.
        assert spec["holderIdentity"] == ""
        assert (spec["leaseDurationSeconds"], spec["leaseTransitions"]) == (1, 0)

    def test_of_many_that_come_together_one_leads(self, control_plane: ControlPlane) -> None:
        async def main() -> None:
            async with contextlib.AsyncExitStack() as stack:
                many = [
                    await stack.enter_async_context(_candidate(control_plane, f"c{number}"))
                    for number in range(8)
                ]
                tasks = [asyncio.create_task(each.acquire()) for each in many]
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                (leader,) = [each for each in many if each.may_act()]
                async with _holding(leader):
                    await asyncio.sleep(LEASE_S)
                    assert [each for each in many if each.may_act()] == [leader]
                    assert {each.leader for each in many} == {leader.identity}
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

        asyncio.run(main())


class TestOtherWriters:
    def test_what_others_keep_in_the_lease_survives(self, control_plane: ControlPlane) -> None:
        control_plane.request(
            "POST",
            LEASES,
            {
                "metadata": {
                    "name": "kube-scheduler",
                    "labels": {"team": "a"},
                    "annotations": {"note": "b"},
                    "finalizers": ["example.com/keep"],
                },
            },
        )

        async def main() -> None:
            async with _candidate(control_plane, "us") as elector:
                await elector.acquire()
                async with _holding(elector):
                    await asyncio.sleep(3 * RETRY_S)
                await elector.release()

        asyncio.run(main())
        lease = control_plane.request("GET", LEASE)
        meta = lease["metadata"]
        removed = {"metadata": {"finalizers": None}}
        control_plane.request("PATCH", LEASE, removed, content_type=MERGE_PATCH)
        assert meta["labels"] == {"team": "a"}
        assert meta["annotations"] == {"note": "b"}
        assert meta["finalizers"] == ["example.com/keep"]
        assert lease["spec"]["leaseTransitions"] == 1

    def test_a_leader_holds_on_while_others_write(self, control_plane: ControlPlane) -> None:
        """Every write of another makes the leader's cached version stale."""
        slow_paths = 0

        class Count:
            def on_leading(self, leading: bool) -> None:
                pass

            def on_slow_path(self) -> None:
                nonlocal slow_paths
                slow_paths += 1

        async def main() -> int:
            writes = 0
            async with _candidate(control_plane, "us", observer=Count()) as elector:
                await elector.acquire()
                async with _holding(elector) as holding:
                    end = time.monotonic() + LEASE_S
                    while time.monotonic() < end:
                        writes += 1
                        patch = {"metadata": {"annotations": {"count": str(writes)}}}
                        await asyncio.to_thread(
                            control_plane.request,
                            "PATCH",
                            LEASE,
                            patch,
                            content_type=MERGE_PATCH,
                        )
                        await asyncio.sleep(0.02)
                        assert elector.may_act()
                    assert not holding.done()
            return writes

        writes = asyncio.run(main())
        lease = control_plane.request("GET", LEASE)
        assert slow_paths > 3
        assert lease["metadata"]["annotations"] == {"count": str(writes)}
        assert (lease["spec"]["holderIdentity"], lease["spec"]["leaseTransitions"]) == ("us", 0)

    def test_a_lease_that_was_deleted_is_made_again(self, control_plane: ControlPlane) -> None:
        async def main() -> None:
            async with _candidate(control_plane, "us") as elector:
                await elector.acquire()
                async with _holding(elector) as holding:
                    await asyncio.to_thread(control_plane.request, "DELETE", LEASE)
                    await asyncio.to_thread(until, lambda: _holder(control_plane) == "us")
                    assert not holding.done()
                    assert elector.may_act()

        asyncio.run(main())
        assert _spec(control_plane)["holderIdentity"] == "us"

    def test_a_leader_gives_way_to_whoever_took_its_lease(
        self, control_plane: ControlPlane
    ) -> None:
        async def main() -> None:
            async with _candidate(control_plane, "us") as elector:
                await elector.acquire()
                async with _holding(elector) as holding:
                    taken = {"spec": {"holderIdentity": "other"}}
                    await asyncio.to_thread(
                        control_plane.request, "PATCH", LEASE, taken, content_type=MERGE_PATCH
                    )
                    with pytest.raises(LeadershipLostError, match="other holds it"):
                        await asyncio.wait_for(holding, RETRY_S + SLACK_S)
                assert not elector.may_act()
                await elector.release()

        asyncio.run(main())
        assert _spec(control_plane)["holderIdentity"] == "other"


class TestRights:
    def test_events_are_recorded_about_the_lease(self, control_plane: ControlPlane) -> None:
        identity = make_identity()

        async def main() -> None:
            async with ApiClient(kubeconfig.load(control_plane.scheduler_kubeconfig)) as client:
                recorder = EventRecorder(
                    client, controller="default-scheduler", instance="", core_v1=True
                )
                recording = asyncio.create_task(recorder.run())
                elector = LeaderElector(client, CONFIG, identity=identity, events=recorder)
                await elector.acquire()
                await elector.release()
                assert await recorder.flush(10)
                recording.cancel()
                await asyncio.gather(recording, return_exceptions=True)

        asyncio.run(main())
        uid = control_plane.request("GET", LEASE)["metadata"]["uid"]
        selector = f"involvedObject.uid={uid},reason=LeaderElection"
        events = control_plane.request("GET", f"{EVENTS}?fieldSelector={selector}")["items"]
        assert sorted(each["message"] for each in events) == [
            f"{identity} became leader",
            f"{identity} stopped leading",
        ]
        assert {each["involvedObject"]["kind"] for each in events} == {"Lease"}
        assert {each["source"]["component"] for each in events} == {"default-scheduler"}

    def test_a_lease_that_the_scheduler_may_not_read_is_named(
        self, control_plane: ControlPlane, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def main() -> None:
            forbidden = replace(CONFIG, resource_namespace="default", resource_name="other")
            async with _candidate(control_plane, "us", forbidden) as elector:
                acquiring = asyncio.create_task(elector.acquire())
                await asyncio.to_thread(until, complaints)
                # However often it is tried, it is told once.
                await asyncio.sleep(3 * RETRY_S)
                assert not acquiring.done()
                assert not elector.may_act()
                acquiring.cancel()
                await asyncio.gather(acquiring, return_exceptions=True)

        def complaints() -> list[logging.LogRecord]:
            return [each for each in caplog.records if each.levelno >= logging.ERROR]

        asyncio.run(main())
        (record,) = complaints()
        assert record.getMessage() == "Error retrieving lease lock"
        assert vars(record)[FIELDS] == {"lock": "default/other"}
        assert 'leases.coordination.k8s.io "other" is forbidden' in vars(record)[ERR]


class TestStuckLeaders:
    def test_a_leader_whose_loop_waits_for_ever_makes_room(
        self, control_plane: ControlPlane
    ) -> None:
        async def main() -> None:
            progress = LoopProgress(RealClock(), limit_s=0.5)
            async with (
                _candidate(control_plane, "stuck", is_progressing=progress.is_progressing) as stuck,
                _candidate(control_plane, "other") as other,
            ):
                await stuck.acquire()
                async with _holding(stuck) as holding:
                    for _ in range(10):  # a loop that turns
                        progress.beat()
                        await asyncio.sleep(0.1)
                    waiting = asyncio.create_task(other.acquire())
                    # ... and one that does not any more
                    with pytest.raises(LeadershipLostError, match="makes no progress"):
                        await asyncio.wait_for(holding, 0.5 + RETRY_S + DEADLINE_S + SLACK_S)
                    assert not stuck.may_act()
                    await asyncio.wait_for(waiting, LEASE_S + 2.2 * RETRY_S + SLACK_S)
                    assert other.may_act()

        asyncio.run(main())

    def test_a_leader_whose_event_loop_was_blocked_does_not_act(
        self, control_plane: ControlPlane
    ) -> None:
        """It wakes up believing to be the leader, with work that is ready to go."""
        blocked = BlockedLeader(control_plane)
        blocked.start()
        acted: list[float] = []

        async def main() -> None:
            async with _candidate(control_plane, "other") as other:
                assert await asyncio.to_thread(blocked.leads.wait, 30)
                waiting = asyncio.create_task(other.acquire())
                await asyncio.sleep(RETRY_S)
                await asyncio.to_thread(until, lambda: blocked.acted)
                blocked.block_now.set()
                await asyncio.wait_for(waiting, LEASE_S + 2.2 * RETRY_S + SLACK_S)
                async with _holding(other):
                    acted.append(time.monotonic())
                    assert other.may_act()
                    blocked.unblock.set()
                    await asyncio.to_thread(blocked.join, 30)
                    assert other.may_act()

        try:
            asyncio.run(main())
        finally:
            blocked.unblock.set()
            blocked.block_now.set()
            blocked.join(30)
        assert not blocked.is_alive()
        assert blocked.error is not None, "it was told"
        assert blocked.acted, "it was at work before"
        assert max(blocked.acted) < min(acted)
        assert blocked.turns_after > 0, "it had turns in which it could have acted"
        spec = _spec(control_plane)
        assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("other", 1)


class BlockedLeader(threading.Thread):
    """A leader with an event loop of its own, which synchronous code blocks for a while."""

    def __init__(self, plane: ControlPlane) -> None:
        super().__init__(name="blocked-leader")
        self._plane = plane
        self.leads = threading.Event()
        self.block_now = threading.Event()
        self.unblock = threading.Event()
        #: when it did what only a leader may do
        self.acted: list[float] = []
        #: turns of its work after it was blocked
        self.turns_after = 0
        self.error: LeadershipLostError | None = None

    def run(self) -> None:
        asyncio.run(self._lead())

    async def _lead(self) -> None:
        async with _candidate(self._plane, "blocked") as elector:
            await elector.acquire()
            work = asyncio.create_task(self._work(elector))
            self.leads.set()
            try:
                await elector.hold()
            except LeadershipLostError as lost:
                self.error = lost
            # What is ready to run gets its turn even after the loss.
            await asyncio.sleep(0.1)
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    async def _work(self, elector: LeaderElector) -> None:
        was_blocked = False
        while True:
            if self.block_now.is_set() and not was_blocked:
                was_blocked = True
                self.unblock.wait(60)  # the whole event loop waits
            self.turns_after += was_blocked
            if elector.may_act():
                self.acted.append(time.monotonic())
            await asyncio.sleep(0.01)


class TestWithKubeScheduler:
    """The real one and ours are candidates for the same Lease."""

    ELECTION: JsonObject = {  # noqa: RUF012 (nobody changes it)
        "leaderElection": {
            "leaderElect": True,
            "leaseDuration": f"{LEASE_S}s",
            "renewDeadline": f"{DEADLINE_S}s",
            "retryPeriod": f"{RETRY_S}s",
        }
    }

    def test_ours_waits_for_it_and_follows_it(self, control_plane: ControlPlane) -> None:
        async def main() -> None:
            with control_plane.run_kube_scheduler(self.ELECTION) as theirs:
                await asyncio.to_thread(until, lambda: _holder(control_plane))
                async with _candidate(control_plane, "ours") as ours:
                    waiting = asyncio.create_task(ours.acquire())
                    await asyncio.sleep(1.2 * LEASE_S)
                    assert not waiting.done()
                    assert ours.leader.count("_") == 1
                    await asyncio.to_thread(theirs.end, grace=10)
                    await asyncio.wait_for(waiting, LEASE_S + SLACK_S)
                    assert ours.may_act()

        asyncio.run(main())
        assert _spec(control_plane)["leaseTransitions"] == 1

    def test_it_waits_for_ours_and_follows_it(self, control_plane: ControlPlane) -> None:
        async def main() -> None:
            async with _candidate(control_plane, "ours") as ours:
                await ours.acquire()
                with control_plane.run_kube_scheduler(self.ELECTION) as theirs:
                    async with _holding(ours):
                        tries = "Attempting to acquire leader lease"
                        await asyncio.to_thread(until, lambda: tries in theirs.log.read_text())
                        await asyncio.sleep(1.2 * LEASE_S)
                        assert ours.may_act()
                        assert _holder(control_plane) == "ours"
                    await ours.release()
                    await asyncio.to_thread(
                        until, lambda: _holder(control_plane) not in ("", "ours")
                    )

        asyncio.run(main())
        assert _spec(control_plane)["leaseTransitions"] == 1


def _holder(plane: ControlPlane) -> str:
    try:
        return str(_spec(plane)["holderIdentity"])
    except PlaneApiError:
        return ""
