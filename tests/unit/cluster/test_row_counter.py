"""Counts by row, sparse or dense, and their sums by domain."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.cluster.domains import Domains
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.row_counter import MAX_SUMS, SPARSE_ROWS, Countable, RowCounter
from tests.support.objects import node
from tests.support.scheduling import cluster_of

ZONE = "topology.kubernetes.io/zone"


class Tally(RowCounter):
    """Counts what the test adds."""

    counted = None

    def counts_pod(self, pod: Countable) -> bool:
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


@given(
    racks=st.lists(st.integers(0, 99), min_size=100, max_size=200),
    changes=st.lists(st.integers(0, 99), max_size=3 * SPARSE_ROWS),
    asked_first=st.booleans(),
)
@settings(max_examples=50, deadline=None)
def test_sums_of_many_domains_are_those_of_their_rows(
    racks: list[int], changes: list[int], asked_first: bool
) -> None:
    """Whether few rows have pods, and the sums are not stored, or many."""
    several = [node(f"n{number}", zone=str(rack)) for number, rack in enumerate(racks)]
    each_its_own = [node(f"m{number}", zone=f"m{number}") for number in range(100)]
    for nodes in (several, [*each_its_own, node("without")]):
        table = cluster_of(*nodes).table
        zones, counter = Domains(table, ZONE), Tally()
        if asked_first:
            counter.hit(zones)
        for number, changed in enumerate(changes):
            counter.add(changed, 1)
            if number % 3 == 0:
                counter.add(changed, -1)
        zones.refresh()

        expected = np.bincount(
            zones.ids, weights=counter.counts(table.size), minlength=zones.size
        ).astype(np.int64)
        expected[0] = 0
        assert counter.by_domain(zones).tolist() == expected.tolist()
        assert counter.hit(zones).tolist() == (expected > 0).take(zones.ids).tolist()
        counter.validate()


def test_sums_of_few_rows_by_host_are_not_stored() -> None:
    table = cluster_of(*(node(f"n{number}", zone=str(number)) for number in range(100))).table
    hosts, counter = Domains(table, ZONE), Tally()
    counter.add(7, 1)
    before = counter.nbytes

    assert counter.by_domain(hosts).sum() == counter.hit(hosts).sum() == 1

    assert counter.nbytes == before


def test_counters_share_the_mask_of_the_domains_where_they_have_pods() -> None:
    table = cluster_of(node("a", zone="1"), node("b", zone="2"), node("c", zone="2")).table
    zones, one, other, third = Domains(table, ZONE), Tally(), Tally(), Tally()
    one.add(row(table, "b"), 1)
    other.add(row(table, "c"), 5)
    third.add(row(table, "a"), 1)

    assert one.hit(zones) is other.hit(zones)
    assert one.hit(zones).tolist() != third.hit(zones).tolist()


def test_sums_are_cached_for_a_bounded_number_of_domains() -> None:
    table = cluster_of(node("a", zone="1")).table
    counter = Tally()
    counter.add(row(table, "a"), 1)
    before = counter.nbytes
    for _ in range(3 * MAX_SUMS):
        counter.by_domain(Domains(table, ZONE))

    per_sum = counter.by_domain(Domains(table, ZONE)).nbytes
    assert counter.nbytes == before + MAX_SUMS * per_sum
