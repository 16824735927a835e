"""A scheduler under measurement, on a control plane of its own, and what is seen of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from kubesched.bench import statistics
from kubesched.bench.pod_tracker import SeenPod
from kubesched.bench.processes import LOOPBACK, Process, StartError, free_ports, spawn
from kubesched.bench.schedulers import BenchScheduler
from kubesched.client import kubeconfig, resources
from kubesched.client.informer import Informer
from kubesched.client.rest import ApiClient

from . import traffic
from .bound_pods import BoundPods
from .churn import Churn
from .growth import Growth, Verdict, growth
from .plane import GATES, SoakPlane
from .traffic import Target

GRACE_S = 15.0
#: Longer than by default: a busy machine must not end a run of hours.
LEASE = {"leaseDuration": "120s", "renewDeadline": "90s", "retryPeriod": "5s"}
_ROOT = Path(__file__).resolve().parents[2]
_MILLION = 1_000_000


@dataclass(frozen=True)
class Load:
    """What a cluster holds, and what happens in it."""

    nodes: int = 100
    #: of ten pods each
    apps: int = 30
    #: 0 for an idle cluster
    pods_per_second: float = 10.0
    seed: int = 1


class Sample(msgspec.Struct, frozen=True):
    """One scheduler at one moment; latencies and CPU are of the time since the sample before."""

    minutes: float
    rss_kb: int
    pss_kb: int
    #: milliseconds of CPU per second
    cpu_ms_per_s: float
    #: from the request to create a pod to its binding; None without pods
    p50_ms: float | None
    p99_ms: float | None
    #: that etcd has stored so far
    changes: int
    bound: int
    etcd_mib: float


@dataclass
class Subject:
    """A scheduler, its cluster and its samples."""

    candidate: BenchScheduler
    plane: SoakPlane
    process: Process
    client: ApiClient
    bound: BoundPods
    counts: Counter[str]
    samples: list[Sample] = field(default_factory=list)
    #: why it is not measured any more
    ended: str = ""
    #: when the CPU time was read last, and how much that was
    _cpu: tuple[float, float] = (0.0, 0.0)

    async def sample(self, minutes: float) -> None:
        """Look at it, if it has not ended."""
        if not self.process.is_running:
            self.ended = self.process.describe()
            return
        rss_kb, pss_kb = memory_kb(self.process.popen.pid)
        latencies = self.bound.take_latencies()
        now, spent = time.monotonic(), self.process.cpu_seconds() or 0.0
        then, before = self._cpu
        self._cpu = now, spent
        self.samples.append(
            Sample(
                minutes=round(minutes, 3),
                rss_kb=rss_kb,
                pss_kb=pss_kb,
                cpu_ms_per_s=round((spent - before) / (now - then) * 1000, 1) if then else 0.0,
                p50_ms=_milliseconds(statistics.percentile(latencies, 50)),
                p99_ms=_milliseconds(statistics.percentile(latencies, 99)),
                changes=await self._revision(),
                bound=self.bound.count,
                etcd_mib=round(self.plane.stored_mib(), 1),
            )
        )

    async def _revision(self) -> int:
        answer = await self.client.request("GET", "/api/v1/namespaces", params={"limit": 1})
        return int(msgspec.json.decode(answer.body)["metadata"]["resourceVersion"])

    def verdict(self) -> Verdict:
        """Say what came of it; a scheduler that ended by itself has failed."""
        grown = self.growth()
        if self.ended:
            return Verdict.FAIL
        return Verdict.TOO_SHORT if grown is None else grown.verdict

    def growth(self) -> Growth | None:
        """How resident memory grows with changes."""
        return growth([(each.changes / _MILLION, each.rss_kb / 1024) for each in self.samples])


def memory_kb(process_id: int) -> tuple[int, int]:
    """Resident memory of a process and its proportional share, in kB."""
    values = {"Rss:": 0, "Pss:": 0}
    for line in Path(f"/proc/{process_id}/smaps_rollup").read_text().splitlines():
        name, *rest = line.split()
        if name in values:
            values[name] = int(rest[0])
    return values["Rss:"], values["Pss:"]


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 1)


@contextlib.asynccontextmanager
async def subject(candidate: BenchScheduler, load: Load) -> AsyncIterator[Subject]:
    """One scheduler on a control plane of its own, with traffic."""
    plane = SoakPlane()
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(plane.stop)
        await asyncio.to_thread(plane.start)
        access = kubeconfig.load(str(plane.admin_kubeconfig))
        client = await stack.enter_async_context(ApiClient(access))
        (port,) = free_ports(1)
        user = json.loads(plane.admin_kubeconfig.read_text())["users"][0]["user"]
        target, bound = Target(client, port, user["token"]), BoundPods()
        churn = Churn(target, bound, nodes=load.nodes, apps=load.apps, seed=load.seed)
        await churn.prepare()
        process = _start(candidate, plane, port)
        stack.callback(process.end, grace=GRACE_S)
        informer = Informer(
            client, resources.PODS, SeenPod, handler=bound, field_selector="spec.nodeName!="
        )
        stack.push_async_callback(churn.end)
        try:
            await stack.enter_async_context(traffic.running([informer.run()]))
            await churn.settle()
        except TimeoutError:
            raise StartError(process.describe()) from None
        work = traffic.idle(target)
        if load.pods_per_second:
            work += churn.tasks(load.pods_per_second)
        await stack.enter_async_context(traffic.running(work))
        bound.take_latencies()
        yield Subject(candidate, plane, process, client, bound, target.counts)


def _start(candidate: BenchScheduler, plane: SoakPlane, port: int) -> Process:
    """Start a scheduler as in a control plane: elected, with health and metrics."""
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(plane.scheduler_kubeconfig)},
        "leaderElection": {"leaderElect": True, **LEASE},
    }
    file = plane.folder / "scheduler.json"
    file.write_text(json.dumps(config))
    flags = [
        f"--config={file}",
        f"--feature-gates={GATES}",
        f"--secure-port={port}",
        f"--bind-address={LOOPBACK}",
        f"--authentication-kubeconfig={plane.scheduler_kubeconfig}",
        f"--authorization-kubeconfig={plane.scheduler_kubeconfig}",
    ]
    log = plane.folder / "scheduler.log"
    return spawn(candidate.name, [*candidate.command, *flags], log=log, cwd=_ROOT)
