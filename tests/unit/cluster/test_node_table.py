"""The node table: rows, columns, change logs, and pretending."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.cluster import node_table
from kubesched.cluster.node_table import FIRST_CAPACITY, NodeTable
from kubesched.cluster.resources import CPU, MEMORY
from kubesched.cluster.vocabulary import STALE_VALUES
from kubesched.errors import InvariantError, QuantityError
from tests.support.objects import GI, node, pod
from tests.support.scheduling import cluster_of

GPU = "example.com/gpu"


def _row(table: NodeTable, name: str) -> int:
    row = table.row_of(name)
    assert row is not None
    return row


# --- rows -------------------------------------------------------------------------------------


def test_a_node_fills_its_row() -> None:
    table = NodeTable()
    row = table.put_node(
        node("n1", cpu="2500m", memory="3Gi", pods=7, unschedulable=True, taints=["a=b:NoSchedule"])
    )
    assert (len(table), table.size) == (1, 1)
    assert table.name_at(row) == "n1"
    assert table.allocatable[CPU, row] == 2500
    assert table.allocatable[MEMORY, row] == 3 * GI
    assert table.allowed_pods[row] == 7
    assert table.unschedulable[row]
    assert table.taints.at(row) == table.node_at(row).spec.taints
    table.validate()


def test_what_a_new_version_no_longer_offers_is_gone() -> None:
    table = NodeTable()
    row = table.put_node(node("n1", resources={GPU: "4"}))
    number = table.resources.find(GPU)
    assert table.allocatable[number, row] == 4
    assert table.put_node(node("n1")) == row
    assert table.allocatable[number, row] == 0
    table.validate()


def test_a_removed_node_s_row_is_given_to_the_next_one() -> None:
    table = NodeTable()
    rows = [table.put_node(node(f"n{number}")) for number in range(3)]
    table.remove_node("n1")
    assert not table.valid[rows[1]]
    with pytest.raises(LookupError, match="row 1 has no node"):
        table.node_at(rows[1])
    table.validate()
    assert table.put_node(node("other")) == rows[1]
    assert table.size == 3
    assert sorted(table.names()) == ["n0", "n2", "other"]
    table.validate()


def test_the_table_grows_beyond_its_first_capacity() -> None:
    table = NodeTable()
    asked_early = table.label_column("disk")
    for number in range(FIRST_CAPACITY + 1):
        disk = "ssd" if number % 2 else "hdd"
        table.put_node(node(f"n{number}", cpu=str(number + 1), labels={"disk": disk}))
    assert table.size == FIRST_CAPACITY + 1
    assert table.allocatable[CPU, : table.size].tolist() == [
        1000 * (number + 1) for number in range(table.size)
    ]
    assert table.label_column("disk") is asked_early
    table.validate()


def test_a_node_that_cannot_be_read_changes_nothing() -> None:
    table = NodeTable()
    table.put_node(node("n1"))
    before = table.requested.tolist(), table.row_changes.position
    with pytest.raises(QuantityError, match="n2"):
        table.put_node(node("n2", cpu="many"))
    with pytest.raises(QuantityError, match="n1"):
        table.put_node(node("n1", resources={GPU: "1.2.3"}))
    assert list(table.names()) == ["n1"]
    assert (table.requested.tolist(), table.row_changes.position) == before
    table.validate()


# --- label columns ----------------------------------------------------------------------------


def _labels(table: NodeTable, key: str) -> dict[str, str | None]:
    column = table.label_column(key)
    return {name: column.vocabulary.values[column.ids[_row(table, name)]] for name in table.names()}


def test_a_label_column_is_made_when_asked_for_and_then_kept_up_to_date() -> None:
    table = NodeTable()
    table.put_node(node("a", labels={"disk": "ssd"}))
    table.put_node(node("b"))
    assert _labels(table, "disk") == {"a": "ssd", "b": None}
    table.put_node(node("a", labels={"disk": "hdd"}))
    table.put_node(node("b", labels={"disk": ""}))
    table.put_node(node("c", labels={"other": "x"}))
    assert _labels(table, "disk") == {"a": "hdd", "b": "", "c": None}
    table.remove_node("a")
    table.put_node(node("d"))
    assert _labels(table, "disk") == {"b": "", "c": None, "d": None}


def test_labels_taints_and_features_of_the_past_are_forgotten() -> None:
    table = NodeTable()
    table.put_node(node("steady", labels={"build": "0"}))
    column = table.label_column("build")
    for number in range(2 * STALE_VALUES * FIRST_CAPACITY):
        labels, taints = {"build": str(number)}, [f"deleted-at={number}:NoSchedule"]
        table.put_node(node("busy", labels=labels, taints=taints, features=[f"F{number}"]))
    for each in (column, table.taints, table.features):
        assert len(each.vocabulary) <= STALE_VALUES * FIRST_CAPACITY
    assert table.label_column("build") is column
    assert _labels(table, "build") == {"steady": "0", "busy": str(number)}
    table.validate()


def test_labels_that_nobody_asks_for_any_more_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(node_table, "MOST_LABELS", 8)
    table = NodeTable()
    for number in range(100):
        table.put_node(node("a", labels={"build": str(number), f"key-{number}": "x"}))
        assert _labels(table, "build") == {"a": str(number)}
        assert _labels(table, f"key-{number}") == {"a": "x"}
    assert len(table._labels) <= 10
    table.validate()


# --- change logs ------------------------------------------------------------------------------


def test_a_node_s_change_is_in_both_logs_a_pod_s_change_in_one() -> None:
    cluster = cluster_of(node("n1"), node("n2"))
    table = cluster.table
    nodes_at, rows_at = table.node_changes.position, table.row_changes.position

    def changed() -> tuple[list[int], list[int]]:
        by_node = table.node_changes.since(nodes_at)
        by_row = table.row_changes.since(rows_at)
        assert by_node is not None
        assert by_row is not None
        return by_node, by_row

    cluster.put_pod(pod("p", node="n2"))
    assert changed() == ([], [_row(table, "n2")])
    cluster.put_node(node("n1", cpu="1"))
    assert changed() == ([_row(table, "n1")], [1, 0])


def test_a_pod_cannot_be_added_where_it_is_already() -> None:
    cluster = cluster_of(node("a"), pod("p", node="a", cpu="1"))
    again, table = cluster.compiler.pending(pod("p", cpu="1")), cluster.table
    with pytest.raises(InvariantError, match="is in row 0 already"):
        table.add_pod(0, again)
    cluster.validate()


# --- validation can fail ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "break_it",
    [
        pytest.param(lambda table: table.requested.__setitem__((CPU, 0), 1), id="requested"),
        pytest.param(lambda table: table.pod_count.__setitem__(0, 9), id="pod_count"),
        pytest.param(lambda table: table.allocatable.__setitem__((CPU, 0), 1), id="allocatable"),
        pytest.param(lambda table: table.valid.__setitem__(0, False), id="valid"),
        pytest.param(lambda table: table.unschedulable.__setitem__(0, True), id="unschedulable"),
        pytest.param(
            lambda table: table.ports.remove(0, table.pods[0]["p"].signature.host_ports), id="ports"
        ),
        pytest.param(lambda table: table.order.remove(0), id="order"),
        pytest.param(lambda table: table.label_column("x").ids.__setitem__(0, 0), id="label"),
        pytest.param(lambda table: table.images.find("web:1").rows.clear(), id="image"),
    ],
)
def test_validate_finds_a_column_that_disagrees(break_it: Any) -> None:
    cluster = cluster_of(
        node("n1", labels={"x": "y"}, images={"web:1": 5}), pod("p", node="n1", ports=[80])
    )
    cluster.validate()
    break_it(cluster.table)
    with pytest.raises(InvariantError):
        cluster.validate()
