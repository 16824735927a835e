"""Placements of a label: one for each of its values, the same objects while nodes are the same."""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.group import Placement
from tests.support.group_objects import TOPOLOGY, ZONE, GroupLab, key, member, pod_group
from tests.support.objects import node


def lab() -> GroupLab:
    return GroupLab(
        node("n1", zone="b"),
        node("n2", zone="a"),
        node("n3"),
        node("n4", zone="b"),
        pod_group(topology=ZONE),
        gates=TOPOLOGY,
    )


def placements(lab: GroupLab, within: Sequence[str] | None = None) -> Sequence[Placement]:
    table = lab.cluster.table
    rows = table.valid[: table.size].copy()
    if within is not None:
        for row in range(table.size):
            rows[row] &= table.name_at(row) in within
    group = lab.info(key(), lab.pending(member("p")))
    found, status = lab.framework.groups.generate(CycleState(), group, Placement("", rows))
    assert status.ok
    return found


def named(lab: GroupLab, found: Sequence[Placement]) -> dict[str, list[str]]:
    table = lab.cluster.table
    return {
        each.name: [table.name_at(row) for row in each.in_order(table.order).tolist()]
        for each in found
    }


def test_there_is_one_for_each_value_in_order_of_names() -> None:
    made = lab()
    assert named(made, placements(made)) == {"a": ["n2"], "b": ["n1", "n4"]}


def test_within_a_placement_only_its_nodes_count() -> None:
    made = lab()
    assert named(made, placements(made, ["n1", "n2"])) == {"a": ["n2"], "b": ["n1"]}


def test_they_are_made_once_until_a_node_changes() -> None:
    made = lab()
    first, again = placements(made), placements(made)
    assert all(one is other for one, other in zip(first, again, strict=True))
    made.cluster.put_node(node("n3", zone="a"))
    assert named(made, placements(made)) == {"a": ["n2", "n3"], "b": ["n1", "n4"]}


def test_placements_with_the_same_nodes_are_equal() -> None:
    one, other = placements(lab()), placements(lab())
    assert list(one) == list(other)
    assert one[0] != one[1]
    assert hash(one[0]) == hash(other[0])
