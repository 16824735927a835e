"""A very large cluster on the live path: load it, then let pods arrive and nodes change.

    python -m benchmarks.large_cluster [--nodes 5000] [--pods 50000] [--seconds 30]
        [--pods-per-second 1000] [--node-churn-per-second 50] [--seed 1] [--snapshot FILE]

    contents, or a snapshot ──list──> informers ──> handlers ──> cluster, queue ──> decisions
    surroundings ────────────watch──────^                       bindings ──> answered at once

The scheduler is the real one, from its informers to its binding tasks; only the API server is in
memory, and answers in the next turn of the loop. CPU time of the surroundings is subtracted.
Seconds are those of a machine that does nothing else (`undisturbed.py`), where not said otherwise.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

from benchmarks.large_cluster.measuring import (
    Durations,
    MeasuredCycle,
    StackSampler,
    memory_mib,
    summary,
    timed_collections,
    timed_steps,
)
from benchmarks.large_cluster.objects import Contents
from benchmarks.large_cluster.server import MemoryServer
from benchmarks.large_cluster.surroundings import Arrivals, Kubelets, NodeChurn, OwnTime
from benchmarks.large_cluster.undisturbed import UndisturbedClock, UndisturbedLoop

from kubesched import garbage
from kubesched.client.events import EventRecorder
from kubesched.client.rest import ApiClient
from kubesched.cluster.pod_info import RequestRules
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.metrics.recorder import Metrics
from kubesched.observer import SchedulerObserver
from kubesched.plugins.in_tree import IN_TREE
from kubesched.scheduler.api_calls import ApiCalls
from kubesched.scheduler.claim_writes import ClaimWrites
from kubesched.scheduler.engine import Engine, EngineOptions
from kubesched.scheduler.informing import Informers
from kubesched.scheduler.outside import Outside
from kubesched.scheduler.recorders import Recorders
from kubesched.scheduler.volume_writes import VolumeWrites
from kubesched.snapshot import files

#: Applications that the pods of the beginning belong to.
APPS = 5_000
EVENT_QUEUE_SIZE = 100_000
LIMIT_S = 0.050
#: How many functions are shown with their share of the time.
FUNCTIONS = 80


class Benchmark:
    """The scheduler, its API server, and what is measured."""

    def __init__(self, contents: Callable[[str], Iterator[Any]], seed: int) -> None:
        self.sampler = StackSampler()
        self.decisions = Durations(self.sampler)
        self.steps = Durations(self.sampler)
        self.collections = Durations(self.sampler)
        self.own = OwnTime()
        self.server = MemoryServer(contents)
        client = cast("ApiClient", self.server)
        gates, clock, observer = FeatureGates.of({}), UndisturbedClock(), SchedulerObserver()
        config, metrics = SchedulerConfiguration.default(gates), Metrics(gates)
        cluster = observer.make_cluster(RequestRules.of(gates))
        self.recorder = EventRecorder(
            client, controller="default-scheduler", instance="large", queue_size=EVENT_QUEUE_SIZE
        )
        recorders = Recorders({"default-scheduler": self.recorder})
        self.engine = Engine(
            config,
            gates,
            cluster,
            Outside(
                api_calls=ApiCalls(client, clock),
                volume_writer=VolumeWrites(client, cluster.storage),
                claim_writer=ClaimWrites(
                    client, cluster.devices.claims, recorders=recorders, clock=clock
                ),
                recorders=recorders,
                find_pod=lambda namespace, name: self.informers.pods.get(name, namespace=namespace),
                make_extenders=lambda _config: None,
                clock=clock,
                metrics=metrics,
                observer=observer,
            ),
            registry=IN_TREE,
            options=EngineOptions(seed=seed, make_cycle=partial(MeasuredCycle, self.decisions)),
        )
        self.informers = Informers(client, self.engine, metrics, clock.monotonic)
        self.kubelets = Kubelets(
            self.server,
            lambda namespace, name: self.informers.pods.get(name, namespace=namespace),
            self.own,
        )
        self.server.writes = self.kubelets

    async def run(self, arguments: argparse.Namespace) -> None:
        """Load the cluster, and let things happen for a while."""
        async with asyncio.TaskGroup() as tasks:
            background = await self._load(tasks)
            engine = self.engine
            engine.failures.begin()
            loop = tasks.create_task(engine.scheduler.run())
            background += [
                tasks.create_task(engine.scheduler.flush()),
                tasks.create_task(engine.queue_check.run()),
            ]
            rng = random.Random(arguments.seed)  # noqa: S311 (repeatable)
            arrivals = Arrivals(self.server, self.kubelets, self.own, rng)
            churn = NodeChurn(self.server, engine, self.kubelets, self.own, arguments.seed)
            background += [
                tasks.create_task(arrivals.run(arguments.pods_per_second)),
                tasks.create_task(churn.run(arguments.node_churn_per_second)),
            ]
            await self._measure(arguments.seconds, arrivals, churn)
            loop.cancel()
            for task in background:
                task.cancel()
        if arguments.validate:
            engine.cluster.validate()
            engine.queue.validate()

    async def _load(self, tasks: asyncio.TaskGroup) -> list[asyncio.Task[None]]:
        garbage.expect_long_lived_objects()
        wall, cpu, before = time.perf_counter(), time.process_time(), memory_mib()
        background = [
            tasks.create_task(self.recorder.run()),
            *(tasks.create_task(informer.run()) for informer in self.informers.all),
        ]
        await self.informers.wait_until_synced()
        garbage.freeze()
        cluster = self.engine.cluster
        show("nodes, pods", f"{len(cluster.table):,}, {cluster.pod_count:,}")
        show(
            "loaded in",
            f"{time.perf_counter() - wall:.1f} s, {time.process_time() - cpu:.1f} s of CPU time",
        )
        show("memory before, after", f"{before:,.0f}, {memory_mib():,.0f} MiB")
        return background

    async def _measure(self, seconds: float, arrivals: Arrivals, churn: NodeChurn) -> None:
        loop = asyncio.get_running_loop()
        wall, cpu, own = time.perf_counter(), time.process_time(), self.own.cpu_s
        started = loop.time()
        with (
            self.sampler.working(),
            timed_steps(self.steps),
            timed_collections(self.collections),
        ):
            await asyncio.sleep(seconds)
        took_s = loop.time() - started
        wall_s = time.perf_counter() - wall
        own_s = self.own.cpu_s - own
        used_s = time.process_time() - cpu - own_s
        decisions, latencies = self.decisions, self.kubelets.latencies_s
        show("pods arrived, bound", f"{arrivals.count:,}, {len(latencies):,}")
        show("time; of the clock", f"{took_s:.1f}; {wall_s:.1f} s")
        show(
            "not bound; preempted",
            f"{len(self.kubelets.created_at_s):,}; {self.kubelets.preempted:,}",
        )
        show("node events, heartbeats", f"{churn.count:,}, {churn.heartbeats:,}")
        show("decisions a second", f"{len(decisions.wall_s) / took_s:,.0f}")
        show("p50 · p99 · max", "")
        show("  decision, CPU time", summary(decisions.cpu_s))
        show("  decision, wall time", summary(decisions.wall_s))
        show("  from creation to binding", summary(latencies))
        show("  step of the loop, CPU time", summary(self.steps.cpu_s))
        show("  collection of garbage", summary(self.collections.cpu_s))
        slow = sum(each > LIMIT_S for each in decisions.cpu_s)
        show("decisions above 50 ms of CPU", f"{slow} of {len(decisions.cpu_s):,}")
        show("CPU, of one core", f"{100 * used_s / took_s:.0f} % (surroundings: {own_s:.1f} s)")
        show("CPU a bound pod", f"{1000 * used_s / max(len(latencies), 1):.2f} ms")
        show("memory at the end, peak", f"{memory_mib():,.0f}, {memory_mib('VmHWM'):,.0f} MiB")
        show_worst("slowest decisions", decisions)
        show_worst("slowest steps", self.steps)
        print("share of the time in functions, and in what they call")
        for name, share in self.sampler.most(FUNCTIONS):
            print(f"  {100 * share:6.1f} %  {name}")


def show(what: str, figure: str) -> None:
    """Print a line of the report."""
    print(f"{what:30} {figure}", flush=True)


def show_worst(title: str, durations: Durations) -> None:
    """Print the slowest, and where they spent their time."""
    print(f"{title}: CPU, wall, name, where most samples were")
    for cpu_s, wall_s, name, stack in durations.worst:
        print(f"  {1000 * cpu_s:6.1f} {1000 * wall_s:6.1f} ms  {name:24} {stack}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print a report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large_cluster")
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--pods-per-second", type=float, default=1000.0)
    parser.add_argument("--node-churn-per-second", type=float, default=50.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--snapshot", type=Path, help="read the cluster from `kubesched snapshot`")
    parser.add_argument("--validate", action="store_true", help="check the state at the end")
    options = parser.parse_args(arguments)
    contents = Contents(nodes=options.nodes, pods=options.pods, apps=APPS).of
    if options.snapshot is not None:
        snapshot = files.read(options.snapshot)
        contents = lambda kind: iter(snapshot.objects[kind])  # noqa: E731

    async def measure() -> None:
        await Benchmark(contents, options.seed).run(options)

    with asyncio.Runner(loop_factory=UndisturbedLoop) as runner:
        runner.run(measure())


if __name__ == "__main__":
    main()
