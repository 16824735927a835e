"""The loop: one pod after the other, as long as there are any."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from kubesched import logs
from kubesched.clock import Clock
from kubesched.cluster.cluster import Cluster
from kubesched.framework.runtime import Framework
from kubesched.framework.status import error
from kubesched.progress import Progress
from kubesched.queue.queued_pod import QueuedPod
from kubesched.queue.scheduling_queue import SchedulingQueue
from kubesched.recording.journal import Journal
from kubesched.scheduler.attempts import Attempts
from kubesched.scheduler.binding import Bindings
from kubesched.scheduler.cycle import SchedulingCycle
from kubesched.scheduler.extended_cycle import ExtendedCycle
from kubesched.scheduler.failure import FailureHandler
from kubesched.scheduler.plugin_watches import PluginWatches
from kubesched.scheduler.recorders import Recorders

_log, _bugs = logs.get_logger(__name__), logging.getLogger(__name__)

#: How long pods are decided in a row before informers and bindings get their turn. What is done
#: many times in a row is done faster: its code and data are at hand.
TURN_S = 0.002
#: How often the queue is asked to let pods go that were parked for too long.
PARKED_FLUSH_PERIOD_S = 30.0


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
        attempts: Attempts,
        ready: asyncio.Event,
        clock: Clock,
        progress: Progress,
        extended_cycle: ExtendedCycle | None = None,
        journal: Journal | None = None,
    ) -> None:
        self._frameworks = frameworks
        self._cluster = cluster
        self._queue = queue
        self._cycle = cycle
        #: instead of the above, if there are extenders to ask
        self.extended_cycle = extended_cycle
        self._bindings = bindings
        self._failures = failures
        self._recorders = recorders
        self._plugin_watches = PluginWatches(recorders)
        self._attempts = attempts
        #: set whenever there may be a pod to schedule, or room for one to be bound
        self._ready = ready
        self._clock = clock
        #: told at every turn of the loop
        self._progress = progress
        #: told of every decision, if somebody wants a record of them
        self._journal = journal
        #: when others get their turn
        self._turn_ends = 0.0

    async def run(self) -> None:
        """Schedule for ever; ends by being cancelled."""
        try:
            await self._loop()
        finally:
            self._progress.rest()

    async def _loop(self) -> None:
        while True:
            pod = await self._next_pod()
            self._progress.beat()
            self._attempts.begin(pod)
            try:
                await self._schedule_one(pod)
            except Exception as bug:  # noqa: BLE001 (a bug costs this attempt at this pod only)
                _bugs.exception("scheduling pod %s failed unexpectedly", pod.info.full_name)
                if self._journal is not None:
                    self._journal.raised(pod, bug)
                self._cluster.forget(pod.info.uid)
                framework = self._frameworks.get(pod.info.pod.spec.scheduler_name)
                if framework is None:
                    self._queue.done(pod.info.uid)
                    continue
                status = error(f"{type(bug).__name__}: {bug}")
                self._failures.handle(framework, pod, status, nominated_node=None)

    async def flush(self) -> None:
        """Let pods go whose time has come, for ever, at every full second of the wall clock.

        Backoffs end at full seconds, so that whoever failed in the same second comes back at the
        same time and is then ordered by priority.
        """
        next_parked_flush = 0.0
        while True:
            await asyncio.sleep(1.0 - self._clock.time() % 1.0)
            # An idle loop turns all the same, to show that it can.
            self._ready.set()
            try:
                self._queue.flush_backoff()
                if self._clock.monotonic() >= next_parked_flush:
                    self._queue.flush_parked()
                    next_parked_flush = self._clock.monotonic() + PARKED_FLUSH_PERIOD_S
            except Exception:  # noqa: BLE001 (a bug here must not end the scheduler)
                _bugs.exception("letting pods go whose time has come failed unexpectedly")

    async def _next_pod(self) -> QueuedPod:
        if self._clock.monotonic() >= self._turn_ends:
            await asyncio.sleep(0)
            self._turn_ends = self._clock.monotonic() + TURN_S
        while self._bindings.are_many or (pod := self._queue.pop()) is None:
            self._progress.beat()
            self._ready.clear()
            await self._ready.wait()
        return pod

    async def _schedule_one(self, pod: QueuedPod) -> None:
        framework = self._frameworks.get(pod.info.pod.spec.scheduler_name)
        if framework is None or self._skips(pod):
            self._queue.done(pod.info.uid)
            return
        if _log.enabled(3):
            _log.v(3, "Attempting to schedule pod", pod=pod.info.full_name)
        watches = self._plugin_watches.of(framework)
        for watch in watches:
            watch.begin(pod.info)
        try:
            if self.extended_cycle is None:
                if self._journal is not None:
                    self._journal.deciding()
                decision = self._cycle.schedule(framework, pod.info)
            else:
                if self._journal is not None:
                    self._journal.asking(framework.scheduler_name, pod.info.pod)
                decision = await self.extended_cycle.schedule(framework, pod.info)
        finally:
            for watch in watches:
                watch.end()
        if self._journal is not None:
            self._journal.decided(framework.scheduler_name, pod, decision)
        self._attempts.decided(pod)
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
