"""Rows to evaluate: whichever way they are named, they show the table, and only show it."""

from __future__ import annotations

import numpy as np
import pytest

from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.node_table import NodeTable
from kubesched.testing import Workbench


@pytest.fixture
def table() -> NodeTable:
    bench = Workbench()
    for number in range(4):
        bench.node(f"n{number}", cpu=number + 1)
    return bench.cluster.table


def test_one_row_is_the_same_as_an_array_of_one(table: NodeTable) -> None:
    for row in range(table.size):
        one, array = NodeRows.one(table, row), NodeRows(table, np.array([row], dtype=np.intp))
        assert len(one) == len(array) == 1
        assert one.row_numbers().tolist() == [row]
        for resource in range(len(table.allocatable)):
            assert one.allocatable(resource).tolist() == array.allocatable(resource).tolist()
        assert one.allowed_pods.tolist() == array.allowed_pods.tolist()
        assert one.none().tolist() == [False]
        assert one.among({2}).tolist() == [row == 2]


def test_all_rows_are_numbered_from_the_first(table: NodeTable) -> None:
    rows = NodeRows.all_of(table)
    assert len(rows) == table.size
    assert rows.row_numbers().tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("rows", [slice(0, 4), slice(1, 2)])
def test_whoever_is_shown_the_table_s_own_memory_cannot_change_it(
    table: NodeTable, rows: slice
) -> None:
    nodes = NodeRows(table, rows)
    for values in (
        *(nodes.allocatable(0), nodes.requested(0), nodes.non_zero_requested(0)),
        *(nodes.pod_count, nodes.allowed_pods, nodes.unschedulable),
    ):
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 1


def test_what_is_shown_follows_the_table() -> None:
    bench = Workbench()
    for number in range(200):  # as many as make it grow, and a resource that comes late
        bench.node(f"n{number}", cpu=1, resources={"example.com/late": number} if number else {})
    table = bench.cluster.table
    nodes = NodeRows.all_of(table)
    late = table.resources.find("example.com/late")
    assert late is not None
    assert nodes.allocatable(late).tolist() == list(range(200))
    assert np.shares_memory(nodes.requested(0), table.requested)
