"""The scheduling cycle: one pod, all nodes, one decision. Synchronous, and reads only columns.

filter ──> sample ──> score ──> pick ──> Decision
   └─ none ─> PostFilter ──────────────> Decision
"""

from __future__ import annotations

import random

import numpy as np
from msgspec import Struct

from kubesched.cluster.arrays import BoolArray, IndexArray, Int64Array
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import NO_NODES_AVAILABLE, Diagnosis
from kubesched.framework.feasible_nodes import FeasibleNodes, Scored
from kubesched.framework.runtime import Framework
from kubesched.framework.status import SUCCESS, Status, unresolvable, unschedulable
from kubesched.scheduler.sampling import NodeSampler, enough_nodes


class Decision(Struct):
    """The result of one attempt to schedule a pod."""

    status: Status
    state: CycleState
    #: the chosen node, "" if none is feasible
    node_name: str = ""
    #: why no node is feasible, if filters ran
    diagnosis: Diagnosis | None = None
    #: node to nominate the pod to, "" to clear its nomination, None to keep it
    nominated_node: str | None = None
    evaluated_nodes: int = 0
    feasible_nodes: int = 0


class SchedulingCycle:
    """Chooses nodes for pods."""

    def __init__(self, cluster: Cluster, *, seed: int | None = None) -> None:
        self._cluster = cluster
        #: holds where the next search starts
        self.sampler = NodeSampler(cluster.table)
        #: breaks ties; the same seed gives the same placements
        self.rng = random.Random(seed)  # noqa: S311 (spreads pods, needs no secrecy)

    def draws(self) -> object:
        """Return what the next decisions depend on beside the cluster, for `draw_again`."""
        return self.rng.getstate(), self.sampler.start

    def draw_again(self, draws: object) -> None:
        """Go back to what `draws` returned."""
        assert isinstance(draws, tuple)  # noqa: S101 - it comes from `draws`
        state, self.sampler.start = draws
        self.rng.setstate(state)

    def schedule(self, framework: Framework, pod: PodInfo, *, may_pause: bool = False) -> Decision:
        """Choose a node for a pod, or return why none is feasible.

        Raises AttemptPausedError, if it may, when a plugin needs long: then call it again.
        """
        state = CycleState()
        state.may_pause = may_pause
        try:
            chosen = self._choose(framework, state, pod)
            if isinstance(chosen, Diagnosis):
                return self.post_filter(framework, state, pod, chosen)
        except AttemptError as failed:
            return Decision(failed.status, state, nominated_node="")
        return chosen

    def schedule_member(self, framework: Framework, state: CycleState, pod: PodInfo) -> Decision:
        """Choose a node for a member of a group, within the placement that `state` names.

        PostFilter does not run: if the group cannot be placed, it preempts as a whole.
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
        """Return one of the rows with the highest score."""
        return scored.pick(self.rng)

    def pick_of(self, rows: IndexArray, totals: Int64Array) -> int:
        """Return one of the rows with the highest total; extenders have changed the totals."""
        best = rows[totals == totals.max()]
        return best.item(self.rng.randrange(len(best)))

    def note(self, framework: Framework, pod: PodInfo, decision: Decision) -> None:
        """Handle a decision that was made with extenders, step by step; for subclasses."""

    def without_nodes(self, state: CycleState) -> Decision:
        """Return the decision for a cluster without nodes."""
        return Decision(unresolvable(NO_NODES_AVAILABLE), state, nominated_node="")

    def sample(
        self,
        framework: Framework,
        found: FeasibleNodes,
        *,
        all_matter: bool = False,
        within: BoolArray | None = None,
    ) -> tuple[FeasibleNodes, int]:
        """Return the feasible nodes to score, and the number of nodes evaluated.

        One is enough if no plugin scores nodes, unless the caller sets `all_matter`.
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
        """Run PostFilter, which may preempt other pods, for a pod without a feasible node."""
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
