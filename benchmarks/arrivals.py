"""Latency and CPU while pods keep arriving on a steady cluster, beside kube-scheduler.

    python benchmarks/arrivals.py [--nodes 2000] [--rates 10,50,100,200,500] [--seconds 20]
    python benchmarks/arrivals.py --rates 0                 heartbeats alone
    python benchmarks/arrivals.py --waiting-at-most 100     closed loop
    python benchmarks/arrivals.py --p99-below 1             the highest rate that each one holds

    pods arrive at a rate ──> scheduler ──> bound ──> kubelet: Running ──> after a while: gone
    nodes: a heartbeat a minute each

Pods come in an open loop, whether or not those before them are bound. The latency of a pod is from
the request that creates it to its binding seen in a watch. Pods that stay are on the nodes from the
beginning. Schedulers take turns on one control plane; the first pods of each are not counted.

Above the rate that the API server can take, latencies in an open loop cannot be compared: the more
pods are created beside a scheduler, the longer its pods wait. In the closed loop a pod is created
only while fewer than a number wait for their nodes: compare how many came a second. With a limit of
p99, each scheduler gets the rates in order until one at which it does not hold it.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager

import msgspec
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from kubesched.bench import assets, objects, planes, schedulers
from kubesched.bench.api_objects import BenchObjects, each_of
from kubesched.bench.creation import NodeMaker
from kubesched.bench.operations import CreateNodes, JsonObject, LabelNodes
from kubesched.bench.planes import Plane
from kubesched.bench.pod_tracker import PodTracker, SeenPod
from kubesched.bench.schedulers import BenchScheduler, SchedulerProcess, Settings
from kubesched.bench.statistics import percentile
from kubesched.client import kubeconfig
from kubesched.client.informer import Informer
from kubesched.client.resources import NODES, PODS
from kubesched.client.rest import ApiClient

STAYING, COMING, WARMING = "staying", "coming", "warming"
APPS = 50
#: How long a pod runs.
LIFE_S = 10.0
#: How often each node reports its status, as kubelets do every five minutes, or on changes.
HEARTBEAT_S = 60.0
#: Pods, and their rate, before a measurement.
WARM_UP, WARM_UP_RATE = 50, 50.0
#: How long the last pods are waited for.
TIMEOUT_S = 60.0


class Result(msgspec.Struct, frozen=True):
    """One scheduler at one rate."""

    rate: float
    scheduler: str
    #: pods that came, and how many a second that were
    pods: int
    arrived_per_second: float
    bound: int
    p50_ms: float
    p99_ms: float
    #: CPU time of the scheduler in a second, and for a pod; that of the API server for a pod
    scheduler_ms_per_second: float
    scheduler_ms: float
    apiserver_ms: float

    def holds(self, p99_s: float) -> bool:
        """Whether pods came at nearly the rate, all were bound, and fast enough."""
        came = self.arrived_per_second >= 0.95 * self.rate
        return came and self.bound == self.pods and self.p99_ms < 1000 * p99_s


class Kubelets:
    """Reports bound pods as running, ends them, and sends heartbeats."""

    def __init__(self, stored: BenchObjects, tracker: PodTracker, nodes: int) -> None:
        self._stored = stored
        self._tracker = tracker
        self._nodes = nodes
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Work during the block."""
        heartbeats = asyncio.create_task(self._heartbeats())
        try:
            with self._tracker.listening(self._on_bound):
                yield
        finally:
            heartbeats.cancel()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(heartbeats, *self._tasks, return_exceptions=True)

    def _on_bound(self, pod: SeenPod) -> None:
        task = asyncio.create_task(self._run(pod))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, pod: SeenPod) -> None:
        path = PODS.item(pod.metadata.name, namespace=pod.metadata.namespace)
        await self._stored.patch_status(path, {"phase": "Running"})
        await asyncio.sleep(LIFE_S)
        await self._stored.delete(path, at_once=True)

    async def _heartbeats(self) -> None:
        number, started = 0, time.perf_counter()
        while True:
            path = NODES.item(f"node-{number % self._nodes:05d}")
            beat = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": beat}
            await self._stored.patch_status(path, {"conditions": [ready]})
            number += 1
            await _until(started + number * HEARTBEAT_S / self._nodes)


class Arrivals:
    """Schedulers, one after the other, on one control plane."""

    def __init__(
        self, plane: Plane, client: ApiClient, tracker: PodTracker, arguments: argparse.Namespace
    ) -> None:
        self._plane = plane
        self._stored = BenchObjects(client)
        self._tracker = tracker
        self._nodes: int = arguments.nodes
        self._seconds: float = arguments.seconds
        #: how many pods may wait for their nodes before others come; 0: any number
        self._waiting_at_most: int = arguments.waiting_at_most

    async def fill(self, progress: Progress) -> None:
        """Create the nodes, and two pods on each that stay."""
        zones = LabelNodes(key=objects.ZONE, values=tuple(f"zone-{number}" for number in range(10)))
        task = progress.add_task("nodes", total=self._nodes)
        made = CreateNodes(count=self._nodes, template=objects.base_node, preparation=zones)
        await NodeMaker(self._stored).create(
            made, lambda count: progress.update(task, completed=count)
        )
        for namespace in (STAYING, COMING, WARMING):
            await self._stored.create(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            )
        task = progress.add_task("pods that stay", total=2 * self._nodes)

        async def create(number: int) -> None:
            pod = arriving(number)
            pod["spec"]["nodeName"] = f"node-{number % self._nodes:05d}"
            await self._stored.post(PODS.collection(STAYING), msgspec.json.encode(pod))

        await each_of(
            range(2 * self._nodes),
            create,
            done=lambda count: progress.update(task, completed=count),
        )

    async def measure(self, candidate: BenchScheduler, rate: float) -> Result:
        """Run one scheduler at one rate."""
        scheduler = SchedulerProcess(candidate, self._plane, Settings())
        kubelets = Kubelets(self._stored, self._tracker, self._nodes)
        try:
            scheduler.start()
            async with kubelets.working():
                await self._come(WARMING, WARM_UP, WARM_UP_RATE)
                await self._until_bound(WARMING, WARM_UP, scheduler)
                return await self._measured(scheduler, candidate.name, rate)
        finally:
            scheduler.kill()
            for namespace in (COMING, WARMING):
                await self._stored.delete(PODS.collection(namespace), at_once=True)
                while any(True for _ in self._tracker.pods(namespace, {})):
                    await self._tracker.changed()

    async def _measured(self, scheduler: SchedulerProcess, name: str, rate: float) -> Result:
        process, count = scheduler.process, int(rate * self._seconds)
        assert process is not None  # noqa: S101 (it was started)
        started = time.perf_counter()
        before, api_before = process.cpu_seconds() or 0.0, self._plane.apiserver.cpu_seconds()
        room = asyncio.Semaphore(self._waiting_at_most or count)
        with _bound_pods(self._tracker, room.release) as bound_at_s:
            asked_at_s, took_s = await self._come(COMING, count, rate, room)
            await _until(started + self._seconds)
            count = len(asked_at_s)
            await self._until_bound(COMING, count, scheduler, seen=lambda: len(bound_at_s))
        after, api_after = process.cpu_seconds() or 0.0, self._plane.apiserver.cpu_seconds()
        latencies = [at_s - asked_at_s[uid] for uid, at_s in bound_at_s.items()]
        return Result(
            rate=rate,
            scheduler=name,
            pods=count,
            arrived_per_second=count / took_s,
            bound=len(latencies),
            p50_ms=1000 * (percentile(latencies, 50) or 0.0),
            p99_ms=1000 * (percentile(latencies, 99) or 0.0),
            scheduler_ms_per_second=1000 * (after - before) / (time.perf_counter() - started),
            scheduler_ms=1000 * (after - before) / max(count, 1),
            apiserver_ms=1000 * ((api_after or 0.0) - (api_before or 0.0)) / max(count, 1),
        )

    async def _come(
        self, namespace: str, count: int, rate: float, room: asyncio.Semaphore | None = None
    ) -> tuple[dict[str, float], float]:
        """Create pods at a rate; return when each was asked for, and how long all took.

        With `room`, each needs some. If there is none for long, no more pods come.
        """
        asked_at_s: dict[str, float] = {}
        started = time.perf_counter()

        async def create(number: int) -> None:
            body = msgspec.json.encode(arriving(number))
            asked = time.perf_counter()
            made = await self._stored.post(PODS.collection(namespace), body)
            asked_at_s[made.metadata.uid] = asked

        async with asyncio.TaskGroup() as tasks:
            for number in range(count):
                await _until(started + number / rate)
                if room is not None and not await _within(TIMEOUT_S, room.acquire()):
                    break
                tasks.create_task(create(number))
        return asked_at_s, time.perf_counter() - started

    async def _until_bound(
        self,
        namespace: str,
        count: int,
        scheduler: SchedulerProcess,
        *,
        seen: Callable[[], int] | None = None,
    ) -> None:
        """Wait until so many pods were bound, at most for a time."""
        deadline = time.perf_counter() + TIMEOUT_S
        bound = seen or (lambda: self._tracker.bound_count(namespace, {}))
        while bound() < count and time.perf_counter() < deadline:
            scheduler.check()
            await asyncio.sleep(0.02)


@contextmanager
def _bound_pods(
    tracker: PodTracker, then: Callable[[], None] = lambda: None
) -> Iterator[dict[str, float]]:
    """Record when pods that come are bound, by uid; `then` is called for each."""
    at_s: dict[str, float] = {}

    def on_bound(pod: SeenPod) -> None:
        if pod.metadata.namespace == COMING:
            at_s[pod.metadata.uid] = time.perf_counter()
            then()

    with tracker.listening(on_bound):
        yield at_s


def arriving(number: int) -> JsonObject:
    """A pod of one of the applications."""
    pod = objects.pod(labels={"app": f"app-{number % APPS}"}, cpu="10m", memory="32Mi")
    pod["metadata"]["generateName"] = "coming-"
    return pod


async def _until(moment_s: float) -> None:
    wait_s = moment_s - time.perf_counter()
    if wait_s > 0:
        await asyncio.sleep(wait_s)


async def _within(seconds: float, wait: Awaitable[object]) -> bool:
    """Wait, at most for a time; return whether that was enough."""
    try:
        async with asyncio.timeout(seconds):
            await wait
    except TimeoutError:
        return False
    return True


async def run(arguments: argparse.Namespace, progress: Progress) -> list[Result]:
    """Measure all schedulers at all rates."""
    candidates: Sequence[BenchScheduler] = schedulers.parse(arguments.schedulers, assets.folder())
    rates = [float(each) for each in arguments.rates.split(",")]
    plane = planes.make(planes.REAL, assets.folder(), {})
    try:
        await asyncio.to_thread(plane.start)
        async with ApiClient(
            kubeconfig.load(plane.admin_kubeconfig), timeout_s=120, max_connections=128
        ) as client:
            tracker = PodTracker()
            informer = Informer(client, PODS, SeenPod, handler=tracker)
            watching = asyncio.create_task(informer.run())
            try:
                await informer.synced.wait()
                arrivals = Arrivals(plane, client, tracker, arguments)
                await arrivals.fill(progress)
                task = progress.add_task("runs", total=len(rates) * len(candidates))
                results: list[Result] = []
                beaten: set[str] = set()
                for turn, rate in enumerate(rates):
                    for candidate in candidates if turn % 2 == 0 else candidates[::-1]:
                        progress.advance(task)
                        if candidate.name in beaten:
                            continue
                        results.append(await arrivals.measure(candidate, rate))
                        if arguments.p99_below and not results[-1].holds(arguments.p99_below):
                            beaten.add(candidate.name)
                return results
            finally:
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)
    finally:
        plane.stop()


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=2_000)
    parser.add_argument("--rates", default="10,50,100,200,500", help="pods a second")
    parser.add_argument("--seconds", type=float, default=20.0, help="for each rate")
    parser.add_argument(
        "--waiting-at-most", type=int, default=0, metavar="PODS", help="closed loop; 0: open loop"
    )
    parser.add_argument(
        "--p99-below",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="give each scheduler the rates in order until its p99 is not below this; 0: all rates",
    )
    parser.add_argument("--schedulers", default="ours,kube-scheduler")
    arguments = parser.parse_args()

    with Progress() as progress:
        results = asyncio.run(run(arguments, progress))
    table = Table(
        "pods/s", "scheduler", "bound", "p50", "p99", "CPU a second", "a pod", "API server's a pod"
    )
    for each in results:
        table.add_row(
            f"{each.arrived_per_second:.0f} of {each.rate:g}",
            each.scheduler,
            f"{each.bound} of {each.pods}",
            f"{each.p50_ms:.1f} ms",
            f"{each.p99_ms:.1f} ms",
            f"{each.scheduler_ms_per_second:.1f} ms",
            f"{each.scheduler_ms:.2f} ms",
            f"{each.apiserver_ms:.2f} ms",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
