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
    return [each.uid for each in view.of(ROW)[0].pods]


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
    (found,) = view.of(ROW)

    assert found.kinds == [0, 1, 0, 2]
    assert [view.kinds[kind].uid for kind in found.kinds] == ["a", "b", "a", "d"]
    assert found.rearranged(reversed(found.pods)).kinds == [2, 0, 1, 0]


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
