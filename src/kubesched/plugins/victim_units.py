"""Units of preemption: a pod, or all pods of a group that may only be disrupted as a whole.

Of groups with ``disruptionMode: all`` the highest above a pod counts, with its pods on all nodes.
The priority of a member as a victim is that of its root, not its own.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from kubesched.cluster.group_forest import GroupForest
from kubesched.cluster.pod_groups import GroupKind
from kubesched.cluster.pod_info import PodInfo

NOT_STARTED = "~"
#: The importance of kinds among units of the same priority.
POD_RANK = 1
RANKS = {GroupKind.POD_GROUP: 2, GroupKind.COMPOSITE: 3}


class VictimUnit(Struct, frozen=True, eq=False):
    """Pods that are preempted together, or not at all."""

    pods: tuple[PodInfo, ...]
    priority: int
    rank: int = POD_RANK

    @property
    def importance(self) -> tuple[int, int, int, str]:
        """Sort key, smaller for more important units: priority, kind, size, running time."""
        started = min(pod.pod.status.start_time or NOT_STARTED for pod in self.pods)
        return -self.priority, -self.rank, -len(self.pods), started

    @property
    def is_group(self) -> bool:
        """Whether its eviction disrupts a group, as a whole or by one of its pods."""
        return self.rank > POD_RANK


class VictimUnits:
    """Finds the units that pods belong to."""

    def __init__(self, forest: GroupForest) -> None:
        self._forest = forest

    @property
    def any_grouped(self) -> bool:
        """Whether there are pods of groups on nodes."""
        return self._forest.groups.any_placed

    def of(self, pods: Iterable[PodInfo]) -> list[VictimUnit]:
        """Return the units of some pods, each once; a unit may have further pods."""
        units: list[VictimUnit] = []
        seen: set[object] = set()
        for pod in pods:
            if pod.pod.spec.scheduling_group is None:
                units.append(VictimUnit((pod,), pod.priority))
                continue
            whole = self._forest.unit_of(pod)
            if whole is None:
                priority, rank = self._forest.priority_of(pod), RANKS[GroupKind.POD_GROUP]
                units.append(VictimUnit((pod,), priority, rank))
            elif whole not in seen:
                seen.add(whole)
                together = tuple(self._forest.placed(whole))
                units.append(VictimUnit(together, self._forest.priority_of(pod), RANKS[whole.kind]))
        return units
