"""Startup time of a scheduler in an existing cluster, and its memory.

    python benchmarks/startup.py [--nodes 5000] [--pods 150000] [--rest 60] [--rounds 1]

    nodes and bound pods in a real API server ──> one pending pod ──> scheduler starts ──> bound

The objects are created once; then schedulers start in turn, each with one pending pod. The result
is the time from the start of the process until that pod is bound: by then it has read the whole
cluster. Then it rests, so that a long rest shows what an idle scheduler costs. Memory is the peak
resident size after the rest.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import msgspec
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from kubesched.bench import assets, objects, planes, schedulers
from kubesched.bench.api_objects import BenchObjects, each_of
from kubesched.bench.creation import NodeMaker
from kubesched.bench.operations import CreateNodes, LabelNodes
from kubesched.bench.planes import Plane
from kubesched.bench.pod_tracker import SeenPod
from kubesched.bench.schedulers import BenchScheduler, SchedulerProcess, Settings
from kubesched.client import kubeconfig
from kubesched.client.resources import PODS
from kubesched.client.rest import ApiClient

NAMESPACE = "default"
APPS = 500
#: A scheduler may have more to do after its first pod: after so long, it is idle.
SETTLE_S = 5.0
TIMEOUT_S = 600.0
#: How often it is asked whether the pod is bound.
POLL_S = 0.02


class Result(msgspec.Struct, frozen=True):
    """One start of one scheduler."""

    scheduler: str
    seconds: float
    cpu_s: float
    #: CPU time a minute at rest; None if the rest was too short to tell
    idle_ms: float | None
    peak_mib: float


@asynccontextmanager
async def running(plane: Plane) -> AsyncIterator[Plane]:
    try:
        await asyncio.to_thread(plane.start)
        yield plane
    finally:
        plane.stop()


async def fill(client: ApiClient, *, nodes: int, pods: int, progress: Progress) -> None:
    """Create nodes, and pods on them."""
    stored = BenchObjects(client)
    zones = LabelNodes(key=objects.ZONE, values=tuple(f"zone-{number}" for number in range(10)))
    task = progress.add_task("nodes", total=nodes)
    made = CreateNodes(count=nodes, template=objects.base_node, preparation=zones)
    await NodeMaker(stored).create(made, lambda count: progress.update(task, completed=count))
    task = progress.add_task("pods", total=pods)
    path = PODS.collection(NAMESPACE)

    async def create(number: int) -> None:
        pod = objects.pod(labels={"app": f"app-{number % APPS}"}, cpu="10m", memory="32Mi")
        pod["metadata"]["generateName"] = "there-"
        pod["spec"]["nodeName"] = f"node-{number % nodes:05d}"
        await stored.post(path, msgspec.json.encode(pod))

    await each_of(range(pods), create, done=lambda count: progress.update(task, completed=count))


async def start(
    client: ApiClient, plane: Plane, candidate: BenchScheduler, number: int, *, rest_s: float
) -> Result:
    """Start a scheduler, and measure when it has bound a pod."""
    name = f"waits-{number}"
    waiting = {**objects.pod(), "metadata": {"name": name}}
    await client.post(PODS.collection(NAMESPACE), waiting)
    scheduler = SchedulerProcess(candidate, plane, Settings())
    try:
        scheduler.start()
        process = scheduler.process
        assert process is not None  # noqa: S101 (it was started)
        started = process.started_s
        while not (await client.get(PODS.item(name, namespace=NAMESPACE), SeenPod)).is_bound:
            scheduler.check()
            if time.perf_counter() - started > TIMEOUT_S:
                raise TimeoutError(scheduler.describe())
            await asyncio.sleep(POLL_S)
        seconds = time.perf_counter() - started
        await asyncio.sleep(SETTLE_S)
        cpu_s = process.cpu_seconds() or 0.0
        await asyncio.sleep(rest_s)
        idle_s = (process.cpu_seconds() or 0.0) - cpu_s
        return Result(
            candidate.name,
            seconds,
            cpu_s,
            idle_s * 1000 * 60 / rest_s if rest_s else None,
            (process.peak_bytes() or 0) / (1 << 20),
        )
    finally:
        scheduler.kill()


async def measure(arguments: argparse.Namespace, progress: Progress) -> list[Result]:
    candidates: Sequence[BenchScheduler] = schedulers.parse(arguments.schedulers, assets.folder())
    results: list[Result] = []
    async with (
        running(planes.make(arguments.apiserver, assets.folder(), {})) as plane,
        ApiClient(kubeconfig.load(plane.admin_kubeconfig), timeout_s=120) as client,
    ):
        await fill(client, nodes=arguments.nodes, pods=arguments.pods, progress=progress)
        task = progress.add_task("starts", total=arguments.rounds * len(candidates))
        for number in range(arguments.rounds):
            for candidate in candidates if number % 2 == 0 else candidates[::-1]:
                result = await start(client, plane, candidate, len(results), rest_s=arguments.rest)
                results.append(result)
                progress.advance(task)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=150_000)
    parser.add_argument("--rest", type=float, default=0, help="how long an idle one is watched, s")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--schedulers", default="ours,kube-scheduler")
    parser.add_argument("--apiserver", choices=planes.KINDS, default=planes.REAL)
    arguments = parser.parse_args()

    with Progress() as progress:
        results = asyncio.run(measure(arguments, progress))
    table = Table("scheduler", "first pod bound after", "CPU", "idle, a minute", "peak memory")
    for each in results:
        idle = "-" if each.idle_ms is None else f"{each.idle_ms:.0f} ms"
        figures = f"{each.seconds:.2f} s", f"{each.cpu_s:.2f} s", idle
        table.add_row(each.scheduler, *figures, f"{each.peak_mib:.0f} MiB")
    Console().print(table)


if __name__ == "__main__":
    main()
