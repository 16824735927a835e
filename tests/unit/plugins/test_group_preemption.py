"""Victims that make room for a group, and groups that are victims."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kubesched.api import names
from kubesched.api.core import Node, Pod, PodCondition
from kubesched.api.scheduling import PodGroup
from kubesched.cluster.pod_info import PodInfo
from kubesched.config.features import FeatureGates
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.group import PodGroupPostFilterResult
from kubesched.framework.status import Code
from kubesched.plugins.default_preemption import DefaultPreemption
from tests.support.group_objects import GROUPS, TOPOLOGY, ZONE, GroupLab, key, member, pod_group
from tests.support.objects import budget, must, node, pod, pod_term

POLICY = GROUPS.replace(PodGroupPreemptionPolicy=True)


def started(each: Pod, at: str) -> Pod:
    return replace(each, status=replace(each.status, start_time=at))


def preempt(lab: GroupLab, *pods: Pod) -> PodGroupPostFilterResult:
    plugin = lab.framework.plugins.instances["DefaultPreemption"]
    assert isinstance(plugin, DefaultPreemption)
    group = lab.info(key(), lab.pending(*pods))
    result = plugin.pod_group_post_filter(CycleState(), group, lab.trial(group))
    lab.cluster.validate()
    return result


def victims(lab: GroupLab) -> list[str]:
    ((_, found),) = lab.evictor.evicted_for_groups
    return found


def gang(count: int, *, cpu: str = "1") -> list[Pod]:
    return [member(f"m{n}", cpu=cpu, priority=10) for n in range(count)]


class TestVictimsOfGroups:
    def test_only_as_many_pods_are_evicted_as_there_must_be(self) -> None:
        lab = GroupLab(
            node("n1", cpu="2"),
            node("n2", cpu="2"),
            *(pod(f"low{n}", cpu="1", node=f"n{n % 2 + 1}") for n in range(4)),
            pod_group(gang=2, priority=10),
        )
        result = preempt(lab, *gang(2))
        assert result.status.ok
        assert result.status.message == (
            "pod group preemption: found a placement for podgroup, preempting 2 victims"
        )
        assert len(victims(lab)) == 2
        assert set(result.nominations) == {"m0", "m1"}

    def test_pods_of_the_same_priority_stay(self) -> None:
        lab = GroupLab(
            node("n1", cpu="1"),
            pod("same", cpu="1", node="n1", priority=10),
            pod_group(gang=1, priority=10),
        )
        result = preempt(lab, *gang(1))
        assert result.status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        assert result.status.message == (
            "pod group preemption: No preemption victims found for incoming preemptor"
        )

    def test_if_even_an_empty_cluster_is_too_small_that_is_said(self) -> None:
        lab = GroupLab(
            node("n1", cpu="1"), pod("low", cpu="1", node="n1"), pod_group(gang=2, priority=10)
        )
        assert preempt(lab, *gang(2)).status.message == (
            "pod group preemption: minCount (2) cannot be satisfied: 1 scheduled, 0 remaining"
        )
        assert lab.evictor.evicted_for_groups == []

    def test_the_most_important_pods_come_back_first(self) -> None:
        lab = GroupLab(
            node("n1", cpu="2"),
            started(pod("young", cpu="1", node="n1"), "2026-01-02T00:00:00Z"),
            started(pod("old", cpu="1", node="n1"), "2026-01-01T00:00:00Z"),
            pod_group(gang=1, priority=10),
        )
        preempt(lab, *gang(1))
        assert victims(lab) == ["young"]

    def test_pods_with_a_spent_budget_come_back_before_others(self) -> None:
        guarded = pod("guarded", cpu="1", node="n1", labels={"app": "db"})
        lab = GroupLab(
            node("n1", cpu="2"),
            started(pod("old", cpu="1", node="n1"), "2026-01-01T00:00:00Z"),
            started(guarded, "2026-01-02T00:00:00Z"),
            pod_group(gang=1, priority=10),
        )
        lab.cluster.budgets.put(budget("b", match={"app": "db"}, allowed=0))
        preempt(lab, *gang(1))
        assert victims(lab) == ["old"]

    def test_several_members_on_a_node_need_its_room_together(self) -> None:
        lab = GroupLab(
            node("n1", cpu="4"),
            *(pod(f"low{n}", cpu="1", node="n1") for n in range(4)),
            pod_group(gang=3, priority=10),
        )
        preempt(lab, *gang(3))
        assert len(victims(lab)) == 3

    def test_pods_on_other_nodes_matter_to_members_that_keep_away_from_them(self) -> None:
        """The pod that is in the way of a member may be on any node of its zone."""
        away = must(pod_term(ZONE, app="web"))
        lab = GroupLab(
            node("n1", cpu="1", zone="a"),
            node("n2", cpu="1", zone="a"),
            pod("web", cpu="500m", node="n2", labels={"app": "web"}),
            pod("other", cpu="500m", node="n2"),
            pod_group(gang=1, priority=10),
        )
        preempt(lab, member("m0", cpu="1", priority=10, away_from=away, node_selector={ZONE: "a"}))
        assert victims(lab)[0] == "web"

    def test_a_group_with_placements_may_preempt(self) -> None:
        lab = GroupLab(
            node("n1", cpu="2", zone="a"),
            node("n2", cpu="1", zone="b"),
            pod("low", cpu="2", node="n1"),
            pod_group(gang=2, priority=10, topology=ZONE),
            gates=TOPOLOGY,
        )
        result = preempt(lab, *gang(2))
        assert victims(lab) == ["low"]
        assert dict(result.nominations) == {"m0": "n1", "m1": "n1"}


class TestGroupsAsVictims:
    def test_a_group_that_goes_as_a_whole_is_one_victim_on_all_its_nodes(self) -> None:
        lab = GroupLab(
            node("n1", cpu="1"),
            node("n2", cpu="1"),
            member("x", "old", cpu="1", node="n1"),
            member("y", "old", cpu="1", node="n2"),
            pod_group("old", all_or_none=True),
            pod_group(gang=1, priority=10),
        )
        preempt(lab, *gang(1))
        assert sorted(victims(lab)) == ["x", "y"]

    def test_of_any_other_group_single_pods_go(self) -> None:
        lab = GroupLab(
            node("n1", cpu="1"),
            node("n2", cpu="1"),
            member("x", "old", cpu="1", node="n1"),
            member("y", "old", cpu="1", node="n2"),
            pod_group("old"),
            pod_group(gang=1, priority=10),
        )
        preempt(lab, *gang(1))
        assert len(victims(lab)) == 1

    def test_disrupted_groups_count_for_groups_and_not_for_single_pods(self) -> None:
        """As kube-scheduler counts them."""
        lab = GroupLab(
            node("n1", cpu="1"),
            member("x", "old", cpu="1", node="n1"),
            pod_group("old", all_or_none=True),
            pod_group(gang=1, priority=10),
        )
        plugin = lab.framework.plugins.instances["DefaultPreemption"]
        assert isinstance(plugin, DefaultPreemption)
        disruptions = plugin._metrics.preemption_workload_disruptions

        def counts() -> list[int]:
            return [disruptions.labels(kind).cumulative()[-1] for kind in ("podgroup", "pod")]

        info, state = lab.cluster.compiler.pending(pod("high", cpu="1", priority=5)), CycleState()
        diagnosis = lab.framework.evaluator.filter(state, info)
        assert isinstance(diagnosis, Diagnosis)
        by_groups, by_pods = counts()
        assert lab.framework.post_filter(state, info, diagnosis).nominated_node == "n1"
        assert counts() == [by_groups, by_pods]
        preempt(lab, *gang(1))
        assert counts() == [by_groups + 1, by_pods]

    def test_the_priority_of_a_member_is_its_group_s(self) -> None:
        lab = GroupLab(
            node("n1", cpu="1"),
            member("x", "old", cpu="1", node="n1", priority=1),
            pod_group("old", priority=10),
            pod_group(gang=1, priority=10),
        )
        assert not preempt(lab, *gang(1)).status.ok

    def test_groups_come_back_before_single_pods(self) -> None:
        lab = GroupLab(
            node("n1", cpu="2"),
            pod("single", cpu="1", node="n1"),
            member("x", "old", cpu="1", node="n1"),
            pod_group("old"),
            pod_group(gang=1, priority=10),
        )
        preempt(lab, *gang(1))
        assert victims(lab) == ["single"]


class TestEligibility:
    def full(self, *more: Node | Pod | PodGroup, gates: FeatureGates = GROUPS) -> GroupLab:
        return GroupLab(node("n1", cpu="1"), pod("low", cpu="1", node="n1"), *more, gates=gates)

    def test_a_member_that_never_preempts_speaks_for_all(self) -> None:
        (one,) = gang(1)
        never = replace(one, spec=replace(one.spec, preemption_policy="Never"))
        result = preempt(self.full(pod_group(gang=1, priority=10)), never)
        assert result.status.code is Code.UNSCHEDULABLE
        assert result.status.message == (
            "pod group preemption: not eligible due to preemptionPolicy=Never."
        )

    @pytest.mark.parametrize(("policy", "preempts"), [("Never", False), (None, True)])
    def test_with_the_gate_the_group_speaks_for_itself(
        self, policy: str | None, preempts: bool
    ) -> None:
        lab = self.full(pod_group(gang=1, priority=10, policy=policy), gates=POLICY)
        assert preempt(lab, *gang(1)).status.ok is preempts

    def test_nobody_else_is_evicted_while_victims_are_on_their_way_out(self) -> None:
        going = pod("going", cpu="1", node="n2")
        condition = PodCondition(
            type=names.DISRUPTION_TARGET,
            status="True",
            reason=names.REASON_PREEMPTION_BY_SCHEDULER,
        )
        going = replace(
            going,
            metadata=replace(going.metadata, deletion_timestamp="2026-01-01T00:00:00Z"),
            status=replace(going.status, conditions=(condition,)),
        )
        lab = self.full(node("n2", cpu="1"), going, pod_group(gang=1, priority=10))
        result = preempt(lab, member("m0", cpu="1", priority=10, nominated="n2"))
        assert result.status.message == (
            "pod group preemption: ongoing preemption on nominated nodes"
        )
        assert dict(result.nominations) == {"m0": "n2"}
        assert lab.evictor.evicted_for_groups == []


class TestSinglePods:
    def test_a_pod_that_preempts_one_of_a_group_evicts_all_of_it(self) -> None:
        lab = GroupLab(
            node("n1", cpu="1"),
            node("n2", cpu="1"),
            member("x", "old", cpu="1", node="n1"),
            member("y", "old", cpu="1", node="n2"),
            pod_group("old", all_or_none=True),
        )
        found = self.search(lab, pod("high", cpu="1", priority=5))
        assert {tuple(sorted(each.uid for each in victims)) for victims in found} == {("x", "y")}

    def test_a_member_of_an_important_group_is_no_victim(self) -> None:
        lab = GroupLab(
            node("n1", cpu="1"),
            member("x", "old", cpu="1", node="n1", priority=0),
            pod_group("old", priority=10),
        )
        assert self.search(lab, pod("high", cpu="1", priority=5)) == []

    def test_without_the_gate_groups_are_nothing_special(self) -> None:
        lab = GroupLab(
            node("n1", cpu="1"),
            node("n2", cpu="1"),
            member("x", "old", cpu="1", node="n1"),
            member("y", "old", cpu="1", node="n2"),
            pod_group("old", all_or_none=True, priority=10),
            gates=GROUPS.replace(GenericWorkload=False),
        )
        found = self.search(lab, pod("high", cpu="1", priority=5))
        assert sorted(len(victims) for victims in found) == [1, 1]

    def search(self, lab: GroupLab, preemptor: Pod) -> list[tuple[PodInfo, ...]]:
        plugin = lab.framework.plugins.instances["DefaultPreemption"]
        assert isinstance(plugin, DefaultPreemption)
        info, state = lab.cluster.compiler.pending(preemptor), CycleState()
        diagnosis = lab.framework.evaluator.filter(state, info)
        assert isinstance(diagnosis, Diagnosis)
        found = plugin.find(state, info, diagnosis)
        lab.cluster.validate()
        return [each.victims for each in found.candidates]
