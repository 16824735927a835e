"""The check directly before a binding: what others did to the node since the decision."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import pytest
from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.resources import CPU
from kubesched.errors import ConnectionFailedError, WithdrawnError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import PreBind, Reserve
from kubesched.framework.runtime import Framework
from kubesched.framework.status import SUCCESS, Status
from kubesched.metrics.recorder import Metrics
from kubesched.scheduler.binding_check import CheckedBinder
from kubesched.scheduler.checked_state import CheckedState
from kubesched.scheduler.engine import EngineOptions
from tests.support.embedded_scheduler import Harness, scheduler
from tests.support.exposed_metrics import Exposed
from tests.support.objects import node, pod
from tests.support.scheduling import DEFAULT_GATES, Lab
from tests.support.waiting import eventually


class Bench:
    """A pod that is assumed on a node, and an API server: what it lists, and what it binds."""

    def __init__(self, decided: Pod, *, reads_live: bool = False) -> None:
        self.lab = Lab(node("n1", cpu="4"))
        self.pod = self.lab.pending(decided)
        self.lab.cluster.assume(self.pod, "n1")
        self.there: Sequence[Pod] = ()
        self.failure: Exception | None = None
        self.metrics = Metrics(DEFAULT_GATES)
        api_calls: Any = self
        self.bound: list[str] = []
        self.binder = CheckedBinder(
            self.lab.cluster,
            api_calls,
            self.metrics,
            framework_of=lambda _: self.framework,
            reads_live=reads_live,
        )
        self.framework: Framework | None = self.lab.framework

    async def pods_on(self, node_name: str) -> Sequence[Pod]:
        assert node_name == "n1"
        if self.failure is not None:
            raise self.failure
        return self.there

    async def bind(self, pod: PodInfo, node_name: str, *, still_wanted: Callable[[], bool]) -> None:
        if not still_wanted():
            raise WithdrawnError("POST: not sent, no longer wanted")
        self.bound.append(node_name)

    def refusal(self) -> str:
        """Bind; return why the pod was not, "" if it was. The cluster must be as before."""
        before = [list(pods) for pods in self.lab.cluster.table.pods]
        try:
            asyncio.run(self.binder.bind(self.pod, "n1"))
        except WithdrawnError as refused:
            assert not self.bound
            return str(refused)
        finally:
            assert [list(pods) for pods in self.lab.cluster.table.pods] == before
            assert self.lab.cluster.is_assumed(self.pod.uid)
            self.lab.cluster.validate()
        assert self.bound == ["n1"]
        return ""

    def counted(self) -> dict[str, float]:
        text = Exposed(self.metrics.render())
        name = "kubesched_binding_checks_total"
        return {labels["result"]: count for labels, count in text.series(name)}


def cached(decided: Pod) -> Bench:
    return Bench(decided)


def live(decided: Pod) -> Bench:
    return Bench(decided, reads_live=True)


def version(number: str, each: Pod) -> Pod:
    return replace(each, metadata=replace(each.metadata, resource_version=number))


def changed(reason: str) -> str:
    return f'node "n1" changed before the pod was bound: {reason}'


# --- what the watches have shown ----------------------------------------------------------------


def test_a_pod_does_not_stand_in_its_own_way() -> None:
    bench = cached(pod("ours", cpu="4", ports=(80,)))
    assert bench.refusal() == ""
    assert bench.counted() == {"fits": 1}


def test_a_pod_that_took_the_room_is_seen() -> None:
    bench = cached(pod("ours", cpu="3"))
    bench.lab.cluster.put_pod(pod("theirs", node="n1", cpu="2"))
    assert bench.refusal() == changed("Insufficient cpu")
    assert bench.counted() == {"rejected": 1}


def test_ports_are_checked() -> None:
    bench = cached(pod("ours", ports=(80,)))
    bench.lab.cluster.put_pod(pod("theirs", node="n1", ports=(80,)))
    assert bench.refusal() == changed("node(s) didn't have free ports for the requested pod ports")


@pytest.mark.parametrize(
    ("now", "reason"),
    [
        (node("n1", unschedulable=True), "node(s) were unschedulable"),
        (node("n1", taints=["a=b:NoSchedule"]), "node(s) had untolerated taint(s)"),
        (node("n1", cpu="1"), "Insufficient cpu"),
    ],
)
def test_the_node_is_checked(now: Any, reason: str) -> None:
    bench = cached(pod("ours", cpu="2"))
    bench.lab.cluster.put_node(now)
    assert bench.refusal() == changed(reason)


def test_a_node_that_was_deleted_is_rejected() -> None:
    bench = cached(pod("ours"))
    bench.lab.cluster.remove_node("n1")
    assert bench.refusal() == 'node "n1" was deleted before the pod was bound to it'


def test_a_profile_that_was_removed_binds_nothing() -> None:
    bench = cached(pod("ours"))
    bench.framework = None
    assert bench.refusal() == 'the profile "default-scheduler" was removed'


# --- what the API server lists ------------------------------------------------------------------


def test_a_pod_that_only_the_api_server_knows_is_seen() -> None:
    bench = live(pod("ours", cpu="3"))
    bench.there = [pod("theirs", node="n1", cpu="2")]
    assert bench.refusal() == changed("Insufficient cpu")


def test_pods_that_the_watch_has_shown_count_once() -> None:
    bench = live(pod("ours", cpu="2"))
    theirs = pod("theirs", node="n1", cpu="2")
    bench.lab.cluster.put_pod(theirs)
    bench.there = [theirs]
    assert bench.refusal() == ""


def test_the_newer_version_of_a_pod_counts() -> None:
    bench = live(pod("ours", cpu="2"))
    bench.lab.cluster.put_pod(version("1", pod("theirs", node="n1", cpu="1")))
    bench.there = [version("2", pod("theirs", node="n1", cpu="3"))]
    assert bench.refusal() == changed("Insufficient cpu")


def test_pods_of_ours_that_are_not_bound_yet_stay_counted() -> None:
    bench = live(pod("ours", cpu="2"))
    bench.lab.cluster.assume(bench.lab.pending(pod("second", cpu="2")), "n1")
    bench.there = [pod("theirs", node="n1", cpu="1")]
    assert bench.refusal() == changed("Insufficient cpu")


def test_pods_of_ours_that_are_bound_already_count_once() -> None:
    bench = live(pod("ours", cpu="2"))
    bench.lab.cluster.assume(bench.lab.pending(pod("second", cpu="2")), "n1")
    bench.there = [pod("second", node="n1", cpu="2"), pod("ours", node="n1", cpu="2")]
    assert bench.refusal() == ""


def test_a_pod_that_cannot_be_read_is_left_to_its_informer() -> None:
    bench = live(pod("ours", cpu="2"))
    bench.there = [pod("theirs", node="n1", cpu="plenty")]
    assert bench.refusal() == ""


def test_without_an_answer_the_pod_is_not_bound() -> None:
    bench = live(pod("ours"))
    bench.failure = ConnectionFailedError("connection refused")
    assert bench.refusal() == ('reading the pods of node "n1" before binding: connection refused')
    assert bench.counted() == {"failed": 1}


# --- in the binding cycle -----------------------------------------------------------------------


class Noted(Reserve):
    """Notes the order in which reservations are made and undone."""

    calls: ClassVar[list[str]] = []

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        self.calls.append(f"reserve {self.name}")
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        self.calls.append(f"unreserve {self.name}")


class First(Noted):
    name = "First"


class Second(Noted, PreBind):
    """Also holds the pod back before its binding, until the test lets it go."""

    name = "Second"
    go_on: ClassVar[asyncio.Event]

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        await Second.go_on.wait()
        return SUCCESS


async def take_the_room(harness: Harness) -> None:
    """Bind a pod of another scheduler to the node of a pod that is being held back."""
    await eventually(lambda: harness.app.cluster.assumed_count == 1)
    table = harness.app.cluster.table
    requests = {"cpu": f"{table.allocatable[CPU, 0]}m"}
    containers = [{"name": "c", "image": "i", "resources": {"requests": requests}}]
    where = {"schedulerName": "theirs", "nodeName": table.name_at(0)}
    harness.create_pod("theirs", containers=containers, **where)
    await eventually(lambda: harness.app.cluster.pod_count == 2)
    Second.go_on.set()


@pytest.mark.parametrize("state", [CheckedState.CACHE, CheckedState.LIVE])
def test_what_was_assumed_is_rolled_back_and_the_pod_tried_again(state: CheckedState) -> None:
    async def main() -> None:
        Second.go_on, Noted.calls[:] = asyncio.Event(), []
        options = EngineOptions(seed=1, check_before_binding=state)
        async with scheduler(First, Second, options=options) as harness:
            harness.create_pod("ours")
            await take_the_room(harness)
            await eventually(lambda: "changed before the pod was bound" in harness.message("ours"))
            assert Noted.calls[:4] == [
                "reserve First",
                "reserve Second",
                "unreserve Second",
                "unreserve First",
            ]
            assert harness.node_of("ours") == ""
            assert harness.app.engine.races.count == 1
            await harness.app.client.delete("/api/v1/namespaces/default/pods/theirs")
            await eventually(lambda: harness.node_of("ours"))

    asyncio.run(main())


def test_without_the_check_both_are_bound_and_the_race_is_counted() -> None:
    async def main() -> None:
        Second.go_on, Noted.calls[:] = asyncio.Event(), []
        async with scheduler(First, Second) as harness:
            harness.create_pod("ours")
            await take_the_room(harness)
            await eventually(lambda: harness.node_of("ours"))
            text = Exposed(harness.metrics.render())
            assert text.value("kubesched_oversubscription_races_total") == 1

    asyncio.run(main())
