"""The loop: one pod after the other, as long as there are any."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from kubesched.cluster.cluster import Cluster
from kubesched.framework.runtime import Framework
from kubesched.framework.status import error
from kubesched.queue.queued_pod import QueuedPod
from kubesched.queue.scheduling_queue import SchedulingQueue
from kubesched.scheduler.binding import Bindings
from kubesched.scheduler.cycle import SchedulingCycle
from kubesched.scheduler.extended_cycle import ExtendedCycle
from kubesched.scheduler.failure import FailureHandler
from kubesched.scheduler.recorders import Recorders

_log = logging.getLogger(__name__)

#: How often the queue is asked to let pods go whose time has come.
FLUSH_PERIOD_S = 1.0


class Scheduler:
    """Takes pods from the queue, finds nodes for them and has them bound."""

    def __init__(
        self,
        *,
        frameworks: Mapping[str, Framework],
        cluster: Cluster,
        queue: SchedulingQueue,
        cycle: SchedulingCycle,
        bindings: Bindings,
        failures: FailureHandler,
        recorders: Recorders,
        ready: asyncio.Event,
        extended_cycle: ExtendedCycle | None = None,
    ) -> None:
        self._frameworks = frameworks
        self._cluster = cluster
        self._queue = queue
        self._cycle = cycle
        #: instead of the above, if there are extenders to ask
        self._extended_cycle = extended_cycle
        self._bindings = bindings
        self._failures = failures
        self._recorders = recorders
        #: set by the queue whenever there may be a pod to schedule
        self._ready = ready

    async def run(self) -> None:
        """Schedule for ever; ends by being cancelled."""
        while True:
            pod = await self._next_pod()
            try:
                await self._schedule_one(pod)
            except Exception as bug:  # noqa: BLE001 (a bug costs this attempt at this pod only)
                _log.exception("scheduling pod %s failed unexpectedly", pod.info.full_name)
                self._cluster.forget(pod.info.uid)
                framework = self._frameworks[pod.info.pod.spec.scheduler_name]
                status = error(f"{type(bug).__name__}: {bug}")
                self._failures.handle(framework, pod, status, nominated_node=None)

    async def flush(self) -> None:
        """Let pods go whose time has come, for ever, once every second of the wall clock."""
        while True:
            await asyncio.sleep(FLUSH_PERIOD_S)
            try:
                self._queue.flush()
            except Exception:  # noqa: BLE001 (a bug here must not end the scheduler)
                _log.exception("letting pods go whose time has come failed unexpectedly")

    async def _next_pod(self) -> QueuedPod:
        # Informers and bindings get their turn after every pod.
        await asyncio.sleep(0)
        while (pod := self._queue.pop()) is None:
            self._ready.clear()
            await self._ready.wait()
        return pod

    async def _schedule_one(self, pod: QueuedPod) -> None:
        framework = self._frameworks.get(pod.info.pod.spec.scheduler_name)
        if framework is None or self._skips(pod):
            self._queue.done(pod.info.uid)
            return
        if self._extended_cycle is None:
            decision = self._cycle.schedule(framework, pod.info)
        else:
            decision = await self._extended_cycle.schedule(framework, pod.info)
        if decision.node_name:
            self._bindings.start(framework, pod, decision)
        else:
            self._failures.handle(
                framework,
                pod,
                decision.status,
                diagnosis=decision.diagnosis,
                nominated_node=decision.nominated_node,
            )

    def _skips(self, pod: QueuedPod) -> bool:
        if pod.info.pod.metadata.deletion_timestamp:
            note = f"skip schedule deleting pod: {pod.info.full_name}"
            self._recorders.warning(
                pod.info.pod, reason="FailedScheduling", action="Scheduling", note=note
            )
            return True
        # It has a node already: ours, or one that somebody else gave it.
        return self._cluster.node_of(pod.info.uid) is not None
