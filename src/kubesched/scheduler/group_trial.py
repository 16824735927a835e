"""What would become of a group if pods were gone: for plugins that search for victims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubesched.cluster.cluster import Cluster
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.cycle_state import CycleState
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

    def schedule(self) -> tuple[Sequence[Assignment], Status]:
        """Try the group on the cluster as it is now; changes nothing."""
        state = CycleState()
        state.unscored = UNSCORED
        results = self._cycle.run(self._framework, self._root, state)
        assigned = [each for result in results.values() for each in result.assigned()]
        return assigned, results[self._root.key].status

    def still_fits(self, assigned: Sequence[Assignment], changed: frozenset[int]) -> bool:
        """Tell whether all members still fit on their nodes, after some rows have changed.

        Where only row-local filters have a say about a member, it still fits if its row is as it
        was. If that goes for all of them, the others need not even be placed.
        """
        evaluator, table = self._framework.evaluator, self._cluster.table
        are_local = [evaluator.is_row_local(each.state) for each in assigned]
        all_local = all(are_local)
        with self._cluster.transaction() as tx:
            withdraw(self._root, tx)
            for each, is_local in zip(assigned, are_local, strict=True):
                row = table.row_of(each.node_name)
                is_same = is_local and row not in changed
                if is_same and all_local:
                    continue
                try:
                    if row is None or (
                        not is_same and evaluator.number_on(each.state, each.pod, row)
                    ):
                        return False
                except AttemptError:
                    return False
                place_member(self._framework, each, tx)
        return True
