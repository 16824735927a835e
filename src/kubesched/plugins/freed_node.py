"""A node with more room than before, because a pod left it or is no longer nominated to it.

Trying a waiting pod again is worth it only if the attempt would do something else than the last
one: bind the pod to this node, or preempt pods for it. Nominated pods reserve their share of the
room, as they do in the scheduling cycle.

Preemption on *this* node is decided by its room. On any other node it failed for another reason
than room, or still fails: only filters that look beyond a single node may now decide otherwise, so
pods that such filters concern are tried again, as kube-scheduler does with all pods.

A pod that is nominated somewhere waits for its victims, which is the business of
`scheduler/nominations.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np

from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_signature import PodSignature
from kubesched.cluster.pod_volumes import NO_VOLUMES

#: Returns the resources of a signature that must fit, with amounts.
Checked = Callable[[PodSignature], Sequence[tuple[str, int]]]
#: Tells whether filters decide about a pod by looking at one node at a time.
IsRowLocal = Callable[[PodInfo], bool]


class FreedNode:
    """What one node has to offer now; pods that ask for the same share the answer."""

    def __init__(
        self, cluster: Cluster, row: int, *, checked: Checked, is_row_local: IsRowLocal
    ) -> None:
        self._cluster = cluster
        self._table = cluster.table
        self._rows = np.array([row], dtype=np.intp)
        self._row = row
        self._checked = checked
        self._is_row_local = is_row_local
        #: the state of the cluster that the answers are true for
        self._version: tuple[int, ...] = ()
        self._answers: dict[Hashable, bool] = {}

    def helps(self, pod: PodInfo) -> bool:
        """Tell whether trying a waiting pod again would bind it, or preempt others for it."""
        if self._version != self._cluster.version:
            self._version, self._answers = self._cluster.version, {}
        if self._cluster.nominator.node_of(pod.uid) is not None:
            return self._fits(pod, ())
        without_volumes = pod.volumes is NO_VOLUMES
        key = (
            pod.signature,
            pod.labels,
            pod.priority,
            pod.pod.spec.preemption_policy,
            without_volumes,
        )
        known = self._answers.get(key)
        if known is None:
            known = self._answers[key] = self._fits(pod, ()) or self._lets_preempt(pod)
        return known

    def _lets_preempt(self, pod: PodInfo) -> bool:
        if pod.pod.spec.preemption_policy == "Never":
            return False
        others = self._table.pods[self._row].values()
        lower = [each for each in others if each.priority < pod.priority]
        if lower and self._fits(pod, lower):
            return True
        return self._cluster.has_pods_below(pod.priority) and not self._is_row_local(pod)

    def _fits(self, pod: PodInfo, without: Sequence[PodInfo]) -> bool:
        """Compare a pod with the room beside nominated pods, if some pods were not there."""
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
