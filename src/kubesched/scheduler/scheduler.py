"""The loop: one pod after the other, or one group of pods, as long as there are any.

    pop ──> decide ──> assume ──> reserve ──> permit ──> bind, as a task of its own (binding.py)
               │                     └──────────┴─ rejected ──> unreserve · forget ──┐
               └─ no node ───────────────────────────────────────────────────────────┴─> requeue

Everything before the binding cycle is done before the next pod is popped, so each decision sees the
ones before it. What happens to groups of pods is in `group_scheduling`.
"""

from __future__ import annotations

import asyncio
import logging

from kubesched import logs
from kubesched.framework.runtime import Framework
from kubesched.framework.status import Status, error
from kubesched.progress import Progress
from kubesched.queue.queued_group import AttemptEnd, QueuedGroup
from kubesched.queue.queued_pod import QueuedEntity, QueuedPod
from kubesched.scheduler.attempts import Attempts
from kubesched.scheduler.binding import Bindings, PodToBind, as_rejection
from kubesched.scheduler.cycle import Decision, SchedulingCycle
from kubesched.scheduler.failure import FailureHandler
from kubesched.scheduler.group_scheduling import GroupScheduling
from kubesched.scheduler.outside import Outside
from kubesched.scheduler.plugin_watches import PluginWatches
from kubesched.scheduler.profiles import Profiles
from kubesched.scheduler.state import SchedulerState

_log, _bugs = logs.get_logger(__name__), logging.getLogger(__name__)

#: How long pods are decided in a row before informers and bindings get their turn. Decisions in a
#: row are faster than single ones: code and data are in the processor's caches.
TURN_S = 0.002
#: How often the queue is asked to let pods go that were parked for too long.
PARKED_FLUSH_PERIOD_S = 30.0


class Scheduler:
    """Takes pods from the queue, finds nodes for them and has them bound."""

    def __init__(
        self,
        outside: Outside,
        state: SchedulerState,
        *,
        profiles: Profiles,
        cycle: SchedulingCycle,
        bindings: Bindings,
        failures: FailureHandler,
        attempts: Attempts,
        ready: asyncio.Event,
        progress: Progress,
    ) -> None:
        self._recorders = outside.recorders
        self._plugin_watches = PluginWatches(outside.recorders)
        self._clock = outside.clock
        #: told of every decision
        self._observer = outside.observer
        self._cluster = state.cluster
        self._queue = state.queue
        self._nominations = state.nominations
        self._profiles = profiles
        self._cycle = cycle
        self._bindings = bindings
        self._failures = failures
        self._attempts = attempts
        #: set whenever there may be a pod to schedule, or room for one to be bound
        self._ready = ready
        #: told at every turn of the loop
        self._progress = progress
        #: set if there are groups of pods
        self.groups: GroupScheduling | None = None
        #: when informers and bindings get their turn
        self._turn_ends = 0.0

    async def run(self) -> None:
        """Schedule for ever; ends by being cancelled."""
        try:
            await self._loop()
        finally:
            self._progress.rest()

    async def _loop(self) -> None:
        while True:
            entity = await self._next()
            self._progress.beat()
            for pod in entity.pods():
                self._attempts.begin(pod)
            try:
                if isinstance(entity, QueuedPod):
                    await self._schedule_one(entity)
                elif isinstance(entity, QueuedGroup) and self.groups is not None:
                    self.groups.schedule(entity)
            except Exception as bug:  # noqa: BLE001 (a bug costs this attempt only)
                self._failed(entity, bug)

    def _failed(self, entity: QueuedEntity, bug: Exception) -> None:
        """Try again later what raised."""
        for pod in entity.pods():
            _bugs.error("scheduling pod %s failed unexpectedly", pod.info.full_name, exc_info=bug)
            if isinstance(entity, QueuedGroup) and not self._queue.is_in_flight(pod.info.uid):
                continue  # it was through before that happened
            self._observer.raised(pod, bug)
            self._cluster.forget(pod.info.uid)
            framework = self._profiles.get(pod.info.pod)
            if framework is None:
                self._queue.done(pod.info.uid)
                continue
            status = error(f"{type(bug).__name__}: {bug}")
            self._failures.handle(framework, pod, status, nominated_node=None)
        if isinstance(entity, QueuedGroup) and self.groups is not None:
            self.groups.end(entity, AttemptEnd.FAILED)

    async def flush(self) -> None:
        """Let pods go whose time has come, for ever, at every full second of the wall clock.

        Backoffs end at full seconds, so that pods which failed in the same second come back at the
        same time and are then ordered by priority.
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

    async def _next(self) -> QueuedEntity:
        if self._clock.monotonic() >= self._turn_ends:
            await asyncio.sleep(0)
            self._turn_ends = self._clock.monotonic() + TURN_S
        while self._bindings.has_backpressure or (entity := self._queue.pop_entity()) is None:
            self._progress.beat()
            self._ready.clear()
            await self._ready.wait()
        return entity

    async def _schedule_one(self, pod: QueuedPod) -> None:
        framework = self._profiles.get(pod.info.pod)
        if framework is None or self.skips(pod):
            self._queue.done(pod.info.uid)
            return
        decision = await self._decide(framework, pod)
        if not decision.node_name:
            self._failures.handle(
                framework,
                pod,
                decision.status,
                diagnosis=decision.diagnosis,
                nominated_node=decision.nominated_node,
            )
            return
        placed = PodToBind(framework, pod, decision)
        if pod.info.signature.is_resize:
            self._leave_to_kubelet(placed)
        else:
            self.bind(placed)

    def bind(self, placed: PodToBind) -> bool:
        """Assume a pod on its node and start its binding; False if a plugin refused that."""
        self._assume(placed)
        status = self._reserve(placed)
        waits_s: dict[str, float] = {}
        if status.ok:
            status, waits_s = self._permit(placed)
        if status.ok:
            self._bindings.start(placed, waits_s)
        else:
            self._bindings.roll_back(placed, as_rejection(status))
        return status.ok

    def skips(self, pod: QueuedPod) -> bool:
        """Tell whether a pod needs no node any more."""
        if pod.info.pod.metadata.deletion_timestamp:
            note = f"skip schedule deleting pod: {pod.info.full_name}"
            self._recorders.warning(
                pod.info.pod, reason="FailedScheduling", action="Scheduling", note=note
            )
            return True
        # It has a node already: one that we chose, or another scheduler.
        has_node = self._cluster.node_of(pod.info.uid) is not None
        return has_node and not pod.info.signature.is_resize

    # --- the steps --------------------------------------------------------------------------

    async def _decide(self, framework: Framework, pod: QueuedPod) -> Decision:
        """Run the scheduling cycle: choose a node, or find out why there is none."""
        if _log.enabled(3):
            _log.v(3, "Attempting to schedule pod", pod=pod.info.full_name)
        watches = self._plugin_watches.of(framework)
        for watch in watches:
            watch.begin(pod.info)
        extended_cycle = self._profiles.extended_cycle
        try:
            if extended_cycle is None:
                self._observer.deciding()
                decision = self._cycle.schedule(framework, pod.info)
            else:
                self._observer.asking(framework.scheduler_name, pod.info.pod)
                decision = await extended_cycle.schedule(framework, pod.info)
        finally:
            for watch in watches:
                watch.end()
        self._observer.decided(framework.scheduler_name, pod, decision)
        self._attempts.decided(pod)
        return decision

    def _assume(self, placed: PodToBind) -> None:
        """Count the pod on its node, long before the API server says so."""
        info, node_name = placed.pod.info, placed.decision.node_name
        self._cluster.assume(info, node_name)
        self._nominations.withdraw(info.uid, placed_on=node_name)

    def _leave_to_kubelet(self, placed: PodToBind) -> None:
        """Let a pod wait that is on its node, now that its resize fits there."""
        status, _ = self._permit(placed)
        if status.ok:
            status = error("pod is on its node already, and no plugin makes it wait for its resize")
        self._failures.handle(placed.framework, placed.pod, as_rejection(status), nominated_node="")

    def _reserve(self, placed: PodToBind) -> Status:
        """Let Reserve plugins take what the pod needs on its node."""
        decision, info = placed.decision, placed.pod.info
        try:
            return placed.framework.reserve(decision.state, info, decision.node_name)
        except Exception as bug:  # noqa: BLE001 (a plugin's bug costs this pod its attempt)
            return _reserving_failed(placed.pod, bug)

    def _permit(self, placed: PodToBind) -> tuple[Status, dict[str, float]]:
        """Ask Permit plugins; return, too, which of them make the pod wait, and how long."""
        decision, info = placed.decision, placed.pod.info
        try:
            return placed.framework.permit(decision.state, info, decision.node_name)
        except Exception as bug:  # noqa: BLE001 (a plugin's bug costs this pod its attempt)
            return _reserving_failed(placed.pod, bug), {}


def _reserving_failed(pod: QueuedPod, bug: Exception) -> Status:
    _bugs.error("reserving for pod %s failed unexpectedly", pod.info.full_name, exc_info=bug)
    return error(f"{type(bug).__name__}: {bug}")
