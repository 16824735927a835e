"""Gangs of scheduler-plugins: what they need, and what becomes of those that do not get it."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.api.core import Pod
from kubesched.api.scheduling import CoscheduledGroup
from kubesched.clock import VirtualClock
from kubesched.cluster.group_forest import GroupForest
from kubesched.cluster.pod_info import PodInfo
from kubesched.config.profiles import PluginConfig, Profile
from kubesched.errors import ConfigError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.group import GroupInfo, Progress
from kubesched.framework.status import Code, Status
from kubesched.framework.waiting import WaitingPod, WaitingPods
from kubesched.plugins.coscheduling import Coscheduling, CoschedulingArgs, _arguments
from kubesched.queue.queued_group import QueuedGroup
from kubesched.queue.queued_pod import QueuedPod
from tests.support.group_objects import coscheduled, coscheduled_key, labelled, member
from tests.support.objects import node, pod
from tests.support.scheduling import cluster_of


class Lab:
    """A cluster with the plugin."""

    def __init__(self, *objects: Any, args: CoschedulingArgs | None = None) -> None:
        self.cluster = cluster_of(*(each for each in objects if not _is_group(each)))
        self.cluster.group_by_label("default-scheduler")
        for each in filter(_is_group, objects):
            self.cluster.groups.coscheduled.put(each)
        self.clock, self.waiting = VirtualClock(), WaitingPods()
        args = args or CoschedulingArgs()
        self.plugin = Coscheduling(args, self.cluster, self.waiting, self.clock)
        self.forest = GroupForest(self.cluster.groups)

    def pending(self, *pods: Pod) -> list[PodInfo]:
        infos = [self.cluster.compiler.pending(each) for each in pods]
        for info in infos:
            self.cluster.groups.put_pending(info)
        return infos

    def info(self, *pods: Pod) -> GroupInfo:
        group = self.forest.get(coscheduled_key())
        assert group is not None
        return GroupInfo(coscheduled_key(), group, tuple(self.pending(*pods)))

    def feasible(self, info: GroupInfo, remaining: int, scheduled: int) -> Status:
        progress = Progress(remaining, scheduled)
        return self.plugin.placement_feasible(CycleState(), info, progress)


def _is_group(each: object) -> bool:
    return isinstance(each, CoscheduledGroup)


# --- the queue ----------------------------------------------------------------------------------


def test_pods_are_kept_out_until_there_are_enough() -> None:
    lab = Lab(coscheduled(members=2))
    (first,) = lab.pending(labelled("a"))
    status = lab.plugin.pre_enqueue(first)
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.message == (
        "pre-filter pod a cannot find enough sibling pods, current pods number: 1, "
        "minMember of group: 2"
    )

    (second,) = lab.pending(labelled("b"))

    assert lab.plugin.pre_enqueue(first).ok
    assert lab.plugin.pre_enqueue(second).ok


def test_pods_of_no_group_and_of_other_kinds_of_groups_are_let_in() -> None:
    lab = Lab()
    for each in lab.pending(pod("p"), member("m")):
        assert lab.plugin.pre_enqueue(each).ok
        assert lab.plugin.permit(CycleState(), each, "n1")[0].ok


def test_the_queue_is_ordered_by_priority_and_the_age_of_the_group() -> None:
    lab = Lab(coscheduled(created="1970-01-01T00:00:10Z"))
    lab.pending(labelled("a", priority=5))
    group = QueuedGroup(coscheduled_key(), lab.forest, queued_at=30.0)
    single = QueuedPod(lab.pending(pod("p", priority=5))[0], queued_at=20.0)

    assert lab.plugin.sort_key(group) == (-5, 10.0)
    assert lab.plugin.sort_key(single) == (-5, 20.0)
    group.unschedulable_count = 1
    assert lab.plugin.sort_key(group) == (-5, 30.0)


# --- placing ------------------------------------------------------------------------------------


def test_enough_members_must_be_placed() -> None:
    lab = Lab(coscheduled(members=2))
    info = lab.info(labelled("a"), labelled("b"), labelled("c"))
    waits, enough, hopeless = (lab.feasible(info, *each) for each in ((2, 1), (0, 2), (0, 1)))
    assert (waits.code, waits.message) == (
        Code.WAIT,
        "minMember (2) is not yet satisfied: 1 scheduled, 2 remaining",
    )
    assert enough.ok
    assert hopeless.message == "minMember (2) cannot be satisfied: 1 scheduled, 0 remaining"


def test_groups_of_other_kinds_are_left_to_their_plugin() -> None:
    lab = Lab(coscheduled(members=2))
    info = lab.info(labelled("a"))
    other = GroupInfo(info.key._replace(kind=type(info.key.kind)("podgroup")), info.group, ())
    assert lab.feasible(other, 0, 0).ok


@pytest.mark.parametrize(
    ("resources", "missing"),
    [
        ({"cpu": "6"}, ""),
        ({"cpu": "7"}, "resource gap: cpu: 1000m"),
        ({"example.com/gpu": 1}, "resource gap: example.com/gpu: 1"),
        ({"cpu": "x"}, "minResources of podGroup default/g: "),
    ],
)
def test_as_much_must_be_free_as_the_group_says(resources: dict[str, Any], missing: str) -> None:
    lab = Lab(
        node("n1", cpu="4"),
        node("n2", cpu="4"),
        pod("other", node="n1", cpu="2"),
        labelled("a", node="n2", cpu="3"),  # counts as free: it is part of what is asked for
        coscheduled(members=2, min_resources=resources),
    )
    status = lab.feasible(lab.info(labelled("b")), 1, 1)
    assert status.message.startswith(missing)
    assert status.rejected is bool(missing)


def test_there_must_be_places_for_so_many_pods() -> None:
    lab = Lab(node("n1", pods=1), coscheduled(members=3, min_resources={"cpu": "1"}))
    status = lab.feasible(lab.info(*(labelled(name) for name in "abc")), 3, 0)
    assert status.message == "resource gap: pods: 2"


# --- all or none --------------------------------------------------------------------------------


def test_pods_wait_for_the_others_and_go_together() -> None:
    lab = Lab(node("n1"), coscheduled(members=2, schedule_timeout_seconds=7))
    first, second = lab.pending(labelled("a"), labelled("b"))
    lab.cluster.assume(first, "n1")
    state = CycleState()

    status, timeout_s = lab.plugin.permit(state, first, "n1")

    assert (status.code, timeout_s) == (Code.WAIT, 7.0)
    assert set(state.pods_to_activate) == {"b"}
    decided: list[Status] = []
    lab.waiting.add(WaitingPod(first, {"Coscheduling"}, decided.append))
    lab.cluster.assume(second, "n1")
    assert lab.plugin.permit(CycleState(), second, "n1")[0].ok
    assert [each.ok for each in decided] == [True]


def test_without_a_timeout_of_the_group_that_of_the_profile_counts() -> None:
    args = CoschedulingArgs(permit_waiting_time_seconds=9)
    lab = Lab(node("n1"), coscheduled(members=2), args=args)
    (first,) = lab.pending(labelled("a"))
    assert lab.plugin.permit(CycleState(), first, "n1")[1] == 9.0


def test_a_pod_whose_group_is_gone_is_rejected() -> None:
    lab = Lab(node("n1"))
    (first,) = lab.pending(labelled("a"))
    assert lab.plugin.permit(CycleState(), first, "n1")[0].message == "PodGroup not found"


def test_a_pod_that_fails_takes_those_along_that_wait_for_it() -> None:
    lab = Lab(node("n1"), coscheduled(members=3))
    first, second = lab.pending(labelled("a"), labelled("b"))
    lab.cluster.assume(first, "n1")
    decided: list[Status] = []
    lab.waiting.add(WaitingPod(first, {"Coscheduling"}, decided.append))
    within = CycleState()
    within.group = CycleState()

    lab.plugin.unreserve(within, second, "n1")  # one that was only tried
    assert decided == []
    lab.plugin.unreserve(CycleState(), second, "n1")

    assert [each.message for each in decided] == ["rejection in Unreserve"]


def test_a_group_that_failed_rests() -> None:
    lab = Lab(coscheduled(members=1), args=CoschedulingArgs(pod_group_backoff_seconds=5))
    info = lab.info(labelled("a"))

    def attempt(placements: int = 1) -> list[str]:
        state, group = CycleState(), CycleState()
        state.group = group
        progress = Progress(1, 0)
        return [
            lab.plugin.placement_feasible(state, info, progress).message for _ in range(placements)
        ]

    assert all("is not yet satisfied" in each for each in attempt(placements=2))
    lab.clock.advance(4.0)
    assert attempt() == ["podGroup default/g failed recently"]
    lab.clock.advance(1.0)
    assert "is not yet satisfied" in attempt()[0]


# --- arguments ----------------------------------------------------------------------------------


def arguments(**given: Any) -> CoschedulingArgs:
    config = PluginConfig(name="Coscheduling", args={"kind": "CoschedulingArgs", **given})
    return _arguments(Profile(scheduler_name="s", plugin_config=(config,)))


def test_arguments_are_those_of_scheduler_plugins() -> None:
    assert arguments() == CoschedulingArgs()
    given = arguments(permitWaitingTimeSeconds=3, podGroupBackoffSeconds=4)
    assert (given.permit_waiting_time_seconds, given.pod_group_backoff_seconds) == (3, 4)
    for wrong in ({"permitWaitingTimeSeconds": -1}, {"podGroupBackoff": 1}):
        with pytest.raises(ConfigError, match="args: "):
            arguments(**wrong)
