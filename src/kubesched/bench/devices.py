"""Devices and claims: the parts of a driver and a controller that pods need.

    nodes ──> one ResourceSlice each          pod with a claim template ──> claim ──> pod's status

In a cluster, a controller creates a claim for each template that a pod names, and writes its name
to the pod's status. None runs here, so the creator of the pod does it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from fnmatch import fnmatchcase

from kubesched.bench.api_objects import BenchObjects, Named, each_of
from kubesched.bench.creation import Asked, Done
from kubesched.bench.operations import CreateResourceDriver, JsonObject
from kubesched.client.resources import NODES, PODS, RESOURCE_CLAIMS

_VERSION = "resource.k8s.io/v1"
_POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"


async def create_slices(objects: BenchObjects, operation: CreateResourceDriver) -> None:
    """Create the devices of a driver on all nodes that match."""
    nodes = (await objects.read(NODES.collection()))["items"]
    names = [str(each["metadata"]["name"]) for each in nodes]

    async def create(name: str) -> None:
        made = slice_of(operation.driver, name, devices=operation.devices_per_node)
        await objects.create(made)

    await each_of([name for name in names if fnmatchcase(name, operation.nodes)], create)


def slice_of(driver: str, node_name: str, *, devices: int) -> JsonObject:
    """All devices of a driver on a node."""
    return {
        "apiVersion": _VERSION,
        "kind": "ResourceSlice",
        "metadata": {"name": node_name},
        "spec": {
            "driver": driver,
            "nodeName": node_name,
            "pool": {"name": node_name, "generation": 0, "resourceSliceCount": 1},
            "devices": [_device(number) for number in range(devices)],
        },
    }


def _device(number: int) -> JsonObject:
    """A device with the attributes that scheduler_perf's selectors use."""
    return {
        "name": f"instance-{number}",
        "attributes": {
            "model": {"string": "A100"},
            "family": {"string": "GPU"},
            "driverVersion": {"version": "1.2.3"},
            "dra.example.com/numa": {"int": number},
        },
        "capacity": {"memory": {"value": "1Gi"}},
    }


def claim_templates_of(pod: JsonObject) -> dict[str, str]:
    """The templates that a pod names, by the names of its claims."""
    return {
        str(each["name"]): str(each["resourceClaimTemplateName"])
        for each in pod.get("spec", {}).get("resourceClaims") or ()
        if each.get("resourceClaimTemplateName")
    }


class ClaimMaker:
    """Creates pods, and a claim of each template that they name."""

    def __init__(self, objects: BenchObjects, namespace: str) -> None:
        self._objects = objects
        self._namespace = namespace
        self._specs: dict[str, JsonObject] = {}
        #: pod → its claims
        self._made: dict[str, list[str]] = {}

    async def create(self, pods: Sequence[JsonObject], *, done: Done, asked: Asked) -> None:
        """Create these pods with their claims."""
        await each_of(pods, lambda pod: self.create_one(pod, asked=asked), done=done)

    async def create_one(self, pod: JsonObject, *, asked: Asked) -> None:
        """Create a pod with its claims."""
        asked_at_s = time.perf_counter()
        made = await self._objects.create(pod, namespace=self._namespace)
        asked(made.metadata.uid, asked_at_s)
        if templates := claim_templates_of(pod):
            await self._claim(made, templates)

    def taken(self, pod: str) -> list[str]:
        """Return the claims of a pod that is gone, and forget them."""
        return self._made.pop(pod, [])

    async def _claim(self, pod: Named, templates: dict[str, str]) -> None:
        statuses = []
        for name, template in templates.items():
            spec = await self._spec_of(template)
            claim = await self._objects.create(claim_of(pod, name, spec), namespace=self._namespace)
            statuses.append({"name": name, "resourceClaimName": claim.metadata.name})
        self._made[pod.metadata.name] = [each["resourceClaimName"] for each in statuses]
        path = PODS.item(pod.metadata.name, namespace=self._namespace)
        await self._objects.patch_status(path, {"resourceClaimStatuses": statuses})

    async def _spec_of(self, template: str) -> JsonObject:
        if template not in self._specs:
            folder = f"/apis/{_VERSION}/namespaces/{self._namespace}/resourceclaimtemplates"
            self._specs[template] = (await self._objects.read(f"{folder}/{template}"))["spec"]
        return self._specs[template]


async def release_claims(objects: BenchObjects, namespace: str, names: Sequence[str]) -> None:
    """Delete claims whose pod is gone, and what protects them."""
    for name in names:
        path = RESOURCE_CLAIMS.item(name, namespace=namespace)
        await objects.patch(path, {"metadata": {"finalizers": None}})
        await objects.delete(path)


def claim_of(pod: Named, name: str, template_spec: JsonObject) -> JsonObject:
    """The claim that a pod owns by one of its names."""
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": pod.metadata.name,
        "uid": pod.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    metadata = template_spec.get("metadata") or {}
    return {
        "apiVersion": _VERSION,
        "kind": "ResourceClaim",
        "metadata": {
            "generateName": f"{pod.metadata.name}-{name}-",
            "labels": metadata.get("labels") or {},
            "annotations": {**(metadata.get("annotations") or {}), _POD_CLAIM_NAME: name},
            "ownerReferences": [owner],
        },
        "spec": template_spec["spec"],
    }
