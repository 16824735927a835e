"""Workloads on an embedded cluster, with a scheduler that only binds, all in this process."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kubesched.bench import objects
from kubesched.bench.api_objects import BenchObjects
from kubesched.bench.executor import Executor
from kubesched.bench.null_scheduler import Schedule
from kubesched.bench.objects import same
from kubesched.bench.operations import (
    Barrier,
    BenchWorkload,
    Churn,
    CreateAny,
    CreateNamespaces,
    CreateNodes,
    CreatePods,
    CreateResourceDriver,
    DeletePods,
    LabelNodes,
    Labels,
    Operation,
    Sleep,
    StartCollecting,
    StopCollecting,
    UpdateAny,
)
from kubesched.bench.pod_tracker import PodTracker, SeenPod
from kubesched.bench.processes import StartError
from kubesched.bench.results import Measurement
from kubesched.client.access import ClusterAccess
from kubesched.client.informer import Informer
from kubesched.client.resources import PODS
from kubesched.client.rest import ApiClient
from kubesched.embedded.cluster import EmbeddedCluster

NODES = CreateNodes(count=3, template=objects.base_node)
ONE_POD = same(objects.pod())
CLASS = {"deviceClassName": "gpus"}


class Scheduler:
    """Binds in a task instead of a process; or never does."""

    def __init__(self, access: ClusterAccess, *, idle: bool = False) -> None:
        self._access = access
        self._idle = idle
        self._task: asyncio.Task[None] | None = None
        self.log: list[str] = []

    def start(self, *, watch: bool = True) -> None:
        if self._task is None:
            self.log.append("start" if watch else "start without watching")
            work = asyncio.sleep(60) if self._idle else Schedule(self._access, watch=watch).run()
            self._task = asyncio.create_task(work)

    async def stop(self) -> None:
        if self._task is not None:
            self.log.append("stop")
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    def check(self) -> None:
        if self._task is not None and self._task.done():
            raise StartError("it ended")

    def describe(self) -> str:
        return "it is idle"


class Counting:
    """Counts what is bound."""

    def __init__(self, name: str, tracker: PodTracker) -> None:
        self._name = name
        self._tracker = tracker
        self._stack = contextlib.ExitStack()

    async def begin(
        self, namespaces: frozenset[str], labels: Labels, *, from_first: bool = False
    ) -> None:
        self._from_first = from_first
        self._heard = self._stack.enter_context(
            self._tracker.watching(namespaces, labels, lambda: None)
        )

    async def end(self) -> Measurement:
        self._stack.close()
        bound = self._heard.bound
        name = f"{self._name} from first" if self._from_first else self._name
        known = len(self._tracker.latencies(bound))
        return Measurement(name=name, pods=len(bound), seconds=1, pods_per_second=known)

    def abandon(self) -> None:
        self._stack.close()


class Silent:
    """Hears and says nothing."""

    def stage(self, what: str, total: int) -> None:
        pass

    def done(self, count: int) -> None:
        pass


class World:
    """A cluster, and what an executor needs."""

    def __init__(self, cluster: EmbeddedCluster, client: ApiClient) -> None:
        self.client = client
        self.tracker = PodTracker()
        self.scheduler = Scheduler(ClusterAccess.plain(cluster.url))

    async def run(
        self, *operations: Operation, precreate: bool = False, timeout_s: float = 20
    ) -> list[Measurement]:
        executor = Executor(
            objects=BenchObjects(self.client),
            tracker=self.tracker,
            scheduler=self.scheduler,
            collect=lambda name: Counting(name, self.tracker),
            progress=Silent(),
            timeout_s=timeout_s,
            precreate=precreate,
        )
        return await executor.run(BenchWorkload(name="test", operations=operations))

    async def read_all(self, path: str) -> list[Any]:
        answer: dict[str, Any] = await self.client.get(path, dict)
        items: list[Any] = answer["items"]
        return items

    async def pods(self, namespace: str) -> list[Any]:
        return await self.read_all(f"/api/v1/namespaces/{namespace}/pods")


@contextlib.asynccontextmanager
async def world() -> AsyncIterator[World]:
    async with (
        EmbeddedCluster(run_kubelet=False) as cluster,
        ApiClient(ClusterAccess.plain(cluster.url)) as client,
    ):
        made = World(cluster, client)
        informer = Informer(client, PODS, SeenPod, handler=made.tracker)
        task = asyncio.create_task(informer.run())
        await informer.synced.wait()
        try:
            yield made
        finally:
            await made.scheduler.stop()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def test_pods_are_created_bound_and_measured() -> None:
    async def scenario() -> None:
        async with world() as w:
            found = await w.run(
                CreateNodes(
                    count=3,
                    template=objects.base_node,
                    preparation=LabelNodes(key="zone", values=("a", "b")),
                ),
                CreatePods(count=4, template=ONE_POD),
                CreatePods(count=5, template=ONE_POD, collect_metrics=True),
            )
            nodes = await w.read_all("/api/v1/nodes")
            assert [each["metadata"]["labels"]["zone"] for each in nodes] == ["a", "b", "a"]
            assert len(await w.pods("namespace-1")) == 4
            assert all(pod["spec"]["nodeName"] for pod in await w.pods("namespace-2"))
            (measured,) = found
            # Only the second five count, and of each it is known when it was asked for.
            assert (measured.pods, measured.pods_per_second) == (5, 5)

    asyncio.run(scenario())


def test_pods_of_a_namespace_used_before_are_waited_for_too() -> None:
    async def scenario() -> None:
        async with world() as w:
            pods = CreatePods(count=3, template=ONE_POD, namespace="again")
            await w.run(NODES, pods, pods)
            assert w.tracker.bound_count("again", {}) == 6

    asyncio.run(scenario())


def test_precreated_pods_wait_for_the_scheduler() -> None:
    async def scenario() -> None:
        async with world() as w:
            found = await w.run(
                NODES,
                CreatePods(count=2, template=ONE_POD),
                CreatePods(count=3, template=ONE_POD, collect_metrics=True),
                precreate=True,
            )
            assert w.scheduler.log == ["start", "stop", "start without watching"]
            assert [(each.name, each.pods) for each in found] == [(" from first", 3)]

    asyncio.run(scenario())


def test_pods_one_by_one() -> None:
    async def scenario() -> None:
        async with world() as w:
            (measured,) = await w.run(
                NODES,
                CreatePods(count=3, template=ONE_POD, collect_metrics=True, one_by_one=True),
            )
            assert (measured.pods, measured.pods_per_second) == (3, 3)

    asyncio.run(scenario())


def test_a_barrier_waits_for_pods_that_nobody_waited_for() -> None:
    async def scenario() -> None:
        async with world() as w:
            await w.run(
                NODES,
                CreateNamespaces(
                    prefix="team", count=2, template=same(objects.namespace({"t": "x"}))
                ),
                CreatePods(count=3, template=ONE_POD, namespace="team-1", skip_wait=True),
                Barrier(),
            )
            assert w.tracker.bound_count("team-1", {}) == 3
            labels = {
                each["metadata"]["name"]: each["metadata"]["labels"].get("t")
                for each in await w.read_all("/api/v1/namespaces")
            }
            assert (labels["team-0"], labels["team-1"]) == ("x", "x")

    asyncio.run(scenario())


def test_a_barrier_for_attempts_takes_what_the_condition_says() -> None:
    async def scenario() -> None:
        async with world() as w:
            gated = objects.pod(schedulingGates=[{"name": "example.com/hold"}])
            await w.run(
                CreatePods(count=2, template=same(gated), namespace="g", skip_wait=True),
                Barrier(stage="Attempted"),
            )
            assert w.tracker.attempted_count("g", {}) == 2
            assert w.tracker.bound_count("g", {}) == 0

    asyncio.run(scenario())


def test_pods_are_deleted_at_once_by_label_or_at_a_pace() -> None:
    async def scenario() -> None:
        async with world() as w:
            red, blue = (
                same(objects.pod(labels={"color": color}, terminationGracePeriodSeconds=0))
                for color in ("red", "blue")
            )
            await w.run(
                NODES,
                CreatePods(count=3, template=red, namespace="x"),
                CreatePods(count=3, template=blue, namespace="x"),
                CreatePods(count=3, template=red, namespace="y"),
                DeletePods(namespace="x", labels={"color": "red"}),
                DeletePods(namespace="y", per_second=200),
            )
            colors = [pod["metadata"]["labels"]["color"] for pod in await w.pods("x")]
            assert colors == ["blue"] * 3
            assert await w.pods("y") == []

    asyncio.run(scenario())


def test_a_steady_state_creates_again_what_it_deletes() -> None:
    async def scenario() -> None:
        async with world() as w:
            (measured,) = await w.run(
                NODES,
                CreatePods(count=2, template=ONE_POD, steady_for_s=1.5, collect_metrics=True),
            )
            assert measured.pods >= 4
            assert len(await w.pods("namespace-1")) == 2

    asyncio.run(scenario())


@pytest.mark.parametrize(("mode", "left"), [("create", 2), ("recreate", None)])
def test_churn_goes_on_until_the_end(mode: str, left: int | None) -> None:
    async def scenario() -> None:
        async with world() as w:
            churn = Churn(
                mode="create" if mode == "create" else "recreate",
                number=2,
                interval_s=0.01,
                templates=(same(objects.service("s-")), same(objects.node(prefix="n-"))),
                namespace="churn",
            )
            await w.run(churn, Sleep(duration_s=1.0))
            services = await w.read_all("/api/v1/namespaces/churn/services")
            nodes = await w.read_all("/api/v1/nodes")
            if left is None:
                assert len(services) <= 2
                assert len(nodes) <= 2
                names = {each["metadata"]["resourceVersion"] for each in services + nodes}
                assert all(int(version) > 20 for version in names), "they come and go"
            else:
                assert (len(services), len(nodes)) == (left, left)

    asyncio.run(scenario())


def test_any_object_can_be_created_and_updated() -> None:
    async def scenario() -> None:
        async with world() as w:

            def node(value: str) -> Any:
                def template(index: int, _count: int) -> dict[str, Any]:
                    made = objects.node(name=f"any-{index}")
                    return {**made, "metadata": {**made["metadata"], "labels": {"v": value}}}

                return template

            await w.run(
                CreateAny(template=node("old"), count=3),
                UpdateAny(template=node("new"), count=2),
                CreateAny(template=same(objects.service("svc-")), namespace="new-one"),
            )
            nodes = await w.read_all("/api/v1/nodes")
            assert [each["metadata"]["labels"]["v"] for each in nodes] == ["new", "new", "old"]
            assert len(await w.read_all("/api/v1/namespaces/new-one/services")) == 1

    asyncio.run(scenario())


def test_devices_are_made_on_some_nodes_and_claims_for_pods_that_name_a_template() -> None:
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "one-gpu"},
        "spec": {"spec": {"devices": {"requests": [{"name": "r", "exactly": CLASS}]}}},
    }
    reference = {"name": "gpu", "resourceClaimTemplateName": "one-gpu"}

    async def scenario() -> None:
        async with world() as w:
            await w.run(
                NODES,
                CreateNodes(count=2, template=same(objects.node(prefix="gpu-"))),
                CreateResourceDriver(driver="d.example.com", nodes="gpu-*", devices_per_node=4),
                CreateAny(template=same(template), namespace="test"),
                CreatePods(
                    count=3,
                    template=same(objects.pod(resourceClaims=[reference])),
                    namespace="test",
                ),
            )
            slices = await w.read_all("/apis/resource.k8s.io/v1/resourceslices")
            assert [each["spec"]["nodeName"] for each in slices] == ["gpu-00003", "gpu-00004"]
            claims = await w.read_all("/apis/resource.k8s.io/v1/namespaces/test/resourceclaims")
            told = [pod["status"]["resourceClaimStatuses"] for pod in await w.pods("test")]
            assert len(told) == 3
            assert {status[0]["resourceClaimName"] for status in told} == {
                claim["metadata"]["name"] for claim in claims
            }

    asyncio.run(scenario())


def test_collections_can_begin_and_end_by_themselves() -> None:
    async def scenario() -> None:
        async with world() as w:
            found = await w.run(
                NODES,
                StartCollecting(name="some", namespaces=("a",), labels={"k": "v"}),
                CreatePods(count=2, template=ONE_POD, namespace="a"),
                CreatePods(count=3, template=same(objects.pod(labels={"k": "v"})), namespace="a"),
                StopCollecting(),
            )
            assert [(each.name, each.pods) for each in found] == [("some", 3)]

    asyncio.run(scenario())


def test_pods_that_are_never_bound_end_the_run_with_what_the_scheduler_said() -> None:
    async def scenario() -> None:
        async with world() as w:
            w.scheduler = Scheduler(w.client.access, idle=True)
            with pytest.raises(StartError, match=r"not all 1 pods .* after 0.2 s: it is idle"):
                await w.run(NODES, CreatePods(count=1, template=ONE_POD), timeout_s=0.2)

    asyncio.run(scenario())
