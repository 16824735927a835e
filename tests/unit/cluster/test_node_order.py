"""The order of nodes: one of each zone in turn."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.api import names
from kubesched.cluster.node_order import NodeOrder, zone_name, zone_of
from tests.support.objects import node
from tests.support.scheduling import cluster_of


def _order(*zones: str | None) -> NodeOrder:
    order = NodeOrder()
    for row, zone in enumerate(zones):
        order.place(row, node(f"n{row}", zone=zone))
    return order


def test_zones_take_turns_in_order_of_their_first_node() -> None:
    order = _order("b", "b", "b", "a", "c", "a")
    assert order.rows().tolist() == [0, 3, 4, 1, 5, 2]


def test_nodes_without_a_zone_are_a_zone_of_their_own() -> None:
    assert _order(None, "a", None).rows().tolist() == [0, 1, 2]


def test_an_update_without_a_new_zone_changes_nothing() -> None:
    order = _order("a", "a", "b")
    order.place(0, node("n0", zone="a", cpu="64"))
    assert order.rows().tolist() == [0, 2, 1]


def test_a_node_that_changes_zone_goes_to_the_end_of_its_new_one() -> None:
    order = _order("a", "a", "b", "b")
    order.place(0, node("n0", zone="b"))
    assert order.rows().tolist() == [1, 2, 3, 0]


def test_a_zone_that_becomes_empty_loses_its_turn() -> None:
    order = _order("a", "b", "b")
    order.remove(0)
    order.place(0, node("n0", zone="a"))
    assert order.rows().tolist() == [1, 0, 2]


def test_removing_a_row_that_is_not_there_changes_nothing() -> None:
    order = _order("a")
    order.remove(5)
    assert order.rows().tolist() == [0]


def test_the_same_zone_name_in_another_region_is_another_zone() -> None:
    order = NodeOrder()
    order.place(0, node("n0", region="r1", zone="a"))
    order.place(1, node("n1", region="r1", zone="a"))
    order.place(2, node("n2", region="r2", zone="a"))
    assert order.rows().tolist() == [0, 2, 1]


def test_deprecated_labels_win_where_both_are_set() -> None:
    both = {
        names.LABEL_ZONE: "new",
        names.LABEL_ZONE_BETA: "old",
        names.LABEL_REGION: "new-region",
        names.LABEL_REGION_BETA: "old-region",
    }
    assert zone_of(node(labels=both)) == ("old-region", "old")
    assert zone_of(node(labels={names.LABEL_ZONE: "new"})) == ("", "new")
    assert zone_of(node()) == ("", "")


def test_the_order_of_the_table_survives_rows_being_given_to_others() -> None:
    cluster = cluster_of(node("a1", zone="a"), node("a2", zone="a"), node("b1", zone="b"))
    cluster.remove_node("a1")
    cluster.put_node(node("b2", zone="b"))
    cluster.put_node(node("a3", zone="a"))
    table = cluster.table
    ordered = [table.name_at(row) for row in table.order.rows().tolist()]
    assert ordered == ["a2", "b1", "a3", "b2"]


def test_a_zone_is_named_with_its_region_if_it_has_one() -> None:
    region = {names.LABEL_REGION: "r"}
    assert zone_name(node("n", zone="a", labels=region)) == "r/a"
    assert zone_name(node("n", zone="a")) == "a"
    assert zone_name(node("n", labels=region)) == "r"
    assert zone_name(node("n")) == ""


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["", "a", "b", "c", "d"]))))
@settings(deadline=None)
def test_the_order_is_that_of_zones_in_turn(changes: list[tuple[int, str]]) -> None:
    """After each change, of which `""` removes the row."""
    order, zones = NodeOrder(), dict[str, list[int]]()
    for row, zone in changes:
        before = next((name for name, rows in zones.items() if row in rows), "")
        if before and before != zone:
            zones[before].remove(row)
            if not zones[before]:
                del zones[before]
        if zone and before != zone:
            zones.setdefault(zone, []).append(row)
        if zone:
            order.place(row, node(f"n{row}", zone=zone))
        else:
            order.remove(row)
        longest = max(map(len, zones.values()), default=0)
        turns = [
            rows[turn] for turn in range(longest) for rows in zones.values() if turn < len(rows)
        ]
        assert order.rows().tolist() == turns
