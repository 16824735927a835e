"""A scheduler at work on an embedded API server, with plugins that a test brings along."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from msgspec.structs import replace

from kubesched.app import App
from kubesched.client.access import ClusterAccess
from kubesched.clock import Clock
from kubesched.config import loading
from kubesched.config.features import FeatureGates
from kubesched.embedded.cluster import EmbeddedCluster
from kubesched.framework.plugin import Plugin
from kubesched.metrics.recorder import Metrics
from kubesched.observer import SchedulerObserver
from kubesched.plugins.in_tree import IN_TREE
from kubesched.scheduler.engine import EngineOptions
from kubesched.tracing.tracer import AttemptTracer

Json = dict[str, Any]


class Harness:
    """An embedded cluster and the scheduler on it."""

    def __init__(
        self,
        cluster: EmbeddedCluster,
        app: App,
        metrics: Metrics,
        running: asyncio.Task[None],
    ) -> None:
        self.cluster = cluster
        self.app = app
        self.metrics = metrics
        self._running = running

    async def end(self) -> None:
        """Ask the scheduler to end, and wait until it has."""
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)

    def create_pod(self, name: str, **spec: object) -> Json:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
        return self.cluster.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {"containers": [container], **spec},
            }
        )

    def node_of(self, name: str) -> str:
        """Return the node that a pod is bound to, "" if it is not."""
        pod = self.app.find_pod("default", name)
        return pod.spec.node_name if pod else ""

    def nominated_node_of(self, name: str) -> str:
        """Return the node that a pod is nominated to, "" if there is none."""
        pod = self.app.find_pod("default", name)
        return pod.status.nominated_node_name if pod else ""

    def message(self, name: str) -> str:
        """Return the message of a pod's PodScheduled condition."""
        pod = self.app.find_pod("default", name)
        conditions = pod.status.conditions if pod else ()
        return next((each.message for each in conditions if each.type == "PodScheduled"), "")


@asynccontextmanager
async def scheduler(
    *plugins: type[Plugin],
    nodes: int = 1,
    profiles: Sequence[Json] = (),
    extenders: Sequence[Json] = (),
    observer: SchedulerObserver | None = None,
    tracer: AttemptTracer | None = None,
    gates: Mapping[str, bool] | None = None,
    clock: Clock | None = None,
    options: EngineOptions | None = None,
) -> AsyncIterator[Harness]:
    """Run the default profile with more plugins, or `profiles`."""
    enabled = [{"name": each.name} for each in plugins]
    default = {
        "schedulerName": "default-scheduler",
        "plugins": {"multiPoint": {"enabled": enabled}},
    }
    feature_gates = FeatureGates.of(gates)
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": list(profiles) or [default],
        "extenders": list(extenders),
    }
    config = loading.decode(json.dumps(document), "test", gates=feature_gates)
    metrics = Metrics(feature_gates)
    unlimited = replace(config.client_connection, qps=0.0)
    async with EmbeddedCluster() as cluster:
        cluster.add_nodes(nodes)
        app = App(
            replace(config, client_connection=unlimited),
            feature_gates,
            ClusterAccess.plain(cluster.url),
            registry=IN_TREE.with_plugins(plugins),
            metrics=metrics,
            observer=observer,
            tracer=tracer,
            clock=clock,
            options=options or EngineOptions(seed=1),
        )
        task = asyncio.create_task(app.run())
        try:
            await asyncio.wait_for(app.started.wait(), 20)
            yield Harness(cluster, app, metrics, task)
            app.cluster.validate()
            app.queue.validate()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
