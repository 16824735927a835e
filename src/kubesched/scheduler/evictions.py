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
from kubesched.framework.status import error
from kubesched.framework.waiting import WaitingPods
from kubesched.scheduler.api_calls import ApiCalls
from kubesched.scheduler.recorders import Recorders

_log = logging.getLogger(__name__)


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
        #: preemptor's uid → its last victim, None while there are others
        self._last_victim: dict[str, PodInfo | None] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def evict(self, preemptor: PodInfo, node_name: str, victims: Sequence[PodInfo]) -> None:
        """Evict pods, in the background; those that are on their way out are left alone."""
        staying = [each for each in victims if each.pod.metadata.deletion_timestamp is None]
        if not staying:
            return
        self._last_victim[preemptor.uid] = None
        task = asyncio.create_task(self._evict_all(preemptor, node_name, staying))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def is_evicting_for(self, uid: str) -> bool:
        """Tell whether pods are still being evicted to make room for a pod."""
        if uid not in self._last_victim:
            return False
        last = self._last_victim[uid]
        if last is None:
            return True
        meta = last.pod.metadata
        newest = self._find_pod(meta.namespace, meta.name)
        return newest is not None and newest.metadata.deletion_timestamp is None

    async def drain(self) -> None:
        """Wait for evictions that are under way."""
        if self._tasks:
            await asyncio.wait(list(self._tasks))

    async def _evict_all(self, preemptor: PodInfo, node_name: str, victims: list[PodInfo]) -> None:
        *others, last = victims
        failed = False
        try:
            failed = not await self._clear_nominations(preemptor, node_name)
            await asyncio.gather(
                *(self._evict_one(preemptor, node_name, victim) for victim in others)
            )
            self._last_victim[preemptor.uid] = last
            await self._evict_one(preemptor, node_name, last)
        except ClientError as error_:
            _log.error(
                "Error occurred during async preemption: preemptor=%s err=%s",
                preemptor.full_name,
                error_,
            )
            failed = True
        finally:
            del self._last_victim[preemptor.uid]
        if failed:
            self._activate([preemptor.uid])

    async def _clear_nominations(self, preemptor: PodInfo, node_name: str) -> bool:
        """Take promises back that less important pods have on the node."""
        for pod in self._nominator.pods_on(node_name):
            if pod.priority < preemptor.priority and pod.pod.status.nominated_node_name:
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

    async def _evict_one(self, preemptor: PodInfo, node_name: str, victim: PodInfo) -> None:
        note = f"Preempted by pod {preemptor.uid} on node {node_name}"
        waiting = self._waiting.get(victim.uid)
        if waiting is not None:
            waiting.fail(error("waiting on permit for pod: preempted"))
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
