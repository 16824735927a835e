"""How good a placement is, evaluated again."""

from __future__ import annotations

import numpy as np
import pytest

from kubesched.cluster.arrays import Int64Array
from kubesched.cluster.node_rows import NodeRows
from kubesched.framework.grading import PlacementGrade, grade_on
from tests.support.given_plugins import scores
from tests.support.objects import node, pod
from tests.support.scheduling import Lab

POINTS = {"a": 90, "b": 70, "c": 70, "d": 10}


def lab() -> Lab:
    def points(nodes: NodeRows) -> Int64Array:
        names = map(nodes.table.name_at, nodes.row_numbers().tolist())
        return np.array([POINTS[name] for name in names])

    given = scores("Given", points)
    return Lab(*(node(name) for name in POINTS), plugins=[given], only=["NodeName"])


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("a", PlacementGrade(feasible=4, total=90, possible=100, margin=20)),
        ("b", PlacementGrade(feasible=4, total=70, possible=100, better=1, equal=1, margin=-20)),
        ("d", PlacementGrade(feasible=4, total=10, possible=100, better=3, margin=-80)),
    ],
)
def test_the_total_of_a_node_beside_the_others(name: str, want: PlacementGrade) -> None:
    made = lab()
    assert grade_on(made.framework, made.pending(pod(cpu="1")), name) == want


def test_equally_good_nodes_have_no_margin() -> None:
    made = Lab(node("a"), node("b"))
    grade = grade_on(made.framework, made.pending(pod(cpu="1")), "a")
    assert grade is not None
    assert (grade.better, grade.equal, grade.margin) == (0, 1, 0)


def test_plugins_that_skip_a_pod_do_not_count_for_what_is_possible() -> None:
    made = Lab(node("a"), node("b"))
    grade = grade_on(made.framework, made.pending(pod(cpu="1")), "a")
    assert grade is not None
    assert grade.possible is not None
    every = 100 * sum(weight for _, weight in made.framework.plugins.score)
    assert 0 < grade.possible < every  # no pod has affinity, and this one prefers nothing


def test_the_only_feasible_node_has_no_scores() -> None:
    made = Lab(node("a"), node("b", unschedulable=True))
    assert grade_on(made.framework, made.pending(pod()), "a") == PlacementGrade(feasible=1)


@pytest.mark.parametrize("name", ["full", "gone"])
def test_a_node_that_is_not_feasible_has_no_grade(name: str) -> None:
    made = Lab(node("a"), node("b"), node("full", cpu="0"))
    assert grade_on(made.framework, made.pending(pod(cpu="1")), name) is None


def test_a_pod_that_fits_nowhere_has_no_grade() -> None:
    made = Lab(node("a", cpu="1"))
    assert grade_on(made.framework, made.pending(pod(cpu="2")), "a") is None
