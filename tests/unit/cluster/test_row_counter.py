"""Counts by row, sparse or dense, and their sums by domain."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.cluster.domains import Domains
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.row_counter import MAX_SUMS, SPARSE_ROWS, RowCounter
from tests.support.objects import node
from tests.support.scheduling import cluster_of

ZONE = "topology.kubernetes.io/zone"


class Tally(RowCounter):
    """Counts what the test adds."""

    counted = None

    def counts_pod(self, pod: PodInfo) -> bool:
        return False


@given(st.lists(st.integers(0, 3 * SPARSE_ROWS), max_size=200))
def test_counts_are_those_of_all_additions(rows: list[int]) -> None:
    counter, expected = Tally(), np.zeros(3 * SPARSE_ROWS + 1, dtype=np.int32)
    for row in rows:
        counter.add(row, 1)
        expected[row] += 1

    assert counter.counts(len(expected)).tolist() == expected.tolist()
    assert counter.total == len(rows)


@pytest.mark.parametrize("size", [3, 3 * SPARSE_ROWS])
def test_removals_undo_additions(size: int) -> None:
    counter = Tally()
    for row in range(size):
        counter.add(row, 1)
    for row in range(size):
        counter.add(row, -1)

    assert counter.total == 0
    assert not counter.counts(size).any()


def row(table: NodeTable, name: str) -> int:
    found = table.row_of(name)
    assert found is not None
    return found


def test_sums_by_domain_follow_the_counts() -> None:
    table = cluster_of(node("a", zone="1"), node("b", zone="1"), node("c", zone="2")).table
    zones = Domains(table, ZONE)
    counter = Tally()
    counter.add(row(table, "a"), 1)
    counter.add(row(table, "b"), 2)

    assert sorted(counter.by_domain(zones).tolist()) == [0, 0, 3], "none, zone 2, zone 1"
    assert counter.hit(zones).tolist() == [True, True, False]

    counter.add(row(table, "c"), 1)
    assert sorted(counter.by_domain(zones).tolist()) == [0, 1, 3]
    assert counter.hit(zones).tolist() == [True, True, True]
    counter.validate()


def test_sums_are_cached_for_a_bounded_number_of_domains() -> None:
    table = cluster_of(node("a", zone="1")).table
    counter = Tally()
    counter.add(row(table, "a"), 1)
    before = counter.nbytes
    for _ in range(3 * MAX_SUMS):
        counter.by_domain(Domains(table, ZONE))

    per_sum = counter.by_domain(Domains(table, ZONE)).nbytes
    assert counter.nbytes == before + MAX_SUMS * per_sum
