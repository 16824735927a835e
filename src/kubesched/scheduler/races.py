"""Finds nodes that two schedulers oversubscribed together.

    we place a pod ──────> node n has room for it ──> bound
    they place a pod ────> node n has room for it ──> bound ──> its event arrives: n has too little

Each scheduler decides on what its watch has shown, so two of them may give away the same room. The
API server binds both pods; the kubelet then rejects the later one, or the node runs short. The
detector sees each pod that another process bound. It counts a pod which takes a resource of its
node from enough to too little, if the node would have enough without the pods that this process
placed there just before.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from msgspec import Struct

from kubesched import logs
from kubesched.api import names
from kubesched.clock import Clock
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import PodInfo
from kubesched.scheduler.timestamps import rfc3339

_log = logs.get_logger(__name__)

#: How long after its binding a pod of ours can be part of a race: far longer than a watch lags.
SHORTLY_S: Final = 10.0
#: Number of races that are remembered for operators.
REMEMBERED: Final = 20


class Race(Struct, frozen=True):
    """A node with too little of some resources, because two schedulers gave them away."""

    at: float
    node_name: str
    #: the resources, joined by commas
    resource: str
    #: the newest pod of ours that requests one of them, and the pod that another process bound
    ours: str
    other: str
    other_scheduler: str

    def __str__(self) -> str:
        """Return one line for an operator."""
        return (
            f"{rfc3339(self.at)} node {self.node_name}: {self.resource}: pod {self.ours} of ours, "
            f"and pod {self.other} of {self.other_scheduler}"
        )


class RaceDetector:
    """Counts, logs and remembers nodes that were oversubscribed by a race."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        #: uid → when this process bound the pod, oldest first
        self._bound: dict[str, float] = {}
        #: number of races
        self.count = 0
        #: the last ones, oldest first
        self.last: deque[Race] = deque(maxlen=REMEMBERED)

    def binding(self, uid: str) -> None:
        """This process is about to bind a pod."""
        now, bound = self._clock.monotonic(), self._bound
        bound[uid] = now
        while bound[oldest := next(iter(bound))] < now - SHORTLY_S:
            del bound[oldest]

    def is_of_others(self, uid: str, node_name: str) -> bool:
        """Tell whether another process bound a pod whose event arrives, and is not counted yet."""
        cluster = self._cluster
        is_as_assumed = cluster.is_assumed(uid) and cluster.node_of(uid) == node_name
        return not is_as_assumed and uid not in self._bound

    def arrived(self, uid: str) -> None:
        """A pod that another process bound counts on its node from now on."""
        if not (self._bound or self._cluster.assumed_count):
            return  # a replica that is not the leader has placed none
        pod, node_name = self._cluster.pod(uid), self._cluster.node_of(uid)
        row = None if node_name is None else self._cluster.table.row_of(node_name)
        if pod is None or node_name is None or row is None:
            return  # its node is not known yet
        short = self._short_by(pod, row)
        if not short:
            return
        ours = [each for each in self._cluster.table.pods[row].values() if self._is_recent(each)]
        raced = [
            name
            for name, over in short.items()
            if over <= sum(_requested(each, name) for each in ours)
        ]
        if not raced:
            return
        newest = next(
            each for each in reversed(ours) if any(_requested(each, name) for name in raced)
        )
        race = Race(
            at=self._clock.time(),
            node_name=node_name,
            resource=",".join(raced),
            ours=newest.full_name,
            other=pod.full_name,
            other_scheduler=pod.pod.spec.scheduler_name,
        )
        self.count += 1
        self.last.append(race)
        _log.warning(
            "Node is oversubscribed, because another scheduler took the same room",
            node=node_name,
            resource=race.resource,
            pod=race.ours,
            otherPod=race.other,
            otherScheduler=race.other_scheduler,
        )

    def _short_by(self, pod: PodInfo, row: int) -> dict[str, int]:
        """Return the resources that sufficed on a row without a pod, and by how much they do not.

        A node that had too little before is not counted again.
        """
        table, requests = self._cluster.table, pod.requests
        requests.resolve(table.resources)
        short = {}
        for number, amount in requests.pairs:
            over = table.requested.item(number, row) - table.allocatable.item(number, row)
            if 0 < over <= amount:
                short[table.resources.names[number]] = over
        if table.pod_count.item(row) - table.allowed_pods.item(row) == 1:
            short[names.PODS] = 1
        return short

    def _is_recent(self, pod: PodInfo) -> bool:
        """Tell whether this process assumed a pod, or bound it shortly before."""
        if self._cluster.is_assumed(pod.uid):
            return True
        bound_at = self._bound.get(pod.uid)
        return bound_at is not None and bound_at >= self._clock.monotonic() - SHORTLY_S


def _requested(pod: PodInfo, resource: str) -> int:
    """Return how much of a resource a pod requests, which is one of "pods"."""
    return 1 if resource == names.PODS else pod.requests.amounts.get(resource, 0)
