"""Cached columns: only what changed is computed again."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from kubesched.cluster.arrays import Int64Array
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.resources import CPU
from kubesched.framework.cached_column import SPARSE, CachedColumn
from tests.unit.builders import node


class Watched:
    """A column of cpu, and which rows it was asked for."""

    def __init__(self, nodes: int) -> None:
        self.table = NodeTable()
        for number in range(nodes):
            self.table.put_node(node(f"n{number}", cpu=str(number)))
        self.asked: list[list[int]] = []
        self.column = CachedColumn(self.table, log=self.table.node_changes, evaluate=self._evaluate)

    def _evaluate(self, nodes: NodeRows) -> Int64Array:
        self.asked.append(nodes.row_numbers().tolist())
        return nodes.allocatable(CPU) // 1000

    def read(self, epoch: Hashable = None) -> list[int]:
        """Read the column; `asked` then tells what this reading evaluated."""
        self.asked.clear()
        return self.column.current(epoch).tolist()


def test_the_first_reader_has_all_rows_evaluated() -> None:
    watched = Watched(5)
    assert watched.read() == [0, 1, 2, 3, 4]
    assert watched.asked == [[0, 1, 2, 3, 4]]


def test_nothing_is_evaluated_while_nothing_changes() -> None:
    watched = Watched(5)
    watched.read()
    watched.read()
    assert watched.asked == []


def test_only_changed_rows_are_evaluated_again() -> None:
    watched = Watched(SPARSE * 2)
    watched.read()
    watched.table.put_node(node("n3", cpu="33"))
    watched.table.put_node(node("n1", cpu="11"))
    watched.table.put_node(node("n3", cpu="34"))
    assert watched.read() == [0, 11, 2, 34, 4, 5, 6, 7]
    assert watched.asked == [[1, 3]]


def test_many_changed_rows_are_evaluated_all_at_once() -> None:
    watched = Watched(SPARSE)
    watched.read()
    watched.table.put_node(node("n0", cpu="10"))
    watched.table.put_node(node("n1", cpu="11"))
    assert watched.read() == [10, 11, 2, 3]
    assert watched.asked == [[0, 1, 2, 3]]


def test_new_rows_are_evaluated() -> None:
    watched = Watched(SPARSE * 2)
    watched.read()
    watched.table.put_node(node("new", cpu="77"))
    assert watched.read() == [0, 1, 2, 3, 4, 5, 6, 7, 77]
    assert watched.asked == [[8]]


def test_a_row_given_to_another_node_is_evaluated() -> None:
    watched = Watched(SPARSE * 2)
    watched.read()
    watched.table.remove_node("n2")
    watched.table.put_node(node("new", cpu="77"))
    assert watched.read() == [0, 1, 77, 3, 4, 5, 6, 7]
    assert watched.asked == [[2]]


def test_another_epoch_makes_all_rows_stale() -> None:
    watched = Watched(SPARSE * 2)
    watched.read("one")
    watched.read("one")
    assert watched.asked == []
    watched.read("two")
    assert watched.asked == [list(range(SPARSE * 2))]


def test_who_comes_too_late_for_the_log_has_all_rows_evaluated() -> None:
    watched = Watched(SPARSE * 2)
    watched.table.node_changes._limit = 2
    watched.read()
    for number in range(20):
        watched.table.put_node(node("n0", cpu=str(50 + number)))
    assert watched.read()[0] == 69
    assert watched.asked == [list(range(SPARSE * 2))]


def test_some_rows_are_evaluated_alone_if_nobody_has_asked_for_all() -> None:
    watched = Watched(5)
    assert watched.column.at(np.array([1, 3])).tolist() == [1, 3]
    assert watched.column.at(slice(3, 5)).tolist() == [3, 4]
    assert watched.asked == [[1, 3], [3, 4]]


def test_some_rows_are_taken_from_all_if_they_are_kept() -> None:
    watched = Watched(5)
    watched.read()
    watched.asked.clear()
    assert watched.column.at(np.array([1, 3])).tolist() == [1, 3]
    assert watched.asked == []
    watched.table.put_node(node("n1", cpu="9"))
    assert watched.column.at(np.array([1, 3])).tolist() == [9, 3]
    assert watched.asked == [[1]]


def test_whether_all_nodes_have_the_same() -> None:
    watched = Watched(3)
    assert not watched.column.is_even()
    for number in range(3):
        watched.table.put_node(node(f"n{number}", cpu="7"))
    assert watched.column.is_even()
    watched.asked.clear()
    assert watched.column.is_even()
    assert watched.asked == []
    watched.table.put_node(node("n1", cpu="8"))
    assert not watched.column.is_even()
    watched.table.remove_node("n1")
    assert watched.column.is_even(), "rows without a node do not count"
