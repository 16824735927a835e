"""Whether a group would fit without some pods: for plugins that search for victims."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Final

import numpy as np

from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.count_bounds import BoundedRows
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.evaluation import Evaluator
from kubesched.framework.group import Assignment, GroupInfo
from kubesched.framework.runtime import Framework
from kubesched.framework.status import Status
from kubesched.scheduler.group_cycle import GroupCycle, place_member, withdraw

#: kube-scheduler searches for victims of a group on a copy of the cluster in which it does not
#: count the nodes that have an image. So images make no difference there.
UNSCORED: Final = frozenset({"ImageLocality"})


class GroupTrialRun:
    """Tries a group, and what was found for it, on the cluster as it is."""

    def __init__(
        self, cycle: GroupCycle, cluster: Cluster, framework: Framework, root: GroupInfo
    ) -> None:
        self._cycle = cycle
        self._cluster = cluster
        self._framework = framework
        self._root = root
        self._placed: _Placed | None = None

    def schedule(self) -> tuple[Sequence[Assignment], Status]:
        """Try the group on the cluster as it is now; changes nothing."""
        state = CycleState()
        state.unscored = UNSCORED
        results = self._cycle.run(self._framework, self._root, state)
        assigned = [each for result in results.values() for each in result.assigned()]
        return assigned, results[self._root.key].status

    def concerns(
        self, assigned: Sequence[Assignment], changed: frozenset[int], pods: Sequence[PodInfo]
    ) -> bool:
        """Return whether pods that come back to some rows can matter to members on their nodes.

        On other rows, only those can that filters of a member count as too many, or that keep
        others away.
        """
        placed = self._of(assigned)
        return not changed.isdisjoint(placed.by_row) or placed.is_concerned_by(pods)

    def still_fits(
        self, assigned: Sequence[Assignment], changed: frozenset[int], pods: Sequence[PodInfo]
    ) -> bool:
        """Return whether all members still fit on their nodes, after pods came back to some rows.

        Where only row-local filters can mind those pods, a member still fits if its row is as it
        was, and the others need not even be placed.
        """
        placed = self._of(assigned)
        if placed.is_concerned_by(pods):
            return self._fit(placed.in_turn, changed)
        rows = [row for row in changed if row in placed.by_row]
        if not len(self._cluster.nominator):
            return all(self._fit_on(row, placed.by_row[row]) for row in rows)
        if placed.all_local:
            return self._fit([each for row in rows for each in placed.by_row[row]], changed)
        return self._fit(placed.in_turn, changed)

    def _of(self, assigned: Sequence[Assignment]) -> _Placed:
        if self._placed is None or self._placed.assigned is not assigned:
            self._placed = _Placed(assigned, self._framework.evaluator, self._cluster)
        return self._placed

    def _fit_on(self, row: int, members: Sequence[_Member]) -> bool:
        """Return whether members fit on a row together, where no other filters matter."""
        evaluator = self._framework.evaluator
        with self._cluster.transaction() as tx:
            for number, (_, each, _) in enumerate(members, start=1):
                if evaluator.plans.plan(each.pod.signature.row_signature).rejection_of(row):
                    return False
                if number < len(members):
                    place_member(self._framework, each, tx)
        return True

    def _fit(self, members: Sequence[_Member], changed: frozenset[int]) -> bool:
        """Return whether members fit on their nodes, one after the other."""
        evaluator = self._framework.evaluator
        with self._cluster.transaction() as tx:
            withdraw(self._root, tx)
            for row, each, is_local in members:
                is_same = is_local and row not in changed
                try:
                    if row is None or (
                        not is_same and evaluator.number_on(each.state, each.pod, row)
                    ):
                        return False
                except AttemptError:
                    return False
                place_member(self._framework, each, tx)
        return True


#: A member with the row of its node, and whether only row-local filters apply to it.
_Member = tuple[int | None, Assignment, bool]


class _Placed:
    """Members on their nodes, looked up once for many questions."""

    def __init__(
        self, assigned: Sequence[Assignment], evaluator: Evaluator, cluster: Cluster
    ) -> None:
        self.assigned = assigned
        self.in_turn: list[_Member] = [
            (cluster.table.row_of(each.node_name), each, evaluator.filters.is_row_local(each.state))
            for each in assigned
        ]
        #: whether all of them depend on their own rows alone
        self.all_local = all(is_local for _, _, is_local in self.in_turn)
        self._evaluator = evaluator
        self._bounded: list[BoundedRows] | None = None
        self.by_row: dict[int | None, list[_Member]] = {}
        for each in self.in_turn:
            self.by_row.setdefault(each[0], []).append(each)

    def is_concerned_by(self, pods: Sequence[PodInfo]) -> bool:
        """Return whether other filters than row-local ones can mind pods that come back."""
        if self.all_local:
            return False
        if not all(self._evaluator.filters.is_arithmetic(each.state) for each in self.assigned):
            return True
        if self._bounded is None:
            self._bounded = list(self._bounds())
        return any(
            each.terms.any or any(bounded.may_mind(each) for bounded in self._bounded)
            for each in pods
        )

    def _bounds(self) -> Iterator[BoundedRows]:
        """Return the bounds on what is counted for members, once for those that are alike."""
        alike: set[Hashable] = set()
        for row, each, _ in self.in_turn:
            if row is not None and each.pod.alike not in alike:
                alike.add(each.pod.alike)
                rows = np.array([row], dtype=np.intp)
                yield self._evaluator.filters.bounded(each.state, each.pod, rows)
