"""GangScheduling, which rejects pods of groups until it can place them together."""

from __future__ import annotations

from msgspec.structs import replace

from kubesched.api.core import Pod, PodSchedulingGroup
from kubesched.config.features import FeatureGates
from kubesched.plugins.in_tree import IN_TREE
from tests.support.objects import node, pod
from tests.support.scheduling import Lab

GATES = FeatureGates.of({"GenericWorkload": True})


def in_group(each: Pod) -> Pod:
    group = PodSchedulingGroup(pod_group_name="training")
    return replace(each, spec=replace(each.spec, scheduling_group=group))


def test_without_the_gate_the_group_is_ignored() -> None:
    assert Lab(node("n1")).feasible(in_group(pod("p"))) == ["n1"]


def test_with_the_gate_a_pod_of_a_group_is_rejected_with_a_reason() -> None:
    lab = Lab(node("n1"), gates=GATES)
    assert lab.message(in_group(pod("p"))) == (
        '0/1 nodes are available: pod group "training": groups are not supported by this version '
        "of kubesched; without the feature gate GenericWorkload, pods are scheduled one by one."
    )
    assert lab.diagnosis(in_group(pod("p"))).unschedulable_plugins == {"GangScheduling"}
    assert lab.feasible(pod("alone")) == ["n1"]


def test_a_profile_without_the_plugin_is_no_way_around_it() -> None:
    """kube-scheduler, too, heeds groups in every profile."""
    lab = Lab(node("n1"), only=["NodeResourcesFit"], gates=GATES)
    assert lab.diagnosis(in_group(pod("p"))).unschedulable_plugins == {"GangScheduling"}


def test_it_is_asked_before_plugins_whose_reasons_would_mislead() -> None:
    lab = Lab(node("n1"), gates=GATES)
    assert lab.framework.plugins.pre_filter[0].name == "GangScheduling"


def test_configurations_may_name_it_where_kube_scheduler_has_it() -> None:
    assert (IN_TREE.points_of("GangScheduling") or set()) >= {"preEnqueue", "permit"}
