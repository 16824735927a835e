"""Nominations: when the nominated pod is tried again, and which pods get the room it gives back."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kubesched.api import names
from kubesched.api.core import Pod, PodCondition
from kubesched.cluster.pod_info import PodInfo
from kubesched.queue import events
from kubesched.queue.hints import Registration
from kubesched.queue.queued_group import AttemptEnd
from kubesched.scheduler.nominations import Nominations
from tests.support.group_objects import pod_group
from tests.support.group_queueing import GroupBench
from tests.support.objects import node, pod
from tests.support.queueing import Bench as Queue
from tests.support.scheduling import cluster_of


def leaving(each: Pod, *, preempted: bool = True) -> Pod:
    """A pod that is terminating, for a preemptor or because its owner deleted it."""
    meta = replace(each.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    condition = PodCondition(
        type=names.DISRUPTION_TARGET, status="True", reason=names.REASON_PREEMPTION_BY_SCHEDULER
    )
    status = replace(each.status, conditions=(condition,) if preempted else ())
    return replace(each, metadata=meta, status=status)


class Bench:
    """Two nodes, and a queue in which every pod waits for a pod to be deleted."""

    def __init__(self, *placed: Pod) -> None:
        self.cluster = cluster_of(node("n1"), node("n2"), *placed)
        anything = Registration(events.ASSIGNED_POD_DELETE)
        self.queue = Queue(registered={"Fit": [anything]})
        #: uids of pods whose victims have still to be evicted
        self.preempting: set[str] = set()
        #: uids of victims whose deletion is not observed yet
        self.deleted: set[str] = set()
        self.nominations = Nominations(
            self.cluster,
            self.queue.queue,
            is_preempting=self.preempting.__contains__,
            is_deleted=self.deleted.__contains__,
        )

    def parked(self, name: str, priority: int = 5) -> PodInfo:
        """A pod that was tried in vain."""
        self.queue.add(name, priority=priority)
        popped = self.queue.pop()
        popped.unschedulable_plugins = {"Fit"}
        self.queue.queue.requeue(popped)
        return popped.info

    def woken(self) -> list[str]:
        return sorted(
            each.info.uid for part, each in self.queue.queue.parts() if part != "unschedulable"
        )


@pytest.mark.parametrize(
    ("there", "want"),
    [
        pytest.param([], ["p"], id="no pod is left"),
        pytest.param([leaving(pod("v", node="n1", priority=1))], [], id="another victim is"),
        pytest.param([pod("v", node="n1", priority=1)], ["p"], id="a pod that stays"),
        pytest.param(
            [leaving(pod("v", node="n1", priority=1), preempted=False)],
            ["p"],
            id="a pod that its owner deleted",
        ),
        pytest.param([leaving(pod("v", node="n1", priority=9))], ["p"], id="no victim of it"),
        pytest.param([leaving(pod("v", node="n2", priority=1))], ["p"], id="a victim elsewhere"),
    ],
)
def test_a_nominated_pod_is_tried_when_its_last_victim_is_gone(
    there: list[Pod], want: list[str]
) -> None:
    bench = Bench(*there)
    bench.nominations.nominate(bench.parked("p"), "n1")
    bench.nominations.review("n1")
    assert bench.woken() == want


def test_a_nominated_pod_is_tried_when_its_node_is_gone() -> None:
    bench = Bench(leaving(pod("v", node="n1", priority=1)))
    bench.nominations.nominate(bench.parked("p"), "n1")
    bench.cluster.remove_node("n1")
    bench.nominations.review("n1", events.NODE_DELETE)
    assert bench.woken() == ["p"]


def test_a_nominated_pod_whose_victims_have_still_to_be_evicted_goes_on_waiting() -> None:
    bench = Bench(pod("v", node="n1", priority=1))
    bench.nominations.nominate(bench.parked("p"), "n1")
    bench.preempting.add("p")
    bench.nominations.review("n1")
    assert bench.woken() == []
    bench.cluster.remove_node("n1")
    bench.nominations.review("n1", events.NODE_DELETE)
    assert bench.woken() == ["p"], "unless the node is gone"


def test_a_nominated_pod_waits_until_the_deletion_of_its_victim_is_observed() -> None:
    """The API server answers before the informer tells."""
    bench = Bench(pod("v", node="n1", priority=1))
    bench.nominations.nominate(bench.parked("p"), "n1")
    bench.deleted.add("v")
    bench.nominations.review("n1")
    assert bench.woken() == []
    bench.deleted.clear()
    bench.nominations.review("n1")
    assert bench.woken() == ["p"]


def test_pods_nominated_elsewhere_go_on_waiting() -> None:
    bench = Bench()
    bench.nominations.nominate(bench.parked("p"), "n2")
    bench.nominations.review("n1")
    assert bench.woken() == []


def test_a_nominated_pod_that_is_in_flight_is_tried_again_when_it_comes_back() -> None:
    bench = Bench()
    bench.queue.add("p", priority=5)
    popped = bench.queue.pop()
    bench.nominations.nominate(popped.info, "n1")
    bench.nominations.review("n1")
    popped.unschedulable_plugins = {"Fit"}
    bench.queue.queue.requeue(popped)
    assert bench.woken() == ["p"]


@pytest.mark.parametrize("by", ["withdrawing", "nominating elsewhere"])
def test_room_that_is_given_back_is_for_pods_that_had_to_leave_it(by: str) -> None:
    bench = Bench()
    nominated = bench.parked("p", priority=5)
    for name, priority in (("lower", 1), ("same", 5), ("higher", 9)):
        bench.parked(name, priority=priority)
    bench.nominations.nominate(nominated, "n1")
    assert bench.woken() == []
    if by == "withdrawing":
        bench.nominations.withdraw("p")
    else:
        bench.nominations.nominate(nominated, "n2")
    assert bench.woken() == ["lower", "same"]


def test_a_pod_that_takes_its_place_gives_nothing_back() -> None:
    bench = Bench()
    nominated = bench.parked("p")
    bench.parked("other", priority=1)
    bench.nominations.nominate(nominated, "n1")
    bench.nominations.nominate(nominated, "n1")
    bench.nominations.withdraw("p", placed_on="n1")
    assert bench.woken() == []
    assert bench.cluster.nominator.node_of("p") is None


def test_withdrawing_what_was_never_given_is_nothing() -> None:
    bench = Bench()
    bench.parked("other")
    bench.nominations.withdraw("p")
    assert bench.woken() == []


# --- groups ---------------------------------------------------------------------------------------


class GroupNominations:
    """A group of two that failed, backs off, and is nominated to a node for each."""

    def __init__(self, *placed: Pod) -> None:
        self.queue = GroupBench(pod_group(priority=5))
        for name in ("n1", "n2"):
            self.queue.cluster.put_node(node(name))
        for victim in placed:
            self.queue.cluster.put_pod(victim)
        self.nominations = Nominations(self.queue.cluster, self.queue.queue)
        self.queue.add("a", "b", priority=5)
        group = self.queue.pop()
        for each, name in zip(group.pods(), ("n1", "n2"), strict=True):
            self.nominations.nominate(each.info, name)
        self.queue.end(group, AttemptEnd.REJECTED)


def test_the_end_of_its_last_victim_ends_the_backoff_of_a_group() -> None:
    bench = GroupNominations()
    bench.nominations.review("n1", is_victim=True)
    assert bench.queue.counts() == {"active": 2}


def test_a_group_backs_off_while_another_victim_is_left() -> None:
    bench = GroupNominations(leaving(pod("v", node="n2", priority=1)))
    bench.nominations.review("n1", is_victim=True)
    assert bench.queue.counts() == {"backoff": 2}


def test_a_pod_that_is_no_victim_does_not_end_the_backoff_of_a_group() -> None:
    bench = GroupNominations()
    bench.nominations.review("n1")
    assert bench.queue.counts() == {"backoff": 2}
