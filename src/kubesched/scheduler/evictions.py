"""Evicting pods to make room for others, in the background.

All victims but the last are evicted at once, then the last one alone: while that is pending, the
preemptor is kept out of the queue, and as soon as it is gone or going, the preemptor may be tried
again. A victim that is not bound yet is not deleted but turned away from the place it was promised.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from kubesched import logs
from kubesched.api.core import Pod
from kubesched.cluster.nominator import Nominator
from kubesched.cluster.pod_info import PodInfo
from kubesched.errors import ClientError, NotFoundError
from kubesched.framework.waiting import PreBindingPods, WaitingPods
from kubesched.metrics.label_values import ERROR, SUCCESS
from kubesched.metrics.recorder import Metrics
from kubesched.recording.journal import Journal
from kubesched.scheduler.api_calls import ApiCalls
from kubesched.scheduler.recorders import Recorders
from kubesched.scheduler.tasks import Tasks

_log = logs.get_logger(__name__)


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
        pre_binding: PreBindingPods,
        recorders: Recorders,
        find_pod: Callable[[str, str], Pod | None],
        activate: Callable[[Sequence[str]], None],
        metrics: Metrics,
        journal: Journal | None = None,
    ) -> None:
        self._api_calls = api_calls
        self._nominator = nominator
        self._waiting = waiting
        self._pre_binding = pre_binding
        self._recorders = recorders
        #: returns the newest version of a pod, by namespace and name
        self._find_pod = find_pod
        #: makes pods active at once, by uid
        self._activate = activate
        self._metrics = metrics
        self._journal = journal
        #: preemptor's uid → what is being done for it
        self._under_way: dict[str, Eviction] = {}
        self._tasks = Tasks()

    def evict(self, preemptor: PodInfo, node_name: str, victims: Sequence[PodInfo]) -> None:
        """Evict pods, in the background; those that are on their way out are left alone."""
        if self._journal is not None:
            self._journal.evicting(victims)
        staying = [each for each in victims if each.pod.metadata.deletion_timestamp is None]
        if not staying:
            return
        self._metrics.preemption_victims.observe(len(victims))
        _log.v(
            2,
            "Start the preemption asynchronously",
            preemptor=preemptor.full_name,
            node=node_name,
            numVictims=len(staying),
        )
        eviction = self._under_way[preemptor.uid] = Eviction(preemptor, node_name)
        self._tasks.start(self._evict_all(eviction, staying))

    def is_evicting_for(self, uid: str) -> bool:
        """Tell whether pods are still being evicted to make room for a pod."""
        eviction = self._under_way.get(uid)
        return eviction is not None and self._is_unfinished(eviction)

    def preemptors(self) -> set[str]:
        """Return the uids of pods that others are still being evicted for."""
        return {uid for uid, each in self._under_way.items() if self._is_unfinished(each)}

    def _is_unfinished(self, eviction: Eviction) -> bool:
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
        loop = asyncio.get_running_loop()
        started = loop.time()
        succeeded = False
        try:
            cleared = await self._clear_nominations(eviction)
            await self._evict_together(eviction, others)
            eviction.last_victim = last
            await self._evict_one(eviction, last)
            succeeded = cleared
            _log.v(
                2,
                "Async Preemption finished completely",
                preemptor=eviction.preemptor.full_name,
                node=eviction.node_name,
                result="success" if cleared else "error",
            )
        except ClientError as failed:
            preemptor = eviction.preemptor.full_name
            _log.error("Error occurred during async preemption", failed, preemptor=preemptor)
        finally:
            uid = eviction.preemptor.uid
            # The pod may have preempted again meanwhile: that is not ours to end.
            if self._under_way.get(uid) is eviction:
                del self._under_way[uid]
            if not succeeded:
                self._activate([uid])
            result = SUCCESS if succeeded else ERROR
            self._metrics.preemption_goroutines_execution.labels(result).inc()
            seconds = loop.time() - started
            self._metrics.preemption_goroutines_duration.labels(result).observe(seconds)

    async def _evict_together(self, eviction: Eviction, victims: list[PodInfo]) -> None:
        """Evict pods at once; whatever fails, all of them are through before that is told."""
        results = await asyncio.gather(
            *(self._evict_one(eviction, victim) for victim in victims), return_exceptions=True
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _clear_nominations(self, eviction: Eviction) -> bool:
        """Take promises back that less important pods have on the node; False if that failed."""
        cleared = True
        for pod in self._nominator.pods_on(eviction.node_name):
            if pod.priority < eviction.preemptor.priority and pod.pod.status.nominated_node_name:
                try:
                    await self._api_calls.nominate(pod.pod, "")
                except ClientError as failed:
                    _log.error("Cannot clear 'NominatedNodeName' field", failed, pod=pod.full_name)
                    cleared = False
        return cleared

    async def _evict_one(self, eviction: Eviction, victim: PodInfo) -> None:
        preemptor, node_name = eviction.preemptor, eviction.node_name
        note = f"Preempted by pod {preemptor.uid} on node {node_name}"
        if self._turned_back(victim):
            note += " (in kube-scheduler memory)."
        else:
            scheduler_name = preemptor.pod.spec.scheduler_name
            try:
                await self._api_calls.mark_as_preempted(victim.pod, by=scheduler_name)
                await self._api_calls.delete(victim.pod)
            except NotFoundError:
                return
            _log.v(
                2,
                "Preemptor Pod preempted victim Pod",
                preemptor=preemptor.full_name,
                victim=victim.full_name,
                node=node_name,
            )
        self._recorders.preempted(victim.pod, by=preemptor.pod, note=note)

    def _turned_back(self, victim: PodInfo) -> bool:
        """Take a victim's place from it, if it only has the promise of one."""
        waiting = self._waiting.get(victim.uid)
        if waiting is not None and waiting.preempt():
            return True
        return self._pre_binding.cancel(victim.uid, "preempted by DefaultPreemption")
