"""Asking an evaluator what an attempt asks, and checking its caches against the full evaluation."""

from __future__ import annotations

import random

import numpy as np

from kubesched.cluster.arrays import IndexArray, Int64Array
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.evaluation import Evaluator, feasible_nodes
from kubesched.framework.runtime import Framework


def feasible_rows(evaluator: Evaluator, state: CycleState, pod: PodInfo) -> IndexArray | Diagnosis:
    """Return the rows that a pod fits on, in node order, or why there are none."""
    found = evaluator.filter(state, pod)
    return found if isinstance(found, Diagnosis) else found.rows()


def total_scores(
    evaluator: Evaluator, state: CycleState, pod: PodInfo, rows: IndexArray
) -> Int64Array:
    """Return the total of each row; cached totals rank rows as the sum over all plugins does."""
    plan = evaluator.plans.plan(pod.shape.row_shape)
    totals = np.zeros(len(rows), dtype=np.int64)
    for each in evaluator.plugin_scores(state, pod, rows):
        totals += each.normalized * each.weight
    found = feasible_nodes(plan, NodeRows(evaluator._table, rows))
    cached = evaluator.score(state, pod, found).totals()
    if len(rows) and plan.passing.at(rows).all():
        # What is the same for all rows may be left out of the cached ones.
        assert (totals - totals[0]).tolist() == (cached - cached[0]).tolist()
    return totals


def decide_fully(
    framework: Framework, cluster: Cluster, pod: PodInfo, *, seed: int
) -> tuple[str, int]:
    """Return the node that the full evaluation chooses, "" for none, and how many are feasible.

    Row by row and plugin by plugin, past all caches: the oracle of the decision path.
    """
    evaluator, table, state = framework.evaluator, cluster.table, CycleState()
    looked = evaluator.look(state, pod)
    if isinstance(looked, Diagnosis) and looked.pre_filter is not None:
        return "", 0
    in_order = table.order.rows().tolist()
    rows = [row for row in in_order if evaluator.status_on(state, pod, row) is None]
    if not rows:
        return "", 0
    totals = np.zeros(len(rows), dtype=np.int64)
    if len(rows) > 1:
        for each in evaluator.plugin_scores(state, pod, np.array(rows, dtype=np.intp)):
            totals += each.normalized * each.weight
    best = [row for row, total in zip(rows, totals.tolist(), strict=True) if total == totals.max()]
    chosen = random.Random(seed).randrange(len(best)) if len(rows) > 1 else 0
    return table.name_at(best[chosen]), len(rows)
