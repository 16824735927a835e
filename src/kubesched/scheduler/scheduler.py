"""The scheduling loop: pops a pod or a group of pods, and schedules it.

    pop ──> decide ──> assume ──> reserve ──> permit ──> bind, as a task of its own (binding.py)
               │                     └──────────┴─ rejected ──> unreserve · forget ──┐
               └─ no node ───────────────────────────────────────────────────────────┴─> requeue

Everything before the binding cycle is done before the next pop, so each decision sees the ones
before it. `group_scheduling` schedules groups.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from kubesched import logs
from kubesched.client.held_watches import HeldWatches
from kubesched.framework.attempt_error import AttemptPausedError
from kubesched.framework.runtime import Framework
from kubesched.framework.status import Status, error
from kubesched.progress import LoopProgress
from kubesched.queue.queued_group import AttemptEnd, QueuedGroup
from kubesched.queue.queued_pod import QueuedEntity, QueuedPod
from kubesched.scheduler.attempts import Attempts
from kubesched.scheduler.binding import Bindings, PodToBind, as_rejection
from kubesched.scheduler.cycle import Decision, SchedulingCycle
from kubesched.scheduler.failure import FailureHandler
from kubesched.scheduler.outside import Outside
from kubesched.scheduler.plugin_watches import PluginWatches
from kubesched.scheduler.profiles import Profiles
from kubesched.scheduler.state import SchedulerState

if TYPE_CHECKING:
    from kubesched.scheduler.group_scheduling import GroupScheduling

_log, _bugs = logs.get_logger(__name__), logging.getLogger(__name__)

#: Duration of a batch of decisions, after which informers and bindings run. Decisions in a batch
#: are faster than single ones, because code and data are in the processor's caches.
TURN_S = 0.002
#: For how long an attempt may be paused again and again; then it is made in one go.
PAUSES_S = 60.0
#: Period of `flush_parked`.
PARKED_FLUSH_PERIOD_S = 30.0


class Scheduler:
    """Pops pods, chooses nodes for them and starts their bindings."""

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
        held_watches: HeldWatches,
        progress: LoopProgress,
    ) -> None:
        self._recorders = outside.recorders
        self._plugin_watches = PluginWatches(outside.recorders)
        self._clock = outside.clock
        #: notified of every decision
        self._observer = outside.observer
        self._cluster = state.cluster
        self._queue = state.queue
        self._nominations = state.nominations
        self._profiles = profiles
        self._cycle = cycle
        self._bindings = bindings
        self._failures = failures
        self._attempts = attempts
        #: set when a pod may be ready to be popped, or a binding ended
        self._ready = ready
        #: their events are handled before a decision
        self._held_watches = held_watches
        #: notified at every turn of the loop
        self._progress = progress
        #: schedules groups; None if the gate is off
        self.groups: GroupScheduling | None = None
        #: when the current batch ends
        self._turn_ends = 0.0

    async def run(self) -> None:
        """Schedule until cancelled."""
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
                    if self._profiles.extenders is None:
                        self.groups.schedule(entity)
                    else:
                        await self.groups.schedule_asking(entity, self._profiles.extenders)
            except MemoryError:
                raise  # the cluster may be half changed: only another process can go on
            except Exception as bug:  # noqa: BLE001 (a bug costs this attempt only)
                self._failed(entity, bug)

    def _failed(self, entity: QueuedEntity, bug: Exception) -> None:
        """Requeue a pod whose attempt raised an exception."""
        for pod in entity.pods():
            _bugs.error("scheduling pod %s failed unexpectedly", pod.info.full_name, exc_info=bug)
            if isinstance(entity, QueuedGroup) and not self._queue.is_in_flight(pod.info.uid):
                continue  # its attempt had ended before the exception
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
        """Flush the queue whenever backoffs end, until cancelled."""
        next_parked_flush = 0.0
        while True:
            await asyncio.sleep(self._queue.until_backoffs_end_s())
            # Wake the loop even if it is idle, to show that it makes progress.
            self._ready.set()
            try:
                self._queue.flush_backoff()
                if self._clock.monotonic() >= next_parked_flush:
                    self._queue.flush_parked()
                    next_parked_flush = self._clock.monotonic() + PARKED_FLUSH_PERIOD_S
            except MemoryError:
                raise
            except Exception:  # noqa: BLE001 (a bug here must not end the scheduler)
                _bugs.exception("letting pods go whose time has come failed unexpectedly")

    async def _next(self) -> QueuedEntity:
        if self._clock.monotonic() >= self._turn_ends:
            await asyncio.sleep(0)
            self._turn_ends = self._clock.monotonic() + TURN_S
        while True:
            if self._held_watches.is_holding and self._queue.active_count:
                await self._held_watches.catch_up()
            entity = None if self._bindings.has_backpressure else self._queue.pop_entity()
            if entity is not None:
                return entity
            self._progress.beat()
            self._ready.clear()
            await self._ready.wait()

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
        """Assume a pod on its node and start its binding; False if a plugin rejected it."""
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
        """Return whether a popped pod need not be scheduled: it is being deleted, or has a node."""
        if pod.info.pod.metadata.deletion_timestamp:
            note = f"skip schedule deleting pod: {pod.info.full_name}"
            self._recorders.warning(
                pod.info.pod, reason="FailedScheduling", action="Scheduling", note=note
            )
            return True
        # It has a node already, assumed here or bound by another scheduler.
        has_node = self._cluster.node_of(pod.info.uid) is not None
        return has_node and not pod.info.signature.is_resize

    # --- the steps --------------------------------------------------------------------------

    async def _decide(self, framework: Framework, pod: QueuedPod) -> Decision:
        """Run the scheduling cycle: choose a node, or find out why none is feasible."""
        if _log.enabled(3):
            _log.v(3, "Attempting to schedule pod", pod=pod.info.full_name)
        watches = self._plugin_watches.of(framework)
        for watch in watches:
            watch.begin(pod.info)
        try:
            pauses_end = self._clock.monotonic() + PAUSES_S
            decision = None
            while decision is None:
                # Devices may change so often that every search starts again.
                may_pause = self._clock.monotonic() < pauses_end
                decision = await self._try(framework, pod, may_pause=may_pause)
                if decision is None:
                    self._progress.beat()
                    await asyncio.sleep(0)
        finally:
            for watch in watches:
                watch.end()
        self._observer.decided(framework.scheduler_name, pod, decision)
        self._attempts.decided(pod)
        return decision

    async def _try(
        self, framework: Framework, pod: QueuedPod, *, may_pause: bool
    ) -> Decision | None:
        """Run the scheduling cycle; None if a plugin needs more time than other tasks can wait."""
        extended_cycle = self._profiles.extended_cycle
        try:
            if extended_cycle is None:
                self._observer.deciding()
                return self._cycle.schedule(framework, pod.info, may_pause=may_pause)
            self._observer.asking(framework.scheduler_name, pod.info.pod)
            return await extended_cycle.schedule(framework, pod.info, may_pause=may_pause)
        except AttemptPausedError:
            return None

    def _assume(self, placed: PodToBind) -> None:
        """Assume the pod on its node, before the API server confirms it."""
        info, node_name = placed.pod.info, placed.decision.node_name
        self._cluster.assume(placed.decision.state.on_node(info, node_name), node_name)
        self._nominations.withdraw(info.uid, placed_on=node_name)

    def _leave_to_kubelet(self, placed: PodToBind) -> None:
        """Park a pod whose resize fits on its node, until the kubelet has resized it."""
        status, _ = self._permit(placed)
        if status.ok:
            status = error("pod is on its node already, and no plugin makes it wait for its resize")
        self._failures.handle(placed.framework, placed.pod, as_rejection(status), nominated_node="")

    def _reserve(self, placed: PodToBind) -> Status:
        """Run the Reserve plugins."""
        decision, info = placed.decision, placed.pod.info
        try:
            return placed.framework.reserve(decision.state, info, decision.node_name)
        except MemoryError:
            raise
        except Exception as bug:  # noqa: BLE001 (a plugin's bug costs this pod its attempt)
            return _reserving_failed(placed.pod, bug)

    def _permit(self, placed: PodToBind) -> tuple[Status, dict[str, float]]:
        """Run the Permit plugins; return also which of them make the pod wait, and how long."""
        decision, info = placed.decision, placed.pod.info
        try:
            return placed.framework.permit(decision.state, info, decision.node_name)
        except MemoryError:
            raise
        except Exception as bug:  # noqa: BLE001 (a plugin's bug costs this pod its attempt)
            return _reserving_failed(placed.pod, bug), {}


def _reserving_failed(pod: QueuedPod, bug: Exception) -> Status:
    _bugs.error("reserving for pod %s failed unexpectedly", pod.info.full_name, exc_info=bug)
    return error(f"{type(bug).__name__}: {bug}")
