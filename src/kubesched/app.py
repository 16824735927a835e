"""Puts it all together: who owns which task, in which order things start and stop.

start: reach the API server ──> informers ──> synced ──> scheduling loop
stop:  scheduling loop ──> bindings under way ──> reports and events ──> connections
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import Any

from kubesched import __version__
from kubesched.api import names
from kubesched.api.core import Namespace, Node, Pod
from kubesched.api.policy import PodDisruptionBudget
from kubesched.api.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from kubesched.client import resources
from kubesched.client.access import ClusterAccess
from kubesched.client.events import EventRecorder
from kubesched.client.informer import Informer
from kubesched.client.rest import ApiClient
from kubesched.clock import Clock, RealClock
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import RequestRules
from kubesched.config.extenders import with_extender_effects
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.errors import (
    ClientError,
    ConnectionFailedError,
    ObjectError,
    RequestTimeoutError,
    UnauthorizedError,
)
from kubesched.framework.building import build_framework
from kubesched.framework.registry import Registry
from kubesched.framework.runtime import Framework
from kubesched.framework.waiting import WaitingPods
from kubesched.plugins.in_tree import IN_TREE
from kubesched.queue.backoff import Backoff
from kubesched.queue.interest import Registrations
from kubesched.queue.queued_pod import QueuedPod
from kubesched.queue.scheduling_queue import SchedulingQueue
from kubesched.scheduler.api_calls import ApiCalls
from kubesched.scheduler.binding import Bindings
from kubesched.scheduler.cycle import SchedulingCycle
from kubesched.scheduler.evictions import Evictions
from kubesched.scheduler.extended_cycle import EXTENDER, ExtendedCycle
from kubesched.scheduler.extender_objects import ApiObjects
from kubesched.scheduler.extenders import Extenders
from kubesched.scheduler.failure import FailureHandler
from kubesched.scheduler.handlers import (
    BudgetHandler,
    NamespaceHandler,
    NodeHandler,
    PodHandler,
    WorkloadHandler,
)
from kubesched.scheduler.recorders import Recorders
from kubesched.scheduler.reports import StatusReports
from kubesched.scheduler.scheduler import Scheduler

_log = logging.getLogger(__name__)

#: Pods that are over take nothing from their node.
RUNNING_PODS = "status.phase!=Succeeded,status.phase!=Failed"
#: Events wait for the API server, not for our memory; beyond this they are dropped.
EVENT_QUEUE_SIZE = 100_000
DRAIN_TIMEOUT_S = 10.0
RECONNECT_PAUSE_S = 1.0


class App:
    """One scheduler process."""

    def __init__(
        self,
        config: SchedulerConfiguration,
        gates: FeatureGates,
        access: ClusterAccess,
        *,
        registry: Registry = IN_TREE,
        clock: Clock | None = None,
        seed: int | None = None,
        max_unschedulable_s: float = 300.0,
        on_bound: Callable[[QueuedPod, str], None] = lambda _pod, _node: None,
    ) -> None:
        clock = clock or RealClock()
        config = with_extender_effects(config)
        self._client = _make_client(config, access)
        # Events have a rate limit of their own: they must not hold up bindings.
        self._event_client = _make_client(config, access)
        self.cluster = Cluster(RequestRules.of(gates))
        api_calls = ApiCalls(self._client, clock)
        waiting = WaitingPods()
        self._recorders = {
            profile.scheduler_name: self._recorder(profile.scheduler_name, clock)
            for profile in config.profiles
        }
        recorders = Recorders(self._recorders)
        self._evictions = Evictions(
            api_calls=api_calls,
            nominator=self.cluster.nominator,
            waiting=waiting,
            recorders=recorders,
            find_pod=self._find_pod,
            activate=self._activate,
        )
        self.frameworks: dict[str, Framework] = {
            profile.scheduler_name: build_framework(
                profile,
                registry=registry,
                gates=gates,
                cluster=self.cluster,
                binder=api_calls,
                evictor=self._evictions,
                waiting=waiting,
                percentage_of_nodes_to_score=config.percentage_of_nodes_to_score,
            )
            for profile in config.profiles
        }
        #: set whenever there may be a pod to schedule
        self._ready = asyncio.Event()
        self.queue = self._make_queue(config, clock, max_unschedulable_s)
        self._pods = Informer(
            self._client,
            resources.PODS,
            Pod,
            handler=PodHandler(
                self.cluster,
                self.queue,
                waiting=waiting,
                is_ours=self._is_ours,
                on_unreadable=self._refuse,
            ),
            field_selector=RUNNING_PODS,
        )
        self._informers: list[Informer[Any]] = [*self._informers_of_state(), self._pods]
        self._extenders = self._make_extenders(config)
        self._reports = StatusReports(api_calls, self._find_pod)
        self._failures = FailureHandler(
            cluster=self.cluster,
            queue=self.queue,
            reports=self._reports,
            recorders=recorders,
            find_pod=self._find_pod,
        )
        self._bindings = Bindings(
            cluster=self.cluster,
            queue=self.queue,
            waiting=waiting,
            failures=self._failures,
            recorders=recorders,
            api_calls=api_calls,
            extenders=self._extenders,
            on_bound=on_bound,
        )
        self._cycle = SchedulingCycle(self.cluster, seed=seed)
        self._scheduler = Scheduler(
            frameworks=self.frameworks,
            cluster=self.cluster,
            queue=self.queue,
            cycle=self._cycle,
            bindings=self._bindings,
            failures=self._failures,
            recorders=recorders,
            ready=self._ready,
            extended_cycle=(
                None
                if self._extenders is None
                else ExtendedCycle(self._cycle, self.cluster, self._extenders)
            ),
        )
        #: set once pods are being scheduled
        self.started = asyncio.Event()

    def why_waiting(self, pod: QueuedPod) -> str:
        """Return what keeps a pod in the queue, in the words of its gate or its condition."""
        framework = self.frameworks[pod.info.pod.spec.scheduler_name]
        gated = framework.gate(pod.info, pod.gated_by)
        if not gated.ok:
            return gated.message
        meta = pod.info.pod.metadata
        newest = self._find_pod(meta.namespace, meta.name) or pod.info.pod
        told = (each for each in newest.status.conditions if each.type == names.POD_SCHEDULED)
        return next((each.message for each in told), "its turn has not come")

    async def run(self) -> None:
        """Schedule until cancelled; then finish what is under way.

        Raises ClientError if the API server cannot be used with these credentials at all.
        """
        async with contextlib.AsyncExitStack() as open_until_the_end:
            await open_until_the_end.enter_async_context(self._client)
            await open_until_the_end.enter_async_context(self._event_client)
            if self._extenders is not None:
                open_until_the_end.push_async_callback(self._extenders.aclose)
            await self._reach_server()
            async with asyncio.TaskGroup() as tasks:
                background = [
                    tasks.create_task(recorder.run()) for recorder in self._recorders.values()
                ]
                background += [tasks.create_task(each.run()) for each in self._informers]
                try:
                    await self._schedule(tasks)
                finally:
                    await self._drain()
                    for task in background:
                        task.cancel()

    async def _schedule(self, tasks: asyncio.TaskGroup) -> None:
        for informer in self._informers:
            await informer.synced.wait()
        # What the first lists brought stays: the garbage collector need not look at it again.
        gc.collect()
        gc.freeze()
        for framework in self.frameworks.values():
            if framework.left_out:
                _log.warning(
                    "profile %s runs without %s: not available in this version",
                    framework.scheduler_name,
                    ", ".join(framework.left_out),
                )
        _log.info(
            "scheduling: nodes=%d pods=%d pending=%d",
            len(self.cluster.table),
            self.cluster.pod_count,
            len(self.queue),
        )
        self.started.set()
        flush = tasks.create_task(self._scheduler.flush())
        try:
            await self._scheduler.run()
        finally:
            flush.cancel()

    async def _drain(self) -> None:
        """Finish what is under way, as far as that does not take long."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + DRAIN_TIMEOUT_S
        with contextlib.suppress(asyncio.CancelledError):
            for work in (self._bindings, self._evictions, self._reports):
                await work.drain(deadline - loop.time())
            for recorder in self._recorders.values():
                await recorder.flush(max(deadline - loop.time(), 0.0))

    async def _reach_server(self) -> None:
        """Wait for the API server; give up if waiting cannot help."""
        told = ""
        while True:
            try:
                await self._client.request("GET", "/version")
            except (ConnectionFailedError, RequestTimeoutError) as failed:
                if isinstance(failed.__cause__, ssl.SSLCertVerificationError):
                    raise
                if str(failed) != told:
                    told = str(failed)
                    _log.warning("waiting for the API server: %s", told)
                await asyncio.sleep(RECONNECT_PAUSE_S)
            except UnauthorizedError as refused:
                server = self._client.access.server.url
                raise ClientError(
                    f"{server} refuses our credentials: {refused}; "
                    "check the user of the kubeconfig's context"
                ) from None
            else:
                return

    # --- parts ------------------------------------------------------------------------------

    def _informers_of_state(self) -> list[Informer[Any]]:
        """Return the informers of everything but pods."""
        client, cluster = self._client, self.cluster
        workloads = WorkloadHandler(cluster)
        return [
            Informer(client, resources.NODES, Node, handler=NodeHandler(cluster, self.queue)),
            Informer(client, resources.NAMESPACES, Namespace, handler=NamespaceHandler(cluster)),
            Informer(client, resources.SERVICES, Service, handler=workloads),
            Informer(
                client, resources.REPLICATION_CONTROLLERS, ReplicationController, handler=workloads
            ),
            Informer(client, resources.REPLICA_SETS, ReplicaSet, handler=workloads),
            Informer(client, resources.STATEFUL_SETS, StatefulSet, handler=workloads),
            Informer(
                client,
                resources.POD_DISRUPTION_BUDGETS,
                PodDisruptionBudget,
                handler=BudgetHandler(cluster),
            ),
        ]

    def _make_extenders(self, config: SchedulerConfiguration) -> Extenders | None:
        if not config.extenders:
            return None

        def version(node_name: str) -> str | None:
            row = self.cluster.table.row_of(node_name)
            return (
                None if row is None else self.cluster.table.node_at(row).metadata.resource_version
            )

        return Extenders(config.extenders, ApiObjects(self._client, version))

    def _recorder(self, scheduler_name: str, clock: Clock) -> EventRecorder:
        return EventRecorder(
            self._event_client,
            controller=scheduler_name,
            instance=f"{scheduler_name}-{socket.gethostname()}",
            clock=clock,
            queue_size=EVENT_QUEUE_SIZE,
        )

    def _make_queue(
        self, config: SchedulerConfiguration, clock: Clock, max_unschedulable_s: float
    ) -> SchedulingQueue:
        # Extenders do not say what might help, so anything may.
        always: Registrations = {EXTENDER: None} if config.extenders else {}
        registrations: dict[str, Registrations] = {
            name: {**framework.plugins.events(), **always}
            for name, framework in self.frameworks.items()
        }
        first = next(iter(self.frameworks.values()))

        def gate(pod: QueuedPod) -> str:
            framework = self.frameworks[pod.info.pod.spec.scheduler_name]
            return framework.gate(pod.info, pod.gated_by).plugin

        return SchedulingQueue(
            clock=clock,
            sort_key=first.plugins.queue_sort[0].sort_key,
            gate=gate,
            registrations=registrations,
            backoff=Backoff(
                initial_s=config.pod_initial_backoff_seconds,
                max_s=config.pod_max_backoff_seconds,
            ),
            max_unschedulable_s=max_unschedulable_s,
            on_ready=self._ready.set,
        )

    def _refuse(self, pod: Pod, unreadable: ObjectError) -> None:
        self._failures.refuse(pod, unreadable)

    def _activate(self, uids: Sequence[str]) -> None:
        self.queue.activate(uids)

    def _find_pod(self, namespace: str, name: str) -> Pod | None:
        return self._pods.get(name, namespace=namespace)

    def _is_ours(self, pod: Pod) -> bool:
        return pod.spec.scheduler_name in self.frameworks


def _make_client(config: SchedulerConfiguration, access: ClusterAccess) -> ApiClient:
    connection = config.client_connection
    user_agent = f"kube-scheduler/kubesched-{__version__}/scheduler"
    return ApiClient(access, qps=connection.qps, burst=connection.burst, user_agent=user_agent)
