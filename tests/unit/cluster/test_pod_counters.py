"""Counters follow every event: they always equal a recount from scratch."""

from __future__ import annotations

from hypothesis import settings

from kubesched.api.core import Affinity, PodAffinity, PodAffinityTerm
from kubesched.api.meta import LabelSelector
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_counters import FEW_COUNTERS
from tests.support.counted_pods import Counters, make_pod, selection_of
from tests.support.objects import node, pod

Counters.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestCounters = Counters.TestCase


def test_counters_longest_unused_are_dropped_when_memory_is_short() -> None:
    cluster = Cluster()
    cluster.put_node(node("n1"))
    cluster.put_pod(pod("p1", node="n1", labels={"app": "web"}))
    counters = cluster.table.pod_counters
    one = cluster.table.pod_counter(selection_of("app-0"))
    counters._limit_bytes = 10 * one.nbytes

    for number in range(30):
        cluster.table.pod_counter(selection_of(f"app-{number}"))

    assert len(counters) == 11, "as many as fit, and the one that was asked for last"
    cluster.validate()


def test_counters_that_count_nothing_are_dropped_before_they_are_many() -> None:
    """Each rollout has another pod-template-hash, which selectors may name."""
    cluster = Cluster()
    cluster.put_node(node("n1"))
    counters = cluster.table.pod_counters
    for number in range(FEW_COUNTERS):
        cluster.put_pod(pod(f"stays-{number}", node="n1", labels={"app": f"stays-{number}"}))
    for number in range(10 * FEW_COUNTERS):
        for app in (f"stays-{number % FEW_COUNTERS}", f"rollout-{number}"):
            cluster.put_pod(pod(app, node="n1", labels={"app": app}))
            cluster.table.pod_counter(selection_of(app))
        cluster.remove_pod(f"rollout-{number}")
        assert len(counters) <= 2 * FEW_COUNTERS + 1
    assert all(counters._counters[selection_of(f"stays-{n}")].total for n in range(FEW_COUNTERS))
    cluster.validate()


def test_a_term_is_dropped_with_the_last_pod_that_carries_it() -> None:
    cluster = Cluster()
    cluster.put_node(node("n1"))
    term = PodAffinityTerm(topology_key="zone", label_selector=LabelSelector())
    away = PodAffinity(required_during_scheduling_ignored_during_execution=(term,))
    for name in ("p1", "p2"):
        affinity = Affinity(pod_anti_affinity=away)
        cluster.put_pod(make_pod(name, namespace="red", on="n1", with_labels={}, affinity=affinity))
    assert len(cluster.table.term_counters) == 1

    cluster.remove_pod("p1")
    assert len(cluster.table.term_counters) == 1

    cluster.remove_pod("p2")
    assert len(cluster.table.term_counters) == 0
