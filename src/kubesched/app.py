"""The composition root: owns all tasks, and starts and stops them in order.

start: reach the API server ──> informers ──> elected ──> synced ──> scheduling loop
stop:  scheduling loop ──> bindings in flight ──> reports and events ──> connections
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from kubesched import garbage, logs
from kubesched.api import names
from kubesched.api.core import Pod
from kubesched.client.access import ClusterAccess
from kubesched.client.backoff import ReflectorBackoff
from kubesched.client.events import EventRecorder
from kubesched.client.requester import RequestObserver
from kubesched.client.rest import ApiClient
from kubesched.client.rest_metrics import RestMetrics
from kubesched.client.user_agent import user_agent
from kubesched.clock import Clock, RealClock
from kubesched.cluster.pod_info import RequestRules
from kubesched.config.extenders import with_extender_effects
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.errors import KubeschedError, UnauthorizedError
from kubesched.framework.registry import Registry
from kubesched.metrics.recorder import Metrics
from kubesched.observer import ObserverPair, SchedulerObserver
from kubesched.plugins.in_tree import IN_TREE
from kubesched.queue.group_queue import GroupSchedulingQueue
from kubesched.queue.queued_pod import QueuedPod
from kubesched.scheduler.api_calls import ApiCalls
from kubesched.scheduler.claim_writes import ClaimWrites
from kubesched.scheduler.engine import Engine, EngineOptions
from kubesched.scheduler.informing import Informers
from kubesched.scheduler.outside import Outside
from kubesched.scheduler.recorders import Recorders
from kubesched.scheduler.volume_writes import VolumeWrites

if TYPE_CHECKING:
    from kubesched.scheduler.extenders import HttpExtenders
    from kubesched.tracing.tracer import AttemptTracer

_log = logs.get_logger(__name__)

#: Size of the event queue; beyond this events are dropped.
EVENT_QUEUE_SIZE = 100_000
DRAIN_TIMEOUT_S = 10.0
#: Pauses between attempts to reach the API server at the start, before up to 100 % of jitter: so
#: short at first, and at most so long that a control plane that comes up is noticed within seconds.
RECONNECT_FIRST_PAUSE_S = 0.5
RECONNECT_LONGEST_PAUSE_S = 4.0
#: How often the log repeats why the API server cannot be reached.
WAITING_LOG_PERIOD_S = 60.0


async def _at_once() -> None:
    """Return immediately: there is no election."""


class App:
    """One scheduler, connected to one API server."""

    def __init__(
        self,
        config: SchedulerConfiguration,
        gates: FeatureGates,
        access: ClusterAccess,
        *,
        registry: Registry = IN_TREE,
        clock: Clock | None = None,
        metrics: Metrics | None = None,
        may_write: Callable[[], bool] | None = None,
        observer: SchedulerObserver | None = None,
        tracer: AttemptTracer | None = None,
        options: EngineOptions | None = None,
    ) -> None:
        """`may_write` is called before every write to the cluster."""
        clock = clock or RealClock()
        metrics = metrics or Metrics(gates)
        config = with_extender_effects(config)
        self._clock = clock
        self._config = config
        requests = RestMetrics(metrics, access.server.address)
        self.client = _make_client(
            config, access, observer=requests, may_write=may_write, tracer=tracer
        )
        # Events have their own rate limit: they must not delay bindings.
        self._event_client = _make_client(config, access, observer=requests)
        if observer is None or tracer is None:
            observer = observer or tracer or SchedulerObserver()
        else:
            observer = ObserverPair(observer, tracer)
        self.cluster = observer.make_cluster(RequestRules.of(gates))
        #: by scheduler name
        self._recorders = {
            profile.scheduler_name: self._make_recorder(profile.scheduler_name)
            for profile in config.profiles
        }
        #: of the current configuration
        self._extenders: HttpExtenders | None = None
        #: those not closed yet: the current ones, and for a while the previous ones
        self._open_extenders: list[HttpExtenders] = []
        recorders = Recorders(self._recorders)
        self._claim_writes = ClaimWrites(
            self.client, self.cluster.devices.claims, recorders=recorders, clock=clock
        )
        self.engine = Engine(
            config,
            gates,
            self.cluster,
            Outside(
                api_calls=ApiCalls(self.client, clock),
                volume_writer=VolumeWrites(self.client, self.cluster.storage),
                claim_writer=self._claim_writes,
                recorders=recorders,
                find_pod=self.find_pod,
                make_extenders=self._make_extenders,
                clock=clock,
                metrics=metrics,
                observer=observer,
                tracer=tracer,
            ),
            registry=registry,
            options=options or EngineOptions(),
        )
        self.queue = self.engine.queue
        self.informers = Informers(self.client, self.engine, metrics, clock.monotonic)
        #: set once pods are being scheduled
        self.started = asyncio.Event()
        self._background: asyncio.TaskGroup | None = None

    def find_pod(self, namespace: str, name: str) -> Pod | None:
        """Return the newest version of a pod."""
        return self.informers.pods.get(name, namespace=namespace)

    def why_waiting(self, pod: QueuedPod) -> str:
        """Return why a pod is in the queue, from its gate or its condition."""
        framework = self.engine.frameworks[pod.info.pod.spec.scheduler_name]
        gated = framework.gate(pod.info, pod.gated_by)
        if not gated.ok:
            return gated.message
        meta = pod.info.pod.metadata
        newest = self.find_pod(meta.namespace, meta.name) or pod.info.pod
        told = (each for each in newest.status.conditions if each.type == names.POD_SCHEDULED)
        return next((each.message for each in told), "its turn has not come")

    def reconfigure(self, config: SchedulerConfiguration) -> None:
        """Replace the configuration, from the next cycle on.

        Raises ConfigError, and changes nothing, if it cannot be used.
        """
        config = with_extender_effects(config)
        pods = self.informers.pods.objects.values()
        pending = [pod for pod in pods if not pod.spec.node_name]
        new_names = [
            profile.scheduler_name
            for profile in config.profiles
            if profile.scheduler_name not in self._recorders
        ]
        before = self._extenders
        self.engine.reconfigure(config, pending)
        if before is not None and self._background is not None:
            self._background.create_task(self._retire(before))
        for name in new_names:
            recorder = self._recorders[name] = self._make_recorder(name)
            if self._background is not None:
                self._background.create_task(recorder.run())
        self._config = config

    # --- running ----------------------------------------------------------------------------

    async def run(self, our_turn: Callable[[], Awaitable[None]] = _at_once) -> None:
        """Schedule until cancelled; then finish work in flight.

        `our_turn` returns when this replica is elected; until then it only watches, or not even
        that if the configuration says so.
        """
        # Read once: the configuration may be replaced while this replica waits for the election.
        delays_cache = self._config.delay_cache_until_active
        async with contextlib.AsyncExitStack() as open_until_the_end:
            await open_until_the_end.enter_async_context(self.client)
            await open_until_the_end.enter_async_context(self._event_client)
            open_until_the_end.push_async_callback(self._close_extenders)
            await self._reach_server()
            if delays_cache:
                await our_turn()
            garbage.expect_long_lived_objects()
            async with asyncio.TaskGroup() as tasks:
                self._background = tasks
                background = [
                    *(tasks.create_task(recorder.run()) for recorder in self._recorders.values()),
                    *(tasks.create_task(informer.run()) for informer in self.informers.all),
                    tasks.create_task(
                        garbage.collect_when_idle(self._is_idle, sleep=asyncio.sleep)
                    ),
                ]
                try:
                    if not delays_cache:
                        await our_turn()
                    await self._schedule(tasks)
                finally:
                    self._background = None
                    await self._drain()
                    for task in background:
                        task.cancel()

    async def _schedule(self, tasks: asyncio.TaskGroup) -> None:
        _log.info("Starting informers and waiting for sync...")
        await self.informers.wait_until_synced()
        _log.v(3, "Handlers synced")
        if isinstance(self.queue, GroupSchedulingQueue):
            self.queue.prefer_interrupted()
        # The objects of the first lists stay alive: exclude them from garbage collection.
        garbage.freeze()
        for framework in self.engine.frameworks.values():
            if framework.left_out:
                _log.warning(
                    "Plugins of the profile are not available in this version",
                    profile=framework.scheduler_name,
                    plugins=list(framework.left_out),
                )
        _log.info(
            "Sync completed",
            nodes=len(self.cluster.table),
            pods=self.cluster.pod_count,
            pending=len(self.queue),
        )
        self.engine.failures.begin()
        self.engine.group_statuses.begin()
        self.started.set()
        helpers = [
            tasks.create_task(self.engine.scheduler.flush()),
            tasks.create_task(self.engine.queue_check.run()),
        ]
        try:
            await self.engine.scheduler.run()
        finally:
            for helper in helpers:
                helper.cancel()

    def _is_idle(self) -> bool:
        """Tell whether no pod is being scheduled or bound."""
        return not self.queue.active_count and not self.queue.in_flight_count

    async def _drain(self) -> None:
        """Finish work in flight, for a limited time."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + DRAIN_TIMEOUT_S
        engine = self.engine
        with contextlib.suppress(asyncio.CancelledError):
            for work in (
                engine.bindings,
                engine.evictions,
                engine.reports,
                engine.group_reports,
                engine.group_statuses,
                self._claim_writes.tasks,
            ):
                await work.drain(deadline - loop.time())
            for recorder in self._recorders.values():
                await recorder.flush(max(deadline - loop.time(), 0.0))

    async def _reach_server(self) -> None:
        """Wait until the API server answers and accepts our credentials, however long it takes.

        As kube-scheduler, it never gives up: certificates are replaced, tokens are renewed and
        roles are applied while a control plane starts. The log has a line for each new reason, and
        one a minute while the reason stays.
        """
        backoff = ReflectorBackoff(
            first_s=RECONNECT_FIRST_PAUSE_S, limit_s=RECONNECT_LONGEST_PAUSE_S
        )
        started = told_at = self._clock.monotonic()
        told = ""
        while True:
            try:
                await self.client.request("GET", "/version")
            except KubeschedError as failed:
                why, now = self._why_unreachable(failed), self._clock.monotonic()
                if why != told or now - told_at >= WAITING_LOG_PERIOD_S:
                    told, told_at = why, now
                    waited_s = f"{now - started:.0f}s"
                    _log.warning("Waiting for the API server", err=why, waited=waited_s)
                await asyncio.sleep(backoff.next_s())
            else:
                if told:
                    waited_s = f"{self._clock.monotonic() - started:.0f}s"
                    _log.info("Reached the API server", waited=waited_s)
                return

    def _why_unreachable(self, failed: KubeschedError) -> str:
        if isinstance(failed, UnauthorizedError):
            return (
                f"{self.client.access.server.url} refuses our credentials: {failed}; "
                "check the user of the kubeconfig's context"
            )
        return str(failed)

    # --- parts ------------------------------------------------------------------------------

    def _make_extenders(self, config: SchedulerConfiguration) -> HttpExtenders | None:
        if not config.extenders:
            self._extenders = None
            return None
        # Imported only if there are extenders.
        from kubesched.scheduler.extender_objects import ApiObjects  # noqa: PLC0415
        from kubesched.scheduler.extenders import HttpExtenders  # noqa: PLC0415

        def version(node_name: str) -> str | None:
            table = self.cluster.table
            row = table.row_of(node_name)
            return None if row is None else table.node_at(row).metadata.resource_version

        self._extenders = HttpExtenders(config.extenders, ApiObjects(self.client, version))
        self._open_extenders.append(self._extenders)
        return self._extenders

    async def _retire(self, extenders: HttpExtenders) -> None:
        """Close extenders of a replaced configuration, after their pods in flight."""
        await extenders.wait_until_unused()
        self._open_extenders.remove(extenders)
        await extenders.aclose()

    async def _close_extenders(self) -> None:
        for extenders in self._open_extenders:
            await extenders.aclose()

    def _make_recorder(self, scheduler_name: str) -> EventRecorder:
        return EventRecorder(
            self._event_client,
            controller=scheduler_name,
            instance=f"{scheduler_name}-{socket.gethostname()}",
            clock=self._clock,
            queue_size=EVENT_QUEUE_SIZE,
        )


def _make_client(
    config: SchedulerConfiguration,
    access: ClusterAccess,
    *,
    observer: RequestObserver,
    may_write: Callable[[], bool] | None = None,
    tracer: AttemptTracer | None = None,
) -> ApiClient:
    connection = config.client_connection
    return ApiClient(
        access,
        qps=connection.qps,
        burst=connection.burst,
        user_agent=user_agent("scheduler"),
        observer=observer,
        may_write=may_write,
        tracer=tracer,
    )
