"""Nominations: nodes reserved for preemptors, and when to retry the pods that they affect.

A preemptor is nominated to the node of its victims until they are gone. Its requests are reserved
there against pods of its priority and below, so a nomination must not outlive its use:

    the last of its victims is gone, or the node is ──> the pod is retried
    it is retried ──> bound, or nominated to another node, or no longer nominated
    no longer nominated there ──> pods that were rejected beside the nomination are woken

So a nomination outlives its use by the pod's backoff at most. Until the last victim is gone, the
nomination does not cause retries: the pod could neither be bound nor preempt again. A victim is
there until its deletion is observed, although the API server has answered before.

A pod is popped early from the backoff queue if the scheduler is idle. A group is not, so the end of
its last victim also ends its backoff. No victim ends twice, so this is no loop.
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
    """Changes nominations, and wakes the pods in the queue that a change may help."""

    def __init__(
        self,
        cluster: Cluster,
        queue: SchedulingQueue,
        *,
        is_preempting: Callable[[str], bool] = lambda _uid: False,
        is_deleted: Callable[[str], bool] = lambda _uid: False,
    ) -> None:
        self._cluster = cluster
        self._queue = queue
        #: returns whether evictions for a pod are in progress
        self._is_preempting = is_preempting
        #: returns whether a victim was deleted, which is not observed yet
        self._is_deleted = is_deleted

    def nominate(self, pod: PodInfo, node_name: str) -> None:
        """Nominate a pod to a node, instead of its previous nomination."""
        before = self._cluster.nominator.node_of(pod.uid)
        self._cluster.nominator.nominate(pod, node_name)
        if before is not None and before != node_name:
            self._freed(pod, before)

    def withdraw(self, uid: str, *, placed_on: str = "") -> None:
        """Remove the nomination of a pod; `placed_on` is its node if it is being bound."""
        nominator = self._cluster.nominator
        before, pod = nominator.node_of(uid), nominator.pod(uid)
        nominator.clear(uid)
        if before is not None and pod is not None and before != placed_on:
            self._freed(pod, before)

    def review(
        self,
        node_name: str,
        event: ClusterEvent = events.ASSIGNED_POD_DELETE,
        *,
        is_victim: bool = False,
    ) -> None:
        """Retry pods that are nominated to a node, after a pod left it or it was deleted.

        Pods whose victims are not gone yet keep waiting. `is_victim` is whether the pod that left
        was preempted.
        """
        row = self._cluster.table.row_of(node_name)
        for pod in self._cluster.nominator.pods_on(node_name):
            if row is None or not self._awaits_victims(pod, row):
                at_once = is_victim and self._is_group_without_victims(pod.uid)
                self._queue.try_again(pod.uid, event, at_once=at_once)

    def after_eviction(self, ended: EvictionEnded) -> None:
        """Retry a preemptor, unless the deletion event of a victim is going to do that."""
        if not ended.succeeded:
            self._queue.activate(ended.preemptors)
            return
        for uid in ended.preemptors:
            # If a pod is gated, an event may have helped it meanwhile: it may fit on another node.
            # A group is always gated then, because it was to be queued again at once.
            if ended.all_left or (not ended.is_group and self._queue.is_gated(uid)):
                self._queue.try_again(uid, events.ASSIGNED_POD_DELETE, at_once=ended.is_group)

    def _awaits_victims(self, pod: PodInfo, row: int) -> bool:
        return self._is_preempting(pod.uid) or any(
            other.priority < pod.priority
            and (other.is_being_preempted or self._is_deleted(other.uid))
            for other in self._cluster.table.pods[row].values()
        )

    def _is_group_without_victims(self, uid: str) -> bool:
        """Return whether a pod is queued in a group, on whose nodes no victims are left."""
        members = self._queue.members_with(uid)
        return bool(members) and not any(map(self._member_awaits_victims, members))

    def _member_awaits_victims(self, uid: str) -> bool:
        pod, node_name = self._cluster.nominator.pod(uid), self._cluster.nominator.node_of(uid)
        row = None if node_name is None else self._cluster.table.row_of(node_name)
        return pod is not None and row is not None and self._awaits_victims(pod, row)

    def _freed(self, pod: PodInfo, node_name: str) -> None:
        """Wake pods that the removed nomination may have kept out: its priority and below."""
        status = replace(pod.pod.status, nominated_node_name=node_name)
        gone = Change(events.ASSIGNED_POD_DELETE, old=replace(pod.pod, status=status))
        self._queue.move(
            gone, only=lambda other: other.priority <= pod.priority and other.uid != pod.uid
        )
