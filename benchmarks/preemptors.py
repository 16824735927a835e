"""Cost of preemption by many pods at the same time, beside kube-scheduler.

Every node is full of pods of low priority, and pods of high priority arrive, each of which must
preempt one; if there are fewer victims than preemptors, the rest stays pending. A simulated kubelet
lets victims terminate after a second. Both schedulers have the default client-side rate limit (50
requests per second), under which calls are sent seconds after the decision.

    python -m benchmarks.preemptors --preemptors 30 300
    python -m benchmarks.preemptors --preemptors 300 --victims 30
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from kubesched.api.core import Pod
from kubesched.bench import assets, schedulers
from kubesched.bench.planes import RealPlane
from kubesched.bench.schedulers import BenchScheduler, SchedulerProcess, Settings
from kubesched.client import kubeconfig, resources
from kubesched.client.informer import Informer
from kubesched.client.rest import ApiClient
from kubesched.errors import ClientError, NotFoundError

#: kube-scheduler's defaults.
DEFAULT_LIMITS = Settings(qps=50.0, burst=100)
NAMESPACE = "default"
PODS_PER_NODE = 3
TERMINATION_S = 1.0
#: Wait after the last binding, to count late deletions and events.
SETTLING_S = 5.0
TIMEOUT_S = 600.0

Json = dict[str, object]


@dataclass
class Kubelet:
    """Lets pods terminate, and counts requests."""

    client: ApiClient
    bound_at: dict[str, float] = field(default_factory=dict)
    #: uid → pods that are terminating
    _leaving: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    def on_add(self, obj: Pod, initial: bool) -> None:
        self._look(obj)

    def on_update(self, old: Pod, new: Pod) -> None:
        self._look(new)

    def on_delete(self, obj: Pod) -> None:
        pass

    def _look(self, pod: Pod) -> None:
        meta = pod.metadata
        if pod.spec.node_name:
            self.bound_at.setdefault(meta.name, time.monotonic())
        if meta.deletion_timestamp is not None and meta.uid not in self._leaving:
            self._leaving[meta.uid] = asyncio.ensure_future(self._terminate(meta.name))

    async def _terminate(self, name: str) -> None:
        await asyncio.sleep(TERMINATION_S)
        path = resources.PODS.item(name, namespace=NAMESPACE)
        with contextlib.suppress(NotFoundError):
            await self.client.delete(path, {"gracePeriodSeconds": 0})


@dataclass(frozen=True)
class Outcome:
    """The cost of one scheduler."""

    scheduler: str
    preemptors: int
    bound: int
    seconds: float
    attempts: int
    most_attempts: int
    deletes: int
    events: int
    requests: int
    cpu_s: float


def node(number: int) -> Json:
    size = {"cpu": str(PODS_PER_NODE), "memory": "32Gi", "pods": "110"}
    return {
        "metadata": {"name": f"node-{number:04}"},
        "status": {"capacity": size, "allocatable": size},
    }


def pod(name: str, *, priority: int, node_name: str | None = None) -> Json:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    spec: Json = {"containers": [container], "priority": priority}
    if node_name is not None:
        spec["nodeName"] = node_name
    return {"metadata": {"name": name}, "spec": spec}


async def measure(candidate: BenchScheduler, count: int, victims: int) -> Outcome:
    with RealPlane(assets.folder(), {}) as plane:
        scheduler = SchedulerProcess(candidate, plane, DEFAULT_LIMITS)
        async with ApiClient(kubeconfig.load(plane.admin_kubeconfig)) as client:
            kubelet = Kubelet(client)
            await _fill(client, victims)
            informer = Informer(client, resources.PODS, Pod, handler=kubelet)
            watching = asyncio.ensure_future(informer.run())
            await informer.synced.wait()
            scheduler.start()
            try:
                return await _run(
                    candidate, scheduler, client, kubelet=kubelet, count=count, victims=victims
                )
            finally:
                await scheduler.stop()
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)


async def _fill(client: ApiClient, count: int) -> None:
    nodes = range(-(-count // PODS_PER_NODE))
    await _create(client, resources.NODES.collection(), [node(number) for number in nodes])
    victims = [
        pod(f"victim-{number:04}", priority=0, node_name=f"node-{number // PODS_PER_NODE:04}")
        for number in range(len(nodes) * PODS_PER_NODE)
    ]
    await _create(client, resources.PODS.collection(namespace=NAMESPACE), victims)


async def _create(client: ApiClient, path: str, objects: list[Json]) -> None:
    for start in range(0, len(objects), 32):
        await asyncio.gather(*(client.post(path, each) for each in objects[start : start + 32]))


async def _run(
    candidate: BenchScheduler,
    scheduler: SchedulerProcess,
    client: ApiClient,
    *,
    kubelet: Kubelet,
    count: int,
    victims: int,
) -> Outcome:
    access = scheduler.metrics_access
    if access is None:
        raise SystemExit(f"{candidate.name} serves no metrics: its attempts cannot be counted")
    async with ApiClient(access) as metrics:
        await _until_it_serves(scheduler, metrics)
        names = [f"preemptor-{number:04}" for number in range(count)]
        started = time.monotonic()
        preemptors = [pod(name, priority=1000) for name in names]
        await _create(client, resources.PODS.collection(namespace=NAMESPACE), preemptors)
        while sum(name in kubelet.bound_at for name in names) < min(count, victims):
            scheduler.check()
            if time.monotonic() - started > TIMEOUT_S:
                break
            await asyncio.sleep(0.1)
        await asyncio.sleep(SETTLING_S)
        bound = [kubelet.bound_at[name] for name in names if name in kubelet.bound_at]
        text = (await metrics.request("GET", "/metrics")).body.decode()
    process = scheduler.process
    tried = await _attempts_by_pod(client)
    return Outcome(
        scheduler=candidate.name,
        preemptors=count,
        bound=len(bound),
        seconds=max(bound) - started if bound else float("nan"),
        attempts=int(_sum(text, "scheduler_schedule_attempts_total")),
        most_attempts=max(tried.values(), default=0),
        deletes=int(_sum(text, "rest_client_requests_total", 'method="DELETE"')),
        events=await _events(client),
        requests=int(_sum(text, "rest_client_requests_total")),
        cpu_s=(process.cpu_seconds() if process else None) or float("nan"),
    )


async def _until_it_serves(scheduler: SchedulerProcess, metrics: ApiClient) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        scheduler.check()
        with contextlib.suppress(ClientError):
            await metrics.request("GET", "/readyz")
            return
        await asyncio.sleep(0.1)
    raise TimeoutError("the scheduler does not become ready")


async def _event_objects(client: ApiClient) -> Iterator[dict[str, dict[str, object]]]:
    listed = await client.get(f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events", dict)
    return iter(listed["items"])


def _times(event: dict[str, dict[str, object]]) -> int:
    series = event.get("series")
    return int(str(series["count"])) if series else 1


async def _events(client: ApiClient) -> int:
    return sum(_times(each) for each in await _event_objects(client))


async def _attempts_by_pod(client: ApiClient) -> Counter[str]:
    """Count attempts by pod: failed ones from events, plus the one that placed it."""
    tried: Counter[str] = Counter()
    for each in await _event_objects(client):
        if str(each["reason"]) in ("FailedScheduling", "Scheduled"):
            tried[str(each["regarding"]["name"])] += _times(each)
    return tried


def _sum(text: str, name: str, having: str = "") -> float:
    lines = (line for line in text.splitlines() if line.startswith(f"{name}{{") and having in line)
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preemptors", type=int, nargs="+", default=[30, 300])
    parser.add_argument("--victims", type=int, help="as many as preemptors unless given")
    parser.add_argument("--schedulers", default="ours,kube-scheduler")
    options = parser.parse_args()
    candidates = schedulers.parse(options.schedulers, assets.folder())
    head = "preemptors scheduler        bound  seconds attempts (most a pod) deletes events"
    print(f"{head} requests CPU s")
    for count in options.preemptors:
        for candidate in candidates:
            out = asyncio.run(measure(candidate, count, options.victims or count))
            print(
                f"{count:10} {out.scheduler:15} {out.bound:6} {out.seconds:8.1f} {out.attempts:8} "
                f"{out.most_attempts:12} {out.deletes:9} {out.events:6} {out.requests:8} "
                f"{out.cpu_s:5.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
