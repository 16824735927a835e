"""Pods of lower priority, in order and by kind."""

from __future__ import annotations

import numpy as np
import pytest

from kubesched.plugins import lower_pods
from kubesched.plugins.lower_pods import LowerPods
from tests.support.objects import node, pod
from tests.support.scheduling import Lab

ROW = np.zeros(1, dtype=np.intp)


def lower_on(lab: Lab, view: LowerPods) -> list[str]:
    view.refresh()
    (pods,) = view.of(ROW).pods
    return [each.uid for each in pods]


def test_pods_below_the_priority_the_most_important_first() -> None:
    lab = Lab(node("n1"), *(pod(f"p{each}", node="n1", priority=each) for each in (1, 5, 3, 9)))
    view = LowerPods(lab.cluster.table, 5)

    assert lower_on(lab, view) == ["p3", "p1"]
    lab.cluster.put_pod(pod("p4", node="n1", priority=4))
    assert lower_on(lab, view) == ["p4", "p3", "p1"]


def test_pods_that_filters_cannot_tell_apart_are_of_one_kind() -> None:
    lab = Lab(
        node("n1"),
        pod("a", node="n1", cpu="1", labels={"app": "x"}, priority=3),
        pod("b", node="n1", cpu="2", labels={"app": "x"}, priority=2),
        pod("c", node="n1", cpu="1", labels={"app": "x"}, priority=1),
        pod("d", node="n1", cpu="1", labels={"app": "y"}),
    )
    view = LowerPods(lab.cluster.table, 5)
    view.refresh()
    found = view.of(ROW)

    assert found.kinds.tolist() == [[0, 1, 0, 2]]
    assert [view.kinds[kind].uid for kind in found.kinds[0].tolist()] == ["a", "b", "a", "d"]


def test_rows_have_as_many_turns_as_the_one_with_the_most_pods() -> None:
    lab = Lab(
        node("n1"),
        node("n2"),
        node("n3"),
        pod("a", node="n1", priority=2),
        pod("b", node="n3", priority=4),
        pod("c", node="n3", priority=3, cpu="1"),
    )
    view = LowerPods(lab.cluster.table, 5)
    view.refresh()
    rows = np.array([2, 1, 0], dtype=np.intp)
    found = view.of(rows)

    assert view.are_on(rows).tolist() == [True, False, True]
    assert [[each.uid for each in pods] for pods in found.pods] == [["b", "c"], [], ["a"]]
    assert found.there.tolist() == [[True, True], [False, False], [True, False]]
    assert found.kinds.tolist() == [[0, 1], [-1, -1], [0, -1]]
    assert found.priorities.tolist() == [[4, 3], [0, 0], [2, 0]]
    some = found.among(np.array([0, 2], dtype=np.intp))
    assert [len(pods) for pods in some.pods] == [2, 1]
    assert some.priorities.tolist() == [[4, 3], [2, 0]]


def test_kinds_of_pods_that_are_gone_are_dropped_when_they_are_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lower_pods, "MOST_KINDS", 2)
    lab = Lab(node("n1"))
    view = LowerPods(lab.cluster.table, 5)
    for number in range(4):
        lab.cluster.put_pod(pod("p", node="n1", cpu=f"{number}m"))
        lower_on(lab, view)

    assert len(view.kinds) <= 2


def test_kinds_in_use_are_not_dropped_however_many_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lower_pods, "MOST_KINDS", 2)
    lab = Lab(node("n1"), *(pod(f"p{each}", node="n1", cpu=f"{each}m") for each in range(1, 9)))
    view = LowerPods(lab.cluster.table, 5)
    lower_on(lab, view)
    lab.cluster.put_node(node("n2"))
    lower_on(lab, view)
    before = view.kinds
    lab.cluster.put_node(node("n3"))

    assert len(lower_on(lab, view)) == 8
    assert view.kinds is before
