"""The binding cycle, from Permit to a bound pod; many run concurrently.

    WaitOnPermit ──> PreBind ──> Bind ──> PostBind
         └─────────────┴──────────┴─ failed ──> roll back: unreserve · forget

Each binding cycle is a task of its own, which the scheduling cycle starts.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager

from msgspec import Struct

from kubesched import logs
from kubesched.config.durations import Duration
from kubesched.errors import ClientError
from kubesched.framework.diagnosis import refused_by_chosen_node
from kubesched.framework.plugin import PreBind
from kubesched.framework.runtime import Framework, refused_pre_bind
from kubesched.framework.status import SUCCESS, Code, Status, error
from kubesched.framework.waiting import WaitingPod
from kubesched.queue import events
from kubesched.queue.hints import Change
from kubesched.queue.queued_pod import QueuedPod
from kubesched.scheduler.attempts import Attempts
from kubesched.scheduler.cycle import Decision
from kubesched.scheduler.failure import FailureHandler
from kubesched.scheduler.outside import Outside
from kubesched.scheduler.profiles import Profiles
from kubesched.scheduler.races import RaceDetector
from kubesched.scheduler.state import SchedulerState
from kubesched.scheduler.tasks import Tasks

_log, _bugs = logs.get_logger(__name__), logging.getLogger(__name__)

#: Limit in-flight bindings so that decisions do not rest on stale state.
MAX_IN_FLIGHT = 96
#: After the limit was reached, scheduling resumes below this number, so that the next pods are
#: decided in a batch. There are fewer connections to the API server than this, so they stay busy.
RESUME_BELOW = 72
#: A pod that is in PreBind for longer waits for others, such as drivers of devices and volumes: it
#: is at rest. Until then it keeps connections busy, and counts as in flight.
REST_AFTER_S = 1.0


class PodToBind(Struct, frozen=True):
    """A pod with the node that it is assumed on."""

    framework: Framework
    pod: QueuedPod
    decision: Decision


class Bindings:
    """Runs the binding cycles of assumed pods."""

    def __init__(
        self,
        outside: Outside,
        state: SchedulerState,
        *,
        profiles: Profiles,
        failures: FailureHandler,
        attempts: Attempts,
        on_bound: Callable[[QueuedPod, str], None],
        on_room: Callable[[], None],
        races: RaceDetector,
    ) -> None:
        self._api_calls = outside.api_calls
        self._recorders = outside.recorders
        self._metrics = outside.metrics
        self._observer = outside.observer
        self._cluster = state.cluster
        self._queue = state.queue
        self._nominations = state.nominations
        self._waiting = state.waiting
        self._pre_binding = state.pre_binding
        self._profiles = profiles
        self._failures = failures
        self._attempts = attempts
        self._on_bound = on_bound
        #: called when a binding ends
        self._on_room = on_room
        self._races = races
        self._tasks = Tasks()
        #: uid → task of a pod whose Bind has not started
        self._held: dict[str, asyncio.Task[None]] = {}
        #: how many of them wait on Permit, or for others in PreBind
        self._at_rest = 0
        #: the last result of `has_backpressure`
        self._had_backpressure = False

    def __len__(self) -> int:
        return len(self._tasks)

    @property
    def has_backpressure(self) -> bool:
        """Whether the next decision has to wait for bindings, not counting those at rest.

        There is hysteresis: see `MAX_IN_FLIGHT` and `RESUME_BELOW`.
        """
        in_flight = len(self._tasks) - self._at_rest
        limit = RESUME_BELOW if self._had_backpressure else MAX_IN_FLIGHT
        self._had_backpressure = in_flight >= limit
        return self._had_backpressure

    def start(self, placed: PodToBind, waits_s: Mapping[str, float]) -> None:
        """Start the binding cycle as a task; first wait for the Permit plugins in `waits_s`."""
        self._activate(placed.decision)
        permission = self._ask_to_wait(placed.pod, waits_s) if waits_s else None
        self._held[placed.pod.info.uid] = self._tasks.start(self._bind(placed, permission))

    def roll_back(self, placed: PodToBind, status: Status) -> None:
        """Unreserve, forget the assumed pod, and requeue it."""
        pod, decision = placed.pod, placed.decision
        placed.framework.unreserve(decision.state, pod.info, decision.node_name)
        self._cluster.forget(pod.info.uid)
        self._observer.returned(pod.info, status)
        self._failures.handle(placed.framework, pod, status, nominated_node="")

    async def drain(self, timeout_s: float) -> None:
        """Wait for bindings in flight for a limited time, then cancel them.

        Pods whose Bind has not started are cancelled immediately: Permit and PreBind may take
        minutes, and the next leader schedules them again.
        """
        for task in self._held.values():
            task.cancel()
        await self._tasks.drain(timeout_s)

    # --- the cycle --------------------------------------------------------------------------

    async def _bind(self, placed: PodToBind, permission: asyncio.Future[Status] | None) -> None:
        framework, pod, decision = placed.framework, placed.pod, placed.decision
        self._observer.binding(pod)
        try:
            status = await self._run(placed, permission)
        except MemoryError:
            raise
        except Exception as bug:  # noqa: BLE001 (a plugin's bug costs this pod its attempt)
            _bugs.exception("binding pod %s failed unexpectedly", pod.info.full_name)
            status = error(f"{type(bug).__name__}: {bug}")
        except asyncio.CancelledError:
            framework.unreserve(decision.state, pod.info, decision.node_name)
            self._cluster.forget(pod.info.uid)
            raise
        finally:
            self._held.pop(pod.info.uid, None)
            if permission is not None:
                self._waiting.remove(pod.info.uid)
            self._on_room()
        if status.ok:
            self._bound(placed)
            return
        _log.v(1, "Failed to bind pod", pod=pod.info.full_name)
        self.roll_back(placed, status)
        # Its resources are free again, which may help other pods, not itself.
        freed = pod.info
        gone = Change(events.ASSIGNED_POD_DELETE, old=freed.object_on(decision.node_name))
        self._queue.move(gone, only=lambda other: other.uid != freed.uid)
        self._nominations.review(decision.node_name)

    async def _run(self, placed: PodToBind, permission: asyncio.Future[Status] | None) -> Status:
        framework, decision = placed.framework, placed.decision
        state, info, node_name = decision.state, placed.pod.info, decision.node_name
        status = framework.pre_bind_pre_flight(state, info, node_name)
        if not status.ok and status.code is not Code.SKIP:
            return status
        has_pre_bind = status.ok
        if has_pre_bind or permission is not None:
            status = await self._wait(placed, permission, has_pre_bind=has_pre_bind)
            if not status.ok:
                return status
        else:
            self._queue.done(info.uid)
        if not has_pre_bind:
            framework.without_pre_bind.zeros += 1
        del self._held[info.uid]
        self._races.binding(info.uid)
        try:
            extenders = self._profiles.extenders
            if extenders is not None and await extenders.bind(info.pod, node_name):
                return SUCCESS
        except ClientError as failed:
            return error(str(failed))
        return (await framework.bind(state, info, node_name)).by("")

    async def _wait(
        self,
        placed: PodToBind,
        permission: asyncio.Future[Status] | None,
        *,
        has_pre_bind: bool,
    ) -> Status:
        """Wait on Permit, then run PreBind."""
        framework, pod = placed.framework, placed.pod
        async with self._announcements(placed) as announce:
            if permission is not None:
                started = framework.now()
                with self._resting(announce):
                    status = await permission
                waited_s = framework.now() - started
                self._metrics.permit_wait_duration.labels(status.code.label).observe(waited_s)
                self._waiting.remove(pod.info.uid)
                if not status.ok:
                    return as_rejection(status)
            # From here on, any failure is an error: no cluster event would help.
            self._queue.done(pod.info.uid)
            if not has_pre_bind:
                return SUCCESS
            started = framework.now()
            with self._resting(announce, after_s=REST_AFTER_S):
                status = await self._pre_bind_or_turn_back(placed)
            framework.pre_bound(status.code, started)
            return status.by("")

    @contextmanager
    def _resting(self, announce: Callable[[], None], *, after_s: float = 0.0) -> Iterator[None]:
        """Let a binding be at rest, if the block takes longer than a time.

        Then it does not count as in flight, and its node is announced.
        """
        is_at_rest = False

        def rest() -> None:
            nonlocal is_at_rest
            is_at_rest = True
            self._at_rest += 1
            announce()
            self._on_room()

        timer = asyncio.get_running_loop().call_later(after_s, rest)
        try:
            yield
        finally:
            timer.cancel()
            self._at_rest -= is_at_rest

    @asynccontextmanager
    async def _announcements(self, placed: PodToBind) -> AsyncIterator[Callable[[], None]]:
        """Nominate a pod, once, when that is asked for; done when the block is left.

        A nomination tells cluster autoscalers where a pod goes that takes a while to be bound. One
        that is written later than the binding would stay.
        """
        announcing: asyncio.Future[None] | None = None

        def announce() -> None:
            nonlocal announcing
            if announcing is None:
                work = self._announce(placed.pod, placed.decision.node_name)
                announcing = asyncio.ensure_future(work)

        try:
            yield announce
        finally:
            if announcing is not None:
                await announcing

    async def _announce(self, pod: QueuedPod, node_name: str) -> None:
        try:
            await self._api_calls.nominate(pod.info.pod, node_name)
        except ClientError as failed:
            _log.error(
                "Failed to update the nominated node name in the binding cycle",
                failed,
                pod=pod.info.full_name,
            )

    async def _pre_bind_or_turn_back(self, placed: PodToBind) -> Status:
        """Run PreBind plugins until they end, or a preemptor of higher priority evicts the pod."""
        uid = placed.pod.info.uid
        groups = placed.framework.pre_bind_groups(placed.decision.state)
        at_work = groups[0]
        reasons: list[str] = []

        async def work() -> Status:
            nonlocal at_work
            for group in groups:
                at_work = group
                status = await self._pre_bind(placed, group)
                if not status.ok:
                    return status
            return SUCCESS

        task = asyncio.ensure_future(work())

        def turn_back(reason: str) -> bool:
            reasons.append(reason)
            return task.cancel()

        self._pre_binding.add(uid, turn_back)
        try:
            return await task
        except asyncio.CancelledError:
            if not reasons:
                raise
            return refused_pre_bind(error(reasons[0]), at_work[0].name)
        finally:
            self._pre_binding.remove(uid)

    async def _pre_bind(self, placed: PodToBind, group: list[PreBind]) -> Status:
        framework, state = placed.framework, placed.decision.state
        info, node_name = placed.pod.info, placed.decision.node_name
        results = await asyncio.gather(
            *(framework.pre_bind(plugin, state, info, node_name) for plugin in group)
        )
        for plugin, status in zip(group, results, strict=True):
            if not status.ok:
                return refused_pre_bind(status, plugin.name)
        return SUCCESS

    def _bound(self, placed: PodToBind) -> None:
        framework, pod, decision = placed.framework, placed.pod, placed.decision
        info, node_name = pod.info, decision.node_name
        if _log.enabled(2):
            _log.v(
                2,
                "Successfully bound pod to node",
                pod=info.full_name,
                node=node_name,
                evaluatedNodes=decision.evaluated_nodes,
                feasibleNodes=decision.feasible_nodes,
            )
        self._queue.done(info.uid)
        self._attempts.bound(framework.scheduler_name, pod)
        note = f"Successfully assigned {info.full_name} to {node_name}"
        self._recorders.normal(info.pod, reason="Scheduled", action="Binding", note=note)
        framework.post_bind(decision.state, info, node_name)
        self._activate(decision)
        self._observer.bound(pod, node_name)
        self._on_bound(pod, node_name)

    # --- wait on permit ---------------------------------------------------------------------

    def _ask_to_wait(self, pod: QueuedPod, waits_s: Mapping[str, float]) -> asyncio.Future[Status]:
        loop = asyncio.get_running_loop()
        permission: asyncio.Future[Status] = loop.create_future()
        waiting = WaitingPod(pod.info, set(waits_s), permission.set_result)
        self._waiting.add(waiting)
        timers: list[asyncio.TimerHandle] = []
        for plugin, wait_s in waits_s.items():
            wait = Duration.of_seconds(wait_s)
            reason = f"rejected due to timeout after waiting {wait} at plugin {plugin}"
            timers.append(loop.call_later(wait_s, waiting.reject, plugin, reason))

        def stop_timers(_: asyncio.Future[Status]) -> None:
            for timer in timers:
                timer.cancel()

        permission.add_done_callback(stop_timers)
        return permission

    def _activate(self, decision: Decision) -> None:
        if decision.state.pods_to_activate:
            self._queue.activate(decision.state.pods_to_activate)
            decision.state.pods_to_activate = {}


def as_rejection(status: Status) -> Status:
    """Return the status of a pod whose node a plugin rejected; an error stays an error."""
    return refused_by_chosen_node(status) if status.rejected else status
