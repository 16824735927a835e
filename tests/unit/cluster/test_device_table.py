"""Devices as rows."""

from __future__ import annotations

import pytest

from kubesched.api.core import NodeSelector
from kubesched.api.resource import Device, ResourceSlice
from kubesched.cluster.device_table import BARE, DeviceTable, Reach, is_plain
from kubesched.errors import InvariantError
from tests.support.device_objects import DRIVER, capacity, device, slice_of, taint


def put(table: DeviceTable, made: ResourceSlice) -> list[int]:
    return [table.add(made.spec, each, each.taints) for each in made.spec.devices]


def test_a_device_has_a_row_with_its_key_and_the_nodes_it_is_for() -> None:
    table = DeviceTable()
    first, second = put(table, slice_of("s", device("a"), device("b"), node="n1", skips=["*"]))
    assert table.keys[first] == (DRIVER, "n1", "a")
    assert table.device_at(second).name == "b"
    assert table.reach[first] == Reach("n1", None)
    assert table.skipped[first] == ("*",)
    assert len(table) == 2
    table.validate()


def test_devices_may_say_for_themselves_which_nodes_they_are_for() -> None:
    table, selector = DeviceTable(), NodeSelector()
    own = slice_of("s", device("a", node="n2"), device("b", selector=selector), per_device=True)
    first, second = put(table, own)
    assert table.reach[first] == Reach("n2", None)
    assert table.reach[second] == Reach(None, selector)


def test_rows_are_used_again() -> None:
    table = DeviceTable()
    (row,) = put(table, slice_of("s", device("a", taints=[taint()]), node="n1"))
    table.remove(row)
    assert len(table) == 0
    with pytest.raises(InvariantError):
        table.device_at(row)
    table.validate()
    assert put(table, slice_of("t", device("b"), node="n1")) == [row]
    assert table.taints[row] == ()
    table.validate()


def test_changes_are_recorded_once_there_are_any() -> None:
    table = DeviceTable()
    (row,) = put(table, slice_of("s", device("a"), node="n1"))
    start = table.changes.position
    assert not table.set_taints(row, ())
    assert table.changes.position == start
    assert table.set_taints(row, (taint(),))
    assert table.changes.since(start) == [row]


@pytest.mark.parametrize(
    ("made", "want"),
    [
        (device("a", capacities={"memory": "1Gi"}), True),
        (device("a", shareable=True), False),
        (device("a", counters={"card": {"units": "1"}}), False),
        (device("a", capacities={"memory": capacity("1Gi", default="1Mi")}), False),
        (device("a", capacities={"memory": "-1"}), False),
        (device("a", capacities={"memory": "much"}), False),
    ],
)
def test_a_plain_device_is_free_or_not_and_nothing_else_matters(made: Device, want: bool) -> None:
    assert is_plain(made) is want


def test_devices_of_a_kind_differ_in_name_and_attributes_only() -> None:
    table = DeviceTable()
    rows = put(
        table,
        slice_of(
            "s",
            device("a", model="x"),
            device("b", model="y"),
            device("c", capacities={"memory": "1Gi"}),
            device("d", capacities={"memory": "1Gi"}, taints=[taint()]),
            device("e", capacities={"memory": "2Gi"}),
            device("f", counters={"card": {"units": "1"}}),
            device("g", shareable=True),
            device("h", conditions=["ready"]),
            node="n1",
        ),
    )
    a, b, c, d, *others = table.kinds[rows].tolist()
    assert a == b == BARE
    assert c == d
    assert len({a, c, *others}) == 6
    assert table.tainted == {rows[3]}
    table.set_taints(rows[3], ())
    assert not table.tainted
    table.validate()
