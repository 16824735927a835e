"""The oracle of the decision path: row by row and plugin by plugin, uncached."""

from __future__ import annotations

import random

import numpy as np

from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.runtime import Framework


def decide_fully(
    framework: Framework, cluster: Cluster, pod: PodInfo, *, seed: int
) -> tuple[str, int]:
    """Return the node that the full evaluation chooses, "" for none, and the number of feasible
    nodes.

    Raises AttemptError if a plugin reports an error.
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
    draw = random.Random(seed)  # noqa: S311 (as the cycle draws)
    chosen = draw.randrange(len(best)) if len(rows) > 1 else 0
    return table.name_at(best[chosen]), len(rows)
