"""The scheduling cycle: one pod, all nodes, one decision. Synchronous, and reads only columns."""

from __future__ import annotations

import random

import numpy as np
from msgspec import Struct

from kubesched.cluster.arrays import IndexArray, Int64Array
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import NO_NODES_AVAILABLE, Diagnosis
from kubesched.framework.runtime import Framework
from kubesched.framework.status import SUCCESS, Status, unresolvable, unschedulable
from kubesched.scheduler.sampling import NodeSampler, enough_nodes


class Decision(Struct):
    """What became of one attempt at one pod."""

    status: Status
    state: CycleState
    #: the node chosen, "" if there is none
    node_name: str = ""
    #: why there is none, if nodes were looked at
    diagnosis: Diagnosis | None = None
    #: node to nominate the pod to, "" to take a nomination back, None to leave it
    nominated_node: str | None = None
    evaluated_nodes: int = 0
    feasible_nodes: int = 0


class SchedulingCycle:
    """Finds nodes for pods."""

    def __init__(self, cluster: Cluster, *, seed: int | None = None) -> None:
        self._cluster = cluster
        self._sampler = NodeSampler(cluster.table)
        #: settles ties between equally good nodes; the same seed gives the same placements
        self._rng = random.Random(seed)  # noqa: S311 (spreads pods, hides nothing)

    @property
    def rng(self) -> random.Random:
        """What settles ties: the next choice depends on where it stands."""
        return self._rng

    @property
    def sampler(self) -> NodeSampler:
        """What remembers where the next search starts."""
        return self._sampler

    def schedule(self, framework: Framework, pod: PodInfo) -> Decision:
        """Choose a node for a pod, or say why there is none."""
        state = CycleState()
        if len(self._cluster.table) == 0:
            return self.without_nodes(state)
        try:
            ranked = self._rank(framework, state, pod)
            if ranked is not None:
                return ranked
            found = self.find(framework, state, pod)
            if isinstance(found, Diagnosis):
                return self.explain(framework, state, pod, found)
            rows, evaluated = found
            if len(rows) == 1:
                row = int(rows[0])
            else:
                row = self.pick(rows, framework.evaluator.total_scores(state, pod, rows))
        except AttemptError as failed:
            return Decision(failed.status, state, nominated_node="")
        return self.chosen(state, row, evaluated=evaluated, feasible=len(rows))

    def _rank(self, framework: Framework, state: CycleState, pod: PodInfo) -> Decision | None:
        """Choose a node by totals that are kept, where that can be done; it is the same node."""
        if not framework.ranks_all_nodes or pod.pod.status.nominated_node_name:
            return None
        ranked = framework.evaluator.ranker.rank(state, pod)
        if ranked is None:
            return None
        table = self._cluster.table
        best = ranked.best()
        # The same choice as among nodes in their order.
        number = self._rng.randrange(len(best)) if ranked.feasible > 1 else 0
        row = best.nth(number, table.order)
        return self.chosen(state, row, evaluated=len(table), feasible=ranked.feasible)

    # --- steps ------------------------------------------------------------------------------

    def without_nodes(self, state: CycleState) -> Decision:
        """Return what to say when there are no nodes at all."""
        return Decision(unresolvable(NO_NODES_AVAILABLE), state, nominated_node="")

    def find(
        self, framework: Framework, state: CycleState, pod: PodInfo, *, all_matter: bool = False
    ) -> tuple[IndexArray, int] | Diagnosis:
        """Return feasible rows and how many nodes were looked at, or why there are none.

        One is enough if nothing tells feasible nodes apart, unless the caller says `all_matter`.
        """
        found = framework.evaluator.find_feasible(state, pod)
        if isinstance(found, Diagnosis):
            return found
        if framework.plugins.score or all_matter:
            enough = enough_nodes(len(self._cluster.table), framework.percentage_of_nodes_to_score)
        else:
            enough = 1
        return self._sampler.sample(found, enough)

    def pick(self, rows: IndexArray, total: Int64Array) -> int:
        """Return one of the rows with the highest total."""
        best = np.flatnonzero(total == total.max())
        return int(rows[best[self._rng.randrange(len(best))]])

    def chosen(self, state: CycleState, row: int, *, evaluated: int, feasible: int) -> Decision:
        """Return the decision for a row."""
        return Decision(
            SUCCESS,
            state,
            node_name=self._cluster.table.name_at(row),
            evaluated_nodes=evaluated,
            feasible_nodes=feasible,
        )

    def explain(
        self, framework: Framework, state: CycleState, pod: PodInfo, diagnosis: Diagnosis
    ) -> Decision:
        """Return the decision for a pod that fits nowhere, after trying to make room for it."""
        nominated: str | None = ""
        if framework.plugins.post_filter:
            result = framework.post_filter(state, pod, diagnosis)
            diagnosis.post_filter_message = result.status.message
            nominated = result.nominated_node
        return Decision(
            unschedulable(diagnosis.message()),
            state,
            diagnosis=diagnosis,
            nominated_node=nominated,
            evaluated_nodes=len(self._cluster.table),
        )
