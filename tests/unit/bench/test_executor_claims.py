"""Workloads of pods with claims: allocated beforehand, bound in a steady state, bound by null."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kubesched.bench import objects
from kubesched.bench.devices import slice_of
from kubesched.bench.objects import same
from kubesched.bench.operations import (
    AllocateClaims,
    CreateAny,
    CreateNodes,
    CreatePods,
    CreateResourceDriver,
    StartCollecting,
    StopCollecting,
)
from kubesched.bench.processes import StartError

from .test_executor import World, world

NODES = CreateNodes(count=3, template=objects.base_node)
DRIVER = CreateResourceDriver(driver="driver.example.com", nodes="*", devices_per_node=2)
CLASS = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "gpu"},
    "spec": {},
}
REQUESTS = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
TEMPLATE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "one"},
    "spec": {"spec": REQUESTS},
}
PREPARED = (
    NODES,
    DRIVER,
    CreateAny(template=same(CLASS)),
    CreateAny(template=same(TEMPLATE), namespace="test"),
)
CLAIMING = same(objects.pod(resourceClaims=[{"name": "c", "resourceClaimTemplateName": "one"}]))


def claim(index: int, _count: int) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": f"claim-{index}"},
        "spec": REQUESTS,
    }


async def claims(w: World, namespace: str) -> list[Any]:
    return await w.read_all(f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims")


def test_claims_are_allocated_before_the_measurement() -> None:
    async def scenario() -> None:
        async with world() as w:
            create = CreateAny(template=claim, count=5, namespace="init")
            await w.run(*PREPARED, create, AllocateClaims(namespace="init"))
            devices = {
                (result["pool"], result["device"])
                for each in await claims(w, "init")
                for result in each["status"]["allocation"]["devices"]["results"]
            }
            assert len(devices) == 5
            assert len({pool for pool, _ in devices}) > 1, "nodes at random"

    asyncio.run(scenario())


def test_more_claims_than_devices_are_an_error() -> None:
    async def scenario() -> None:
        async with world() as w:
            create = CreateAny(template=claim, count=7, namespace="init")
            with pytest.raises(StartError, match="cannot allocate all claims"):
                await w.run(*PREPARED, create, AllocateClaims(namespace="init"))

    asyncio.run(scenario())


def test_a_steady_state_of_pods_releases_their_claims() -> None:
    async def scenario() -> None:
        async with world() as w:
            pods = CreatePods(
                count=2, template=CLAIMING, namespace="test", steady_for_s=1.5, collect_metrics=True
            )
            (measured,) = await w.run(*PREPARED, pods)
            assert measured.pods >= 4
            assert len(await claims(w, "test")) == len(await w.pods("test")) == 2

    asyncio.run(scenario())


def test_slices_are_published_while_metrics_are_collected_and_no_pod_is_bound() -> None:
    """As in scheduler_perf's PublishResourceSlices."""

    async def scenario() -> None:
        async with world() as w:
            publish = CreateAny(
                template=lambda index, _: slice_of("driver.example.com", f"n-{index}", devices=2),
                count=4,
            )
            begin = StartCollecting(name="", namespaces=("default",))
            (measured,) = await w.run(NODES, begin, publish, StopCollecting())
            assert (measured.pods, measured.pods_per_second) == (0, 0.0)
            slices = await w.read_all("/apis/resource.k8s.io/v1/resourceslices")
            assert len(slices) == 4

    asyncio.run(scenario())


def test_null_writes_what_a_scheduler_writes_about_claims() -> None:
    async def scenario() -> None:
        async with world() as w:
            await w.run(*PREPARED, CreatePods(count=3, template=CLAIMING, namespace="test"))
            for each in await claims(w, "test"):
                (result,) = each["status"]["allocation"]["devices"]["results"]
                (user,) = each["status"]["reservedFor"]
                owner = each["metadata"]["ownerReferences"][0]
                assert (result["request"], user["uid"]) == ("r", owner["uid"])
                assert each["metadata"]["finalizers"]

    asyncio.run(scenario())
