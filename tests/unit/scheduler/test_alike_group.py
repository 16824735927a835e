"""A gang of equal pods takes the decision path on one placement, and is swept over the others."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.scheduler.cycle import Decision, SchedulingCycle
from tests.support.group_objects import (
    TOPOLOGY,
    ZONE,
    GroupLab,
    member,
    messages_of,
    nodes_of,
    pod_group,
)
from tests.support.objects import node


@pytest.fixture
def decided(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The members that took the decision path."""
    found: list[str] = []
    decide = SchedulingCycle.schedule_member

    def noted(cycle: SchedulingCycle, *args: Any) -> Decision:
        found.append(args[-1].uid)
        return decide(cycle, *args)

    monkeypatch.setattr(SchedulingCycle, "schedule_member", noted)
    return found


def lab_of(*cpus: str, gang: int) -> GroupLab:
    """Zones a, b, … with two nodes each, of so many cpus."""
    nodes = [
        node(f"{zone}{number}", cpu=cpu, zone=zone)
        for zone, cpu in zip("abcdef", cpus, strict=False)
        for number in range(2)
    ]
    return GroupLab(*nodes, pod_group(gang=gang, topology=ZONE), gates=TOPOLOGY)


def members(count: int) -> list[Any]:
    return [member(f"p{number}", cpu="1") for number in range(count)]


def test_the_decision_path_is_taken_on_one_placement(decided: list[str]) -> None:
    result = lab_of("4", "4", "4", gang=3).result(*members(3))
    assert result.status.ok
    assert decided == ["p0"]
    assert result.placement is not None
    assert {name[0] for name in nodes_of(result).values()} == {result.placement.name}


def test_where_too_few_fit_nothing_else_is_asked(decided: list[str]) -> None:
    result = lab_of("4", "1", "1", gang=3).result(*members(3))
    assert [each.feasible for each in result.tried] == [True, False, False]
    assert decided == ["p0"]


def test_where_no_node_is_feasible_nothing_else_is_asked(decided: list[str]) -> None:
    result = lab_of("500m", "500m", "500m", "4", gang=3).result(*members(3))
    assert [each.feasible for each in result.tried] == [False, False, False, True]
    assert decided == ["p0", "p0"], "in the first zone, and in that which fits"


def test_the_first_placement_says_why_none_fits(decided: list[str]) -> None:
    result = lab_of("1", "500m", gang=3).result(*members(3))
    assert result.status.message == (
        "pod group is unschedulable, 0/2 placements are available, first placement status: "
        "minCount (3) cannot be satisfied: 2 scheduled, 0 remaining"
    )
    assert messages_of(result) == {"p2": "0/2 nodes are available: 2 Insufficient cpu."}
    assert decided == ["p0", "p2"]


def test_members_that_are_too_many_for_a_placement_are_told_why(decided: list[str]) -> None:
    """Enough fit, so the others need their reasons: the decision path gives them."""
    result = lab_of("500m", "1", gang=2).result(*members(3))
    assert result.status.ok
    assert messages_of(result) == {"p2": "0/2 nodes are available: 2 Insufficient cpu."}
    assert decided == ["p0", "p1", "p0", "p2"]


def test_decisions_of_the_placement_that_is_taken_are_complete() -> None:
    lab = lab_of("1", "4", gang=3)
    result = lab.result(*members(3))
    assert [each.decision.evaluated_nodes for each in result.members] == [2, 2, 2]
    assert [each.decision.feasible_nodes for each in result.members] == [2, 2, 2]
    states = [each.decision.state for each in result.members]
    assert len({id(each) for each in states}) == 3, "each has its own"
    assert all(each.placement is not None for each in states)
