"""Our decision about a pod on the current state: nothing is assumed, no pod is evicted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from kubesched.cluster.arrays import IndexArray, Int64Array
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import NO_NODES_AVAILABLE, Diagnosis
from kubesched.framework.runtime import Framework
from kubesched.framework.scoring import PluginScores
from kubesched.framework.status import Status
from kubesched.scheduler.dry_run import DryRun


class Placed(Struct, frozen=True):
    """There are feasible nodes."""

    state: CycleState
    #: feasible rows, in node order
    rows: IndexArray
    #: total score of each
    totals: Int64Array
    #: scores of each plugin
    scores: Sequence[PluginScores]

    @property
    def best(self) -> IndexArray:
        """The rows with the highest total."""
        return self.rows[self.totals == self.totals.max()]


class Unplaced(Struct, frozen=True):
    """There is no feasible node."""

    message: str
    #: the status of each node, if nodes were evaluated
    diagnosis: Diagnosis | None = None
    nominated_node: str = ""


class Untried(Struct, frozen=True):
    """A plugin gates the pod, or one failed."""

    status: Status
    gated: bool


Decision = Placed | Unplaced | Untried


def decide(engine: DryRun, framework: Framework, pod: PodInfo, *, preempt: bool) -> Decision:
    """Decide as the scheduling cycle does; with `preempt`, look for victims, too."""
    gate = framework.gate(pod)
    if not gate.ok:
        return Untried(gate, gated=True)
    if not len(engine.cluster.table):
        return Unplaced(NO_NODES_AVAILABLE)
    state = CycleState()
    try:
        feasible = framework.evaluator.filter(state, pod)
        if isinstance(feasible, Diagnosis):
            return _unplaced(framework, state, pod, feasible, engine if preempt else None)
        found = feasible.rows()
        if len(found) == 1:
            # With a single feasible node, score plugins do not run.
            return Placed(state, found, np.zeros(1, dtype=np.int64), ())
        scores = framework.evaluator.plugin_scores(state, pod, found)
    except AttemptError as failed:
        return Untried(failed.status, gated=False)
    totals = np.zeros(len(found), dtype=np.int64)
    for each in scores:
        totals += each.normalized * each.weight
    return Placed(state, found, totals, scores)


def _unplaced(
    framework: Framework,
    state: CycleState,
    pod: PodInfo,
    diagnosis: Diagnosis,
    engine: DryRun | None,
) -> Unplaced:
    if engine is None or not framework.plugins.post_filter:
        return Unplaced(diagnosis.message(), diagnosis)
    result = framework.post_filter(state, pod, diagnosis)
    engine.evictor.taken()
    diagnosis.post_filter_message = result.status.message
    return Unplaced(diagnosis.message(), diagnosis, nominated_node=result.nominated_node or "")
