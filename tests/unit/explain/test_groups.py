"""A group that waits: why, how much of it fits where, and what would place it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kubesched.api.core import Pod, PodSchedulingGate
from kubesched.errors import ObjectError, UsageError
from kubesched.explain.explaining import explain
from kubesched.explain.groups import explain_group, find_group
from kubesched.explain.report import GroupExplanation
from kubesched.snapshot.world import World
from tests.support.device_objects import (
    allocated,
    claim,
    claiming,
    device,
    device_class,
    request,
    result,
    slice_of,
)
from tests.support.group_objects import (
    COMPOSITE,
    GROUPS,
    TOPOLOGY,
    composite,
    member,
    pod_group,
)
from tests.support.objects import node, pod
from tests.support.worlds import world_of

RACK = "rack"


def _members(count: int, **options: Any) -> list[Pod]:
    return [member(f"m{number}", **options) for number in range(count)]


def _explained(world: World) -> GroupExplanation:
    said = explain_group(world, find_group(world, "default", "g"))
    world.cluster.validate()
    return said


def _rack(name: str, count: int, cpu: str = "2") -> list[Any]:
    return [node(f"{name}-{number}", cpu=cpu, labels={RACK: name}) for number in range(count)]


def test_it_is_said_how_many_fit_and_what_the_others_lack() -> None:
    world = world_of(node("n1", cpu="3"), pod_group(gang=4), *_members(4, cpu="1"), gates=GROUPS)

    said = _explained(world)

    assert said.outcome == "Unschedulable"
    assert said.text == "3 of 4 fit; the 4th lacks cpu"
    assert "minCount (4) cannot be satisfied: 3 scheduled, 0 remaining" in said.message
    assert (said.policy, said.min_count, said.members, said.placed) == ("gang", 4, 4, 0)
    assert [each.node for each in said.pods] == ["n1", "n1", "n1", ""]
    titles = [each.title for each in said.changes]
    assert "minCount 3 instead of 4" in titles
    fewer = said.changes[titles.index("minCount 3 instead of 4")]
    assert fewer.commands[0].endswith(
        """--type=merge -p '{"spec":{"schedulingPolicy":{"gang":{"minCount":3}}}}'"""
    )
    assert "one more node like n1 (3 cpu, 8Gi)" in titles
    assert "request 0.75 cpu instead of 1 (4 members)" not in titles  # 3 of them left no room


def test_every_placement_is_told_apart_the_best_first() -> None:
    world = world_of(
        *_rack("rack-6", 1),
        *_rack("rack-7", 2),
        pod("in-the-way", node="rack-7-0", cpu="1"),
        pod_group(gang=4, topology=RACK),
        *_members(4, cpu="1"),
        gates=TOPOLOGY,
    )

    said = _explained(world)

    assert said.text == "3 of 4 fit in rack-7; the 4th lacks cpu"
    assert [(each.name, each.nodes, each.fits, each.feasible) for each in said.placements] == [
        ("rack-7", 2, 3, False),
        ("rack-6", 1, 2, False),
    ]
    titles = {each.kind: each.title for each in said.changes}
    assert titles["evict"] == "free rack-7 by evicting default/in-the-way (priority 0)"
    assert titles["topology"] == f"drop the topology constraint on {RACK}"
    [evicting] = [each for each in said.changes if each.kind == "evict"]
    assert evicting.commands == ("kubectl -n default delete pod in-the-way",)


def test_a_group_that_fits_is_told_its_nodes() -> None:
    said = _explained(world_of(node("n1"), pod_group(gang=2), *_members(2, cpu="1"), gates=GROUPS))

    assert (said.outcome, said.message, said.text) == ("Schedulable", "", "2 of 2 fit")
    assert [each.node for each in said.pods] == ["n1", "n1"]
    assert said.changes == ()
    assert said.preemption is None


def test_missing_members_are_counted_and_more_of_them_tried() -> None:
    world = world_of(node("n1"), pod_group(gang=3), *_members(2, cpu="1"), gates=GROUPS)

    said = _explained(world)

    assert said.outcome == "Gated"
    assert said.message == "waiting for minCount pods from a gang to appear in scheduling queue"
    assert said.text == "not tried: 2 of the 3 members that it needs are there"
    assert [each.title for each in said.changes] == ["create 1 more pod: 2 of 3 are there"]


def test_more_members_are_not_proposed_where_they_would_not_fit() -> None:
    world = world_of(node("n1", cpu="2"), pod_group(gang=3), *_members(2, cpu="1"), gates=GROUPS)

    assert _explained(world).changes == ()


def test_a_group_without_members_says_so() -> None:
    said = _explained(world_of(node("n1"), pod_group(gang=3), gates=GROUPS))

    assert (said.outcome, said.members) == ("Gated", 0)
    assert said.text == "0 of the 3 members that it needs are there: it has no members yet"


def test_gates_of_members_are_named() -> None:
    gated, other = _members(2)
    gates = (PodSchedulingGate(name="example.com/quota"),)
    gated = replace(gated, spec=replace(gated.spec, scheduling_gates=gates))

    said = _explained(world_of(node("n1"), pod_group(gang=2), gated, other, gates=GROUPS))

    assert said.outcome == "Gated"
    assert [each.title for each in said.changes] == [
        "remove scheduling gate example.com/quota of 1 pod"
    ]


def test_preemption_for_the_group_is_told() -> None:
    low = pod("low", node="n1", cpu="3")
    high = _members(2, cpu="2", priority=10)

    said = _explained(
        world_of(node("n1"), low, pod_group(gang=2, priority=10), *high, gates=GROUPS)
    )

    assert said.preemption is not None
    assert (said.preemption.node, said.preemption.victims[0].pod) == ("n1", "default/low")


def test_members_that_have_nodes_count_and_are_never_evicted() -> None:
    there = [member(f"there-{number}", node="n1", cpu="2") for number in range(2)]

    said = _explained(
        world_of(node("n1"), *there, pod_group(gang=3), *_members(1, cpu="2"), gates=GROUPS)
    )

    assert said.text == "2 of 3 fit; the 3rd lacks cpu"
    assert not [each for each in said.changes if each.kind == "evict"]
    assert [each.placed for each in said.pods] == [True, True, False]


def test_reasons_that_differ_from_node_to_node_are_listed() -> None:
    tainted = node("n2", taints=["dedicated=team:NoSchedule"])
    world = world_of(
        node("n1", cpu="1"), tainted, pod_group(gang=3), *_members(3, cpu="1"), gates=GROUPS
    )

    said = _explained(world)

    assert said.text == (
        "1 of 3 fit; the other 2 not: 1 Insufficient cpu, 1 node(s) had untolerated taint(s)"
    )


def test_users_of_devices_are_evicted_for_a_gang_that_claims_them() -> None:
    members = [claiming(member(f"m{number}"), f"c{number}") for number in range(2)]
    user = claiming(pod("user", node="n1"), "c-user")
    taken = allocated(claim("c-user", request()), result("g0"), users=[user.metadata.uid])

    said = _explained(
        world_of(
            node("n1"),
            device_class(),
            slice_of("s", device("g0"), device("g1"), node="n1"),
            *(claim(f"c{number}", request()) for number in range(2)),
            user,
            taken,
            pod_group(gang=2),
            *members,
            gates=GROUPS,
        )
    )

    assert said.text == "1 of 2 fit; the 2nd not: cannot allocate all claims"
    assert "evict default/user (priority 0)" in [each.title for each in said.changes]


def test_a_disagreement_is_an_error() -> None:
    said = _explained(
        world_of(node("n1"), pod_group(gang=1, priority=5), *_members(1), gates=GROUPS)
    )

    assert said.outcome == "Error"
    assert said.text.startswith("all pods in a single pod group should have the same priority")


def test_a_group_is_tried_with_the_groups_that_it_is_part_of() -> None:
    said = _explained(
        world_of(
            node("n1", cpu="1"),
            composite(gang=2),
            pod_group(parent="top"),
            pod_group("other", parent="top"),
            *_members(1, cpu="1"),
            member("o", group="other", cpu="1"),
            gates=COMPOSITE,
        )
    )

    assert said.part_of == "default/top"
    assert said.outcome == "Unschedulable"


def test_a_pod_is_told_what_becomes_of_its_group() -> None:
    members = _members(2, cpu="1")
    world = world_of(node("n1", cpu="1"), pod_group(gang=2), *members, gates=GROUPS)

    said = explain(world, members[0])

    assert said.outcome == "Unschedulable"
    assert said.message.startswith("pod group is unschedulable")
    assert said.group is not None
    assert said.group.text == "1 of 2 fit; the 2nd lacks cpu"
    assert said.changes == said.group.changes
    fits = explain(world_of(node("n1"), pod_group(gang=2), *members, gates=GROUPS), members[0])
    assert (fits.outcome, fits.message) == ("Schedulable", "")


def test_a_pod_not_there_yet_counts_as_a_member() -> None:
    first, second = _members(2, cpu="1")
    world = world_of(node("n1"), pod_group(gang=2), first, gates=GROUPS)

    said = explain(world, second)

    assert said.group is not None
    assert (said.outcome, said.group.members) == ("Schedulable", 2)
    assert len(world.cluster.groups.objects) == 1


def test_without_the_gate_it_is_said_that_groups_do_not_count() -> None:
    members = _members(1)
    world = world_of(node("n1"), pod_group(gang=2), *members)

    said = explain(world, members[0])

    assert said.outcome == "Schedulable"
    assert "the feature gate GenericWorkload is off" in said.notes[-1]
    with pytest.raises(UsageError, match="GenericWorkload=true"):
        _explained(world)


def test_similar_names_are_proposed_for_a_group_that_is_not_there() -> None:
    world = world_of(pod_group("train"), gates=GROUPS)

    with pytest.raises(ObjectError, match=r"podgroup default/trein not found; there is default/tr"):
        find_group(world, "default", "trein")
