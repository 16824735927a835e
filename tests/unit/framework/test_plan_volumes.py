"""Plugins that only reject pods with volumes are not asked about pods that have none.

But for scores: VolumeBinding scores every pod, as in kube-scheduler.
"""

from __future__ import annotations

from typing import ClassVar

import pytest

from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import (
    Filter,
    PreBind,
    PreFilter,
    PreFilterResult,
    PreScore,
    Reserve,
)
from kubesched.framework.status import SKIP, SUCCESS, Status
from kubesched.framework.verdict import ALL_PASS, Verdict
from kubesched.scheduler.cycle import SchedulingCycle
from tests.support.objects import node, pod
from tests.support.scheduling import Lab
from tests.support.storage_objects import using


class Everywhere(PreFilter, Filter, PreScore, Reserve, PreBind):
    """Notes where it is asked."""

    name = "Everywhere"
    asked: ClassVar[list[str]] = []

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> PreFilterResult:
        self.asked.append("PreFilter")
        return PreFilterResult()

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Verdict:
        self.asked.append("Filter")
        return ALL_PASS

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Status:
        self.asked.append("PreScore")
        return SUCCESS

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        self.asked.append("Reserve")
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        self.asked.append("Unreserve")

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        self.asked.append("PreBindPreFlight")
        return SUCCESS

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        return SUCCESS


class OnlyVolumes(Everywhere):
    name = "OnlyVolumes"
    asked: ClassVar[list[str]] = []
    only_with_volumes = True


class LaterOnly(Reserve):
    """Is about volumes, too, and not at PreFilter: nobody knows yet that it has nothing to do."""

    name = "LaterOnly"
    only_with_volumes = True
    asked: ClassVar[list[str]] = []

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        self.asked.append("Reserve")
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        self.asked.append("Unreserve")


#: Something must tell nodes apart, or else the first one that fits is taken.
ONLY = ["NodeResourcesFit"]
ALL = ["PreFilter", "Filter", "PreScore", "Reserve", "PreBindPreFlight", "Unreserve"]


@pytest.fixture(autouse=True)
def _fresh() -> None:
    for each in (Everywhere, OnlyVolumes, LaterOnly):
        each.asked.clear()


def go_through(lab: Lab, info: PodInfo) -> tuple[CycleState, Status]:
    """Take a pod through all points; return what PreBind plugins have to do."""
    framework = lab.framework
    state = SchedulingCycle(lab.cluster, seed=1).schedule(framework, info).state
    assert framework.reserve(state, info, "n1").ok
    status = framework.pre_bind_pre_flight(state, info, "n1")
    framework.unreserve(state, info, "n1")
    return state, status


def test_plugins_that_only_care_for_volumes_are_not_asked_about_a_pod_without() -> None:
    lab = Lab(node("n1"), node("n2"), plugins=[Everywhere, OnlyVolumes, LaterOnly], only=ONLY)
    state, status = go_through(lab, lab.pending(pod("p")))
    assert Everywhere.asked == ALL
    assert OnlyVolumes.asked == ["PreScore"]
    assert LaterOnly.asked == ["Reserve", "Unreserve"]
    assert status == SUCCESS, "one of them has something to do before the pod is bound"
    groups = lab.framework.pre_bind_groups(state)
    assert [[plugin.name for plugin in group] for group in groups] == [["Everywhere"]]


def test_about_a_pod_with_volumes_all_are_asked() -> None:
    lab = Lab(node("n1"), node("n2"), plugins=[OnlyVolumes], only=ONLY)
    _, status = go_through(lab, lab.pending(using(pod("p"), "c")))
    assert OnlyVolumes.asked == ALL
    assert status == SUCCESS


def test_where_nobody_is_asked_there_is_nothing_to_do() -> None:
    lab = Lab(node("n1"), node("n2"), plugins=[OnlyVolumes], only=ONLY)
    _, status = go_through(lab, lab.pending(pod("p")))
    assert status == SKIP
