"""Makes a recording of a small cluster that fills up: most pods find a node, some do not.

Two of the pods are a gang, and one claims a device.
"""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

from msgspec.structs import replace

from kubesched.app import App
from kubesched.client.access import ClusterAccess
from kubesched.clock import RealClock
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.embedded.cluster import EmbeddedCluster
from kubesched.embedded.drivers import SimulatedDriver
from kubesched.embedded.nodes import NodeTemplate
from kubesched.recording.journal import Journal
from kubesched.recording.writer import Writer
from kubesched.scheduler.engine import EngineOptions
from tests.support.waiting import eventually

NODES = 12
SMALL = 60
#: the small ones, a gang of two, and the one that claims a device
PLACED = SMALL + 3
WAITING = 3
_LIMIT_S = 30.0


def record(path: Path) -> None:
    """Write a recording; in a thread of its own, for a browser's loop may run in this one."""
    failures: list[BaseException] = []

    def work() -> None:
        try:
            asyncio.run(_record(path))
        except BaseException as failed:  # noqa: BLE001 (raised again by whoever waits)
            failures.append(failed)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]


async def _record(path: Path) -> None:
    gates = FeatureGates.of({"GenericWorkload": True})
    config = SchedulerConfiguration.default(gates)
    config = replace(config, client_connection=replace(config.client_connection, qps=0.0))
    driver = SimulatedDriver("gpu.example.com", {}, [{"name": "gpu-0"}])
    async with EmbeddedCluster(drivers=[driver]) as cluster:
        cluster.add_nodes(NODES, NodeTemplate(cpu="8", memory="16Gi", zones=("a", "b")))
        with Journal(Writer(path, max_bytes=1 << 24, files=2), clock=RealClock()) as journal:
            options = EngineOptions(seed=1)
            access = ClusterAccess.plain(cluster.url)
            app = App(config, gates, access, observer=journal, options=options)
            running = asyncio.create_task(app.run())
            await app.started.wait()
            _create_gang_and_claim(cluster)
            for number in range(SMALL):
                _create(cluster, f"small-{number:02}", cpu="1")
                await asyncio.sleep(0.005)  # so that there are moments to travel to
            for number in range(WAITING):
                _create(cluster, f"large-{number}", cpu="32")
            await _parked(app)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def _parked(app: App) -> None:
    """Wait until all is done that can be done."""
    await eventually(lambda: app.queue.unschedulable_count >= WAITING, seconds=_LIMIT_S)
    await eventually(lambda: not len(app.engine.bindings), seconds=_LIMIT_S)


def _create_gang_and_claim(cluster: EmbeddedCluster) -> None:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    for api_version, kind, name, spec in (
        ("resource.k8s.io/v1", "DeviceClass", "gpu", {}),
        ("resource.k8s.io/v1", "ResourceClaim", "one", {"devices": {"requests": [request]}}),
        (
            "scheduling.k8s.io/v1beta1",
            "PodGroup",
            "pair",
            {"schedulingPolicy": {"gang": {"minCount": 2}}},
        ),
    ):
        meta = {"name": name}
        cluster.create({"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec})
    for name in ("left", "right"):
        _create(cluster, name, cpu="1", schedulingGroup={"podGroupName": "pair"})
    claim = {"name": "gpu", "resourceClaimName": "one"}
    _create(cluster, "claimer", cpu="1", resourceClaims=[claim])


def _create(cluster: EmbeddedCluster, name: str, *, cpu: str, **spec: object) -> None:
    container = {"name": "main", "image": "example", "resources": {"requests": {"cpu": cpu}}}
    cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"containers": [container], **spec},
        }
    )
