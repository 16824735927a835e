"""Evicting pods to make room for others, in the background.

All victims but the last are evicted at once, then the last one alone: while that is pending, the
preemptor is kept out of the queue, and as soon as it is gone or going, the preemptor may be tried
again. A victim that is not bound yet is not deleted but turned away from the place it was promised.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from kubesched.api.core import Pod
from kubesched.cluster.nominator import Nominator
from kubesched.cluster.pod_info import PodInfo
from kubesched.errors import ClientError, NotFoundError
from kubesched.framework.waiting import WaitingPods
from kubesched.scheduler.api_calls import ApiCalls
from kubesched.scheduler.recorders import Recorders
from kubesched.scheduler.tasks import Tasks

_log = logging.getLogger(__name__)


class Eviction:
    """What is being done to make room for one pod."""

    __slots__ = ("last_victim", "node_name", "preemptor")

    def __init__(self, preemptor: PodInfo, node_name: str) -> None:
        self.preemptor = preemptor
        self.node_name = node_name
        #: the victim that is evicted alone, None while there are others
        self.last_victim: PodInfo | None = None


class Evictions:
    """Evictions under way."""

    def __init__(
        self,
        *,
        api_calls: ApiCalls,
        nominator: Nominator,
        waiting: WaitingPods,
        recorders: Recorders,
        find_pod: Callable[[str, str], Pod | None],
        activate: Callable[[Sequence[str]], None],
    ) -> None:
        self._api_calls = api_calls
        self._nominator = nominator
        self._waiting = waiting
        self._recorders = recorders
        #: returns the newest version of a pod, by namespace and name
        self._find_pod = find_pod
        #: makes pods active at once, by uid
        self._activate = activate
        #: preemptor's uid → what is being done for it
        self._under_way: dict[str, Eviction] = {}
        self._tasks = Tasks()

    def evict(self, preemptor: PodInfo, node_name: str, victims: Sequence[PodInfo]) -> None:
        """Evict pods, in the background; those that are on their way out are left alone."""
        staying = [each for each in victims if each.pod.metadata.deletion_timestamp is None]
        if not staying:
            return
        eviction = self._under_way[preemptor.uid] = Eviction(preemptor, node_name)
        self._tasks.start(self._evict_all(eviction, staying))

    def is_evicting_for(self, uid: str) -> bool:
        """Tell whether pods are still being evicted to make room for a pod."""
        eviction = self._under_way.get(uid)
        if eviction is None:
            return False
        if eviction.last_victim is None:
            return True
        meta = eviction.last_victim.pod.metadata
        newest = self._find_pod(meta.namespace, meta.name)
        return newest is not None and newest.metadata.deletion_timestamp is None

    async def drain(self, timeout_s: float) -> None:
        """Wait for evictions that are under way; give up what takes longer."""
        await self._tasks.drain(timeout_s)

    async def _evict_all(self, eviction: Eviction, victims: list[PodInfo]) -> None:
        *others, last = victims
        succeeded = False
        try:
            cleared = await self._clear_nominations(eviction)
            await asyncio.gather(*(self._evict_one(eviction, victim) for victim in others))
            eviction.last_victim = last
            await self._evict_one(eviction, last)
            succeeded = cleared
        except ClientError as failed:
            _log.error(
                "Error occurred during async preemption: preemptor=%s err=%s",
                eviction.preemptor.full_name,
                failed,
            )
        finally:
            uid = eviction.preemptor.uid
            # The pod may have preempted again meanwhile: that is not ours to end.
            if self._under_way.get(uid) is eviction:
                del self._under_way[uid]
            if not succeeded:
                self._activate([uid])

    async def _clear_nominations(self, eviction: Eviction) -> bool:
        """Take promises back that less important pods have on the node; False if that failed."""
        for pod in self._nominator.pods_on(eviction.node_name):
            if pod.priority < eviction.preemptor.priority and pod.pod.status.nominated_node_name:
                try:
                    await self._api_calls.nominate(pod.pod, "")
                except ClientError as failed:
                    _log.error(
                        "Cannot clear 'NominatedNodeName' field: pod=%s err=%s",
                        pod.full_name,
                        failed,
                    )
                    return False
        return True

    async def _evict_one(self, eviction: Eviction, victim: PodInfo) -> None:
        preemptor, node_name = eviction.preemptor, eviction.node_name
        note = f"Preempted by pod {preemptor.uid} on node {node_name}"
        waiting = self._waiting.get(victim.uid)
        if waiting is not None and waiting.preempt():
            note += " (in kube-scheduler memory)."
        else:
            scheduler_name = preemptor.pod.spec.scheduler_name
            try:
                await self._api_calls.mark_as_preempted(victim.pod, by=scheduler_name)
                await self._api_calls.delete(victim.pod)
            except NotFoundError:
                return
            _log.debug(
                "Preemptor Pod preempted victim Pod: preemptor=%s victim=%s node=%s",
                preemptor.full_name,
                victim.full_name,
                node_name,
            )
        self._recorders.preempted(victim.pod, by=preemptor.pod, note=note)
