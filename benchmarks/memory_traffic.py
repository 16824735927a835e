"""Traffic of an idle cluster, and of a busy one.

    Idle   node heartbeats · /livez and /readyz probes · /metrics scrapes
    Churn  all of that · pods come, run and go · rollouts · nodes replaced · pods that fit nowhere

Lease renewals, bookmarks and the end of watches come from the scheduler and the API server
themselves. Both kinds of traffic leave nothing behind that grows, events included, so that they can
run for days.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import ssl
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import msgspec

from kubesched.bench.processes import LOOPBACK
from kubesched.client.access import ClusterAccess, Server, tls_context
from kubesched.client.rest import ApiClient
from kubesched.errors import ClientError, KubeschedError, NotFoundError

JsonObject = dict[str, Any]

NAMESPACE = "default"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
NODES = "/api/v1/nodes"
EVENTS = f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events"
STRATEGIC = "application/strategic-merge-patch+json"

#: Intervals of the kubelet and Prometheus in most clusters.
HEARTBEAT_EVERY_S = 60.0
PROBE_EVERY_S = 5.0
SCRAPE_EVERY_S = 15.0

#: Lifetime of pods in a busy cluster, so that their number is stable.
POD_LIFE_S = 30.0
#: One pod out of this many is unschedulable.
MISFIT_EVERY = 20
NODE_REPLACED_EVERY_S = 20.0
#: A new version of an application, whose pods have another label.
ROLLOUT_EVERY_S = 30.0
#: The API server would keep events for an hour.
EVENTS_CLEARED_EVERY_S = 60.0
KUBELET_EVERY_S = 1.0

_APPS = 12
_CPU_MILLI = (50, 100, 150, 200, 250, 400)
_MEMORY_MIB = (64, 96, 128, 256, 320)


@dataclass(frozen=True)
class Target:
    """The scheduler under measurement, and its cluster."""

    #: may do everything
    client: ApiClient
    #: address of the scheduler's health and metrics
    port: int
    #: credentials for metrics
    token: str
    nodes: int
    pods: int


def node(name: str, number: int) -> JsonObject:
    """A node of four CPUs, in one of three zones."""
    room = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "topology.kubernetes.io/zone": f"zone-{number % 3}",
            },
        },
        "status": {"allocatable": room, "capacity": room, "conditions": [_ready(time.time())]},
    }


def pod(name: str, number: int, *, version: int = 0, fits: bool = True) -> JsonObject:
    """A pod whose size, labels and constraints depend on its number."""
    app = f"app-{number % _APPS}"
    labels = {"app": app, "pod-template-hash": f"{app}-{version}"}
    cpu = f"{_CPU_MILLI[number % len(_CPU_MILLI)]}m" if fits else "64"
    memory = f"{_MEMORY_MIB[number % len(_MEMORY_MIB)]}Mi"
    spec: JsonObject = {
        "terminationGracePeriodSeconds": 0,
        "containers": [
            {
                "name": "c",
                "image": f"registry.invalid/{app}:{version}",
                "resources": {"requests": {"cpu": cpu, "memory": memory}},
            }
        ],
    }
    if number % 3 == 0:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": 5,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": labels},
            }
        ]
    if number % 7 == 0:
        term = {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
        preferred = [{"weight": 1, "podAffinityTerm": term}]
        anti = {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
        spec["affinity"] = {"podAntiAffinity": anti}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": spec,
    }


async def prepare(target: Target) -> None:
    """Create the nodes, and the permanent pods, some of which are unschedulable."""
    for number in range(target.nodes):
        name = f"node-{number}"
        await target.client.post(NODES, node(name, number))
    for number in range(target.pods):
        fits = number % MISFIT_EVERY != 0
        await target.client.post(PODS, pod(f"steady-{number}", number, fits=fits))


@contextlib.asynccontextmanager
async def idle(target: Target) -> AsyncIterator[Counts]:
    """Traffic of an idle cluster."""
    counts = Counts()
    async with _running(_idle_tasks(target, counts)):
        yield counts


@contextlib.asynccontextmanager
async def churn(target: Target, pods_per_second: float) -> AsyncIterator[Counts]:
    """Traffic of a busy cluster."""
    counts = Counts()
    busy = _Churn(target, counts)
    tasks = [
        *_idle_tasks(target, counts),
        busy.come(1 / pods_per_second),
        busy.go(),
        _every(KUBELET_EVERY_S, busy.run_bound_pods, counts),
        _every(NODE_REPLACED_EVERY_S, busy.replace_node, counts),
        _every(EVENTS_CLEARED_EVERY_S, busy.clear_events, counts),
    ]
    async with _running(tasks):
        yield counts


class Counts:
    """Counts of what happened, by name."""

    def __init__(self) -> None:
        self.by_name: dict[str, int] = {}

    def add(self, name: str) -> None:
        self.by_name[name] = self.by_name.get(name, 0) + 1

    def __str__(self) -> str:
        return ", ".join(f"{count} {name}" for name, count in sorted(self.by_name.items()))


def _idle_tasks(target: Target, counts: Counts) -> list[Coroutine[None, None, None]]:
    return [
        _heartbeats(target, counts),
        *(_probes(target, path, counts) for path in ("/livez", "/readyz")),
        _scrapes(target, counts),
    ]


@contextlib.asynccontextmanager
async def _running(work: list[Coroutine[None, None, None]]) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(each) for each in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _every(
    seconds: float, step: Callable[[], Coroutine[None, None, None]], counts: Counts
) -> None:
    """Repeat something; failures are counted and retried."""
    while True:
        await asyncio.sleep(seconds)
        try:
            await step()
        except (KubeschedError, OSError) as failed:
            counts.add(f"failures ({type(failed).__name__})")


# --- idle -----------------------------------------------------------------------------------


async def _heartbeats(target: Target, counts: Counts) -> None:
    """Let each kubelet report, spread over the period."""
    while True:
        began = time.monotonic()
        names = await _names(target.client, NODES)
        for place, name in enumerate(names):
            status = {"status": {"conditions": [_ready(time.time())]}}
            try:
                path = f"{NODES}/{name}/status"
                await target.client.patch(path, status, content_type=STRATEGIC)
                counts.add("heartbeats")
            except NotFoundError:
                pass  # replaced meanwhile
            due = began + HEARTBEAT_EVERY_S * (place + 1) / len(names)
            await asyncio.sleep(max(0.0, due - time.monotonic()))


def _ready(now: float) -> JsonObject:
    beat = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    return {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": beat}


async def _probes(target: Target, path: str, counts: Counts) -> None:
    """Probe as the kubelet does: on a new connection each time."""
    trust_all = ssl.create_default_context()
    trust_all.check_hostname = False
    trust_all.verify_mode = ssl.CERT_NONE
    request = f"GET {path} HTTP/1.1\r\nHost: {LOOPBACK}\r\nConnection: close\r\n\r\n".encode()

    async def probe() -> None:
        reader, writer = await asyncio.open_connection(LOOPBACK, target.port, ssl=trust_all)
        try:
            writer.write(request)
            answer = await reader.read()
            counts.add(f"probes answered with {answer[9:12].decode()}")
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    await _every(PROBE_EVERY_S, probe, counts)


async def _scrapes(target: Target, counts: Counts) -> None:
    """Scrape as Prometheus does: on a kept connection, with a token that is reviewed."""
    access = ClusterAccess(
        server=Server("https", LOOPBACK, target.port),
        ssl_context=tls_context(ca_pem=None, verify=False),
        headers=(("Authorization", f"Bearer {target.token}"),),
    )
    async with ApiClient(access) as client:

        async def scrape() -> None:
            await client.request("GET", "/metrics")
            counts.add("scrapes")

        await _every(SCRAPE_EVERY_S, scrape, counts)


# --- churn ----------------------------------------------------------------------------------


class _Churn:
    """Pods and nodes that come and go."""

    def __init__(self, target: Target, counts: Counts) -> None:
        self._client = target.client
        self._counts = counts
        #: current pods, each with the time of its deletion
        self._leaving: deque[tuple[float, str]] = deque()
        self._nodes = deque(f"node-{number}" for number in range(target.nodes))
        self._node_numbers = itertools.count(target.nodes)
        self._began = time.monotonic()

    async def come(self, interval_s: float) -> None:
        """Create pods at a steady rate."""
        for number in itertools.count():
            now = time.monotonic()
            version = int((now - self._began) / ROLLOUT_EVERY_S)
            fits = number % MISFIT_EVERY != 0
            name = f"churn-{number}"
            try:
                await self._client.post(PODS, pod(name, number, version=version, fits=fits))
            except ClientError as failed:
                self._counts.add(f"failures ({type(failed).__name__})")
            else:
                self._counts.add("pods created")
                self._leaving.append((now + POD_LIFE_S, name))
            due = self._began + (number + 1) * interval_s
            await asyncio.sleep(max(0.0, due - time.monotonic()))

    async def go(self) -> None:
        """Delete pods when their time has come."""
        while True:
            if not self._leaving:
                await asyncio.sleep(1.0)
                continue
            due, name = self._leaving.popleft()
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            await self._delete_pod(name)

    async def run_bound_pods(self) -> None:
        """Set bound pods to Running, as a kubelet does."""
        selector = {"fieldSelector": "spec.nodeName!=,status.phase=Pending"}
        for name in await _names(self._client, PODS, **selector):
            with contextlib.suppress(NotFoundError):
                status = {"status": {"phase": "Running"}}
                await self._client.patch(f"{PODS}/{name}/status", status, content_type=STRATEGIC)
                self._counts.add("pods run")

    async def replace_node(self) -> None:
        """Replace a node and its pods; permanent pods are recreated."""
        number = next(self._node_numbers)
        await self._client.post(NODES, node(f"node-{number}", number))
        self._nodes.append(f"node-{number}")
        gone = self._nodes.popleft()
        for name in await _names(self._client, PODS, fieldSelector=f"spec.nodeName={gone}"):
            await self._delete_pod(name)
            if name.startswith("steady-"):
                await self._client.post(PODS, pod(name, int(name.removeprefix("steady-"))))
        await self._client.delete(f"{NODES}/{gone}")
        self._counts.add("nodes replaced")

    async def clear_events(self) -> None:
        """Delete all events."""
        await self._client.delete(EVENTS, timeout_s=60)

    async def _delete_pod(self, name: str) -> None:
        with contextlib.suppress(NotFoundError):
            try:
                await self._client.delete(f"{PODS}/{name}", {"gracePeriodSeconds": 0})
            except NotFoundError:
                raise
            except ClientError as failed:
                self._counts.add(f"failures ({type(failed).__name__})")


async def _names(client: ApiClient, path: str, **selectors: str) -> list[str]:
    answer = await client.request("GET", path, params=selectors)
    return [each["metadata"]["name"] for each in msgspec.json.decode(answer.body)["items"]]
