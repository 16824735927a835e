"""Several replicas on a real API server: one schedules, and another follows when it does not.

However the leader ends, or comes to a halt, what it leaves behind is taken up within the time of a
lease, and nothing is done twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kubesched.client import kubeconfig
from kubesched.client.rest import ApiClient
from tests.support.waiting import stays, until

from .control_plane import ControlPlane
from .exposition import parse
from .pod_watch import PodWatch
from .replicas import (
    LEASE_S,
    RETRY_S,
    a_lease,
    elected,
    election,
    free_port,
    holder_of,
    lease_of,
    moment,
    page,
    run_patched,
    serving,
    wait_for_another_holder,
)
from .scheduler_process import (
    SchedulerProcess,
    assert_no_node_is_overcommitted,
    configuration,
    events_of,
    node,
    node_of,
    pod,
    pods_path,
    profile,
    run_scheduler,
    wait_until_bound,
)

pytestmark = pytest.mark.slow

#: Candidates look at the lease every 1 to 2.2 retry periods.
PAUSE_S = 2.2 * RETRY_S
#: What a machine that is busy with other things may add.
SLACK_S = 5.0

NODES, PODS = 200, 5000
#: Of a pod: all pods take 94 % of the nodes' CPUs, so that one too many would not go unnoticed.
CPU = "150m"


@pytest.fixture
def lease(control_plane: ControlPlane) -> Iterator[str]:
    """The name of a lease that only this test uses."""
    with a_lease(control_plane) as name:
        yield name


@contextlib.contextmanager
def two_replicas(
    plane: ControlPlane, lease: str
) -> Iterator[tuple[SchedulerProcess, SchedulerProcess]]:
    """A leader, and one that waits."""
    config = elected(plane, lease)
    with run_scheduler(plane, config) as first:
        first.wait_until_scheduling()
        with run_scheduler(plane, config) as second:
            second.wait_for_log("New leader elected")
            yield first, second


# ---------------------------------------------------------------------- a leader is killed


def test_killed_in_the_middle_of_5000_pods(assets: Path) -> None:
    # A control plane of its own is gone faster than 5,000 pods and their events are deleted.
    with ControlPlane(assets) as plane, a_lease(plane) as lease:
        plane.create_many("/api/v1/nodes", [node(f"n{number}") for number in range(NODES)])
        with PodWatch(plane, "default") as watch, two_replicas(plane, lease) as (first, second):
            leader = holder_of(plane, lease)
            with _creating(plane, PODS):
                until(lambda: watch.bound_count > PODS // 5, every=0.005, seconds=60)
                first.kill()
                killed, left = time.monotonic(), PODS - watch.bound_count
                before = lease_of(plane, lease)
            assert before["holderIdentity"] == leader
            assert left > PODS // 2, "there was little left for the other to do"

            wait_for_another_holder(plane, lease, leader, seconds=LEASE_S + 2 * PAUSE_S + SLACK_S)
            after = lease_of(plane, lease)
            assert moment(after["acquireTime"]) - moment(before["renewTime"]) >= LEASE_S
            assert after["leaseTransitions"] == before["leaseTransitions"] + 1
            until(lambda: watch.bound_count == PODS, seconds=60)
            print(f"{left} pods left; all bound {time.monotonic() - killed:.1f} s after the kill")
            # Nobody changes their mind.
            stays(lambda: watch.failure is None, seconds=1)
            assert all(len(nodes) == 1 for nodes in watch.nodes.values())

            assert_no_node_is_overcommitted(plane)
            # A busy API server may hang up on a watch; no binding may fail, though.
            assert "Error scheduling pod" not in second.log()
            _assert_told_once(plane, "default", watch)


@contextlib.contextmanager
def _creating(plane: ControlPlane, count: int) -> Iterator[None]:
    """Create pods while the block runs; at its end they are all there."""
    body = json.dumps(pod("p", requests={"cpu": CPU})).encode()

    async def create() -> None:
        access = kubeconfig.load(plane.admin_kubeconfig)
        async with ApiClient(access, qps=0) as client, asyncio.TaskGroup() as tasks:
            at_once = asyncio.Semaphore(32)

            async def one(number: int) -> None:
                async with at_once:
                    named = body.replace(b'"name": "p"', b'"name": "p%d"' % number, 1)
                    await client.post(pods_path("default"), named)

            for number in range(count):
                tasks.create_task(one(number))

    with ThreadPoolExecutor(max_workers=1) as pool:
        created = pool.submit(asyncio.run, create())
        yield
        created.result()


def _assert_told_once(plane: ControlPlane, namespace: str, watch: PodWatch) -> None:
    """No pod has been told of two nodes, or of one twice; who was killed may not have told."""
    told: dict[str, list[str]] = {}
    for event in events_of(plane, namespace):
        if event["reason"] == "Scheduled":
            told.setdefault(event["regarding"]["name"], []).append(event["note"].split()[-1])
    assert told
    for name, nodes in told.items():
        assert nodes == watch.nodes[name], name


# ---------------------------------------------------------------------- a leader is stuck

_ASLEEP = """
import time
from kubesched.scheduler.cycle import SchedulingCycle

schedule = SchedulingCycle.schedule

def stuck(self, framework, pod, **options):
    if pod.pod.metadata.name == "poison":
        time.sleep(9)
    return schedule(self, framework, pod, **options)

SchedulingCycle.schedule = stuck
"""

_WAITING = """
import asyncio
from kubesched.scheduler import profiles
from kubesched.scheduler.scheduler import Scheduler

profiles.PROGRESS_LIMIT_S = 2.0
schedule_one = Scheduler._schedule_one

async def stuck(self, pod):
    if pod.info.pod.metadata.name == "poison":
        await asyncio.Event().wait()
    await schedule_one(self, pod)

Scheduler._schedule_one = stuck
"""


@pytest.mark.usefixtures("clean_cluster")
@pytest.mark.parametrize("how", ["the event loop is blocked", "the scheduling loop waits"])
def test_a_leader_that_is_stuck_makes_room_and_never_binds_again(
    control_plane: ControlPlane, namespace: str, lease: str, tmp_path: Path, how: str
) -> None:
    """Both replicas share a lease, but each has pods of its own: what binds them shows who acts."""
    plane, port = control_plane, free_port()
    blocked = how == "the event loop is blocked"
    code = _ASLEEP if blocked else _WAITING
    plane.create_many("/api/v1/nodes", [node("n1")])
    config = elected(plane, lease, profile("stuck"))
    with run_patched(tmp_path, code, config, *serving(plane, port)) as first:
        first.wait_until_scheduling()
        before = holder_of(plane, lease)
        with run_scheduler(plane, elected(plane, lease, profile("other"))) as second:
            second.wait_for_log("New leader elected")
            _create(plane, namespace, "fine", "stuck")
            wait_until_bound(plane, namespace, "fine")
            _create(plane, namespace, "poison", "stuck")
            _create(plane, namespace, "after-poison", "stuck")
            _create(plane, namespace, "next", "other")
            if not blocked:
                _wait_until_unhealthy(plane, port)
            wait_for_another_holder(plane, lease, before, seconds=LEASE_S + 2 * PAUSE_S + SLACK_S)
            wait_until_bound(plane, namespace, "next")

            assert first.wait_for_end(seconds=15) == 1
            assert node_of(plane, namespace, "poison") == ""
            assert node_of(plane, namespace, "after-poison") == ""
            assert "Leaderelection lost" in first.log()
            assert first.log().splitlines()[-1] == "Error: leaderelection lost"
            assert "Traceback" not in first.log()


def _create(plane: ControlPlane, namespace: str, name: str, scheduler: str) -> None:
    plane.request("POST", pods_path(namespace), pod(name, schedulerName=scheduler))


def _wait_until_unhealthy(plane: ControlPlane, port: int) -> None:
    assert page(plane, port, "/livez").code == 200

    def unhealthy() -> bool:
        reply = page(plane, port, "/livez?verbose")
        return reply.code == 500 and "[-]scheduling-loop failed" in reply.body

    until(unhealthy, seconds=10)


# ---------------------------------------------------------------------- replicas are stopped


@pytest.mark.usefixtures("clean_cluster")
def test_those_who_are_stopped_leave_nothing_to_wait_for(
    control_plane: ControlPlane, namespace: str, lease: str
) -> None:
    plane = control_plane
    # So long that whoever follows cannot have waited for its end.
    long = {**election(lease), "leaseDuration": "120s", "renewDeadline": "60s"}
    plane.create_many("/api/v1/nodes", [node("n1"), node("n2")])

    def config(*, delayed: bool) -> dict[str, object]:
        return configuration(
            plane.scheduler_kubeconfig, leaderElection=long, delayCacheUntilActive=delayed
        )

    informed_port, delayed_port = free_port(), free_port()
    with contextlib.ExitStack() as stack:

        def run(*, delayed: bool, port: int = 0) -> SchedulerProcess:
            flags = serving(plane, port) if port else ("--secure-port=0",)
            return stack.enter_context(run_scheduler(plane, config(delayed=delayed), *flags))

        leader = run(delayed=False)
        leader.wait_until_scheduling()
        holder = holder_of(plane, lease)
        informed = run(delayed=False, port=informed_port)
        delayed = run(delayed=True, port=delayed_port)
        for each in (informed, delayed):
            each.wait_for_log("New leader elected")

        # While it waits, one knows the cluster already; the other is told not to look.
        until(lambda: _known_nodes(plane, informed_port) == 2)
        # Nodes are not the last that it lists.
        until(lambda: page(plane, informed_port, "/readyz").code == 200)
        assert _known_nodes(plane, delayed_port) == 0
        assert page(plane, delayed_port, "/readyz").code == 500
        assert page(plane, delayed_port, "/livez").code == 200

        assert informed.terminate() == 0
        assert holder_of(plane, lease) == holder

        assert leader.terminate() == 0
        stopped = time.monotonic()
        wait_for_another_holder(plane, lease, holder, seconds=PAUSE_S + SLACK_S)
        print(f"followed after {time.monotonic() - stopped:.1f} s")
        plane.request("POST", pods_path(namespace), pod("next"))
        wait_until_bound(plane, namespace, "next")
        assert _known_nodes(plane, delayed_port) == 2
        assert page(plane, delayed_port, "/readyz").code == 200

        assert delayed.terminate() == 0
        assert holder_of(plane, lease) == ""


def _known_nodes(plane: ControlPlane, port: int) -> float:
    sizes = parse(page(plane, port, "/metrics").body)["scheduler_cache_size"].counts
    return sizes[(("type", "nodes"),)]
