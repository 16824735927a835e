"""What a plugin takes of the throughput of a scheduler that binds on a real API server.

    python -m benchmarks.plugin_throughput [--nodes 5000] [--blocks 120] [--size 500]

    pending pods: |with|without|without|with|with|without|… ──> one scheduler ──> when each is bound

One scheduler has two profiles that differ in the plugin alone, and takes pods of both, block after
block, from one queue. Each block is compared with the one beside it, and which of the two comes
first changes from pair to pair: so it matters little that a machine is faster in one minute than in
the next. What is told is the geometric mean of all pairs' ratios, and between which bounds it lies
(95 %).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev

import msgspec
from benchmarks.startup import NAMESPACE, fill, running
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from kubesched.bench import assets, objects, planes
from kubesched.bench.api_objects import ApiObjects, each_of
from kubesched.bench.operations import JsonObject
from kubesched.bench.pod_tracker import SeenPod
from kubesched.bench.schedulers import Candidate, SchedulerProcess, Settings
from kubesched.client import kubeconfig
from kubesched.client.informer import Informer
from kubesched.client.resources import PODS
from kubesched.client.rest import ApiClient

PLUGIN = Path(__file__).parent.parent / "examples" / "yardstick.py"
NAME = "Arrays"
WITH, WITHOUT = "with-plugin", "without-plugin"
#: Blocks at the beginning that do not count: a scheduler sees shapes for the first time.
WARM_UP = 4
TIMEOUT_S = 1800.0


class Block(msgspec.Struct, frozen=True):
    """Pods of one profile that were bound one after the other."""

    profile: str
    seconds: float
    cpu_s: float


def profile_of(block: int) -> str:
    """Pairs are with and without the plugin, then the other way round."""
    return WITH if block % 4 in (0, 3) else WITHOUT


def configuration() -> JsonObject:
    enabled = {"enabled": [{"name": NAME, "weight": 1}]}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {"schedulerName": WITH, "plugins": {"score": enabled}},
            {"schedulerName": WITHOUT},
        ],
    }


async def create(client: ApiClient, count: int, size: int, progress: Progress) -> None:
    """Make the pods; a scheduler that reads them takes them in the order of their names."""
    stored = ApiObjects(client)
    task = progress.add_task("pending pods", total=count)

    async def one(number: int) -> None:
        pod = objects.pod(labels={"app": "waits"})
        pod["metadata"]["name"] = f"pod-{number:07d}"
        pod["spec"]["schedulerName"] = profile_of(number // size)
        await stored.post(PODS.collection(NAMESPACE), msgspec.json.encode(pod))

    await each_of(range(count), one, done=lambda made: progress.update(task, completed=made))


class Timing:
    """A handler of an informer of pods: notes time and CPU time whenever a block is through."""

    def __init__(self, scheduler: SchedulerProcess, size: int) -> None:
        self._scheduler = scheduler
        self._size = size
        self.bound = 0
        self.marks: list[tuple[float, float]] = []

    def on_add(self, obj: SeenPod, initial: bool) -> None:
        """All pods are there before they are bound."""

    def on_delete(self, obj: SeenPod) -> None:
        """No pod is deleted."""

    def on_update(self, old: SeenPod, new: SeenPod) -> None:
        if old.is_bound or not new.is_bound:
            return
        self.bound += 1
        if self.bound % self._size == 0:
            process = self._scheduler.process
            cpu_s = process.cpu_seconds() if process else None
            self.marks.append((time.perf_counter(), cpu_s or 0.0))


async def follow(
    scheduler: SchedulerProcess, timing: Timing, progress: Progress, total: int
) -> None:
    """Show how far it is, until all is done."""
    task = progress.add_task("bound", total=total)
    until = time.perf_counter() + TIMEOUT_S
    while timing.bound < total:
        scheduler.check()
        if time.perf_counter() > until:
            raise TimeoutError(scheduler.describe())
        progress.update(task, completed=timing.bound)
        await asyncio.sleep(1)
    progress.update(task, completed=total)


async def measure(arguments: argparse.Namespace, progress: Progress) -> list[Block]:
    count = arguments.blocks * arguments.size
    command = (sys.executable, "-m", "kubesched.cli.kube_scheduler", f"--plugin={PLUGIN}:{NAME}")
    candidate = Candidate(name="ours", command=command, description="with and without a plugin")
    async with (
        running(planes.make(planes.REAL, assets.folder(), {})) as plane,
        ApiClient(kubeconfig.load(plane.admin_kubeconfig), timeout_s=120) as client,
    ):
        await fill(client, nodes=arguments.nodes, pods=0, progress=progress)
        await create(client, count, arguments.size, progress)
        file = plane.folder / "two-profiles.json"
        file.write_text(json.dumps(configuration()))
        scheduler = SchedulerProcess(candidate, plane, Settings(base_config=file))
        timing = Timing(scheduler, arguments.size)
        informer = Informer(client, PODS, SeenPod, handler=timing)
        watching = asyncio.create_task(informer.run())
        try:
            await informer.synced.wait()
            scheduler.start()
            await follow(scheduler, timing, progress, count)
        finally:
            scheduler.kill()
            watching.cancel()
    return [
        Block(profile_of(number), end[0] - begin[0], end[1] - begin[1])
        for number, (begin, end) in enumerate(zip(timing.marks, timing.marks[1:], strict=False), 1)
    ]


def compared(pairs: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    """Give the mean ratio of pairs, and its bounds."""
    logarithms = [math.log(first / second) for first, second in pairs]
    mean = fmean(logarithms)
    margin = 1.96 * stdev(logarithms) / math.sqrt(len(logarithms))
    return math.exp(mean), math.exp(mean - margin), math.exp(mean + margin)


def paired(blocks: Sequence[Block]) -> list[tuple[Block, Block]]:
    """With and without the plugin, side by side."""
    pairs = [tuple(blocks[number : number + 2]) for number in range(0, len(blocks) - 1, 2)]
    return [
        (first, second) if first.profile == WITH else (second, first) for first, second in pairs
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--blocks", type=int, default=120, help="pairs of pairs: 4, 8, …")
    parser.add_argument("--size", type=int, default=500, help="pods of a block")
    arguments = parser.parse_args()
    if arguments.blocks % 4 or arguments.blocks < WARM_UP + 4:
        parser.error("--blocks: 8 or more, in fours")

    with Progress() as progress:
        blocks = asyncio.run(measure(arguments, progress))
    # The first one has no beginning.
    pairs = paired(blocks[WARM_UP - 1 :])
    table = Table("", WITH, WITHOUT, "ratio", "95 %")
    size = arguments.size
    for what, figures in (
        ("pods/s", [(size / one.seconds, size / other.seconds) for one, other in pairs]),
        ("CPU ms a pod", [(1e3 * a.cpu_s / size, 1e3 * b.cpu_s / size) for a, b in pairs]),
    ):
        ratio, low, high = compared(figures)
        means = (f"{fmean(each):.3g}" for each in zip(*figures, strict=True))
        table.add_row(what, *means, f"{ratio:.3f}", f"{low:.3f} to {high:.3f}")
    Console().print(table, f"{len(pairs)} pairs of {size} pods, {arguments.nodes} nodes")


if __name__ == "__main__":
    main()
