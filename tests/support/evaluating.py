"""Asking an evaluator what an attempt asks, and checking its caches against the full evaluation."""

from __future__ import annotations

import numpy as np

from kubesched.cluster.arrays import IndexArray, Int64Array
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.evaluation import Evaluator
from kubesched.framework.feasible_nodes import feasible_nodes


def feasible_rows(evaluator: Evaluator, state: CycleState, pod: PodInfo) -> IndexArray | Diagnosis:
    """Return the rows that a pod fits on, in node order, or why there are none."""
    found = evaluator.filter(state, pod)
    return found if isinstance(found, Diagnosis) else found.rows()


def total_scores(
    evaluator: Evaluator, state: CycleState, pod: PodInfo, rows: IndexArray
) -> Int64Array:
    """Return the total of each row; cached totals rank rows as the sum over all plugins does."""
    plan = evaluator.plans.plan(pod.signature.row_signature)
    totals = np.zeros(len(rows), dtype=np.int64)
    for each in evaluator.plugin_scores(state, pod, rows):
        totals += each.normalized * each.weight
    found = feasible_nodes(plan, NodeRows(evaluator._table, rows))
    cached = evaluator.score(state, pod, found).totals()
    if len(rows) and plan.passing.at(rows).all():
        # What is the same for all rows may be left out of the cached ones.
        assert (totals - totals[0]).tolist() == (cached - cached[0]).tolist()
    return totals
