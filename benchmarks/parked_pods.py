"""Cost of unschedulable pods: memory, CPU when idle, and CPU when a node is added.

The scheduler runs in its own process on the embedded API server of this one. All pods request more
than any node has; then one node is added that fits ten of them.

    python benchmarks/parked_pods.py --pods 20000
    python benchmarks/parked_pods.py --pods 100000
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kubesched.embedded.cluster import EmbeddedCluster
from kubesched.embedded.nodes import NodeTemplate
from kubesched.embedded.resources import BY_KIND

PODS = BY_KIND["v1", "Pod"]
ROOM_FOR = 10
IDLE_SHARE = 0.05


class Process:
    """A scheduler process, and its resource use."""

    def __init__(self, url: str, log: Path) -> None:
        command = [sys.executable, "-m", "kubesched.cli.kube_scheduler"]
        flags = [f"--master={url}", "--leader-elect=false", "--secure-port=0"]
        flags += ["--kube-api-qps=5000", "--kube-api-burst=10000"]
        with log.open("wb") as sink:
            self._process = subprocess.Popen([*command, *flags], stdout=sink, stderr=sink)

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_mb(self) -> float:
        for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
        raise RuntimeError("no memory reading")

    def end(self) -> None:
        self._process.terminate()
        self._process.wait()


def pod(number: int) -> dict[str, Any]:
    resources = {"requests": {"cpu": "8", "memory": "1Gi"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{number}", "labels": {"app": f"app-{number % 50}"}},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]},
    }


def count(cluster: EmbeddedCluster, holds: Callable[[dict[str, Any]], object]) -> int:
    return sum(bool(holds(each.obj)) for each in cluster.store.collection(PODS).versions())


def is_told(each: dict[str, Any]) -> bool:
    conditions = each["status"].get("conditions", [])
    return any(condition["reason"] == "Unschedulable" for condition in conditions)


async def until(
    cluster: EmbeddedCluster, wanted: int, holds: Callable[[dict[str, Any]], object]
) -> None:
    while (done := count(cluster, holds)) < wanted:
        print(f"\r  {done} of {wanted}", end="", file=sys.stderr, flush=True)
        await asyncio.sleep(0.5)
    print("\r" + " " * 30 + "\r", end="", file=sys.stderr)


async def idle_share(scheduler: Process, seconds: float = 1.0) -> float:
    before, started = scheduler.cpu_s(), time.monotonic()
    await asyncio.sleep(seconds)
    return (scheduler.cpu_s() - before) / (time.monotonic() - started)


async def until_idle(scheduler: Process) -> None:
    while await idle_share(scheduler) > IDLE_SHARE:
        pass


async def measure(pods: int, nodes: int, log: Path) -> None:
    async with EmbeddedCluster() as cluster:
        cluster.add_nodes(nodes, NodeTemplate(cpu="4"))
        cluster.create_all(pod(number) for number in range(pods))
        scheduler = Process(cluster.url, log)
        try:
            started = time.monotonic()
            await until(cluster, pods, is_told)
            print(f"{pods} pods on {nodes} nodes, none fits")
            print(f"  all tried and told after   {time.monotonic() - started:8.1f} s")
            await until_idle(scheduler)
            print(f"  CPU while nothing happens  {100 * await idle_share(scheduler, 5.0):8.1f} %")
            print(f"  memory at its highest      {scheduler.memory_mb():8.0f} MB")
            before, started = scheduler.cpu_s(), time.monotonic()
            cluster.add_nodes(1, NodeTemplate(cpu=str(8 * ROOM_FOR)))
            await until(cluster, ROOM_FOR, lambda each: each["spec"].get("nodeName"))
            print(f"  {ROOM_FOR} bound to a new node after {time.monotonic() - started:7.1f} s")
            await until_idle(scheduler)
            used = scheduler.cpu_s() - before
            print(f"  idle again after           {time.monotonic() - started:8.1f} s")
            print(f"  CPU that this took         {used:8.1f} s ({1e6 * used / pods:.0f} us a pod)")
            bound = count(cluster, lambda each: each["spec"].get("nodeName"))
            print(f"  bound in the end           {bound:8d}")
            print(f"  memory at its highest      {scheduler.memory_mb():8.0f} MB")
        finally:
            scheduler.end()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--nodes", type=int, default=100)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "scheduler.log"
        try:
            asyncio.run(measure(options.pods, options.nodes, log))
        except BaseException:
            print(log.read_text()[-2000:], file=sys.stderr)
            raise


if __name__ == "__main__":
    main()
