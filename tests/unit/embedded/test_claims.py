"""Claims of devices: made from templates, released and deleted with their pods."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kubesched.clock import VirtualClock
from kubesched.embedded.claims import DEVICE_CLAIMS, FINALIZER, ClaimController
from kubesched.embedded.cluster import EmbeddedCluster
from kubesched.embedded.deletion import ObjectDeletion
from kubesched.embedded.registry import Where
from kubesched.embedded.resources import PODS
from kubesched.embedded.schemas import DeleteOptions
from kubesched.embedded.versions import Version
from tests.support.waiting import eventually

JsonObject = dict[str, Any]

REQUESTS = [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]
RESULT = {"request": "r", "driver": "d", "pool": "p", "device": "gpu-0"}


class World:
    """A cluster whose claim controller is shown everything after each step."""

    def __init__(self) -> None:
        self.cluster = EmbeddedCluster(clock=VirtualClock(1_767_323_045.0), run_kubelet=False)
        self.store = self.cluster.store
        self.deletion = ObjectDeletion(self.cluster.registry)
        self.controller = ClaimController(self.cluster.registry, self.deletion)

    def notice(self) -> None:
        """Let the controller look at everything that there is, and at what is gone."""
        pods = [*self.store.collection(PODS).keys(), "default/p", "default/q"]
        for key in pods:
            self.controller.look_at_pod(key)
        for key in list(self.store.collection(DEVICE_CLAIMS).keys()):
            self.controller.look_at_claim(key)

    def template(self, **meta: Any) -> None:
        spec = {"metadata": meta, "spec": {"devices": {"requests": REQUESTS}}}
        self.cluster.create(resource("ResourceClaimTemplate", "t", spec))
        self.controller.look_at_template("default/t")
        self.notice()

    def claim(self, name: str) -> None:
        self.cluster.create(resource("ResourceClaim", name, {"devices": {"requests": REQUESTS}}))
        self.notice()

    def pod(self, name: str = "p", *, node: str = "", **source: str) -> JsonObject:
        spec: JsonObject = {
            "containers": [{"name": "c", "image": "i"}],
            "resourceClaims": [{"name": "gpu", **source}],
        }
        if node:
            spec["nodeName"] = node
        obj = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        created = self.cluster.create(obj)
        self.notice()
        return created

    def allocate(self, claim: Version, *pods: JsonObject) -> None:
        """Allocate a claim for pods, as a scheduler does."""
        metas = [pod["metadata"] for pod in pods]
        users = [{"resource": "pods", "name": m["name"], "uid": m["uid"]} for m in metas]
        status = {"allocation": {"devices": {"results": [RESULT]}}, "reservedFor": users}
        meta = {**claim.obj["metadata"], "finalizers": [FINALIZER]}
        self.store.replace(DEVICE_CLAIMS, claim, {**claim.obj, "metadata": meta, "status": status})
        self.notice()

    def finish(self, name: str) -> None:
        pod = self.store.get(PODS, f"default/{name}")
        assert pod is not None
        status = {**pod.obj["status"], "phase": "Succeeded"}
        meta = dict(pod.obj["metadata"])
        self.store.replace(PODS, pod, {**pod.obj, "metadata": meta, "status": status})
        self.notice()

    def delete(self, name: str) -> None:
        options = DeleteOptions(grace_period_seconds=0)
        self.deletion.delete(Where(PODS, "default", name), options)
        self.notice()

    @property
    def claims(self) -> list[Version]:
        return list(self.store.collection(DEVICE_CLAIMS).versions())


def resource(kind: str, name: str, spec: JsonObject) -> JsonObject:
    meta = {"name": name}
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": meta, "spec": spec}


@pytest.fixture
def world() -> World:
    return World()


def test_a_pod_gets_a_claim_of_its_own_from_a_template(world: World) -> None:
    world.template(labels={"team": "a"})
    pod = world.pod(resourceClaimTemplateName="t")

    (claim,) = world.claims
    meta = claim.obj["metadata"]
    assert meta["name"].startswith("p-gpu-")
    assert meta["labels"] == {"team": "a"}
    assert meta["annotations"] == {"resource.kubernetes.io/pod-claim-name": "gpu"}
    (owner,) = meta["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("Pod", pod["metadata"]["uid"])
    (request,) = claim.obj["spec"]["devices"]["requests"]
    assert request["exactly"]["count"] == 1
    version = world.store.get(PODS, "default/p")
    assert version is not None
    assert version.obj["status"]["resourceClaimStatuses"] == [
        {"name": "gpu", "resourceClaimName": meta["name"]}
    ]


def test_it_is_made_once(world: World) -> None:
    world.template()
    world.pod(resourceClaimTemplateName="t")
    world.notice()

    assert len(world.claims) == 1


def test_a_pod_waits_for_its_template(world: World) -> None:
    world.pod(resourceClaimTemplateName="t")
    assert world.claims == []

    world.template()

    assert len(world.claims) == 1


def test_long_names_are_shortened(world: World) -> None:
    world.template()
    world.pod("a" * 60, resourceClaimTemplateName="t")

    (claim,) = world.claims
    assert len(claim.obj["metadata"]["name"]) <= 63


def test_a_claim_made_for_a_pod_goes_when_the_pod_is_over(world: World) -> None:
    world.template()
    pod = world.pod(node="n", resourceClaimTemplateName="t")
    world.allocate(world.claims[0], pod)

    world.finish("p")

    assert world.claims == []


def test_a_claim_made_for_a_pod_goes_with_the_pod(world: World) -> None:
    world.template()
    pod = world.pod(resourceClaimTemplateName="t")
    world.allocate(world.claims[0], pod)

    world.delete("p")

    assert world.claims == []


def test_a_shared_claim_is_free_when_its_last_pod_is_over(world: World) -> None:
    world.claim("shared")
    pods = [world.pod(name, node="n", resourceClaimName="shared") for name in ("p", "q")]
    world.allocate(world.claims[0], *pods)

    world.finish("p")
    (claim,) = world.claims
    assert [user["name"] for user in claim.obj["status"]["reservedFor"]] == ["q"]
    assert "allocation" in claim.obj["status"]

    world.delete("q")
    (claim,) = world.claims
    assert claim.obj["status"] == {}
    assert "finalizers" not in claim.obj["metadata"]


def test_a_deleted_claim_stays_while_a_pod_uses_it(world: World) -> None:
    world.claim("shared")
    pod = world.pod(node="n", resourceClaimName="shared")
    world.allocate(world.claims[0], pod)
    world.deletion.delete(Where(DEVICE_CLAIMS, "default", "shared"), DeleteOptions())
    world.notice()
    assert len(world.claims) == 1

    world.finish("p")

    assert world.claims == []


def test_users_that_are_no_pods_are_left_alone(world: World) -> None:
    world.claim("shared")
    (claim,) = world.claims
    user = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "u"}
    status = {"allocation": {"devices": {"results": [RESULT]}}, "reservedFor": [user]}
    world.store.replace(DEVICE_CLAIMS, claim, {**claim.obj, "status": status})

    world.notice()

    assert world.claims[0].obj["status"]["reservedFor"] == [user]


def test_it_runs_with_the_kubelet() -> None:
    async def scenario() -> None:
        async with EmbeddedCluster() as cluster:
            spec = {"spec": {"devices": {"requests": REQUESTS}}}
            cluster.create(resource("ResourceClaimTemplate", "t", spec))
            pod = {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "p"},
                "spec": {
                    "containers": [{"name": "c", "image": "i"}],
                    "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}],
                },
            }
            cluster.create(pod)
            await eventually(lambda: len(cluster.store.collection(DEVICE_CLAIMS)) == 1)

    asyncio.run(scenario())
