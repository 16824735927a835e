"""Topology domains: the rows of each value of a label."""

from __future__ import annotations

import numpy as np

from kubesched.cluster.cluster import Cluster
from kubesched.cluster.domains import Domains
from kubesched.cluster.node_rows import NodeRows
from tests.support.objects import node
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
