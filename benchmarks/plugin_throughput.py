"""Cost of a plugin in throughput, for a scheduler that binds on a real API server.

    python -m benchmarks.plugin_throughput [--nodes 5000] [--blocks 240]

    pending pods: |with|without|without|with|with|without|… ──> one scheduler ──> when each is bound

One scheduler has two profiles that differ only in the plugin, and takes pods of both from one
queue, block by block. It decides one block ahead of bindings, since blocks are as large as its
limit of bindings in flight. While a block is bound, the next one is decided, and the time counts
for the profile of that one.

Each block is compared with its neighbour, and the order of the two alternates: so slow drifts of
the machine matter little. API servers have slow seconds, which hit one block of a pair harder than
the other. So the result is the median of all pairs' ratios, with distribution-free bounds (95 %).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import sys
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median

import msgspec
from benchmarks.startup import NAMESPACE, fill, running
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from kubesched.bench import assets, objects, planes
from kubesched.bench.api_objects import BenchObjects, each_of
from kubesched.bench.operations import JsonObject
from kubesched.bench.pod_tracker import SeenPod
from kubesched.bench.processes import Process
from kubesched.bench.schedulers import BenchScheduler, SchedulerProcess, Settings
from kubesched.client import kubeconfig
from kubesched.client.informer import Informer
from kubesched.client.resources import PODS
from kubesched.client.rest import ApiClient
from kubesched.scheduler.binding import MAX_IN_FLIGHT

PLUGIN = Path(__file__).parent.parent / "examples" / "yardstick.py"
NAME = "Arrays"
WITH, WITHOUT = "with-plugin", "without-plugin"
#: Blocks at the start that do not count: signatures are new then.
WARM_UP = 4
SIZE = MAX_IN_FLIGHT
TIMEOUT_S = 1800.0


class Block(msgspec.Struct, frozen=True):
    """Time and CPU time while one block was bound and the next one decided."""

    #: profile of the decided pods
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


async def create(client: ApiClient, count: int, progress: Progress) -> None:
    """Create the pods; a scheduler takes them in the order of their names."""
    stored = BenchObjects(client)
    task = progress.add_task("pending pods", total=count)

    async def one(number: int) -> None:
        pod = objects.pod(labels={"app": "waits"})
        pod["metadata"]["name"] = f"pod-{number:07d}"
        pod["spec"]["schedulerName"] = profile_of(number // SIZE)
        await stored.post(PODS.collection(NAMESPACE), msgspec.json.encode(pod))

    await each_of(range(count), one, done=lambda made: progress.update(task, completed=made))


def cpu_seconds(process: Process) -> float:
    """CPU time so far, to the nanosecond: one thread does all the work."""
    run_ns, *_ = Path(f"/proc/{process.popen.pid}/schedstat").read_text().split()
    return int(run_ns) / 1e9


class Timing:
    """A pod handler that records time and CPU time whenever a block is bound."""

    def __init__(self, scheduler: SchedulerProcess) -> None:
        self._scheduler = scheduler
        self.bound = 0
        self.marks: list[tuple[float, float]] = []

    def on_add(self, obj: SeenPod, initial: bool) -> None:
        """Ignored: all pods exist before they are bound."""

    def on_delete(self, obj: SeenPod) -> None:
        """No pod is deleted."""

    def on_update(self, old: SeenPod, new: SeenPod) -> None:
        if old.is_bound or not new.is_bound:
            return
        self.bound += 1
        process = self._scheduler.process
        if self.bound % SIZE == 0 and process is not None:
            self.marks.append((time.perf_counter(), cpu_seconds(process)))


async def follow(
    scheduler: SchedulerProcess, timing: Timing, progress: Progress, total: int
) -> None:
    """Show progress until all pods are bound."""
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
    count = arguments.blocks * SIZE
    command = (sys.executable, "-m", "kubesched.cli.kube_scheduler", f"--plugin={PLUGIN}:{NAME}")
    candidate = BenchScheduler(
        name="ours", command=command, description="with and without a plugin"
    )
    async with (
        running(planes.make(planes.REAL, assets.folder(), {})) as plane,
        ApiClient(kubeconfig.load(plane.admin_kubeconfig), timeout_s=120) as client,
    ):
        await fill(client, nodes=arguments.nodes, pods=0, progress=progress)
        await create(client, count, progress)
        file = plane.folder / "two-profiles.json"
        file.write_text(json.dumps(configuration()))
        scheduler = SchedulerProcess(candidate, plane, Settings(base_config=file))
        timing = Timing(scheduler)
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
        Block(profile_of(number + 1), end[0] - begin[0], end[1] - begin[1])
        for number, (begin, end) in enumerate(pairwise(timing.marks), 1)
    ]


def compared(pairs: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    """Return the median ratio of pairs, and its bounds."""
    ratios = sorted(first / second for first, second in pairs)
    margin = 0.98 * math.sqrt(len(ratios))
    low = max(math.floor(len(ratios) / 2 - margin), 0)
    return median(ratios), ratios[low], ratios[-1 - low]


def paired(blocks: Sequence[Block]) -> list[tuple[Block, Block]]:
    """With and without the plugin, side by side."""
    pairs = [tuple(blocks[number : number + 2]) for number in range(0, len(blocks) - 1, 2)]
    return [
        (first, second) if first.profile == WITH else (second, first) for first, second in pairs
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--blocks", type=int, default=240, help="in fours")
    arguments = parser.parse_args()
    if arguments.blocks % 4 or arguments.blocks < WARM_UP + 4:
        parser.error("--blocks: 8 or more, in fours")

    with Progress() as progress:
        blocks = asyncio.run(measure(arguments, progress))
    # The first block has no start, and the last no successor.
    pairs = paired(blocks[WARM_UP - 2 : -1])
    table = Table("", WITH, WITHOUT, "ratio", "95 %")
    for what, figures in (
        ("pods/s", [(SIZE / one.seconds, SIZE / other.seconds) for one, other in pairs]),
        ("CPU ms a pod", [(1e3 * a.cpu_s / SIZE, 1e3 * b.cpu_s / SIZE) for a, b in pairs]),
    ):
        ratio, low, high = compared(figures)
        usual = (f"{median(each):.3g}" for each in zip(*figures, strict=True))
        table.add_row(what, *usual, f"{ratio:.3f}", f"{low:.3f} to {high:.3f}")
    Console().print(table, f"{len(pairs)} pairs of {SIZE} pods, {arguments.nodes} nodes")


if __name__ == "__main__":
    main()
