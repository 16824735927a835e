"""Decisions about groups are compared as a whole, and devices that were written before binding."""

from __future__ import annotations

from typing import Any

from kubesched.api.core import Pod
from kubesched.config.features import FeatureGates
from kubesched.shadow.report import Agreement
from tests.support.device_objects import (
    allocated,
    claim,
    claiming,
    device,
    device_class,
    fill,
    request,
    result,
    slice_of,
)
from tests.support.group_objects import GROUPS, TOPOLOGY, key, member, pod_group
from tests.support.objects import node, pod

from .lab import ShadowLab


def _lab(
    *nodes: Any, group: Any, pods: list[Pod], gates: FeatureGates = GROUPS, before: Any = ()
) -> ShadowLab:
    lab = ShadowLab(*nodes, gates=gates)
    fill(lab.watched.cluster, group)
    lab.there(*before, *pods)
    return lab


def _members(count: int, **options: Any) -> list[Pod]:
    return [member(f"m{number}", **options) for number in range(count)]


def test_a_group_is_one_finding_whichever_nodes_its_members_get() -> None:
    pods = _members(3, cpu="1")
    lab = _lab(node("n1", cpu="2"), node("n2", cpu="2"), group=pod_group(gang=3), pods=pods)

    for each, name in zip(reversed(pods), ("n2", "n1", "n2"), strict=True):
        lab.bind(each, name)

    [found] = lab.findings
    assert (found.verdict, found.kind, found.group) == (Agreement.SAME, "Binding", "default/g")
    assert lab.not_judged == []
    assert lab.watched.cluster.groups.members(key()).placed_count == 3


def test_a_group_in_another_domain_is_told() -> None:
    pods = _members(2, cpu="2")
    nodes = [node(f"{rack}1", cpu="4", labels={"rack": rack}) for rack in "ab"]
    lab = _lab(
        *nodes,
        group=pod_group(gang=2, topology="rack"),
        pods=pods,
        gates=TOPOLOGY,
        before=[pod("there", node="a1", cpu="1")],
    )

    lab.bind(pods[0], "a1")

    [found] = lab.findings
    assert found.verdict is Agreement.OTHER_PLACEMENT
    assert found.why == "ours places the group in b, theirs in a"


def test_a_group_that_does_not_fit_in_our_eyes() -> None:
    pods = _members(3, cpu="1")
    lab = _lab(node("n1", cpu="2"), group=pod_group(gang=3), pods=pods)

    lab.bind(pods[0], "n1")

    assert lab.findings[0].verdict is Agreement.NONE_FITS
    assert "minCount (3) cannot be satisfied" in lab.findings[0].why


def test_what_is_said_of_members_is_compared_after_one_decision_about_all() -> None:
    pods = _members(2, cpu="2")
    lab = _lab(node("n1", cpu="3"), group=pod_group(gang=2), pods=pods)
    scarce = (
        "pod group is unschedulable, minCount (2) cannot be satisfied: 1 scheduled, 0 remaining, "
        "pod group preemption: No preemption victims found for incoming preemptor"
    )

    lab.refuse(pods[0], scarce)
    lab.refuse(pods[1], "0/1 nodes are available: 1 Insufficient cpu.")
    assert [each.verdict for each in lab.findings] == [Agreement.SAME_MESSAGE] * 2

    lab = _lab(node("n1", cpu="4"), group=pod_group(gang=2), pods=pods)
    lab.refuse(pods[0], scarce)
    assert lab.findings[0].verdict is Agreement.WOULD_PLACE


def test_a_group_that_is_not_known_is_not_judged() -> None:
    pods = _members(1)
    lab = ShadowLab(node("n1"), gates=GROUPS)
    lab.there(*pods)

    lab.bind(pods[0], "n1")

    assert lab.not_judged == ["the pod's group is not known yet"]


def test_devices_that_are_written_before_the_binding_do_not_decide_ours() -> None:
    lab = ShadowLab(node("n1", cpu="4"), node("n2", cpu="4"))
    wanted = claiming(pod("p", cpu="1"), "c")
    fill(
        lab.watched.cluster,
        device_class(),
        slice_of("s1", device("g"), node="n1"),
        slice_of("s2", device("g"), node="n2"),
        allocated(claim("c", request()), result("g", "n1"), users=["p"]),
    )
    lab.there(pod("there", node="n1", cpu="2"), wanted)

    lab.bind(wanted, "n1")
    lab.wait()

    # With the devices on n1 it would be the only node, and both would agree.
    assert lab.found.verdict is Agreement.LOWER_SCORE
    assert lab.found.ours.nodes == ("n2",)
    assert len(lab.watched.cluster.devices.uses) == 1
