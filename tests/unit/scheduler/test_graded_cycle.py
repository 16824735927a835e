"""A cycle that says how good its choices are, and makes the same ones."""

from __future__ import annotations

import pytest

from kubesched.framework.grading import PlacementGrade, grade_on
from kubesched.scheduler import graded_cycle
from kubesched.scheduler.cycle import SchedulingCycle
from kubesched.scheduler.graded_cycle import FIRST, GradedCycle
from tests.support.objects import node, pod
from tests.support.scheduling import Lab


def test_choices_are_those_of_the_plain_cycle() -> None:
    lab = Lab(*(node(f"n{number}") for number in range(8)))
    plain, graded = SchedulingCycle(lab.cluster, seed=3), GradedCycle(lab.cluster, seed=3)
    for number in range(20):
        asking = lab.pending(pod(f"p{number}", cpu="1"))
        ours = graded.schedule(lab.framework, asking).node_name
        assert ours == plain.schedule(lab.framework, asking).node_name


def test_a_grade_is_that_of_a_second_evaluation() -> None:
    lab = Lab(node("small", cpu="4"), node("large", cpu="64"), node("larger", cpu="64"))
    cycle = GradedCycle(lab.cluster, seed=1)
    for name, cpu in (("tied", "1"), ("ahead", "1"), ("only", "60")):
        asking = lab.pending(pod(name, cpu=cpu))
        chosen = cycle.schedule(lab.framework, asking).node_name
        assert cycle.take(asking.uid) == grade_on(lab.framework, asking, chosen), name
        lab.cluster.put_pod(pod(name, cpu=cpu, node=chosen))


def test_the_only_node_that_fits_is_graded_as_such() -> None:
    lab = Lab(node("a"), node("b", cpu="0"))
    cycle = GradedCycle(lab.cluster)
    asking = lab.pending(pod(cpu="1"))
    cycle.schedule(lab.framework, asking)
    assert cycle.take(asking.uid) == PlacementGrade(feasible=1)
    assert cycle.take(asking.uid) is None


def test_a_pod_without_a_node_has_no_grade() -> None:
    lab = Lab(node("a", cpu="1"))
    cycle = GradedCycle(lab.cluster)
    asking = lab.pending(pod(cpu="2"))
    cycle.schedule(lab.framework, asking)
    assert cycle.take(asking.uid) is None


def test_decisions_are_evaluated_in_full_only_as_often_as_allowed() -> None:
    lab = Lab(node("small", cpu="2"), node("large", cpu="64"))
    cycle = GradedCycle(lab.cluster)
    full = []
    for number in range(FIRST + 2):
        if number == FIRST + 1:
            cycle.allow(1)
        asking = lab.pending(pod(f"p{number}", cpu="1"))
        cycle.schedule(lab.framework, asking)
        grade = cycle.take(asking.uid)
        assert grade is not None
        assert (grade.feasible, grade.equal) == (2, 0)
        full.append(grade.total is not None and grade.margin is not None)
    assert full == [*[True] * FIRST, False, True]


def test_grades_that_are_not_taken_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graded_cycle, "MOST", 2)
    lab = Lab(node("a"), node("b"))
    cycle = GradedCycle(lab.cluster)
    infos = [lab.pending(pod(f"p{number}", uid=f"u{number}")) for number in range(3)]
    for each in infos:
        cycle.schedule(lab.framework, each)
    assert [cycle.take(each.uid) is not None for each in infos] == [False, True, True]
