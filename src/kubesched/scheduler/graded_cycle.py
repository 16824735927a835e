"""The scheduling cycle that also grades its choices, for the web page's feed.

A class of its own: without the page, decisions do not pay for it. With the page, a decision
keeps what it has computed anyway: how many nodes fit, and how many of them are equally good. Totals
in full, and so by how much a node leads, take an evaluation of all plugins; only as many decisions
get that as a page will show (`allow`).
"""

from __future__ import annotations

from typing import Final

from kubesched.cluster.arrays import IndexArray, Int64Array
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.feasible_nodes import Scored
from kubesched.framework.grading import PlacementGrade, grade_among, possible_total
from kubesched.framework.runtime import Framework
from kubesched.scheduler.cycle import Decision, SchedulingCycle

#: Grades that were not taken are dropped, the oldest first: a pod may never be bound.
MOST: Final = 1000
#: How many decisions are evaluated in full before a page is opened.
FIRST: Final = 100


class GradedCycle(SchedulingCycle):
    """Chooses nodes for pods, and keeps the grades of its last choices."""

    def __init__(self, cluster: Cluster, *, seed: int | None = None) -> None:
        super().__init__(cluster, seed=seed)
        #: uid → grade of its last placement
        self._grades: dict[str, PlacementGrade] = {}
        #: the nodes of the last attempt that had several
        self._scored: Scored | None = None
        #: how many of them are the best
        self._best_count = 1
        #: how many more decisions are evaluated in full
        self._left = FIRST

    def take(self, uid: str) -> PlacementGrade | None:
        """Return the grade of a pod's last placement, and clear it."""
        return self._grades.pop(uid, None)

    def allow(self, decisions: int) -> None:
        """Allow so many decisions to be evaluated in full from now on."""
        self._left = max(self._left, decisions)

    def schedule(self, framework: Framework, pod: PodInfo, *, may_pause: bool = False) -> Decision:
        """Choose a node for a pod, or return why none is feasible."""
        decision = super().schedule(framework, pod, may_pause=may_pause)
        self.note(framework, pod, decision)
        return decision

    def pick(self, scored: Scored) -> int:
        """Return one of the rows with the highest score."""
        best = scored.best()
        self._scored, self._best_count = scored, len(best)
        return scored.one_of(best, self.rng)

    def pick_of(self, rows: IndexArray, totals: Int64Array) -> int:
        """Return one of the rows with the highest total."""
        # Extenders have a part in them: the plugins' totals alone would be wrong.
        self._scored, self._best_count = None, int((totals == totals.max()).sum())
        return super().pick_of(rows, totals)

    def note(self, framework: Framework, pod: PodInfo, decision: Decision) -> None:
        """Keep the grade of a decision."""
        scored, self._scored = self._scored, None
        if not decision.node_name:
            return
        grades, feasible = self._grades, decision.feasible_nodes
        if len(grades) >= MOST:
            del grades[next(iter(grades))]
        if feasible == 1:
            # It is taken without a pick.
            grades[pod.uid] = PlacementGrade(1)
        elif self._left and scored is not None and framework.plugins.score:
            self._left -= 1
            grades[pod.uid] = self._in_full(framework, pod, decision, scored)
        else:
            grades[pod.uid] = PlacementGrade(feasible, equal=self._best_count - 1)

    def _in_full(
        self, framework: Framework, pod: PodInfo, decision: Decision, scored: Scored
    ) -> PlacementGrade:
        state, rows = decision.state.twin(), scored.rows()
        try:
            totals = framework.evaluator.totals_again(state, pod, rows)
        except AttemptError:
            return PlacementGrade(len(rows), equal=self._best_count - 1)
        chosen = (rows == self._cluster.table.row_of(decision.node_name)).argmax()
        return grade_among(totals, int(chosen), possible_total(framework, state.skip_score))
