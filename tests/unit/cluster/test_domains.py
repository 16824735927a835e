"""Topology domains: the rows of each value of a label."""

from __future__ import annotations

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from kubesched.api.labels import Selector
from kubesched.cluster.arrays import BoolArray
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.domains import Domains
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_counters import Selection
from tests.support.objects import node, pod
from tests.support.scheduling import cluster_of

ZONE = "topology.kubernetes.io/zone"


def zones(cluster: Cluster) -> dict[str, int]:
    """Return the domain of each node."""
    domains = Domains(cluster.table, ZONE)
    domains.refresh()
    rows = {name: cluster.table.row_of(name) for name in "abcd"}
    return {name: domains.ids.item(row) for name, row in rows.items() if row is not None}


CLUSTER = (node("a", zone="1"), node("b", zone="1"), node("c", zone="2"), node("d"))


def test_nodes_of_the_same_value_share_a_domain_and_others_are_in_none() -> None:
    found = zones(cluster_of(*CLUSTER))

    assert found["a"] == found["b"] != found["c"]
    assert 0 not in (found["a"], found["c"])
    assert found["d"] == 0, "it lacks the label"


def test_rows_of_a_domain() -> None:
    cluster = cluster_of(*CLUSTER)
    domains = Domains(cluster.table, ZONE)
    domains.refresh()

    rows = domains.rows_of(zones(cluster)["a"])

    assert sorted(map(cluster.table.name_at, rows.tolist())) == ["a", "b"]
    assert domains.number == 2


def test_rows_that_are_not_eligible_are_in_no_domain() -> None:
    cluster = cluster_of(*CLUSTER)
    eligible = np.ones(cluster.table.size, dtype=np.bool_)
    eligible[cluster.table.row_of("c")] = False
    domains = Domains(cluster.table, ZONE, lambda: eligible)
    domains.refresh()

    assert domains.number == 1
    assert domains.leaves_rows_out


def test_a_node_that_moves_changes_its_domain() -> None:
    cluster = cluster_of(*CLUSTER)
    domains = Domains(cluster.table, ZONE)
    domains.refresh()
    cluster.put_node(node("a", zone="2"))
    domains.refresh()

    row_a, row_c = cluster.table.row_of("a"), cluster.table.row_of("c")
    assert domains.ids[row_a] == domains.ids[row_c]
    domains.validate()


def test_domains_of_some_rows() -> None:
    cluster = cluster_of(*CLUSTER)
    domains = Domains(cluster.table, ZONE)
    domains.refresh()
    row = cluster.table.row_of("c")
    assert row is not None

    mask = domains.with_rows(NodeRows.one(cluster.table, row))

    assert np.flatnonzero(mask).tolist() == [domains.ids.item(row)]


def test_masks_of_domains_are_made_anew_when_a_node_moves() -> None:
    cluster = cluster_of(*CLUSTER)
    domains = Domains(cluster.table, ZONE)
    domains.refresh()
    row = cluster.table.row_of("c")
    assert row is not None
    chosen = np.arange(domains.size) == domains.ids.item(row)
    assert np.flatnonzero(domains.rows_in(chosen)).tolist() == [row]

    cluster.put_node(node("a", zone="2"))
    domains.refresh()

    moved = cluster.table.row_of("a")
    assert set(np.flatnonzero(domains.rows_in(chosen)).tolist()) == {row, moved}
    assert not domains.has_one_row_each


def test_only_nodes_that_move_change_their_domain() -> None:
    cluster = cluster_of(*CLUSTER)
    domains = Domains(cluster.table, ZONE)
    domains.refresh()
    ids, position = domains.ids, domains.changes.position

    cluster.put_node(node("a", zone="1", unschedulable=True))
    domains.refresh()
    assert domains.ids is ids, "a cordoned node is in its zone"
    assert domains.changes.position == position

    cluster.put_node(node("a", zone="2"))
    domains.refresh()
    assert domains.changes.since(position) == [cluster.table.row_of("a")]
    assert ids is not domains.ids, "arrays that callers may hold stay as they are"


NAMES = st.sampled_from("abcdef")


class MovingNodes(RuleBasedStateMachine):
    """Nodes come, go and move, and so do pods; sums by domain follow."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = cluster_of(*CLUSTER)
        self.count = 0
        counted = Selection(Selector.of(()), None, with_terminating=True)
        self.counter = self.cluster.table.pod_counter(counted)
        self.domains = [
            Domains(self.cluster.table, ZONE),
            Domains(self.cluster.table, ZONE, self.eligible),
        ]

    def eligible(self) -> BoolArray:
        table = self.cluster.table
        return table.valid[: table.size] & ~table.unschedulable[: table.size]

    @rule(name=NAMES, zone=st.sampled_from([None, "1", "2", "3"]), closed=st.booleans())
    def put_node(self, name: str, zone: str | None, closed: bool) -> None:
        self.cluster.put_node(node(name, zone=zone, unschedulable=closed))

    @rule(name=NAMES)
    def remove_node(self, name: str) -> None:
        self.cluster.remove_node(name)

    @rule(name=NAMES)
    def put_pod(self, name: str) -> None:
        self.count += 1
        self.cluster.put_pod(pod(f"p{self.count}", node=name))

    @rule(number=st.integers(1, 20))
    def remove_pod(self, number: int) -> None:
        self.cluster.remove_pod(f"p{number}")

    @rule(which=st.integers(0, 1))
    def sum_up(self, which: int) -> None:
        """As views are: only some of them, and not after each change."""
        domains = self.domains[which]
        sums = self.counter.by_domain(domains)
        there = self.counter.hit(domains)
        by_row = self.counter.counts(self.cluster.table.size)
        expected = np.bincount(domains.ids, weights=by_row, minlength=domains.size)
        expected[0] = 0
        assert sums.tolist() == expected.tolist()
        assert there.tolist() == (expected > 0).take(domains.ids).tolist()
        domains.validate()
        self.counter.validate()


TestMovingNodes = MovingNodes.TestCase
TestMovingNodes.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
