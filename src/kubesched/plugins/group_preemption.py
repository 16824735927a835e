"""Victims to evict so that a whole group fits.

All units of lower priority are taken away from all nodes, and the group is scheduled once. With its
members where they are then, units come back one by one as long as every member still fits on its
node: those first whose eviction would overdraw a disruption budget, the most important of them
first. Those that cannot come back are the victims.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from kubesched.cluster.cluster import Cluster
from kubesched.cluster.group_forest import GroupForest
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.group import Assignment, GroupInfo, GroupTrial
from kubesched.framework.status import SUCCESS, Status, unresolvable, unschedulable
from kubesched.plugins.victim_units import VictimUnit, VictimUnits
from kubesched.plugins.victims import UnitPlaces, by_harm

NO_VICTIMS = unresolvable("No preemption victims found for incoming preemptor")
NEVER_POLICY = "Never"
NEVER = unschedulable("not eligible due to preemptionPolicy=Never.")


class GroupVictims(Struct, frozen=True, eq=False):
    """The victims of a preemption for a group, and the nodes of its members then."""

    #: the most important first
    victims: tuple[PodInfo, ...]
    #: uid of a member → its node
    nominations: Mapping[str, str]
    #: how many victims overdraw a disruption budget
    violations: int
    #: how many groups they belong to, or pods of groups that go one by one
    disrupted_groups: int


class GroupVictimSearch:
    """Searches for victims of groups."""

    def __init__(
        self, cluster: Cluster, forest: GroupForest, *, groups_have_policy: bool = False
    ) -> None:
        self._cluster = cluster
        self._forest = forest
        self._units = VictimUnits(forest)
        #: whether groups have a preemption policy: the gate PodGroupPreemptionPolicy
        self._groups_have_policy = groups_have_policy

    def why_not_eligible(self, group: GroupInfo) -> Status:
        """Return why a group may not preempt others, Success if it may."""
        if self._groups_have_policy:
            never = group.group.spec.preemption_policy == NEVER_POLICY
        else:
            never = any(pod.pod.spec.preemption_policy == NEVER_POLICY for pod in group.pods)
        return NEVER if never else SUCCESS

    def is_under_way(self, group: GroupInfo) -> bool:
        """Return whether pods are being evicted from a node that a member is nominated to."""
        names = {pod.pod.status.nominated_node_name for pod in group.pods}
        rows = (self._cluster.table.row_of(name) for name in names if name)
        return any(
            self._forest.priority_of(other) < group.priority and other.is_being_preempted
            for row in rows
            if row is not None
            for other in self._cluster.table.pods[row].values()
        )

    def search(
        self,
        group: GroupInfo,
        trial: GroupTrial,
        may_evict: Callable[[PodInfo], bool] = lambda _pod: True,
    ) -> GroupVictims | Status:
        """Find victims, or return why none help.

        Units with a pod that the caller `may_evict` not are left where they are.
        """
        table = self._cluster.table
        rows = table.order.rows().tolist()
        everywhere = (pod for row in rows for pod in table.pods[row].values())
        lower = [
            each
            for each in self._units.of(everywhere)
            if each.priority < group.priority and all(map(may_evict, each.pods))
        ]
        if not lower:
            return NO_VICTIMS
        with self._cluster.transaction() as tx:
            places = UnitPlaces(self._cluster, tx)
            for unit in lower:
                places.evict(unit)
            assigned, status = trial.schedule()
            if not status.ok:
                return status
            return self._reprieved(lower, places, assigned, trial)

    def _reprieved(
        self,
        units: Sequence[VictimUnit],
        places: UnitPlaces,
        assigned: Sequence[Assignment],
        trial: GroupTrial,
    ) -> GroupVictims:
        """Let units come back as long as all members fit; return those that cannot."""
        lost: list[VictimUnit] = []
        violations = 0
        for unit, overdrawing in by_harm(self._cluster, units):
            rows = places.rows_of(unit)
            if not trial.concerns(assigned, rows, unit.pods):
                continue
            places.reprieve(unit)
            if not trial.still_fits(assigned, rows, unit.pods):
                places.evict(unit)
                lost.append(unit)
                violations += overdrawing
        lost.sort(key=lambda unit: unit.importance)
        return GroupVictims(
            victims=tuple(pod for unit in lost for pod in unit.pods),
            nominations={each.pod.uid: each.node_name for each in assigned},
            violations=violations,
            disrupted_groups=sum(unit.is_group for unit in lost),
        )
