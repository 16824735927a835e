"""What is written about claims to devices, on an API server; and how drivers are waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

import pytest

from kubesched.api.resource import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
)
from kubesched.client.resources import PODS, RESOURCE_CLAIMS
from kubesched.clock import RealClock
from kubesched.embedded.cluster import EmbeddedCluster
from kubesched.scheduler.claim_writes import ClaimWrites
from kubesched.scheduler.recorders import Recorders
from tests.support.embedded_scheduler import Harness, scheduler
from tests.support.exposed_metrics import Exposed
from tests.support.waiting import eventually

Json = dict[str, Any]
DRIVER = "gpu.example.com"
RESOURCE = "resource.k8s.io/v1"


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @wraps(test)
    def run(**arguments: Any) -> None:
        asyncio.run(test(**arguments))

    return run


def create(cluster: EmbeddedCluster, kind: str, name: str, spec: Json, **meta: Any) -> Json:
    metadata = {"name": name, **meta}
    if kind == "ResourceClaim":
        metadata["namespace"] = "default"
    return cluster.create(
        {"apiVersion": RESOURCE, "kind": kind, "metadata": metadata, "spec": spec}
    )


def add_devices(harness: Harness, *devices: Json, resource: str | None = None) -> None:
    spec: Json = {} if resource is None else {"extendedResourceName": resource}
    create(harness.cluster, "DeviceClass", "gpu", spec)
    node = harness.app.cluster.table.name_at(0)
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    create(
        harness.cluster,
        "ResourceSlice",
        "slice",
        {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": list(devices)},
    )


def add_claim(harness: Harness, name: str, **exactly: Any) -> None:
    asked = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1, **exactly}
    requests = [{"name": "r", "exactly": asked}]
    create(harness.cluster, "ResourceClaim", name, {"devices": {"requests": requests}})


def path_of(name: str, subresource: str = "") -> str:
    return RESOURCE_CLAIMS.item(name, namespace="default", subresource=subresource)


async def claim(harness: Harness, name: str) -> Json:
    return await harness.app.client.get(path_of(name), dict)


def known(harness: Harness, name: str) -> ResourceClaim:
    """A claim as the scheduler knows it."""
    return harness.app.cluster.devices.claims.get("default", name) or ResourceClaim()


def claiming(*names: str) -> Json:
    return {"resourceClaims": [{"name": each, "resourceClaimName": each} for each in names]}


async def bound(harness: Harness, name: str) -> None:
    await eventually(lambda: harness.node_of(name) != "")


@in_loop
async def test_a_claim_gets_devices_and_says_which_pods_may_use_them() -> None:
    async with scheduler() as harness:
        add_devices(harness, {"name": "a"}, {"name": "b"})
        add_claim(harness, "c")
        harness.create_pod("p", **claiming("c"))
        await bound(harness, "p")
        found = await claim(harness, "c")
        (result,) = found["status"]["allocation"]["devices"]["results"]
        assert (result["request"], result["device"]) == ("r", "a")
        assert "allocationTimestamp" in found["status"]["allocation"]
        assert "resource.kubernetes.io/delete-protection" in found["metadata"]["finalizers"]
        (user,) = found["status"]["reservedFor"]
        assert (user["resource"], user["name"]) == ("pods", "p")

        harness.create_pod("q", **claiming("c"))
        await bound(harness, "q")
        users = [each["name"] for each in (await claim(harness, "c"))["status"]["reservedFor"]]
        assert users == ["p", "q"]
        assert harness.app.cluster.devices.claims.pending_count == 0


@in_loop
async def test_pods_that_share_a_claim_do_not_get_into_each_others_way() -> None:
    async with scheduler() as harness:
        add_devices(harness, {"name": "a"})
        add_claim(harness, "c")
        harness.create_pod("p", **claiming("c"))
        await bound(harness, "p")
        others = [f"q{number}" for number in range(30)]
        for name in others:
            containers = [{"name": "c", "image": "i"}]
            harness.create_pod(name, containers=containers, **claiming("c"))
        for name in others:
            await bound(harness, name)
        users = [each["name"] for each in (await claim(harness, "c"))["status"]["reservedFor"]]
        assert sorted(users) == sorted(["p", *others])
        attempts = Exposed(harness.metrics.render()).series("scheduler_schedule_attempts_total")
        assert [labels["result"] for labels, _ in attempts] == ["scheduled"]


@in_loop
async def test_a_pod_waits_until_its_claim_is_there_and_devices_are_free() -> None:
    async with scheduler() as harness:
        add_devices(harness, {"name": "a"})
        harness.create_pod("p", **claiming("c"))
        add_claim(harness, "c")
        await bound(harness, "p")
        add_claim(harness, "d")
        harness.create_pod("q", **claiming("d"))
        await eventually(lambda: "cannot allocate all claims" in harness.message("q"))
        found = await claim(harness, "c")
        del found["status"]["allocation"], found["status"]["reservedFor"]
        await harness.app.client.put(path_of("c", "status"), found)
        await bound(harness, "q")


@in_loop
async def test_extended_resources_get_a_claim_of_their_own() -> None:
    async with scheduler() as harness:
        add_devices(harness, {"name": "a"}, {"name": "b"}, resource="example.com/gpu")
        amounts = {"example.com/gpu": "2"}
        container = {
            "name": "c",
            "image": "i",
            "resources": {"requests": amounts, "limits": amounts},
        }
        harness.create_pod("p", containers=[container])
        await bound(harness, "p")
        path = PODS.item("p", namespace="default")
        pod: Json = await harness.app.client.get(path, dict)
        status = pod["status"]["extendedResourceClaimStatus"]
        (mapping,) = status["requestMappings"]
        assert mapping == {
            "containerName": "c",
            "resourceName": "example.com/gpu",
            "requestName": "container-0-request-0",
        }
        made = await claim(harness, status["resourceClaimName"])
        assert made["metadata"]["annotations"] == {
            "resource.kubernetes.io/extended-resource-claim": "true"
        }
        assert made["metadata"]["ownerReferences"][0]["name"] == "p"
        results = made["status"]["allocation"]["devices"]["results"]
        assert [each["device"] for each in results] == ["a", "b"]
        creates = harness.metrics.dynamic_resource_allocation_resourceclaim_creates
        assert creates.labels("success", "false", "", "Pod").value == 1


@pytest.mark.parametrize("condition", ["Ready", "Broken"])
@in_loop
async def test_a_pod_is_bound_once_drivers_have_its_devices_ready(condition: str) -> None:
    ready = {"bindingConditions": ["Ready"], "bindingFailureConditions": ["Broken"]}
    async with scheduler() as harness:
        add_devices(harness, {"name": "a", **ready})
        add_claim(harness, "c")
        harness.create_pod("p", **claiming("c"))
        await eventually(lambda: known(harness, "c").status.allocation)
        assert harness.node_of("p") == ""
        found = await claim(harness, "c")
        said = {
            "type": condition,
            "status": "True",
            "reason": "Why",
            "message": "so",
            "lastTransitionTime": "2025-01-01T00:00:00Z",
        }
        about = {"driver": DRIVER, "pool": harness.app.cluster.table.name_at(0), "device": "a"}
        found["status"]["devices"] = [{**about, "conditions": [said]}]
        await harness.app.client.put(path_of("c", "status"), found)
        if condition == "Ready":
            await bound(harness, "p")
            return
        failed = "device binding failed: claim=c, reason=Why"
        await eventually(lambda: failed in harness.message("p"))
        # The next attempt gives the allocation up, as no other pod uses it, and what was said of
        # its devices goes with it.
        await eventually(lambda: not known(harness, "c").status.devices)


# --- a search that takes long -------------------------------------------------------------------


@in_loop
async def test_other_tasks_get_their_turn_while_devices_are_searched_for() -> None:
    short = {"name": "DynamicResources", "args": {"filterTimeout": "2s"}}
    profile = {"schedulerName": "default-scheduler", "pluginConfig": [short]}
    async with scheduler(profiles=[profile]) as harness:
        unlike = [
            {"name": f"d{n}", "attributes": {"a": {"int": n % 5}, "b": {"int": n}}}
            for n in range(30)
        ]
        add_devices(harness, *unlike)
        asked = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 3}
        constraints = [{"distinctAttribute": f"{DRIVER}/{name}"} for name in ("a", "b")]
        requests = [{"name": f"r{n}", "exactly": asked} for n in range(6)]
        devices = {"requests": requests, "constraints": constraints}
        create(harness.cluster, "ResourceClaim", "c", {"devices": devices})
        harness.create_pod("p", **claiming("c"))
        turns = 0
        while "timed out trying to allocate devices" not in harness.message("p"):
            turns += 1
            await asyncio.sleep(0.001)
        assert turns > 5


# --- claims of groups, and what devices take of nodes ---------------------------------------------


@in_loop
async def test_pods_that_share_a_claim_write_one_after_the_other() -> None:
    async with scheduler() as harness:
        add_devices(harness, {"name": "a"})
        add_claim(harness, "c")
        await eventually(lambda: known(harness, "c").metadata.uid)
        given = harness.app.cluster.devices.claims
        writer = ClaimWrites(harness.app.client, given, recorders=Recorders({}), clock=RealClock())
        user = ResourceClaimConsumerReference(
            api_group="scheduling.k8s.io", resource="podgroups", name="g", uid="g1"
        )
        got = DeviceRequestAllocationResult(request="r", driver=DRIVER, pool="x", device="a")
        allocation = AllocationResult(devices=DeviceAllocationResult(results=(got,)))
        stale = known(harness, "c")
        written = await asyncio.gather(
            *(
                writer.bind(stale, allocation, user, has_timestamp=False, is_shared=True)
                for _ in range(3)
            )
        )
        assert {each.metadata.resource_version for each in written} == {
            written[0].metadata.resource_version
        }
        found = await claim(harness, "c")
        assert [each["name"] for each in found["status"]["reservedFor"]] == ["g"]


@in_loop
async def test_a_pod_says_what_its_devices_take_of_its_node() -> None:
    async with scheduler(gates={"DRANodeAllocatableResources": True}) as harness:
        takes = {"cpu": {"mapping": {"deviceMultiplier": "2"}, "overhead": {"perPod": "100m"}}}
        add_devices(harness, {"name": "a", "nodeAllocatableResources": takes})
        add_claim(harness, "c")
        harness.create_pod("p", **claiming("c"))
        await bound(harness, "p")
        pod: Json = await harness.app.client.get(PODS.item("p", namespace="default"), dict)
        (status,) = pod["status"]["nodeAllocatableResourceClaimStatuses"]
        assert status["resourceClaimName"] == "c"
        assert status["mapping"] == [{"name": "cpu", "quantity": "2"}]
        assert status["overhead"] == [{"name": "cpu", "perPod": "100m"}]
        table = harness.app.cluster.table
        cpu = table.resources.find("cpu")
        assert cpu is not None
        await eventually(lambda: table.requested.item(cpu, 0) == 1000 + 2100)
