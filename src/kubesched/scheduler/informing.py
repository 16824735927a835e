"""The informers of everything that the scheduler wants to know, each with its handler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from kubesched.api.core import Namespace, Node, Pod
from kubesched.api.policy import PodDisruptionBudget
from kubesched.api.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from kubesched.client import resources
from kubesched.client.informer import Handler, Informer
from kubesched.client.meta import ApiObject
from kubesched.client.rest import ApiClient
from kubesched.metrics.recorder import Metrics
from kubesched.scheduler.engine import Engine
from kubesched.scheduler.handlers import (
    BudgetHandler,
    NamespaceHandler,
    NodeHandler,
    PodHandler,
    WorkloadHandler,
)
from kubesched.scheduler.observed_pods import ObservedPodHandler
from kubesched.scheduler.storage_handlers import Stopwatch, storage_informers
from kubesched.scheduler.timed_handler import TimedHandler, pod_kind
from kubesched.scheduler.unreadable import Unreadable

T = TypeVar("T", bound=ApiObject)

#: Pods that are over take nothing from their node.
RUNNING_PODS = "status.phase!=Succeeded,status.phase!=Failed"


class Informers:
    """Lists and watches, and lets the engine know."""

    def __init__(
        self, client: ApiClient, engine: Engine, metrics: Metrics, timer: Callable[[], float]
    ) -> None:
        self._metrics = metrics
        self._timer = timer
        pods = PodHandler(
            engine.cluster,
            engine.queue,
            nominations=engine.nominations,
            waiting=engine.waiting,
            is_ours=engine.is_ours,
            on_unreadable=engine.failures.refuse,
            unusable=engine.unusable,
        )
        self.pods = Informer(
            client,
            resources.PODS,
            Pod,
            handler=self._timed(
                ObservedPodHandler(pods, engine.observer),
                lambda pod: pod_kind(pod) if pod.spec.node_name or engine.is_ours(pod) else "",
            ),
            field_selector=RUNNING_PODS,
        )
        #: pods last: what they refer to is known before they come
        self.all: list[Informer[Any]] = [*self._of_state(client, engine), self.pods]
        self._unusable = engine.unusable
        metrics.unreadable_objects.set_function(
            lambda: {(kind,): len(objects) for kind, objects in self.unreadable().items()}
        )

    @property
    def have_synced(self) -> bool:
        """Whether everything was listed once."""
        return all(informer.has_synced for informer in self.all)

    def unreadable(self) -> Unreadable:
        """Return the objects that cannot be read, by kind; all kinds are there."""
        return {
            informer.kind: {**self._unusable.of(informer.kind), **informer.unreadable}
            for informer in self.all
        }

    async def wait_until_synced(self) -> None:
        """Return when everything was listed once."""
        for informer in self.all:
            await informer.synced.wait()

    def _of_state(self, client: ApiClient, engine: Engine) -> list[Informer[Any]]:
        cluster, queue = engine.cluster, engine.queue
        workloads = WorkloadHandler(cluster)
        on_node = NodeHandler(cluster, queue, engine.nominations, engine.unusable)
        nodes = self._timed(on_node, lambda _: "Node")
        return [
            Informer(client, resources.NODES, Node, handler=nodes),
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
            *storage_informers(client, cluster.storage, queue, self._stopwatch()),
        ]

    def _stopwatch(self) -> Stopwatch:
        durations = self._metrics.event_handling_duration
        return Stopwatch(
            self._timer, lambda label, seconds: durations.labels(label).observe(seconds)
        )

    def _timed(self, handler: Handler[T], kind: Callable[[T], str]) -> Handler[T]:
        return TimedHandler(handler, self._metrics, kind=kind, timer=self._timer)
