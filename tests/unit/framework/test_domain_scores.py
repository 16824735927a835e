"""Scores by domain are the scores of their nodes, normalized domain by domain."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kubesched.cluster.arrays import Int64Array
from kubesched.framework.domain_scores import DomainScores


def _to_best(scores: Int64Array) -> Int64Array:
    return 100 * scores // max(int(scores.max(initial=0)), 1)


def _scores(values: list[int], domains: list[int] | None, counted: list[bool]) -> DomainScores:
    return DomainScores(
        np.array(values, dtype=np.int64),
        None if domains is None else np.array(domains, dtype=np.intp),
        np.array(counted, dtype=np.bool_),
    )


def test_each_node_has_the_score_of_its_domain() -> None:
    scores = _scores([5, 7], [1, 0, 1], [True, True])
    assert scores.of_nodes().tolist() == [7, 5, 7]
    assert len(scores) == 3


def test_without_domains_every_node_is_one() -> None:
    scores = _scores([5, 7], None, [True, True])
    assert scores.of_nodes().tolist() == [5, 7]
    assert len(scores) == 2


def test_a_domain_that_does_not_count_gets_nothing_and_changes_nothing() -> None:
    normalized = _scores([50, 10, 5], [0, 1, 2], [False, True, True]).normalized(_to_best)
    assert normalized is not None
    assert normalized.of_nodes().tolist() == [0, 100, 50]


def test_nothing_to_tell_nodes_apart_stays_nothing() -> None:
    assert _scores([1], [0, 0], [True]).normalized(lambda _: None) is None


@given(st.data())
def test_by_domain_is_the_same_as_by_node(data: st.DataObject) -> None:
    values = data.draw(st.lists(st.integers(0, 1000), min_size=1, max_size=6))
    domains = data.draw(st.lists(st.integers(0, len(values) - 1), min_size=1, max_size=20))
    there = [number in domains for number in range(len(values))]

    normalized = _scores(values, domains, there).normalized(_to_best)

    assert normalized is not None
    by_node = np.array([values[domain] for domain in domains], dtype=np.int64)
    assert normalized.of_nodes().tolist() == _to_best(by_node).tolist()
