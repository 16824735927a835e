"""Counts of pods by domain, with a selector of a plugin's own."""

from __future__ import annotations

import pytest

from kubesched.api import labels
from kubesched.api.core import Pod
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.node_rows import NodeRows
from kubesched.framework.pod_counts import PodCounts
from tests.support.objects import node, on_node, pod

RACK = "rack"


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster()
    for name, rack in (("a1", "a"), ("a2", "a"), ("b1", "b")):
        made.put_node(node(name, labels={RACK: rack}))
    made.put_node(node("loose"))
    return made


def _counts(cluster: Cluster, namespaces: list[str] | None = None) -> PodCounts:
    return PodCounts(cluster.table, RACK, labels.parse("app=web"), namespaces=namespaces)


def _web(name: str, node_name: str, namespace: str = "default") -> Pod:
    return on_node(pod(name, labels={"app": "web"}, namespace=namespace), node_name)


def test_pods_count_in_all_nodes_of_their_domain(cluster: Cluster) -> None:
    counts = _counts(cluster)
    cluster.put_pod(_web("w1", "a1"))
    cluster.put_pod(_web("w2", "a2"))
    cluster.put_pod(on_node(pod("other", labels={"app": "db"}), "b1"))

    assert counts.of(NodeRows.all_of(cluster.table)).tolist() == [2, 2, 0, 0]
    assert counts.near("a1") == 2
    assert (counts.near("loose"), counts.near("unknown")) == (0, 0)
    assert counts.by_domain() == {"a": 2, "b": 0}


def test_counts_follow_pods_and_nodes(cluster: Cluster) -> None:
    counts = _counts(cluster)
    placed = cluster.put_pod(_web("w1", "a1"))
    assert counts.by_domain() == {"a": 1, "b": 0}
    cluster.put_node(node("a1", labels={RACK: "c"}))
    assert counts.by_domain() == {"a": 0, "b": 0, "c": 1}
    cluster.remove_pod(placed.uid)
    assert counts.by_domain() == {"a": 0, "b": 0, "c": 0}


def test_pods_of_some_namespaces(cluster: Cluster) -> None:
    counts = _counts(cluster, namespaces=["prod"])
    cluster.put_pod(_web("w1", "a1", "prod"))
    cluster.put_pod(_web("w2", "a1", "test"))
    assert counts.by_domain() == {"a": 1, "b": 0}


def test_scores_are_of_the_domains_that_nodes_are_in(cluster: Cluster) -> None:
    cluster.put_pod(_web("w1", "b1"))
    scores = _counts(cluster).scores(NodeRows.all_of(cluster.table))
    assert scores.of_nodes().tolist() == [0, 0, 1, 0]
    # Nodes without the label take part like those of a domain without pods.
    assert scores.counted.tolist() == [True, True, True]
