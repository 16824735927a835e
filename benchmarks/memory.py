"""Memory growth of schedulers, side by side, for hours, idle or busy.

    python -m benchmarks.memory --idle --minutes 60
    python -m benchmarks.memory --churn --minutes 60 [--rate 20] [--output FOLDER/NAME]

    control plane ──> scheduler, elected and scraped ──> /proc, every ten seconds ──> CSV, JSON, SVG
    control plane ──> the other one, at the same time, with the same traffic

Each scheduler has its own real etcd and kube-apiserver. The result is the slope of its resident
memory after the warm-up, by least squares; its proportional share (PSS) is recorded too. The files
are written while it runs, so that an aborted run is not lost.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import csv
import json
import signal
import sys
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from benchmarks import memory_traffic
from benchmarks.memory_traffic import Counts, Target

from kubesched.bench import assets, line_chart, schedulers
from kubesched.bench.control_plane import ControlPlane
from kubesched.bench.processes import LOOPBACK, Process, StartError, free_ports, spawn
from kubesched.bench.schedulers import BenchScheduler
from kubesched.client import kubeconfig
from kubesched.client.rest import ApiClient

SAMPLE_EVERY_S = 10.0
WRITE_EVERY_S = 60.0
READY_TIMEOUT_S = 60.0
GRACE_S = 15.0

WHAT = {
    "idle": "in an idle cluster: heartbeats, probes, scrapes, lease renewals",
    "churn": "in a busy cluster: pods come and go, rollouts, nodes replaced, pods that fit nowhere",
}


class Sample(msgspec.Struct, frozen=True):
    """The memory of one process at one moment."""

    scheduler: str
    minutes: float
    rss_kb: int
    pss_kb: int


class Slope(msgspec.Struct, frozen=True):
    """The memory of one scheduler over time."""

    scheduler: str
    description: str
    #: after the warm-up
    kb_per_minute: float | None
    first_kb: int
    last_kb: int
    highest_kb: int
    traffic: str


@dataclass
class Subject:
    """A scheduler under measurement."""

    candidate: BenchScheduler
    process: Process
    counts: Counts
    samples: list[Sample] = field(default_factory=list)

    def sample(self, minutes: float) -> None:
        """Read its memory; StartError if it has ended."""
        if not self.process.is_running:
            raise StartError(self.process.describe())
        rss_kb, pss_kb = memory_kb(self.process.popen.pid)
        self.samples.append(Sample(self.candidate.name, round(minutes, 3), rss_kb, pss_kb))

    def slope(self, warm_up_minutes: float) -> Slope:
        values = [each.rss_kb for each in self.samples]
        return Slope(
            scheduler=self.candidate.name,
            description=self.candidate.description,
            kb_per_minute=slope_of(
                [(s.minutes, s.rss_kb) for s in self.samples if s.minutes >= warm_up_minutes]
            ),
            first_kb=values[0],
            last_kb=values[-1],
            highest_kb=max(values),
            traffic=str(self.counts),
        )


def memory_kb(process_id: int) -> tuple[int, int]:
    """Resident memory of a process and its proportional share, in kB."""
    values = {"Rss:": 0, "Pss:": 0}
    for line in Path(f"/proc/{process_id}/smaps_rollup").read_text().splitlines():
        name, *rest = line.split()
        if name in values:
            values[name] = int(rest[0])
    return values["Rss:"], values["Pss:"]


def slope_of(points: Sequence[tuple[float, float]]) -> float | None:
    """The slope of the line of least squares; None of fewer than two points."""
    if len(points) < 2:
        return None
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread


@contextlib.asynccontextmanager
async def subject(candidate: BenchScheduler, options: argparse.Namespace) -> AsyncIterator[Subject]:
    """One scheduler on a control plane of its own, with traffic."""
    plane = ControlPlane(assets.folder())
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(plane.stop)
        await asyncio.to_thread(plane.start)
        client = await stack.enter_async_context(
            ApiClient(kubeconfig.load(str(plane.admin_kubeconfig)))
        )
        (port,) = free_ports(1)
        user = json.loads(plane.admin_kubeconfig.read_text())["users"][0]["user"]
        target = Target(client, port, user["token"], options.nodes, options.pods)
        await memory_traffic.prepare(target)
        process = _start(candidate, plane, port)
        stack.callback(process.end, grace=GRACE_S)
        await _until_bound(client, process, options.pods)
        traffic = (
            memory_traffic.idle(target)
            if options.mode == "idle"
            else memory_traffic.churn(target, options.rate)
        )
        counts = await stack.enter_async_context(traffic)
        yield Subject(candidate, process, counts)


def _start(candidate: BenchScheduler, plane: ControlPlane, port: int) -> Process:
    """Start a scheduler as in a control plane: elected, with health and metrics."""
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(plane.scheduler_kubeconfig)},
        "leaderElection": {"leaderElect": True},
    }
    file = plane.folder / "scheduler.json"
    file.write_text(json.dumps(config))
    flags = [
        f"--config={file}",
        f"--secure-port={port}",
        f"--bind-address={LOOPBACK}",
        f"--authentication-kubeconfig={plane.scheduler_kubeconfig}",
        f"--authorization-kubeconfig={plane.scheduler_kubeconfig}",
    ]
    log = plane.folder / "scheduler.log"
    return spawn(candidate.name, [*candidate.command, *flags], log=log, cwd=plane.folder)


async def _until_bound(client: ApiClient, process: Process, pods: int) -> None:
    """Wait until the pods that fit have nodes."""
    misfits = len(range(0, pods, memory_traffic.MISFIT_EVERY))
    deadline = time.monotonic() + READY_TIMEOUT_S
    while True:
        selector = {"fieldSelector": "spec.nodeName!="}
        answer = await client.request("GET", memory_traffic.PODS, params=selector)
        if len(msgspec.json.decode(answer.body)["items"]) >= pods - misfits:
            return
        if not process.is_running or time.monotonic() > deadline:
            raise StartError(process.describe())
        await asyncio.sleep(0.5)


class Report:
    """The files of a run, rewritten from time to time."""

    def __init__(self, options: argparse.Namespace, subjects: Sequence[Subject]) -> None:
        self._options = options
        self._subjects = subjects

    def slopes(self) -> list[Slope]:
        return [each.slope(self._options.warm_up) for each in self._subjects if each.samples]

    def write(self) -> None:
        base: Path = self._options.output
        samples = [sample for each in self._subjects for sample in each.samples]
        with base.with_suffix(".csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(Sample.__struct_fields__)
            rows.writerows(msgspec.structs.astuple(sample) for sample in samples)
        result = {"mode": self._options.mode, "slopes": self.slopes()}
        encoded = msgspec.json.format(msgspec.json.encode(result), indent=2)
        base.with_suffix(".json").write_bytes(encoded + b"\n")
        lines = {
            each.candidate.name: [(s.minutes, s.rss_kb / 1024) for s in each.samples]
            for each in self._subjects
        }
        drawing = line_chart.svg(
            lines,
            title=f"Resident memory {WHAT[self._options.mode]}",
            subtitle="; ".join(map(describe, self.slopes())),
            x_label="minutes",
            y_label="MiB",
        )
        base.with_suffix(".svg").write_text(drawing)


def describe(slope: Slope) -> str:
    grows = "?" if slope.kb_per_minute is None else f"{slope.kb_per_minute:+.1f}"
    first, last, highest = (
        f"{kb / 1024:.1f}" for kb in (slope.first_kb, slope.last_kb, slope.highest_kb)
    )
    return (
        f"{slope.scheduler}: {grows} kB/minute after the warm-up, "
        f"{first} MiB at first, {last} at last, {highest} at most"
    )


async def measure(options: argparse.Namespace) -> None:
    candidates = schedulers.parse(options.schedulers, assets.folder())
    async with contextlib.AsyncExitStack() as stack:
        subjects = [await stack.enter_async_context(subject(each, options)) for each in candidates]
        for each in subjects:
            print(f"{each.candidate.name}: process {each.process.popen.pid}", flush=True)
        report = Report(options, subjects)
        began, ticks = time.monotonic(), 0
        try:
            while (minutes := (time.monotonic() - began) / 60) <= options.minutes:
                for each in subjects:
                    each.sample(minutes)
                if ticks % (WRITE_EVERY_S / SAMPLE_EVERY_S) == 0:
                    report.write()
                    sizes = (f"{s.candidate.name} {s.samples[-1].rss_kb} kB" for s in subjects)
                    print(f"{minutes:6.1f} minutes: {', '.join(sizes)}", flush=True)
                ticks += 1
                await asyncio.sleep(max(0.0, began + ticks * SAMPLE_EVERY_S - time.monotonic()))
        finally:
            report.write()
            for slope in report.slopes():
                print(f"{describe(slope)}\n  {slope.traffic}", flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    mode = parser.add_mutually_exclusive_group(required=True)
    for name, text in WHAT.items():
        mode.add_argument(f"--{name}", dest="mode", action="store_const", const=name, help=text)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--warm-up", type=float, default=10.0, help="minutes without a slope")
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--pods", type=int, default=400, help="those that are there all the time")
    parser.add_argument("--rate", type=float, default=20.0, help="pods per second of --churn")
    parser.add_argument("--schedulers", default=f"{schedulers.OURS},{schedulers.KUBE_SCHEDULER}")
    parser.add_argument("--output", type=Path, help="the files' common name, without .csv")
    options = parser.parse_args()
    options.output = options.output or Path(f"memory-{options.mode}")
    return options


async def run(options: argparse.Namespace) -> None:
    """Measure, and end well on SIGTERM too."""
    work = asyncio.create_task(measure(options))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, work.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await work


if __name__ == "__main__":
    try:
        asyncio.run(run(arguments()))
    except KeyboardInterrupt:
        sys.exit(130)
