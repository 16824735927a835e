"""CPU, memory and requests of an idle scheduler, beside kube-scheduler.

    python -m benchmarks.idle [--nodes 100] [--minutes 5] [--rounds 1]

    nodes, without and with a heartbeat a minute each ──> one elected scheduler ──> nothing to do

Schedulers take turns on one control plane. Requests are those of the scheduler's own
rest_client_requests_total: renewals of its lease, and watches that begin again.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import msgspec
from benchmarks.startup import fill, running
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from kubesched.bench import assets, planes, schedulers
from kubesched.bench.api_objects import BenchObjects
from kubesched.bench.planes import Plane
from kubesched.bench.schedulers import BenchScheduler, SchedulerProcess, Settings
from kubesched.client import kubeconfig
from kubesched.client.resources import NODES
from kubesched.client.rest import ApiClient

#: After so long a scheduler has started, and is idle.
SETTLE_S = 25.0
HEARTBEAT_S = 60.0

_requests = re.compile(rb"^rest_client_requests_total{.*} (\S+)$", re.MULTILINE)


class Result(msgspec.Struct, frozen=True):
    """One scheduler at rest."""

    scheduler: str
    heartbeats: bool
    cpu_ms_per_minute: float
    resident_mib: float
    requests_per_minute: float


@asynccontextmanager
async def heartbeats(stored: BenchObjects, nodes: int) -> AsyncIterator[None]:
    """Have each node report its status once a minute during the block."""

    async def beat() -> None:
        number = 0
        while True:
            at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": at}
            path = NODES.item(f"node-{number % nodes:05d}")
            await stored.patch_status(path, {"conditions": [ready]})
            number += 1
            await asyncio.sleep(HEARTBEAT_S / nodes)

    task = asyncio.create_task(beat())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def rest(candidate: BenchScheduler, plane: Plane, *, beats: bool, minutes: float) -> Result:
    """Start a scheduler, and measure it when it is idle."""
    elected = replace(candidate, command=(*candidate.command, "--leader-elect=true"))
    scheduler = SchedulerProcess(elected, plane, Settings())
    try:
        scheduler.start()
        await asyncio.sleep(SETTLE_S)
        scheduler.check()
        process, access = scheduler.process, scheduler.metrics_access
        if process is None or access is None:
            raise RuntimeError(scheduler.describe())
        async with ApiClient(access) as client:
            requests, cpu_s = await count(client), process.cpu_seconds() or 0.0
            await asyncio.sleep(60 * minutes)
            cpu_s = (process.cpu_seconds() or 0.0) - cpu_s
            requests = await count(client) - requests
        resident_mib = resident_bytes(process.popen.pid) / (1 << 20)
        return Result(
            candidate.name, beats, 1000 * cpu_s / minutes, resident_mib, requests / minutes
        )
    finally:
        await scheduler.stop()  # and release the lease


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


async def count(client: ApiClient) -> float:
    """Return how many requests a scheduler has sent."""
    answer = await client.request("GET", "/metrics")
    return sum(map(float, _requests.findall(answer.body)))


async def measure(arguments: argparse.Namespace, progress: Progress) -> list[Result]:
    """Let each scheduler rest, without and with heartbeats."""
    candidates = schedulers.parse(arguments.schedulers, assets.folder())
    results: list[Result] = []
    async with (
        running(planes.make(planes.REAL, assets.folder(), {})) as plane,
        ApiClient(kubeconfig.load(plane.admin_kubeconfig), timeout_s=120) as client,
    ):
        await fill(client, nodes=arguments.nodes, pods=0, progress=progress)
        task = progress.add_task("rests", total=2 * arguments.rounds * len(candidates))
        for beats in (False, True):
            beating = heartbeats(BenchObjects(client), arguments.nodes) if beats else None
            async with beating or contextlib.nullcontext():
                for number in range(arguments.rounds):
                    for candidate in candidates if number % 2 == 0 else candidates[::-1]:
                        minutes = arguments.minutes
                        results.append(await rest(candidate, plane, beats=beats, minutes=minutes))
                        progress.advance(task)
    return results


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=5.0, help="how long each one rests")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--schedulers", default="ours,kube-scheduler")
    arguments = parser.parse_args()

    with Progress() as progress:
        results = asyncio.run(measure(arguments, progress))
    table = Table("scheduler", "heartbeats", "CPU a minute", "resident", "requests a minute")
    for each in results:
        beats = "on" if each.heartbeats else "off"
        figures = f"{each.cpu_ms_per_minute:.0f} ms", f"{each.resident_mib:.0f} MiB"
        table.add_row(each.scheduler, beats, *figures, f"{each.requests_per_minute:.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
