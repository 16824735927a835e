"""Which devices each node sees."""

from __future__ import annotations

from typing import Any

from kubesched.api.core import NodeSelector
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.device_pools import PoolRules
from tests.support.device_objects import DRIVER, device, fill, slice_of
from tests.support.objects import node, requirement, term

IN_A = NodeSelector(node_selector_terms=(term(requirement("disk", "In", "ssd")),))


class Sight:
    def __init__(self, *objects: Any) -> None:
        self.cluster = Cluster()
        for name, labels in (("n1", {"disk": "ssd"}), ("n2", {}), ("n3", {})):
            self.cluster.put_node(node(name, labels=labels))
        fill(self.cluster, *objects)
        self.visible = self.cluster.devices.visible(PoolRules())

    def of(self, name: str) -> list[str]:
        row = self.cluster.table.row_of(name)
        assert row is not None
        self.visible.refresh()
        seen = self.visible.of(row)
        keys = self.cluster.devices.table.keys
        self.cluster.devices.validate()
        return [keys[each][2] for each in seen.rows if each not in seen.unreachable]

    def number(self, name: str) -> int:
        row = self.cluster.table.row_of(name)
        assert row is not None
        self.visible.refresh()
        return self.visible.of_row.item(row)


def test_a_slice_names_a_node_or_all_or_selects_some() -> None:
    sight = Sight(
        slice_of("local", device("a"), node="n1"),
        slice_of("all", device("b"), everywhere=True),
        slice_of("some", device("c"), selector=IN_A),
        slice_of("unknown", device("d")),
    )
    assert sight.of("n1") == ["b", "a", "c"]
    assert sight.of("n2") == ["b"]


def test_devices_of_a_slice_may_select_their_nodes_one_by_one() -> None:
    devices = [device("a", node="n2"), device("b", everywhere=True), device("c", selector=IN_A)]
    sight = Sight(slice_of("s", *devices, per_device=True))
    assert sight.of("n1") == ["b", "c"]
    assert sight.of("n2") == ["a", "b"]
    assert sight.of("n3") == ["b"]


def test_nodes_that_see_the_same_share_a_number() -> None:
    sight = Sight(
        slice_of("all", device("b"), everywhere=True), slice_of("x", device("a"), node="n1")
    )
    assert sight.number("n2") == sight.number("n3") != sight.number("n1")
    assert Sight().number("n1") == Sight().number("n2") == 0


def test_what_nodes_see_follows_slices_and_labels() -> None:
    sight = Sight(slice_of("some", device("c"), selector=IN_A))
    assert sight.of("n2") == []
    sight.cluster.put_node(node("n2", labels={"disk": "ssd"}))
    assert sight.of("n2") == ["c"]
    local = slice_of("local", device("a"), node="n2")
    fill(sight.cluster, local)
    assert sight.of("n2") == ["a", "c"]
    sight.cluster.devices.slices.remove(local)
    assert sight.of("n2") == ["c"]
    sight.cluster.remove_node("n2")
    sight.cluster.put_node(node("n4", labels={"disk": "ssd"}))
    assert sight.of("n4") == ["c"]


def test_a_slice_that_is_published_again_as_it_was_changes_nothing() -> None:
    sight = Sight(slice_of("local", device("a"), node="n1"))
    before = sight.number("n1")
    position = sight.visible.changes.position
    fill(sight.cluster, slice_of("local", device("a"), node="n1"))
    assert sight.number("n1") == before
    assert sight.visible.changes.position == position
    assert sight.cluster.devices.table.keys[0] == (DRIVER, "n1", "a")


def test_nodes_whose_pools_are_laid_out_alike_share_a_layout() -> None:
    size = {"card": {"units": "2"}}
    part = device("p", counters={"card": {"units": "1"}})
    sight = Sight(
        slice_of("one", device("a"), part, node="n1", slices=2),
        slice_of("one-c", node="n1", slices=2, counters=size),
        slice_of("two", device("x"), part, node="n2", slices=2),
        slice_of("two-c", node="n2", slices=2, counters=size),
        slice_of("three", device("a"), part, node="n3", slices=2),
        slice_of("three-c", node="n3", slices=2, counters={"card": {"units": "3"}}),
    )
    first, second, third = (sight.visible.at(sight.number(name)) for name in ("n1", "n2", "n3"))
    assert first is not second
    assert first.layout == second.layout != third.layout


def test_a_pool_in_disorder_is_not_laid_out_as_one_in_order() -> None:
    sight = Sight(
        slice_of("one", device("a"), node="n1"),
        slice_of("two", device("a"), node="n2", slices=2),
        slice_of("three", device("a"), device("a"), node="n3"),
    )
    layouts = {sight.visible.at(sight.number(name)).layout for name in ("n1", "n2", "n3")}
    assert len(layouts) == 3
