"""Members that are placed in one sweep get the nodes that they would get one by one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.api.core import Node, Pod
from kubesched.api.names import LABEL_HOSTNAME
from kubesched.api.scheduling import PodGroup
from kubesched.framework.group_sweep import alike, can_repeat
from kubesched.scheduler.cycle import Decision, SchedulingCycle
from kubesched.scheduler.group_cycle import GroupCycle
from tests.support.group_objects import (
    GROUPS,
    TOPOLOGY,
    ZONE,
    GroupLab,
    key,
    member,
    messages_of,
    nodes_of,
    pod_group,
)
from tests.support.objects import must, node, pod, pod_term


def outcome(lab: GroupLab, pods: list[Pod], seed: int, *, sweeps: bool) -> dict[str, Any]:
    """Try the group; return all that follows from it, the state of the generator included."""
    cycle = SchedulingCycle(lab.cluster, seed=seed)
    lab.cycle = GroupCycle(lab.cluster, cycle, with_placements=lab.cycle._with_placements)
    lab.cycle.sweeps = sweeps
    result = lab.run(*pods)[key()]
    return {
        "status": result.status,
        "nodes": nodes_of(result),
        "messages": messages_of(result),
        "feasible": [each.decision.feasible_nodes for each in result.members],
        "evaluated": [each.decision.evaluated_nodes for each in result.members],
        "has_scheduled": result.has_scheduled,
        "placement": None if result.placement is None else result.placement.name,
        "next": cycle.rng.random(),
    }


APART = must(pod_term(LABEL_HOSTNAME, app="x"))
#: What members may be like.
KINDS: dict[str, dict[str, Any]] = {
    "small": {"cpu": "1"},
    "large": {"cpu": "3", "memory": "2Gi"},
    "apart": {"cpu": "1", "labels": {"app": "x"}, "away_from": APART},
    "port": {"cpu": "1", "ports": [8080]},
    "labelled": {"cpu": "1", "labels": {"app": "x"}},
}


@st.composite
def clusters(draw: st.DrawFn) -> list[Node | Pod]:
    """Nodes of some sizes and zones, some of which are better not used, with pods on them."""
    objects: list[Node | Pod] = []
    zones = draw(st.sampled_from(["a", "ab", "abcde"]))
    for number in range(draw(st.integers(1, 10))):
        name = f"n{number}"
        made = node(
            name,
            cpu=draw(st.sampled_from(["500m", "2", "4", "8"])),
            pods=draw(st.integers(1, 6)),
            labels={ZONE: draw(st.sampled_from(zones)), LABEL_HOSTNAME: name},
            taints=["slow:PreferNoSchedule"] if draw(st.booleans()) else [],
        )
        old = range(draw(st.integers(0, 2)))
        objects += [made, *(pod(f"old-{number}-{each}", node=name, cpu="1") for each in old)]
    return objects


@st.composite
def groups(draw: st.DrawFn) -> tuple[PodGroup, list[Pod]]:
    """A gang of pods of some kinds, those that are alike together."""
    in_zones = draw(st.booleans())
    group = pod_group(gang=draw(st.integers(1, 8)), topology=ZONE if in_zones else None)
    # Often only one: then all are swept over all placements but the first.
    most = draw(st.sampled_from([1, 4]))
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=most))
    repeats = draw(st.integers(1, 6))
    return group, [
        member(f"{place}-{kind}-{number}", **KINDS[kind])
        for place, kind in enumerate(kinds)
        for number in range(repeats)
    ]


@settings(max_examples=300, deadline=None)
@given(objects=clusters(), gang=groups(), seed=st.integers(0, 3))
def test_a_sweep_comes_to_the_nodes_that_members_get_one_by_one(
    objects: list[Node | Pod], gang: tuple[PodGroup, list[Pod]], seed: int
) -> None:
    group, pods = gang
    gates = TOPOLOGY if group.spec.scheduling_constraints is not None else GROUPS
    one_by_one, swept = (
        outcome(GroupLab(group, *objects, gates=gates), pods, seed, sweeps=each)
        for each in (False, True)
    )
    assert swept == one_by_one


def test_members_that_are_alike_are_swept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The decision path is taken once, for the first of them."""
    decided: list[str] = []
    decide = SchedulingCycle.schedule_member

    def noted(cycle: SchedulingCycle, *args: Any) -> Decision:
        decided.append(args[-1].uid)
        return decide(cycle, *args)

    monkeypatch.setattr(SchedulingCycle, "schedule_member", noted)
    lab = GroupLab(pod_group(gang=5), *(node(f"n{number}") for number in range(3)))
    result = lab.result(*(member(f"p{number}", cpu="1") for number in range(5)))
    assert result.status.ok
    assert decided == ["p0"]
    assert all(nodes_of(result).values())


def test_what_pods_have_of_their_own_keeps_them_apart() -> None:
    lab = GroupLab(pod_group(), node("n1"))
    cpus = {"a": "1", "b": "1", "c": "2"}
    first, same, other = lab.pending(*(member(name, cpu=cpu) for name, cpu in cpus.items()))
    assert alike(first, [same, same, other, same]) == 2
    port, apart = lab.pending(member("p", ports=[80]), member("q", away_from=APART))
    assert can_repeat(first)
    assert not can_repeat(port)
    assert not can_repeat(apart)
