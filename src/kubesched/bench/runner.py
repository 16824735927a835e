"""Runs all schedulers through all workloads, each on a fresh control plane.

    for each workload, for each round: ours · kube-scheduler · null · …  ──> BenchRun

The order alternates between rounds, so that a machine that becomes slower or faster affects all
alike. A failed run is reported and the others go on. No process is ever left behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from msgspec import structs

from kubesched import KUBERNETES_VERSION, __version__
from kubesched.bench import objects as made
from kubesched.bench import planes
from kubesched.bench.api_objects import BenchObjects
from kubesched.bench.collection import BindingCollection
from kubesched.bench.executor import BenchProgress, Executor
from kubesched.bench.operations import BenchWorkload
from kubesched.bench.planes import Plane
from kubesched.bench.pod_tracker import PodTracker, SeenPod
from kubesched.bench.processes import StartError
from kubesched.bench.results import BenchReport, BenchRun, Machine, Measurement, WorkloadFacts
from kubesched.bench.schedulers import BenchScheduler, SchedulerProcess, Settings
from kubesched.client import kubeconfig
from kubesched.client.informer import Informer
from kubesched.client.resources import NODES, PODS
from kubesched.client.rest import ApiClient
from kubesched.errors import KubeschedError

#: A first pod shows that a scheduler works; it and its node are deleted before measuring.
_FIRST = "kubesched-bench-first"
_FIRST_TIMEOUT_S = 90.0


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The plan of a benchmark."""

    workloads: Sequence[BenchWorkload]
    candidates: Sequence[BenchScheduler]
    settings: Settings
    apiserver: str
    binaries: Path
    rounds: int = 1
    precreate: bool = False
    timeout_s: float = 600.0


class RunProgress(BenchProgress, Protocol):
    """Receives progress of runs as well."""

    def run(self, title: str, number: int, total: int) -> None:
        """A run begins."""

    def result(self, run: BenchRun) -> None:
        """A run is over."""


class Session:
    """All runs of a plan."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._empty = _empty_report(plan)
        self._runs: list[BenchRun] = []

    @property
    def report(self) -> BenchReport:
        """The results so far."""
        return structs.replace(self._empty, runs=tuple(self._runs))

    async def run(self, progress: RunProgress) -> None:
        """Run everything."""
        plan = self._plan
        total = len(plan.workloads) * len(plan.candidates) * plan.rounds
        for workload in plan.workloads:
            for number in range(1, plan.rounds + 1):
                order = plan.candidates if number % 2 else plan.candidates[::-1]
                for candidate in order:
                    title = f"{workload.name}, round {number}: {candidate.name}"
                    progress.run(title, len(self._runs) + 1, total)
                    run = await _run_once(plan, workload, candidate, number, progress)
                    self._runs.append(run)
                    progress.result(run)


async def _run_once(
    plan: Plan,
    workload: BenchWorkload,
    candidate: BenchScheduler,
    number: int,
    progress: BenchProgress,
) -> BenchRun:
    measurements: list[Measurement] = []
    error = ""
    try:
        measurements = await measure(plan, workload, candidate, progress)
    except* KubeschedError as failed:
        error = str(_first(failed))
    return BenchRun(
        workload=workload.name,
        scheduler=candidate.name,
        round=number,
        measurements=tuple(measurements),
        error=error,
    )


async def measure(
    plan: Plan, workload: BenchWorkload, candidate: BenchScheduler, progress: BenchProgress
) -> list[Measurement]:
    """One scheduler through one workload on a fresh plane."""
    settings = replace(
        plan.settings,
        feature_gates={**workload.feature_gates, **plan.settings.feature_gates},
        base_config=plan.settings.base_config or workload.scheduler_config,
    )
    progress.stage("starting the control plane", 0)
    async with (
        _running_plane(plan, workload) as plane,
        ApiClient(kubeconfig.load(plane.admin_kubeconfig), timeout_s=120) as client,
        _tracking(client) as tracker,
        _scheduler(candidate, plane, settings) as scheduler,
    ):
        objects = BenchObjects(client)
        if not plan.precreate:
            progress.stage("starting the scheduler", 0)
            scheduler.start()
            await _until_working(client, objects, scheduler)
        executor = Executor(
            objects=objects,
            tracker=tracker,
            scheduler=scheduler,
            collect=_collections(plane, scheduler, tracker),
            progress=progress,
            timeout_s=plan.timeout_s,
            precreate=plan.precreate,
        )
        return await executor.run(workload)


def _collections(
    plane: Plane, scheduler: SchedulerProcess, tracker: PodTracker
) -> Callable[[str], BindingCollection]:
    return lambda name: BindingCollection(name, plane=plane, scheduler=scheduler, tracker=tracker)


@contextlib.asynccontextmanager
async def _running_plane(plan: Plan, workload: BenchWorkload) -> AsyncIterator[Plane]:
    plane = planes.make(plan.apiserver, plan.binaries, workload.feature_gates)
    try:
        await asyncio.to_thread(plane.start)
        yield plane
    finally:
        # Not in a thread: this must be over before we are cancelled.
        plane.stop()


@contextlib.asynccontextmanager
async def _scheduler(
    candidate: BenchScheduler, plane: Plane, settings: Settings
) -> AsyncIterator[SchedulerProcess]:
    scheduler = SchedulerProcess(candidate, plane, settings)
    try:
        yield scheduler
    finally:
        scheduler.kill()


@contextlib.asynccontextmanager
async def _tracking(client: ApiClient) -> AsyncIterator[PodTracker]:
    tracker = PodTracker()
    informer = Informer(client, PODS, SeenPod, handler=tracker)
    task = asyncio.create_task(informer.run())
    try:
        await informer.synced.wait()
        yield tracker
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _until_working(
    client: ApiClient, objects: BenchObjects, scheduler: SchedulerProcess
) -> None:
    """Let the scheduler bind one pod to one node, and delete both again."""
    pod = PODS.item(_FIRST, namespace="default")
    await objects.create(made.node(name=_FIRST))
    await objects.create({**made.pod(), "metadata": {"name": _FIRST}}, namespace="default")
    deadline = asyncio.get_running_loop().time() + _FIRST_TIMEOUT_S
    while not (await client.get(pod, SeenPod)).is_bound:
        scheduler.check()
        if asyncio.get_running_loop().time() > deadline:
            said = scheduler.describe()
            raise StartError(f"the first pod is not bound after {_FIRST_TIMEOUT_S:g} s: {said}")
        await asyncio.sleep(0.05)
    await objects.delete(pod, at_once=True)
    await objects.delete(NODES.item(_FIRST))


def _empty_report(plan: Plan) -> BenchReport:
    return BenchReport(
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=this_machine(),
        kubernetes=KUBERNETES_VERSION,
        kubesched=__version__,
        apiserver=plan.apiserver,
        qps=plan.settings.qps,
        burst=plan.settings.burst,
        precreated=plan.precreate,
        schedulers={each.name: each.description for each in plan.candidates},
        workloads=tuple(
            WorkloadFacts(
                name=each.name,
                nodes=each.node_count,
                pods=each.pod_count,
                threshold=each.threshold,
                feature_gates=dict(each.feature_gates),
            )
            for each in plan.workloads
        ),
    )


def this_machine() -> Machine:
    """Describe this machine."""
    return Machine(
        system=f"{platform.system()} {platform.release()}",
        processor=_processor(),
        cpus=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1,
        memory_mib=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20,
        python=platform.python_version(),
    )


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
