"""Namespaces, whose labels affinity terms select."""

from __future__ import annotations

from kubesched.api.core import Affinity, Namespace, PodAffinityTerm
from kubesched.api.meta import LabelSelector, ObjectMeta
from kubesched.cluster.affinity_terms import compile_terms
from kubesched.cluster.namespaces import Namespaces
from kubesched.cluster.term_counters import TermCounters
from tests.support.objects import must

TEAM_A = LabelSelector(match_labels={"team": "a"})
TERM = compile_terms(
    Affinity(pod_affinity=must(PodAffinityTerm(topology_key="zone", namespace_selector=TEAM_A))),
    "default",
).required[0]


def namespace(name: str, **labels: str) -> Namespace:
    return Namespace(metadata=ObjectMeta(name=name, labels=labels))


def test_terms_select_namespaces_by_their_current_labels() -> None:
    counters = TermCounters()
    namespaces = Namespaces(counters)
    namespaces.put(namespace("x", team="a"))
    namespaces.put(namespace("y", team="b"))
    assert counters.namespaces_of(TERM) == frozenset({"x"})

    namespaces.put(namespace("y", team="a"))
    assert counters.namespaces_of(TERM) == frozenset({"x", "y"})

    namespaces.remove(namespace("x"))
    assert counters.namespaces_of(TERM) == frozenset({"y"})


def test_only_changed_labels_begin_an_epoch() -> None:
    counters = TermCounters()
    namespaces = Namespaces(counters)
    namespaces.put(namespace("x", team="a"))
    before = counters.epoch

    namespaces.put(namespace("x", team="a"))
    assert counters.epoch == before

    namespaces.put(namespace("x", team="b"))
    assert counters.epoch != before
