"""Feasible nodes and their scores: in node order, the best of them, ties by the seed."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from kubesched.cluster.node_rows import NodeRows
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.feasible_nodes import FeasibleNodes, Scored, feasible_nodes, spread
from kubesched.framework.totals import INFEASIBLE
from tests.support.given_plugins import scores
from tests.support.objects import node, pod
from tests.support.scheduling import Lab

#: The largest node is the best one; b is cordoned.
NODES = (
    node("a", cpu="2"),
    node("b", cpu="16", unschedulable=True),
    node("c", cpu="8"),
    node("d", cpu="8"),
)


def attempt(lab: Lab) -> tuple[FeasibleNodes, Scored]:
    evaluator, state, asking = lab.framework.evaluator, CycleState(), lab.pending(pod(cpu="1"))
    found = evaluator.filter(state, asking)
    assert not isinstance(found, Diagnosis)
    return found, evaluator.score(state, asking, found)


def test_rows_are_in_node_order_and_need_no_mask_if_row_local_filters_decide() -> None:
    lab = Lab(*NODES)
    found, _ = attempt(lab)

    assert found.mask is None
    assert len(found) == 3
    assert lab.names(found.rows()) == ["a", "c", "d"]


def test_some_of_the_nodes_are_a_mask_over_all_rows() -> None:
    lab = Lab(*NODES)
    found, _ = attempt(lab)
    some = found.narrowed(np.array([0, 3]))

    assert some.mask is not None
    assert some.mask.tolist() == [True, False, False, True]
    assert lab.names(some.rows()) == ["a", "d"]
    assert some.plan is found.plan


def test_the_best_rows_are_those_with_the_highest_total() -> None:
    lab = Lab(*NODES)
    _, scored = attempt(lab)
    totals = dict(zip(lab.names(scored.rows()), scored.totals().tolist(), strict=True))

    assert totals["a"] < totals["c"] == totals["d"]
    assert len(scored.best()) == 2
    picked = {lab.cluster.table.name_at(scored.pick(Random(seed))) for seed in range(20)}
    assert picked == {"c", "d"}


@pytest.mark.parametrize(("left", "want"), [([0, 3], "d"), ([0], "a")])
def test_the_best_rows_of_a_mask_even_if_none_of_the_best_of_all_is_in_it(
    left: list[int], want: str
) -> None:
    lab = Lab(*NODES)
    found, _ = attempt(lab)
    state, some = CycleState(), found.narrowed(np.array(left))
    scored = lab.framework.evaluator.score(state, lab.pending(pod(cpu="1")), some)

    assert len(scored.best()) == 1
    assert lab.cluster.table.name_at(scored.pick(Random(1))) == want


def test_scores_of_cluster_wide_plugins_are_added() -> None:
    prefers_a = scores("PrefersA", lambda nodes: np.where(nodes.row_numbers() == 0, 100, 0))
    lab = Lab(*NODES, plugins=[prefers_a])
    _, scored = attempt(lab)

    assert lab.names(scored.rows()) == ["a", "c", "d"]
    assert lab.cluster.table.name_at(scored.pick(Random(1))) == "a"


def test_rows_that_are_not_feasible_get_no_total() -> None:
    nodes = NodeRows(Lab(*NODES).cluster.table, np.array([3, 1]))

    assert spread(np.array([7, 5]), nodes).tolist() == [INFEASIBLE, 5, INFEASIBLE, 7]


def test_named_rows_become_feasible_nodes() -> None:
    lab = Lab(*NODES)
    found, _ = attempt(lab)
    named = feasible_nodes(found.plan, NodeRows.one(lab.cluster.table, 2))

    assert len(named) == 1
    assert lab.names(named.rows()) == ["c"]
