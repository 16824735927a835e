"""A row that a pod has left: whom that may help.

A pod that waits can use the row if it fits there now, or if it would fit without the pods that are
less important, so that preemption may make room. A pod that was promised a place, and whose victims
are still on their way out, does not look for other victims until they are gone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.shape import Shape

#: Returns the resources of a shape that must fit, with amounts.
Checked = Callable[[Shape], Sequence[tuple[str, int]]]


class FreedRow:
    """What a row has to offer now; answers are kept, since pods of one shape ask the same."""

    def __init__(self, cluster: Cluster, row: int, checked: Checked) -> None:
        self._nominator = cluster.nominator
        self._table = cluster.table
        self._row = row
        self._name = cluster.table.name_at(row)
        self._checked = checked
        self._fits: dict[Shape, bool] = {}
        self._fits_without: dict[tuple[Shape, int], bool] = {}

    def helps(self, pod: PodInfo) -> bool:
        """Tell whether a pod that waits may find room here."""
        if self._fits_now(pod.shape):
            return True
        promised = self._nominator.node_of(pod.uid) or pod.pod.status.nominated_node_name
        if promised and promised != self._name:
            return False
        if promised and self._has_victims_on_their_way_out(pod):
            return False
        return pod.pod.spec.preemption_policy != "Never" and self._fits_without_lower(pod)

    def _fits_now(self, shape: Shape) -> bool:
        known = self._fits.get(shape)
        if known is None:
            known = self._fits[shape] = self._has_room(shape, ())
        return known

    def _fits_without_lower(self, pod: PodInfo) -> bool:
        key = pod.shape, pod.priority
        known = self._fits_without.get(key)
        if known is None:
            others = self._table.pods[self._row].values()
            lower = [each for each in others if each.priority < pod.priority]
            known = self._fits_without[key] = bool(lower) and self._has_room(pod.shape, lower)
        return known

    def _has_victims_on_their_way_out(self, pod: PodInfo) -> bool:
        return any(
            each.priority < pod.priority and each.pod.metadata.deletion_timestamp is not None
            for each in self._table.pods[self._row].values()
        )

    def _has_room(self, shape: Shape, without: Sequence[PodInfo]) -> bool:
        table, row = self._table, self._row
        if table.pod_count[row] - len(without) >= table.allowed_pods[row]:
            return False
        for name, amount in self._checked(shape):
            number = table.resources.find(name)
            if number is None:
                return False
            used = int(table.requested[number, row])
            used -= sum(each.requests.amounts.get(name, 0) for each in without)
            if amount > int(table.allocatable[number, row]) - used:
                return False
        return True
