"""Evicting victims for preemptors, in the background.

All victims but the last are evicted at once, then the last one alone: while that is pending, the
preemptor is kept out of the queue, and as soon as the last victim is seen to leave, it may be tried
again. A victim that is not bound yet is not deleted: its assumed place is taken from it.

Requests may wait for their turn for seconds, and several preemptors may have chosen the same victim
meanwhile. So a victim is deleted by one of them, on behalf of all, and each request looks again
right before it leaves whether the victim is still there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

from kubesched import logs
from kubesched.api.core import Pod
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import PodInfo
from kubesched.errors import ClientError, ConflictError, NotFoundError, WithdrawnError
from kubesched.framework.waiting import PreBindingPods, WaitingPods
from kubesched.metrics.label_values import ERROR, POD, SUCCESS
from kubesched.scheduler.outside import Outside
from kubesched.scheduler.tasks import Tasks

_log = logs.get_logger(__name__)


class Deletion(NamedTuple):
    """The deletion of one victim, on behalf of every preemptor that chose it."""

    victim: PodInfo
    node_name: str
    #: done when the API server has answered
    done: asyncio.Future[None]


class Eviction:
    """The eviction of one preemptor's victims."""

    __slots__ = ("last_victim", "node_name", "preemptor")

    def __init__(self, preemptor: PodInfo, node_name: str) -> None:
        self.preemptor = preemptor
        self.node_name = node_name
        #: the victim that is evicted alone, None while there are others
        self.last_victim: PodInfo | None = None


class EvictionEnded(NamedTuple):
    """The requests to evict one preemptor's victims have been answered, or given up."""

    #: uid of the preemptor
    preemptor: str
    succeeded: bool
    #: whether every victim has been seen to leave the node
    all_left: bool


class Evictions:
    """Evictions under way."""

    def __init__(
        self,
        outside: Outside,
        cluster: Cluster,
        waiting: WaitingPods,
        pre_binding: PreBindingPods,
    ) -> None:
        self._api_calls = outside.api_calls
        self._recorders = outside.recorders
        #: returns the newest version of a pod, by namespace and name
        self._find_pod = outside.find_pod
        self._cluster = cluster
        self._waiting = waiting
        self._pre_binding = pre_binding
        self._metrics = outside.metrics
        self._observer = outside.observer
        #: called at the end of each eviction
        self.on_ended: Callable[[EvictionEnded], None] = lambda _ended: None
        #: preemptor's uid → its eviction
        self._under_way: dict[str, Eviction] = {}
        #: victim's uid → its deletion, until the victim is seen to leave
        self._deletions: dict[str, Deletion] = {}
        self._tasks = Tasks()

    def evict(self, preemptor: PodInfo, node_name: str, victims: Sequence[PodInfo]) -> None:
        """Evict pods, in the background; those that are terminating are left alone."""
        self._observer.evicting(victims)
        self._forget_what_was_seen()
        staying = [each for each in victims if each.pod.metadata.deletion_timestamp is None]
        if not staying:
            return
        self._metrics.preemption_victims.observe(len(victims))
        _log.v(
            2,
            "Start the preemption asynchronously",
            preemptor=preemptor.full_name,
            node=node_name,
            numVictims=len(victims),
            numVictimsToDelete=len(staying),
        )
        eviction = self._under_way[preemptor.uid] = Eviction(preemptor, node_name)
        self._tasks.start(self._evict_all(eviction, staying))

    def is_evicting_for(self, uid: str) -> bool:
        """Tell whether pods are still being evicted for a preemptor."""
        eviction = self._under_way.get(uid)
        return eviction is not None and self._is_unfinished(eviction)

    def preemptors(self) -> set[str]:
        """Return the uids of preemptors that pods are still being evicted for."""
        return {uid for uid, each in self._under_way.items() if self._is_unfinished(each)}

    def _is_unfinished(self, eviction: Eviction) -> bool:
        last = eviction.last_victim
        return last is None or self._staying(last, eviction.node_name) is not None

    def _staying(self, victim: PodInfo, node_name: str) -> Pod | None:
        """Return the newest version of a victim that is on the node, and not seen to leave it."""
        meta = victim.pod.metadata
        newest = self._find_pod(meta.namespace, meta.name)
        if (
            newest is None
            or newest.metadata.uid != victim.uid
            or newest.metadata.deletion_timestamp is not None
            or self._cluster.node_of(victim.uid) != node_name
        ):
            return None
        return newest

    def _forget_what_was_seen(self) -> None:
        """Drop deletions of victims that have been seen to leave."""
        self._deletions = {
            uid: each
            for uid, each in self._deletions.items()
            if not each.done.done() or self._staying(each.victim, each.node_name) is not None
        }

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
            self._ended(eviction, victims, succeeded=succeeded)
            result = SUCCESS if succeeded else ERROR
            self._metrics.preemption_goroutines_execution.labels(result).inc()
            seconds = loop.time() - started
            self._metrics.preemption_goroutines_duration.labels(result).observe(seconds)
            self._metrics.preemption_execution_duration.labels(POD, result).observe(seconds)

    def _ended(self, eviction: Eviction, victims: list[PodInfo], *, succeeded: bool) -> None:
        uid, node_name = eviction.preemptor.uid, eviction.node_name
        # The pod may have preempted again meanwhile: that is not for this eviction to end.
        if self._under_way.get(uid) is eviction:
            del self._under_way[uid]
        all_left = all(self._cluster.node_of(each.uid) != node_name for each in victims)
        self.on_ended(EvictionEnded(uid, succeeded=succeeded, all_left=all_left))

    async def _evict_together(self, eviction: Eviction, victims: list[PodInfo]) -> None:
        """Evict pods at once; all of them are through before a failure is raised."""
        results = await asyncio.gather(
            *(self._evict_one(eviction, victim) for victim in victims), return_exceptions=True
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _clear_nominations(self, eviction: Eviction) -> bool:
        """Clear nominations of less important pods to the node; False if that failed."""
        cleared = True
        for pod in self._cluster.nominator.pods_on(eviction.node_name):
            if pod.priority < eviction.preemptor.priority and pod.pod.status.nominated_node_name:
                try:
                    await self._api_calls.nominate(pod.pod, "")
                except ClientError as failed:
                    _log.error("Cannot clear 'NominatedNodeName' field", failed, pod=pod.full_name)
                    cleared = False
        return cleared

    async def _evict_one(self, eviction: Eviction, victim: PodInfo) -> None:
        """Evict one victim, or wait for another preemptor's eviction that does so."""
        known = self._deletions.get(victim.uid)
        if known is not None:
            await asyncio.shield(known.done)
            return
        if self._turned_back(victim):
            self._record(eviction, victim, " (in kube-scheduler memory).")
            return
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._deletions[victim.uid] = Deletion(victim, eviction.node_name, done)
        try:
            await self._delete(eviction, victim)
        except BaseException as failed:
            del self._deletions[victim.uid]
            if isinstance(failed, ClientError):
                done.set_exception(failed)
                done.exception()  # whether another preemptor waits for it or not
            else:
                done.cancel()
            raise
        done.set_result(None)

    async def _delete(self, eviction: Eviction, victim: PodInfo) -> None:
        preemptor, node_name = eviction.preemptor, eviction.node_name

        def still_wanted() -> bool:
            return self._staying(victim, node_name) is not None

        newest = self._staying(victim, node_name)
        if newest is None:
            return
        by = preemptor.pod.spec.scheduler_name
        try:
            await self._api_calls.mark_as_preempted(newest, by=by, still_wanted=still_wanted)
            await self._api_calls.delete(newest, still_wanted=still_wanted)
        except (NotFoundError, WithdrawnError):
            return
        except ConflictError:
            if still_wanted():
                raise
            return  # another pod has its name by now
        _log.v(
            2,
            "Preemptor Pod preempted victim Pod",
            preemptor=preemptor.full_name,
            victim=victim.full_name,
            node=node_name,
        )
        self._record(eviction, victim)

    def _record(self, eviction: Eviction, victim: PodInfo, more: str = "") -> None:
        preemptor = eviction.preemptor
        note = f"Preempted by pod {preemptor.uid} on node {eviction.node_name}{more}"
        self._recorders.preempted(victim.pod, by=preemptor.pod, note=note)

    def _turned_back(self, victim: PodInfo) -> bool:
        """Take its assumed place from a victim that is not bound yet."""
        waiting = self._waiting.get(victim.uid)
        if waiting is not None and waiting.preempt():
            return True
        return self._pre_binding.cancel(victim.uid, "preempted by DefaultPreemption")
