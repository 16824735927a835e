"""The scheduling cycle: one pod, all nodes, one decision. Synchronous, and reads only columns.

filter ──> sample ──> score ──> pick ──> Decision
   └─ none ─> PostFilter ──────────────> Decision
"""

from __future__ import annotations

import random

import numpy as np
from msgspec import Struct

from kubesched.cluster.arrays import BoolArray
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import NO_NODES_AVAILABLE, Diagnosis
from kubesched.framework.evaluation import FeasibleNodes, Scored
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
        #: remembers where the next search starts
        self.sampler = NodeSampler(cluster.table)
        #: chooses among equally good nodes; the same seed gives the same placements
        self.rng = random.Random(seed)  # noqa: S311 (spreads pods, hides nothing)

    def schedule(self, framework: Framework, pod: PodInfo) -> Decision:
        """Choose a node for a pod, or say why there is none."""
        state = CycleState()
        try:
            chosen = self._choose(framework, state, pod)
            if isinstance(chosen, Diagnosis):
                return self.post_filter(framework, state, pod, chosen)
        except AttemptError as failed:
            return Decision(failed.status, state, nominated_node="")
        return chosen

    def schedule_member(self, framework: Framework, state: CycleState, pod: PodInfo) -> Decision:
        """Choose a node for a member of a group, within the placement that `state` names.

        PostFilter does not run: it is for the group to make room, if it cannot be placed.
        """
        try:
            chosen = self._choose(framework, state, pod)
        except AttemptError as failed:
            return Decision(failed.status, state, nominated_node="")
        if isinstance(chosen, Diagnosis):
            return Decision(unschedulable(chosen.message()), state, diagnosis=chosen)
        return chosen

    def _choose(
        self, framework: Framework, state: CycleState, pod: PodInfo
    ) -> Decision | Diagnosis:
        if len(self._cluster.table) == 0:
            return self.without_nodes(state)
        evaluator = framework.evaluator
        found = evaluator.filter(state, pod)
        if isinstance(found, Diagnosis):
            return found
        found, evaluated = self.sample(framework, found, within=state.placement)
        if found.count == 1:
            row = found.nodes.row_numbers().item()
        else:
            row = self.pick(evaluator.score(state, pod, found))
        return self.chosen(state, row, evaluated=evaluated, feasible=found.count)

    # --- steps ------------------------------------------------------------------------------

    def pick(self, scored: Scored) -> int:
        """Return one of the best rows."""
        return scored.pick(self.rng)

    def without_nodes(self, state: CycleState) -> Decision:
        """Return what to say when there are no nodes at all."""
        return Decision(unresolvable(NO_NODES_AVAILABLE), state, nominated_node="")

    def sample(
        self,
        framework: Framework,
        found: FeasibleNodes,
        *,
        all_matter: bool = False,
        within: BoolArray | None = None,
    ) -> tuple[FeasibleNodes, int]:
        """Return as many feasible nodes as are to be scored, and how many were looked at.

        One is enough if no plugin tells feasible nodes apart, unless the caller says `all_matter`.
        `within` are the rows of a placement, if there is one.
        """
        total = len(self._cluster.table) if within is None else int(np.count_nonzero(within))
        if framework.ranks_all_nodes:
            return found, total
        enough = 1
        if framework.plugins.score or all_matter:
            enough = enough_nodes(total, framework.percentage_of_nodes_to_score)
        if found.count <= enough:
            return found, total
        rows, looked_at = self.sampler.sample(found.rows(), enough)
        return found.narrowed(rows), looked_at

    def chosen(self, state: CycleState, row: int, *, evaluated: int, feasible: int) -> Decision:
        """Return the decision for a row."""
        return Decision(
            SUCCESS,
            state,
            node_name=self._cluster.table.name_at(row),
            evaluated_nodes=evaluated,
            feasible_nodes=feasible,
        )

    def post_filter(
        self, framework: Framework, state: CycleState, pod: PodInfo, diagnosis: Diagnosis
    ) -> Decision:
        """Run PostFilter, which may preempt other pods, for a pod that fits nowhere."""
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
