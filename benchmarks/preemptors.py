"""Cost of preemption by many pods at the same time, beside kube-scheduler.

Every node is full of pods of low priority, and pods of high priority arrive, each of which must
preempt one; if there are fewer victims than preemptors, the rest stays pending. A simulated kubelet
lets victims terminate after a second. Both schedulers have the default client-side rate limit (50
requests per second), under which calls are sent seconds after the decision.

    python -m benchmarks.preemptors --preemptors 30 300
    python -m benchmarks.preemptors --preemptors 300 --victims 30

With `--nodes`, there are that many nodes, each full of twenty pods of ten priorities and as many
applications as `kubesched bench --decisions` has, and preemptors need room for three of them; they
may be spread hard over the zones, require affinity by zone, or anti-affinity by host:

    python -m benchmarks.preemptors --nodes 5000 --preemptors 1000 --qps 5000 --relation spread

Each scheduler gets a control plane of its own, whose objects are created first: 100,000 pods take
minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import msgspec

from kubesched.api.core import Pod
from kubesched.bench import assets, decision_pods, schedulers
from kubesched.bench.api_objects import BenchObjects, each_of
from kubesched.bench.planes import RealPlane
from kubesched.bench.processes import Process
from kubesched.bench.schedulers import BenchScheduler, SchedulerProcess, Settings
from kubesched.client import kubeconfig, resources
from kubesched.client.informer import Informer
from kubesched.client.rest import ApiClient
from kubesched.errors import ClientError, NotFoundError

#: kube-scheduler's default.
DEFAULT_QPS = 50.0
NAMESPACE = "default"
PODS_PER_NODE = 3
TERMINATION_S = 1.0
#: Wait after the last binding, to count late deletions and events.
SETTLING_S = 5.0
TIMEOUT_S = 600.0
#: Of a request: those that list 100,000 pods take long.
REQUEST_S = 120.0

Json = dict[str, object]
#: What preemptors ask of other pods → how they are made.
RELATIONS = {
    "none": decision_pods.layered_preempting,
    "spread": decision_pods.preempting_with_spread,
    "affinity": decision_pods.preempting_with_affinity,
    "anti-affinity": decision_pods.preempting_with_anti_affinity,
}


@dataclass(frozen=True)
class Work:
    """What is on the nodes, and who preempts."""

    preemptors: int
    victims: int
    #: number of nodes full of pods of several priorities; 0: as many as there are victims for
    layered_nodes: int
    relation: str
    qps: float
    #: after so long, what is bound counts
    timeout_s: float

    def nodes(self) -> Iterator[Json]:
        if self.layered_nodes:
            for number in range(self.layered_nodes):
                yield _json(decision_pods.make_node(number, cpu="4", memory="32Gi"))
        else:
            yield from map(node, range(-(-self.victims // PODS_PER_NODE)))

    def pods(self) -> Iterator[Json]:
        """Yield pods that are on their nodes from the start, so that nothing has to bind them."""
        if self.layered_nodes:
            for number in range(decision_pods.LAYERED * self.layered_nodes):
                yield _json(decision_pods.layered_pod(number, self.layered_nodes))
        else:
            for number in range(-(-self.victims // PODS_PER_NODE) * PODS_PER_NODE):
                on = f"node-{number // PODS_PER_NODE:04}"
                yield pod(f"victim-{number:04}", priority=0, node_name=on)

    def preempting(self) -> list[Json]:
        if self.layered_nodes:
            return [_json(RELATIONS[self.relation](number)) for number in range(self.preemptors)]
        return [pod(f"preemptor-{number:04}", priority=1000) for number in range(self.preemptors)]


def _json(made: object) -> Json:
    """Return an object as it is sent, in the namespace of the benchmark."""
    obj: dict[str, dict[str, object]] = msgspec.json.decode(msgspec.json.encode(made))
    obj["metadata"].pop("namespace", None)
    obj["metadata"].pop("uid", None)
    if "allocatable" in obj.get("status", {}):
        obj["status"]["capacity"] = obj["status"]["allocatable"]
    return {**obj}


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
    #: of the scheduler, from the first preemptor on
    cpu_s: float
    #: of the API server, in the same time
    api_cpu_s: float


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


async def measure(candidate: BenchScheduler, work: Work) -> Outcome:
    with RealPlane(assets.folder(), {}) as plane:
        limits = Settings(qps=work.qps, burst=int(2 * work.qps))
        scheduler = SchedulerProcess(candidate, plane, limits)
        access = kubeconfig.load(plane.admin_kubeconfig)
        async with ApiClient(access, timeout_s=REQUEST_S) as client:
            kubelet = Kubelet(client)
            await _fill(client, work)
            informer = Informer(client, resources.PODS, Pod, handler=kubelet)
            watching = asyncio.ensure_future(informer.run())
            await informer.synced.wait()
            scheduler.start()
            try:
                return await _run(
                    candidate, scheduler, client, kubelet=kubelet, work=work, plane=plane
                )
            finally:
                await scheduler.stop()
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)


async def _fill(client: ApiClient, work: Work) -> None:
    await _create(client, resources.NODES.collection(), work.nodes())
    await _create(client, resources.PODS.collection(namespace=NAMESPACE), work.pods())


async def _create(client: ApiClient, path: str, objects: Iterable[Json]) -> None:
    """Create objects, many at the same time."""
    stored = BenchObjects(client)

    async def create(obj: Json) -> None:
        await stored.post(path, msgspec.json.encode(obj))

    await each_of(objects, create)


async def _run(
    candidate: BenchScheduler,
    scheduler: SchedulerProcess,
    client: ApiClient,
    *,
    kubelet: Kubelet,
    work: Work,
    plane: RealPlane,
) -> Outcome:
    access = scheduler.metrics_access
    if access is None:
        raise SystemExit(f"{candidate.name} serves no metrics: its attempts cannot be counted")
    async with ApiClient(access) as metrics:
        await _until_it_serves(scheduler, metrics)
        preemptors = work.preempting()
        names = [str(each["metadata"]["name"]) for each in preemptors]  # type: ignore[index]  # JSON
        apiserver, process = plane.apiserver, scheduler.process
        before, api_before = _cpu(process), _cpu(apiserver)
        started = time.monotonic()
        await _create(client, resources.PODS.collection(namespace=NAMESPACE), preemptors)
        expected = min(work.preemptors, work.victims)
        while sum(name in kubelet.bound_at for name in names) < expected:
            scheduler.check()
            if time.monotonic() - started > work.timeout_s:
                break
            await asyncio.sleep(0.1)
        await asyncio.sleep(SETTLING_S)
        bound = [kubelet.bound_at[name] for name in names if name in kubelet.bound_at]
        text = (await metrics.request("GET", "/metrics")).body.decode()
    cpu_s, api_cpu_s = _cpu(process) - before, _cpu(apiserver) - api_before
    tried = await _attempts_by_pod(client)
    return Outcome(
        scheduler=candidate.name,
        preemptors=work.preemptors,
        bound=len(bound),
        seconds=max(bound) - started if bound else float("nan"),
        attempts=int(_sum(text, "scheduler_schedule_attempts_total")),
        most_attempts=max(tried.values(), default=0),
        deletes=int(_sum(text, "rest_client_requests_total", 'method="DELETE"')),
        events=await _events(client),
        requests=int(_sum(text, "rest_client_requests_total")),
        cpu_s=cpu_s,
        api_cpu_s=api_cpu_s,
    )


def _cpu(process: Process | None) -> float:
    """Return the CPU time of a process so far."""
    return (process.cpu_seconds() if process else None) or float("nan")


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
    parser.add_argument("--nodes", type=int, default=0, help="full of pods of ten priorities")
    parser.add_argument("--relation", choices=RELATIONS, default="none", help="with --nodes")
    parser.add_argument("--qps", type=float, default=DEFAULT_QPS)
    parser.add_argument("--timeout", type=float, default=TIMEOUT_S, help="s, for all preemptors")
    parser.add_argument("--schedulers", default="ours,kube-scheduler")
    options = parser.parse_args()
    candidates = schedulers.parse(options.schedulers, assets.folder())
    head = "preemptors scheduler        bound  seconds attempts (most a pod) deletes events"
    print(f"{head} requests CPU s (API server)")
    for count in options.preemptors:
        for candidate in candidates:
            victims = options.victims or count
            work = Work(
                count,
                victims,
                options.nodes,
                relation=options.relation,
                qps=options.qps,
                timeout_s=options.timeout,
            )
            out = asyncio.run(measure(candidate, work))
            print(
                f"{count:10} {out.scheduler:15} {out.bound:6} {out.seconds:8.1f} {out.attempts:8} "
                f"{out.most_attempts:12} {out.deletes:9} {out.events:6} {out.requests:8} "
                f"{out.cpu_s:5.1f} {out.api_cpu_s:12.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
