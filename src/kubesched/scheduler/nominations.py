"""Nominations: places reserved for waiting pods, given, withdrawn, and reviewed in time.

A pod that preempts others is nominated to their node and waits until they are gone. Every other pod
of its priority or below leaves that room free, so a nomination that can no longer come true must
not last:

    the last of its victims is gone, or the node is ──> the pod is tried again
    it is tried again ──> bound, or nominated elsewhere, or no longer nominated
    no longer nominated there ──> pods that left the room free may have it

So a nomination outlives its purpose by the nominated pod's backoff at most. Until the last victim
is gone the pod is not tried on its account: it could neither be bound nor preempt others.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import PodInfo
from kubesched.queue import events
from kubesched.queue.events import ClusterEvent
from kubesched.queue.hints import Change
from kubesched.queue.scheduling_queue import SchedulingQueue
from kubesched.scheduler.evictions import EvictionEnded


class Nominations:
    """Changes nominations, and tells the queue what a change means for waiting pods."""

    def __init__(
        self,
        cluster: Cluster,
        queue: SchedulingQueue,
        *,
        is_preempting: Callable[[str], bool] = lambda _uid: False,
    ) -> None:
        self._cluster = cluster
        self._queue = queue
        #: tells whether victims of a pod have still to be evicted
        self._is_preempting = is_preempting

    def nominate(self, pod: PodInfo, node_name: str) -> None:
        """Reserve a place for a pod, instead of any that was reserved for it before."""
        before = self._cluster.nominator.node_of(pod.uid)
        self._cluster.nominator.nominate(pod, node_name)
        if before is not None and before != node_name:
            self._freed(pod, before)

    def withdraw(self, uid: str, *, placed_on: str = "") -> None:
        """Reserve no place for a pod any more; it takes the place itself if `placed_on` it."""
        nominator = self._cluster.nominator
        before, pod = nominator.node_of(uid), nominator.pod(uid)
        nominator.clear(uid)
        if before is not None and pod is not None and before != placed_on:
            self._freed(pod, before)

    def review(self, node_name: str, event: ClusterEvent = events.ASSIGNED_POD_DELETE) -> None:
        """Try pods again that are nominated to a node, after a pod left it or the node itself went.

        Those with victims that have still to go from there go on waiting.
        """
        row = self._cluster.table.row_of(node_name)
        for pod in self._cluster.nominator.pods_on(node_name):
            if row is None or not self._awaits_victims(pod, row):
                self._queue.try_again(pod.uid, event)

    def after_eviction(self, ended: EvictionEnded) -> None:
        """Try a preemptor again, unless the departure of a victim is going to do that."""
        if not ended.succeeded:
            self._queue.activate(ended.preemptors)
            return
        for uid in ended.preemptors:
            # If it is gated, an event that may help it came meanwhile: it may fit on another node.
            if ended.all_left or self._queue.is_gated(uid):
                self._queue.try_again(uid, events.ASSIGNED_POD_DELETE)

    def _awaits_victims(self, pod: PodInfo, row: int) -> bool:
        return self._is_preempting(pod.uid) or any(
            other.priority < pod.priority and other.is_being_preempted
            for other in self._cluster.table.pods[row].values()
        )

    def _freed(self, pod: PodInfo, node_name: str) -> None:
        """Wake pods that had to leave the room free: those of the same or a lower priority."""
        status = replace(pod.pod.status, nominated_node_name=node_name)
        gone = Change(events.ASSIGNED_POD_DELETE, old=replace(pod.pod, status=status))
        self._queue.move(
            gone, only=lambda other: other.priority <= pod.priority and other.uid != pod.uid
        )
