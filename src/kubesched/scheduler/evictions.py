"""Evicts the victims of preemptors, in the background.

All victims but the last are evicted concurrently, then the last one. Until then the preemptor is
gated; the deletion event of the last victim makes it active. A victim that is not bound yet is not
deleted: its binding is cancelled.

Requests may be queued for seconds, and several preemptors may choose the same victim meanwhile. So
one deletion serves all of them, and each request checks right before it is sent whether the victim
still exists.

A few victims are evicted at a time: those of preemptors of higher priority first, then those of
earlier ones. With the victims of all preemptors at once, each would be marked before the first one
is deleted: every preemptor would wait for the victims of all, and so would the bindings behind
those requests.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from kubesched import logs
from kubesched.api.core import Pod
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import PodInfo
from kubesched.errors import ClientError, ConflictError, NotFoundError, WithdrawnError
from kubesched.framework.group import GroupInfo
from kubesched.framework.waiting import PreBindingPods, WaitingPods
from kubesched.metrics.label_values import ERROR, SUCCESS
from kubesched.scheduler.outside import Outside
from kubesched.scheduler.preemptor import POD, Preemptor
from kubesched.scheduler.tasks import Tasks
from kubesched.scheduler.turns import Turns

_log = logs.get_logger(__name__)

#: Victims that are evicted at a time: as many as there are connections to the API server.
AT_ONCE = 64


class Deletion(NamedTuple):
    """The deletion of one victim, on behalf of every preemptor that chose it."""

    victim: PodInfo
    node_name: str
    #: done when the API server has responded
    done: asyncio.Future[None]


class Eviction:
    """The eviction of one preemptor's victims."""

    __slots__ = ("last_victim", "nodes", "preemptor", "rank")

    def __init__(self, number: int, preemptor: Preemptor, nodes: Mapping[str, str]) -> None:
        self.preemptor = preemptor
        #: victims of the lowest rank are evicted first
        self.rank = -preemptor.priority, number
        #: victim's uid → its node
        self.nodes = nodes
        #: the victim that is evicted last, None while there are others
        self.last_victim: PodInfo | None = None


class EvictionEnded(NamedTuple):
    """The eviction requests of one preemptor were all answered or cancelled."""

    #: uids of the preemptor's pods
    preemptors: tuple[str, ...]
    succeeded: bool
    #: whether the deletion of every victim was observed
    all_left: bool
    #: whether the pods are those of a group
    is_group: bool = False


class Evictions:
    """Evictions in progress."""

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
        #: uid of a preemptor pod, or of a pod of a preemptor group → its eviction
        self._under_way: dict[str, Eviction] = {}
        #: victim's uid → its deletion, until the deletion is observed
        self._deletions: dict[str, Deletion] = {}
        self._tasks = Tasks()
        self._numbers = itertools.count()
        #: whose victim is evicted next
        self._turns = Turns(AT_ONCE)

    def evict(self, preemptor: PodInfo, node_name: str, victims: Sequence[PodInfo]) -> None:
        """Evict pods in the background, except those that terminate already."""
        self._observer.evicting(victims)
        self._metrics.preemption_victims.observe(len(victims))
        self._start(Preemptor.of_pod(preemptor, node_name), victims)

    def evict_for_group(self, group: GroupInfo, victims: Sequence[PodInfo]) -> None:
        """Evict the victims of a group in the background, on any nodes."""
        self._observer.evicting(victims)
        self._start(Preemptor.of_group(group), victims)

    def _start(self, preemptor: Preemptor, victims: Sequence[PodInfo]) -> None:
        self._forget_what_was_seen()
        staying = [each for each in victims if each.pod.metadata.deletion_timestamp is None]
        if not staying:
            return
        _log.v(
            2,
            "Start the preemption asynchronously",
            preemptor=preemptor.full_name,
            node=preemptor.target,
            numVictims=len(victims),
            numVictimsToDelete=len(staying),
        )
        nodes = {each.uid: self._cluster.node_of(each.uid) or "" for each in staying}
        eviction = Eviction(next(self._numbers), preemptor, nodes)
        self._under_way.update(dict.fromkeys((preemptor.uid, *preemptor.pods), eviction))
        self._tasks.start(self._evict_all(eviction, staying))

    def is_evicting_for(self, uid: str) -> bool:
        """Return whether evictions for a pod or a group are in progress."""
        eviction = self._under_way.get(uid)
        return eviction is not None and self._is_unfinished(eviction)

    def is_deleted(self, uid: str) -> bool:
        """Return whether a victim was deleted, which is not observed yet."""
        known = self._deletions.get(uid)
        if known is None or not known.done.done():
            return False
        return self._staying(known.victim, known.node_name) is not None

    def preemptors(self) -> set[str]:
        """Return the uids of preemptors whose evictions are in progress."""
        return {uid for uid, each in self._under_way.items() if self._is_unfinished(each)}

    def _is_unfinished(self, eviction: Eviction) -> bool:
        last = eviction.last_victim
        return last is None or self._staying(last, eviction.nodes[last.uid]) is not None

    def _staying(self, victim: PodInfo, node_name: str) -> Pod | None:
        """Return the newest version of a victim that is still on the node."""
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
        """Drop the deletions of victims whose deletion was observed."""
        self._deletions = {
            uid: each
            for uid, each in self._deletions.items()
            if not each.done.done() or self._staying(each.victim, each.node_name) is not None
        }

    async def drain(self, timeout_s: float) -> None:
        """Wait for evictions in progress for a limited time, then cancel them."""
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
                node=eviction.preemptor.target,
                result="success" if cleared else "error",
            )
        except ClientError as failed:
            preemptor = eviction.preemptor.full_name
            _log.error("Error occurred during async preemption", failed, preemptor=preemptor)
        finally:
            self._ended(eviction, victims, succeeded=succeeded)
            result = SUCCESS if succeeded else ERROR
            self._metrics.preemption_goroutines_execution.labels(result).inc()
            seconds, kind = loop.time() - started, eviction.preemptor.kind
            self._metrics.preemption_goroutines_duration.labels(result).observe(seconds)
            self._metrics.preemption_execution_duration.labels(kind, result).observe(seconds)

    def _ended(self, eviction: Eviction, victims: list[PodInfo], *, succeeded: bool) -> None:
        preemptor, nodes = eviction.preemptor, eviction.nodes
        # The preemptor may have preempted again: then a newer eviction is in progress.
        for uid in {preemptor.uid, *preemptor.pods}:
            if self._under_way.get(uid) is eviction:
                del self._under_way[uid]
        all_left = all(self._cluster.node_of(each.uid) != nodes[each.uid] for each in victims)
        is_group = preemptor.kind != POD
        self.on_ended(EvictionEnded(preemptor.pods, succeeded, all_left, is_group))

    async def _evict_together(self, eviction: Eviction, victims: list[PodInfo]) -> None:
        """Evict pods concurrently; a failure is raised after all requests ended."""
        results = await asyncio.gather(
            *(self._evict_one(eviction, victim) for victim in victims), return_exceptions=True
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _clear_nominations(self, eviction: Eviction) -> bool:
        """Clear nominations of pods of lower priority to the node; False if that failed."""
        cleared = True
        for pod in self._cluster.nominator.pods_on(eviction.preemptor.target):
            if pod.priority < eviction.preemptor.priority and pod.pod.status.nominated_node_name:
                try:
                    await self._api_calls.nominate(pod.pod, "")
                except ClientError as failed:
                    _log.error("Cannot clear 'NominatedNodeName' field", failed, pod=pod.full_name)
                    cleared = False
        return cleared

    async def _evict_one(self, eviction: Eviction, victim: PodInfo) -> None:
        """Evict one victim, or wait for the deletion that another preemptor started."""
        known = self._deletions.get(victim.uid)
        if known is not None:
            await asyncio.shield(known.done)
            return
        if self._turned_back(victim):
            self._record(eviction, victim, " (in kube-scheduler memory).")
            return
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._deletions[victim.uid] = Deletion(victim, eviction.nodes[victim.uid], done)
        try:
            async with self._turns.take(eviction.rank):
                await self._delete(eviction, victim)
        except BaseException as failed:
            del self._deletions[victim.uid]
            if isinstance(failed, ClientError):
                done.set_exception(failed)
                done.exception()  # even if another preemptor waits for it
            else:
                done.cancel()
            raise
        done.set_result(None)

    async def _delete(self, eviction: Eviction, victim: PodInfo) -> None:
        preemptor, node_name = eviction.preemptor, eviction.nodes[victim.uid]

        def still_wanted() -> bool:
            return self._staying(victim, node_name) is not None

        newest = self._staying(victim, node_name)
        if newest is None:
            return
        try:
            await self._api_calls.mark_as_preempted(
                newest,
                by=preemptor.scheduler_name,
                preemptor=preemptor.kind,
                still_wanted=still_wanted,
            )
            await self._api_calls.delete(newest, still_wanted=still_wanted)
        except (NotFoundError, WithdrawnError):
            return
        except ConflictError:
            if still_wanted():
                raise
            return  # another pod has the name by now
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
        note = f"Preempted by {preemptor.kind} {preemptor.uid} on node {preemptor.target}{more}"
        self._recorders.preempted(
            victim.pod,
            by=preemptor.reference,
            scheduler_name=preemptor.scheduler_name,
            note=note,
        )

    def _turned_back(self, victim: PodInfo) -> bool:
        """Cancel the binding of a victim that is not bound yet."""
        waiting = self._waiting.get(victim.uid)
        if waiting is not None and waiting.preempt():
            return True
        return self._pre_binding.cancel(victim.uid, "preempted by DefaultPreemption")
