"""A node with more free resources, because a pod left it or is no longer nominated to it.

A retry is worth it only if its result would differ from the last attempt: the pod is bound to this
node, or preempts. Resources reserved by nominated pods do not count as free, as in the scheduling
cycle.

Whether preemption on *this* node helps depends on its resources. On any other node the result can
only change by filters that depend on pods of other nodes, so pods that such filters concern are
retried, as kube-scheduler does with all pods.

A nominated pod waits for its victims: see `scheduler/nominations.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np

from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_signature import PodSignature

#: Returns the resources of a signature that must fit, with amounts.
Checked = Callable[[PodSignature], Sequence[tuple[str, int]]]
#: Returns whether only row-local filters apply to a pod.
IsRowLocal = Callable[[PodInfo], bool]


class FreedNode:
    """The free resources of one node; results are cached for pods with the same requests."""

    def __init__(
        self, cluster: Cluster, row: int, *, checked: Checked, is_row_local: IsRowLocal
    ) -> None:
        self._cluster = cluster
        self._table = cluster.table
        self._rows = np.array([row], dtype=np.intp)
        self._row = row
        self._checked = checked
        self._is_row_local = is_row_local
        #: the version of the cluster that the cached results are valid for
        self._version: tuple[int, ...] = ()
        self._answers: dict[Hashable, bool] = {}

    def helps(self, pod: PodInfo) -> bool:
        """Return whether a retry would bind a parked pod, or preempt for it."""
        if self._cluster.nominator.node_of(pod.uid) is not None:
            return self._fits(pod, ())
        return self.may_help(pod)

    def may_help(self, pod: PodInfo) -> bool:
        """Return the same, whether or not the pod is nominated to some other node."""
        if self._version != self._cluster.version:
            self._version, self._answers = self._cluster.version, {}
        key = pod.alike
        cached = self._answers.get(key)
        if cached is None:
            cached = self._answers[key] = self._fits(pod, ()) or self._lets_preempt(pod)
        return cached

    def _lets_preempt(self, pod: PodInfo) -> bool:
        if pod.pod.spec.preemption_policy == "Never":
            return False
        others = self._table.pods[self._row].values()
        lower = [each for each in others if each.priority < pod.priority]
        if lower and self._fits(pod, lower):
            return True
        return self._cluster.has_pods_below(pod.priority) and not self._is_row_local(pod)

    def _fits(self, pod: PodInfo, without: Sequence[PodInfo]) -> bool:
        """Return whether a pod fits beside nominated pods, without the requests of some pods."""
        table, row = self._table, self._row
        reserved, reserving = self._cluster.nominated_rows.reserved_on(self._rows, pod)
        pod_count = int(table.pod_count[row]) + int(reserving[0]) - len(without)
        if pod_count >= table.allowed_pods[row]:
            return False
        for name, amount in self._checked(pod.signature):
            number = table.resources.find(name)
            if name in table.device_resources and (
                number is None or not table.allocatable[number, row]
            ):
                continue  # it is devices there
            if number is None:
                return False
            used = int(table.requested[number, row]) + int(reserved[number, 0])
            used -= sum(each.requests.amounts.get(name, 0) for each in without)
            if amount > int(table.allocatable[number, row]) - used:
                return False
        return True
