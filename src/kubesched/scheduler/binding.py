"""The binding cycle: what happens between a decision and a bound pod. Many at once.

    reserve · permit ──> wait for permission ──> pre-bind ──> bind ──> post-bind
                                └──────────────────┴──────────┴─ failed ──> unreserve · forget

Reserving and asking for permission belong to the scheduling cycle: they happen before the next pod
is looked at. Everything after runs as a task of its own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from kubesched import logs
from kubesched.cluster.cluster import Cluster
from kubesched.config.durations import Duration
from kubesched.errors import ClientError
from kubesched.framework.diagnosis import refused_by_chosen_node
from kubesched.framework.plugin import PreBind
from kubesched.framework.runtime import Framework, refused_pre_bind
from kubesched.framework.status import SUCCESS, Code, Status, error
from kubesched.framework.waiting import PreBindingPods, WaitingPod, WaitingPods
from kubesched.metrics.recorder import Metrics
from kubesched.queue import events
from kubesched.queue.hints import Change
from kubesched.queue.queued_pod import QueuedPod
from kubesched.queue.scheduling_queue import SchedulingQueue
from kubesched.recording.journal import Journal
from kubesched.scheduler.api_calls import ApiCalls
from kubesched.scheduler.attempts import Attempts
from kubesched.scheduler.cycle import Decision
from kubesched.scheduler.extenders import Extenders
from kubesched.scheduler.failure import FailureHandler
from kubesched.scheduler.nominations import Nominations
from kubesched.scheduler.recorders import Recorders
from kubesched.scheduler.tasks import Tasks

_log, _bugs = logs.get_logger(__name__), logging.getLogger(__name__)

#: How many pods may be with those who bind them, before the next decision has to wait. What is
#: decided long before it can be written is decided by what is no longer so.
MOST_AT_ONCE = 96
#: It waits until so many are left, so that the next ones can be decided in a row. That is more than
#: there are connections to the API server: these are never without work.
LEAST_AT_ONCE = 72


class Bindings:
    """Binds pods that have a node."""

    def __init__(
        self,
        *,
        cluster: Cluster,
        queue: SchedulingQueue,
        nominations: Nominations,
        waiting: WaitingPods,
        pre_binding: PreBindingPods,
        failures: FailureHandler,
        recorders: Recorders,
        attempts: Attempts,
        metrics: Metrics,
        api_calls: ApiCalls,
        extenders: Extenders | None = None,
        journal: Journal | None = None,
        on_bound: Callable[[QueuedPod, str], None] = lambda _pod, _node: None,
        on_room: Callable[[], None] = lambda: None,
    ) -> None:
        self._cluster = cluster
        self._queue = queue
        self._nominations = nominations
        self._waiting = waiting
        self._pre_binding = pre_binding
        self._failures = failures
        self._recorders = recorders
        self._attempts = attempts
        self._metrics = metrics
        self._api_calls = api_calls
        #: they may bind instead of the profile's plugins
        self.extenders = extenders
        self._journal = journal
        self._on_bound = on_bound
        self._on_room = on_room
        self._tasks = Tasks()
        #: uid → task of a pod whose binding has not begun
        self._held: dict[str, asyncio.Task[None]] = {}
        #: how many of them wait for permission, or for what PreBind plugins do
        self._at_rest = 0
        #: the last answer of `are_many`
        self._were_many = False

    def __len__(self) -> int:
        return len(self._tasks)

    @property
    def are_many(self) -> bool:
        """Whether the next decision has to wait for bindings; those that wait do not count."""
        under_way = len(self._tasks) - self._at_rest
        self._were_many = under_way >= (LEAST_AT_ONCE if self._were_many else MOST_AT_ONCE)
        return self._were_many

    def start(self, framework: Framework, pod: QueuedPod, decision: Decision) -> None:
        """Assume the pod, reserve, ask for permission, and leave the rest to a task."""
        node_name = decision.node_name
        self._cluster.assume(pod.info, node_name)
        self._nominations.withdraw(pod.info.uid, placed_on=node_name)
        status, waits = self._reserve(framework, pod, decision)
        if not status.ok:
            self._undo(framework, pod, decision, _turned_away(status))
            return
        self._activate(decision)
        permission = self._ask_to_wait(pod, waits) if waits else None
        work = self._bind(framework, pod, decision, permission)
        self._held[pod.info.uid] = self._tasks.start(work)

    async def drain(self, timeout_s: float) -> None:
        """Wait for bindings that are under way; give up what takes longer.

        Pods whose binding has not begun are given up at once: what they wait for may take minutes,
        and whoever schedules next will begin anew with them.
        """
        for task in self._held.values():
            task.cancel()
        await self._tasks.drain(timeout_s)

    def _reserve(
        self, framework: Framework, pod: QueuedPod, decision: Decision
    ) -> tuple[Status, dict[str, float]]:
        try:
            status = framework.reserve(decision.state, pod.info, decision.node_name)
            if not status.ok:
                return status, {}
            return framework.permit(decision.state, pod.info, decision.node_name)
        except Exception as bug:  # noqa: BLE001 (a plugin's bug costs this pod its attempt)
            _bugs.exception("reserving for pod %s failed unexpectedly", pod.info.full_name)
            return error(f"{type(bug).__name__}: {bug}"), {}

    # --- the cycle --------------------------------------------------------------------------

    async def _bind(
        self,
        framework: Framework,
        pod: QueuedPod,
        decision: Decision,
        permission: asyncio.Future[Status] | None,
    ) -> None:
        try:
            status = await self._run(framework, pod, decision, permission)
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
            self._bound(framework, pod, decision)
            return
        _log.v(1, "Failed to bind pod", pod=pod.info.full_name)
        self._undo(framework, pod, decision, status)
        # The room that it held for a while is free again: for others, not for itself.
        freed = pod.info
        gone = Change(events.ASSIGNED_POD_DELETE, old=freed.object_on(decision.node_name))
        self._queue.move(gone, only=lambda other: other.uid != freed.uid)
        self._nominations.review(decision.node_name)

    async def _run(
        self,
        framework: Framework,
        pod: QueuedPod,
        decision: Decision,
        permission: asyncio.Future[Status] | None,
    ) -> Status:
        state, info, node_name = decision.state, pod.info, decision.node_name
        status = framework.pre_bind_pre_flight(state, info, node_name)
        if not status.ok and status.code is not Code.SKIP:
            return status
        has_pre_bind = status.ok
        if has_pre_bind or permission is not None:
            self._at_rest += 1
            self._on_room()
            try:
                status = await self._wait(
                    framework, pod, decision, permission, has_pre_bind=has_pre_bind
                )
            finally:
                self._at_rest -= 1
            if not status.ok:
                return status
        else:
            self._queue.done(info.uid)
        if not has_pre_bind:
            framework.without_pre_bind.zeros += 1
        del self._held[info.uid]
        try:
            if self.extenders is not None and await self.extenders.bind(info.pod, node_name):
                return SUCCESS
        except ClientError as failed:
            return error(str(failed))
        return (await framework.bind(state, info, node_name)).by("")

    async def _wait(
        self,
        framework: Framework,
        pod: QueuedPod,
        decision: Decision,
        permission: asyncio.Future[Status] | None,
        *,
        has_pre_bind: bool,
    ) -> Status:
        """Wait for permission, and for what PreBind plugins do."""
        # Others may want to know where the pod is about to go: binding may take a while.
        await self._announce(pod, decision.node_name)
        if permission is not None:
            started = framework.now()
            status = await permission
            waited_s = framework.now() - started
            self._metrics.permit_wait_duration.labels(status.code.label).observe(waited_s)
            self._waiting.remove(pod.info.uid)
            if not status.ok:
                return _turned_away(status)
        # From here on, whatever goes wrong is an error: no event in the cluster would help.
        self._queue.done(pod.info.uid)
        if not has_pre_bind:
            return SUCCESS
        started = framework.now()
        status = await self._pre_bind_or_turn_back(framework, decision, pod)
        framework.pre_bound(status.code, started)
        return status.by("")

    async def _announce(self, pod: QueuedPod, node_name: str) -> None:
        try:
            await self._api_calls.nominate(pod.info.pod, node_name)
        except ClientError as failed:
            _log.error(
                "Failed to update the nominated node name in the binding cycle",
                failed,
                pod=pod.info.full_name,
            )

    async def _pre_bind_or_turn_back(
        self, framework: Framework, decision: Decision, pod: QueuedPod
    ) -> Status:
        """Let PreBind plugins work until they are done, or a more important pod needs the room."""
        groups = framework.pre_bind_groups(decision.state)
        at_work = groups[0]
        reasons: list[str] = []

        async def work() -> Status:
            nonlocal at_work
            for group in groups:
                at_work = group
                status = await self._pre_bind(framework, group, decision, pod)
                if not status.ok:
                    return status
            return SUCCESS

        task = asyncio.ensure_future(work())

        def turn_back(reason: str) -> bool:
            reasons.append(reason)
            return task.cancel()

        self._pre_binding.add(pod.info.uid, turn_back)
        try:
            return await task
        except asyncio.CancelledError:
            if not reasons:
                raise
            return refused_pre_bind(error(reasons[0]), at_work[0].name)
        finally:
            self._pre_binding.remove(pod.info.uid)

    async def _pre_bind(
        self, framework: Framework, group: list[PreBind], decision: Decision, pod: QueuedPod
    ) -> Status:
        state, info, node_name = decision.state, pod.info, decision.node_name
        results = await asyncio.gather(
            *(framework.pre_bind(plugin, state, info, node_name) for plugin in group)
        )
        for plugin, status in zip(group, results, strict=True):
            if not status.ok:
                return refused_pre_bind(status, plugin.name)
        return SUCCESS

    def _bound(self, framework: Framework, pod: QueuedPod, decision: Decision) -> None:
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
        self._on_bound(pod, node_name)

    def _undo(
        self, framework: Framework, pod: QueuedPod, decision: Decision, status: Status
    ) -> None:
        """Give back what was taken for the pod, and try it again later."""
        framework.unreserve(decision.state, pod.info, decision.node_name)
        self._cluster.forget(pod.info.uid)
        if self._journal is not None:
            self._journal.returned(pod.info, status)
        self._failures.handle(framework, pod, status, nominated_node="")

    # --- waiting for permission -------------------------------------------------------------

    def _ask_to_wait(self, pod: QueuedPod, waits: dict[str, float]) -> asyncio.Future[Status]:
        loop = asyncio.get_running_loop()
        permission: asyncio.Future[Status] = loop.create_future()
        waiting = WaitingPod(pod.info, set(waits), permission.set_result)
        self._waiting.add(waiting)
        timers: list[asyncio.TimerHandle] = []
        for plugin, wait_s in waits.items():
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


def _turned_away(status: Status) -> Status:
    """Return what a refusal means for the pod; an error stays as it is."""
    return refused_by_chosen_node(status) if status.rejected else status
