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


@pytest.mark.parametrize("rows", [slice(0, 4), slice(1, 2), np.array([1, 3], dtype=np.intp)])
def test_whoever_is_shown_rows_cannot_change_them(
    table: NodeTable, rows: slice | np.ndarray[tuple[int], np.dtype[np.intp]]
) -> None:
    nodes = NodeRows(table, rows)
    for values in (nodes.allocatable(0), nodes.requested(0), nodes.pod_count, nodes.unschedulable):
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 1
