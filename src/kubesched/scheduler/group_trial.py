"""Whether a group would fit without some pods: for plugins that search for victims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubesched.cluster.cluster import Cluster
from kubesched.framework.attempt_error import AttemptError
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

    def concerns(self, assigned: Sequence[Assignment], changed: frozenset[int]) -> bool:
        """Return whether a change of some rows can matter to members on their nodes.

        Where only row-local filters apply to all of them, other rows cannot.
        """
        placed = self._of(assigned)
        return not placed.all_local or not changed.isdisjoint(placed.by_row)

    def still_fits(self, assigned: Sequence[Assignment], changed: frozenset[int]) -> bool:
        """Return whether all members still fit on their nodes, after some rows have changed.

        Where only row-local filters apply to a member, it still fits if its row is as it
        was. If that goes for all of them, the others need not even be placed.
        """
        placed = self._of(assigned)
        if not placed.all_local:
            return self._fit(placed.in_turn, changed)
        rows = [row for row in changed if row in placed.by_row]
        if len(self._cluster.nominator):
            return self._fit([each for row in rows for each in placed.by_row[row]], changed)
        return all(self._fit_on(row, placed.by_row[row]) for row in rows)

    def _of(self, assigned: Sequence[Assignment]) -> _Placed:
        if self._placed is None or self._placed.assigned is not assigned:
            self._placed = _Placed(assigned, self._framework.evaluator, self._cluster)
        return self._placed

    def _fit_on(self, row: int, members: Sequence[_Member]) -> bool:
        """Return whether members fit on a row together, where only row-local filters matter."""
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
            (cluster.table.row_of(each.node_name), each, evaluator.is_row_local(each.state))
            for each in assigned
        ]
        #: whether all of them depend on their own rows alone
        self.all_local = all(is_local for _, _, is_local in self.in_turn)
        self.by_row: dict[int | None, list[_Member]] = {}
        for each in self.in_turn:
            self.by_row.setdefault(each[0], []).append(each)
