"""Runs the operations of a workload in order, as scheduler_perf does.

    operations ──> objects in the API server ──> (scheduler) ──> bound pods ──> measurements

Churning and slow deletions run in the background until the end. With ``precreate`` the scheduler is
started after the measured pods were created.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Protocol

from kubesched.bench import operations as ops
from kubesched.bench.allocated_claims import allocate_claims
from kubesched.bench.api_objects import BenchObjects, each_of, encoded
from kubesched.bench.creation import NodeMaker, VolumeMaker, create_pods, paced
from kubesched.bench.devices import ClaimMaker, claim_templates_of, create_slices
from kubesched.bench.operations import BenchWorkload, Labels, Operation
from kubesched.bench.pod_tracker import PodTracker
from kubesched.bench.processes import StartError
from kubesched.bench.results import Measurement
from kubesched.bench.steady_state import SteadyState
from kubesched.client.resources import PODS
from kubesched.errors import AlreadyExistsError, ClientError

_POLL_S = 0.5
_BREATH_S = 0.01


class BenchProgress(Protocol):
    """Receives progress."""

    def stage(self, what: str, total: int) -> None:
        """A stage of `total` items begins."""

    def done(self, count: int) -> None:
        """So many items are done."""


class SchedulerControl(Protocol):
    """Starts and stops the scheduler; see schedulers.SchedulerProcess."""

    def start(self, *, watch: bool = True) -> None:
        """Start it unless it runs."""

    async def stop(self) -> None:
        """End it if it runs."""

    def check(self) -> None:
        """Raise StartError if it has ended by itself."""

    def describe(self) -> str:
        """Describe its state."""


class Collecting(Protocol):
    """Records bound pods; see collection.Collection."""

    async def begin(
        self, namespaces: frozenset[str], labels: Labels, *, from_first: bool = False
    ) -> None:
        """Begin."""

    async def end(self) -> Measurement:
        """End."""

    def abandon(self) -> None:
        """Discard it."""


class Executor:
    """One workload on one plane with one scheduler."""

    def __init__(
        self,
        *,
        objects: BenchObjects,
        tracker: PodTracker,
        scheduler: SchedulerControl,
        collect: Callable[[str], Collecting],
        progress: BenchProgress,
        timeout_s: float,
        precreate: bool = False,
    ) -> None:
        self._objects = objects
        self._tracker = tracker
        self._scheduler = scheduler
        self._collect = collect
        self._progress = progress
        self._timeout_s = timeout_s
        self._precreate = precreate
        self._nodes = NodeMaker(objects)
        self._gates: Mapping[str, bool] = {}
        self._namespaces: set[str] = set()
        #: namespace -> pods that were created without waiting for them
        self._awaited: dict[str, int] = {}
        self._collecting: Collecting | None = None
        self._measurements: list[Measurement] = []
        self._background: list[asyncio.Task[None]] = []

    async def run(self, workload: BenchWorkload) -> list[Measurement]:
        """Run all operations; return the measurements."""
        self._gates = workload.feature_gates
        try:
            for index, operation in enumerate(workload.operations):
                self._scheduler.check()
                await self._do(index, operation)
        finally:
            if self._collecting is not None:
                self._collecting.abandon()
            for task in self._background:
                task.cancel()
            await asyncio.gather(*self._background, return_exceptions=True)
        return self._measurements

    async def _do(self, index: int, operation: Operation) -> None:
        match operation:
            case ops.CreateNodes():
                await self._create_nodes(operation)
            case ops.CreateNamespaces():
                await self._create_namespaces(operation)
            case ops.CreatePods():
                await self._create_pods(operation, operation.namespace or f"namespace-{index}")
            case ops.DeletePods():
                await self._delete_pods(operation)
            case ops.Churn():
                await self._churn(operation, operation.namespace or f"namespace-{index}")
            case ops.CreateAny():
                await self._create_any(operation)
            case ops.CreateResourceDriver() | ops.AllocateClaims():
                await self._prepare_devices(operation)
            case ops.UpdateAny():
                await self._update_any(operation)
            case ops.Barrier():
                await self._barrier(operation)
            case ops.Sleep():
                self._progress.stage(f"sleeping {operation.duration_s:g} s", 0)
                await asyncio.sleep(operation.duration_s)
            case ops.StartCollecting():
                self._scheduler.start()
                await self._begin(operation.name, operation.namespaces, operation.labels)
            case ops.StopCollecting():
                await self._end()

    # ------------------------------------------------------------ collecting

    async def _begin(
        self,
        name: str,
        namespaces: tuple[str, ...],
        labels: Labels,
        *,
        from_first: bool = False,
    ) -> None:
        if self._collecting is not None:
            raise StartError("the workload begins to collect twice without an end in between")
        self._collecting = self._collect(name)
        await self._collecting.begin(frozenset(namespaces), labels, from_first=from_first)

    async def _end(self) -> None:
        if self._collecting is None:
            raise StartError("the workload ends a collection that it did not begin")
        collection, self._collecting = self._collecting, None
        self._measurements.append(await collection.end())

    # ------------------------------------------------------------ nodes and namespaces

    async def _create_nodes(self, operation: ops.CreateNodes) -> None:
        self._progress.stage("creating nodes", operation.count)
        await self._nodes.create(operation, self._progress.done)

    async def _create_namespaces(self, operation: ops.CreateNamespaces) -> None:
        for number in range(operation.count):
            made = operation.template(number, operation.count) if operation.template else {}
            labels = (made.get("metadata") or {}).get("labels") or {}
            name = f"{operation.prefix}-{number}"
            await self._namespace(name, labels)
            self._awaited.setdefault(name, 0)

    async def _namespace(self, name: str, labels: Labels | None = None) -> None:
        """Create a namespace unless it is there."""
        if not name or name in self._namespaces:
            return
        body = {"apiVersion": "v1", "kind": "Namespace"}
        with contextlib.suppress(AlreadyExistsError):
            await self._objects.create(
                {**body, "metadata": {"name": name, "labels": dict(labels or {})}}
            )
        self._namespaces.add(name)

    # ------------------------------------------------------------ pods

    async def _create_pods(self, operation: ops.CreatePods, namespace: str) -> None:
        await self._namespace(namespace)
        want = self._tracker.bound_count(namespace, {}) + operation.count
        pause = self._precreate and operation.collect_metrics and not operation.needs_scheduler
        if pause:
            await self._scheduler.stop()
        else:
            self._scheduler.start()
            if operation.collect_metrics:
                await self._begin("", (namespace,), {})
        await self._fill(operation, namespace)
        if pause:
            await self._begin("", (namespace,), {}, from_first=True)
            self._scheduler.start(watch=False)
        if operation.skip_wait:
            self._awaited[namespace] = self._awaited.get(namespace, 0) + operation.count
        elif not operation.steady_for_s:
            await self._until_bound(namespace, want)
        if operation.collect_metrics:
            await self._end()

    async def _fill(self, operation: ops.CreatePods, namespace: str) -> None:
        if operation.steady_for_s:
            self._progress.stage(f"a steady state in {namespace}", 0)
            await SteadyState(self._objects, self._tracker, operation, namespace).run()
            return
        made = [operation.template(index, operation.count) for index in range(operation.count)]
        bodies = encoded(made)
        if operation.one_by_one:
            await self._one_by_one(made, namespace)
        elif any(map(claim_templates_of, made)):
            self._progress.stage(f"creating pods with claims in {namespace}", operation.count)
            claims = ClaimMaker(self._objects, namespace)
            await claims.create(made, done=self._progress.done, asked=self._tracker.note_created)
        elif operation.volume and operation.claim:
            self._progress.stage(f"creating pods with volumes in {namespace}", operation.count)
            maker = VolumeMaker(self._objects, operation.volume, operation.claim, namespace)
            await maker.create(made, done=self._progress.done, asked=self._tracker.note_created)
        else:
            self._progress.stage(f"creating pods in {namespace}", operation.count)
            await self._create_many(namespace, bodies, self._progress.done)

    async def _create_many(
        self, namespace: str, bodies: list[bytes], done: Callable[[int], None]
    ) -> None:
        asked = self._tracker.note_created
        await create_pods(self._objects, namespace, bodies, done=done, asked=asked)

    async def _one_by_one(self, pods: list[ops.JsonObject], namespace: str) -> None:
        self._progress.stage(f"pod by pod in {namespace}", len(pods))
        want = self._tracker.bound_count(namespace, {})
        for number, pod in enumerate(pods, start=1):
            want += 1
            asked_at_s = time.perf_counter()
            made = await self._objects.create(pod, namespace=namespace)
            self._tracker.note_created(made.metadata.uid, asked_at_s)
            bound = partial(self._has_bound, namespace, want)
            await self._until(bound, f"pod {number} is not bound", breath_s=0.0)
            self._progress.done(number)

    def _has_bound(self, namespace: str, want: int) -> bool:
        return self._tracker.bound_count(namespace, {}) >= want

    async def _delete_pods(self, operation: ops.DeletePods) -> None:
        deleting = self._deleting(operation)
        if operation.skip_wait:
            self._start(deleting)
        else:
            await deleting

    async def _deleting(self, operation: ops.DeletePods) -> None:
        pods = list(self._tracker.pods(operation.namespace, operation.labels))
        paths = [PODS.item(pod.metadata.name, namespace=operation.namespace) for pod in pods]
        if operation.per_second:
            await paced(paths, self._objects.delete, per_second=operation.per_second)
        elif operation.labels:
            await each_of(paths, self._objects.delete)
        else:
            await self._objects.delete(PODS.collection(operation.namespace))

    # ------------------------------------------------------------ other objects

    async def _churn(self, operation: ops.Churn, namespace: str) -> None:
        self._scheduler.start()
        await self._namespace(namespace)
        self._start(self._churning(operation, namespace))

    async def _churning(self, operation: ops.Churn, namespace: str) -> None:
        slots: dict[tuple[int, int], str] = {}
        tick = 0
        started = time.monotonic()
        while operation.mode == "recreate" or not operation.number or tick < operation.number:
            tick += 1
            await asyncio.sleep(max(0.0, started + tick * operation.interval_s - time.monotonic()))
            for place, template in enumerate(operation.templates):
                slot = (place, tick % operation.number if operation.number else 0)
                obj = template(0, 1)
                with contextlib.suppress(ClientError):  # ignored, as in scheduler_perf
                    if operation.mode == "recreate" and slot in slots:
                        resource = await self._objects.resource_of(obj)
                        where = namespace if resource.namespaced else ""
                        await self._objects.delete(resource.item(slots.pop(slot), namespace=where))
                    else:
                        made = await self._objects.create(obj, namespace=namespace)
                        slots[slot] = made.metadata.name

    async def _create_any(self, operation: ops.CreateAny) -> None:
        await self._namespace(operation.namespace)
        self._progress.stage("creating objects", operation.count)

        async def create(index: int) -> None:
            obj = operation.template(index, operation.count)
            await self._objects.create(obj, namespace=operation.namespace)

        await each_of(range(operation.count), create, done=self._progress.done)

    async def _prepare_devices(
        self, operation: ops.CreateResourceDriver | ops.AllocateClaims
    ) -> None:
        if isinstance(operation, ops.CreateResourceDriver):
            self._progress.stage(f"creating devices of {operation.driver}", 0)
            await create_slices(self._objects, operation)
            return
        namespace = operation.namespace
        self._progress.stage(f"allocating claims in {namespace}", 0)
        await self._namespace(namespace)
        await allocate_claims(self._objects, namespace, self._gates, self._progress.done)

    async def _update_any(self, operation: ops.UpdateAny) -> None:
        await self._namespace(operation.namespace)
        self._progress.stage("updating objects", operation.count)

        async def update(index: int) -> None:
            obj = operation.template(index, operation.count)
            for part in (*(operation.subresources or ("",)), "status"):
                await self._objects.replace(obj, namespace=operation.namespace, subresource=part)

        if operation.per_second:
            await paced(list(range(operation.count)), update, per_second=operation.per_second)
        else:
            await each_of(range(operation.count), update, done=self._progress.done)

    # ------------------------------------------------------------ waiting

    async def _barrier(self, operation: ops.Barrier) -> None:
        self._scheduler.start()
        for namespace in operation.namespaces or tuple(self._awaited):
            want = self._awaited.get(namespace, 0)
            if operation.stage == "Attempted":
                self._progress.stage(f"waiting for attempts in {namespace}", 0)
                attempted = partial(self._has_attempted, namespace, operation.labels, want)
                await self._until(attempted, f"pods of {namespace} are not attempted")
            else:
                await self._until_bound(namespace, want, labels=operation.labels)
        if operation.stage == "Scheduled":
            for namespace in operation.namespaces or tuple(self._awaited):
                self._awaited.pop(namespace, None)

    def _has_attempted(self, namespace: str, labels: Labels, want: int) -> bool:
        return self._tracker.attempted_count(namespace, labels) >= want

    async def _until_bound(
        self,
        namespace: str,
        want: int,
        *,
        labels: Labels | None = None,
    ) -> None:
        self._progress.stage(f"scheduling in {namespace}", want)

        def enough() -> bool:
            count = self._tracker.bound_count(namespace, labels or {})
            self._progress.done(count)
            return count >= want

        await self._until(enough, f"not all {want} pods of {namespace} are bound")

    async def _until(
        self, holds: Callable[[], bool], complaint: str, *, breath_s: float = _BREATH_S
    ) -> None:
        """Wait for a condition of pods; raises StartError if the scheduler ends, or on timeout."""
        deadline = time.monotonic() + self._timeout_s
        while not holds():
            self._scheduler.check()
            if time.monotonic() > deadline:
                said = self._scheduler.describe()
                raise StartError(f"{complaint} after {self._timeout_s:g} s: {said}")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_POLL_S):
                    await self._tracker.changed()
            if breath_s:
                await asyncio.sleep(breath_s)

    def _start(self, work: Coroutine[object, object, None]) -> None:
        self._background.append(asyncio.create_task(work))
