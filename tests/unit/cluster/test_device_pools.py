"""Which slices of a pool count for a node, and whether devices may be allocated from it."""

from __future__ import annotations

from typing import Any

from kubesched.cluster.cluster import Cluster
from kubesched.cluster.device_pools import PoolRules, PoolView
from tests.support.device_objects import device, fill, slice_of
from tests.support.objects import node

UNITS = {"card": {"units": "4"}}


def views(*slices: Any, rules: PoolRules | None = None) -> list[PoolView]:
    """What the node n1 sees."""
    cluster = Cluster()
    cluster.put_node(node("n1"))
    cluster.put_node(node("n2"))
    fill(cluster, *slices)
    visible = cluster.devices.visible(rules or PoolRules())
    visible.refresh()
    cluster.devices.validate()
    return list(visible.of(0).pools)


def devices_of(*slices: Any) -> list[str]:
    """The devices that can be allocated on the node n1."""
    cluster = Cluster()
    cluster.put_node(node("n1"))
    fill(cluster, *slices)
    visible = cluster.devices.visible(PoolRules())
    visible.refresh()
    return [cluster.devices.table.keys[row][2] for row in visible.of(0).rows]


def test_a_pool_is_complete_once_all_of_its_slices_are_there() -> None:
    half = slice_of("a", device("x"), node="n1", pool="p", slices=2)
    assert views(half)[0].is_incomplete
    (whole,) = views(half, slice_of("b", device("y"), node="n1", pool="p", slices=2))
    assert whole.is_usable
    assert len(whole.rows) == 2


def test_slices_for_other_nodes_make_a_pool_complete_too() -> None:
    mine = slice_of("a", device("x"), node="n1", pool="p", slices=2)
    (view,) = views(mine, slice_of("b", device("y"), node="n2", pool="p", slices=2))
    assert view.is_usable
    assert len(view.rows) == 1


def test_only_the_newest_generation_counts() -> None:
    old = slice_of("a", device("old"), node="n1", pool="p", generation=1)
    new = slice_of("b", device("new"), node="n1", pool="p", generation=2)
    assert devices_of(old, new) == ["new"]


def test_a_pool_that_is_being_replaced_for_other_nodes_is_not_there() -> None:
    old = slice_of("a", device("old"), node="n1", pool="p", generation=1, slices=2)
    new = slice_of("b", device("new"), node="n2", pool="p", generation=2)
    assert views(old, new) == []


def test_the_same_name_for_two_devices_makes_a_pool_invalid() -> None:
    twice = [slice_of(name, device("x"), node="n1", pool="p", slices=2) for name in "ab"]
    assert views(*twice)[0].is_invalid


def test_counters_must_be_there_and_only_once() -> None:
    part = device("x", counters=UNITS)
    counters = slice_of("b", node="n1", pool="p", slices=2, counters=UNITS)
    good = slice_of("a", part, node="n1", pool="p", slices=2)
    assert views(good, counters)[0].is_usable
    assert views(slice_of("a", part, node="n1", pool="p"))[0].is_invalid
    other = slice_of("b", node="n1", pool="p", slices=2, counters={"card": {"memory": "1"}})
    assert views(good, other)[0].is_invalid
    again = slice_of("c", node="n1", pool="p", slices=3, counters=UNITS)
    three = [slice_of("a", part, node="n1", pool="p", slices=3)]
    three.append(slice_of("b", node="n1", pool="p", slices=3, counters=UNITS))
    assert views(*three, again)[0].is_invalid


def test_counters_of_a_slice_for_another_node_are_found() -> None:
    mine = slice_of("a", device("x", counters=UNITS), node="n1", pool="p", slices=2)
    (view,) = views(mine, slice_of("b", node="n2", pool="p", slices=2, counters=UNITS))
    assert view.counters == {"card": {"units": 4 * 10**9}}


def test_slices_with_what_a_gate_allows_do_not_count_without_it() -> None:
    counters = slice_of("b", node="n1", pool="p", counters=UNITS)
    assert views(counters, rules=PoolRules(partitionable=False)) == []
