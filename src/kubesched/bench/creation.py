"""Creates nodes, pods, and pods with volumes, concurrently.

template ──(index)──> object with its name, labels, allocatable ──> POST
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from copy import deepcopy
from typing import TypeVar

import msgspec

from kubesched.bench import operations as ops
from kubesched.bench.api_objects import BenchObjects, each_of
from kubesched.bench.objects import HOSTNAME
from kubesched.bench.operations import JsonObject, Template
from kubesched.client.resources import NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from kubesched.kinds import KINDS

T = TypeVar("T")
Done = Callable[[int], None]
#: Called with a pod's uid, and when its creation was requested.
Asked = Callable[[str, float], None]

_MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"


class NodeMaker:
    """Creates nodes; numbers go on from one operation to the next."""

    def __init__(self, objects: BenchObjects) -> None:
        self._objects = objects
        self._next = 0

    async def create(self, operation: ops.CreateNodes, done: Done) -> None:
        """Create the nodes of an operation, and the objects that belong to them."""
        numbers = range(operation.count)

        async def create(index: int) -> None:
            made = node_of(operation, index, number=self._next + index)
            await self._objects.post(NODES.collection(), msgspec.json.encode(made))
            if isinstance(operation.preparation, ops.AllocateOnNodes):
                csi = csi_node_of(operation.preparation, made["metadata"]["name"])
                path = KINDS["CSINode"].path.collection()
                await self._objects.post(path, msgspec.json.encode(csi))

        await each_of(numbers, create, done=done)
        self._next += operation.count


def node_of(operation: ops.CreateNodes, index: int, *, number: int) -> JsonObject:
    """The node of an index: named, with its hostname, and prepared."""
    made = deepcopy(operation.template(index, operation.count))
    metadata = made.setdefault("metadata", {})
    name = metadata.get("name") or f"{metadata.pop('generateName', 'node-')}{number:05d}"
    metadata["name"] = name
    labels = metadata["labels"] = {**(metadata.get("labels") or {}), HOSTNAME: name}
    status = made.setdefault("status", {})
    # The API server's default.
    status.setdefault("allocatable", dict(status.get("capacity") or {}))
    match operation.preparation:
        case ops.LabelNodes(key=key, values=values):
            labels[key] = values[index % len(values)]
        case ops.LabelNodesUniquely(key=key):
            labels[key] = str(uuid.uuid4())
        case ops.AllocateOnNodes(allocatable=allocatable):
            status["allocatable"] = {**status["allocatable"], **allocatable}
    return made


def csi_node_of(preparation: ops.AllocateOnNodes, name: str) -> JsonObject:
    """The CSINode of a node."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {
            "name": name,
            "annotations": {_MIGRATED: ",".join(preparation.migrated_plugins)},
        },
        "spec": {
            "drivers": [
                {"name": driver, "nodeID": name, "allocatable": allocatable}
                for driver, allocatable in preparation.csi_drivers.items()
            ]
        },
    }


async def create_pods(
    objects: BenchObjects, namespace: str, bodies: Sequence[bytes], *, done: Done, asked: Asked
) -> None:
    """Create encoded pods; ``asked`` is called with each."""
    path = PODS.collection(namespace)

    async def create(body: bytes) -> None:
        asked_at_s = time.perf_counter()
        made = await objects.post(path, body)
        asked(made.metadata.uid, asked_at_s)

    await each_of(bodies, create, done=done)


class VolumeMaker:
    """Creates pods each with a claim and a volume that are bound to each other."""

    def __init__(
        self, objects: BenchObjects, volume: Template, claim: Template, namespace: str
    ) -> None:
        self._objects = objects
        self._volume = volume
        self._claim = claim
        self._namespace = namespace

    async def create(self, pods: Sequence[JsonObject], *, done: Done, asked: Asked) -> None:
        """Create these pods with their claims and volumes."""

        async def create(index: int) -> None:
            claim = await self._create_claim(index, len(pods))
            pod = _with_claim(pods[index], claim)
            asked_at_s = time.perf_counter()
            made = await self._objects.create(pod, namespace=self._namespace)
            asked(made.metadata.uid, asked_at_s)

        await each_of(range(len(pods)), create, done=done)

    async def _create_claim(self, index: int, count: int) -> str:
        claim_name = f"pvc-{index}"
        volume_name = f"{self._namespace}-vol-{index}"
        claim = claim_of(self._claim(index, count), claim_name, volume_name)
        volume = volume_of(
            self._volume(index, count), volume_name, namespace=self._namespace, claim=claim_name
        )
        claims = PERSISTENT_VOLUME_CLAIMS
        await self._objects.create(claim, namespace=self._namespace)
        await self._objects.patch_status(
            claims.item(claim_name, namespace=self._namespace), {"phase": "Bound"}
        )
        await self._objects.create(volume)
        await self._objects.patch_status(PERSISTENT_VOLUMES.item(volume_name), {"phase": "Bound"})
        return claim_name


def claim_of(template: JsonObject, name: str, volume_name: str) -> JsonObject:
    """A claim for one volume."""
    return {
        **template,
        "metadata": {**(template.get("metadata") or {}), "name": name},
        "spec": {**template["spec"], "volumeName": volume_name},
    }


def volume_of(template: JsonObject, name: str, *, namespace: str, claim: str) -> JsonObject:
    """A volume for one claim; its handle is its name."""
    reference = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": namespace,
        "name": claim,
    }
    spec = {**template["spec"], "claimRef": reference}
    if "csi" in spec:
        spec["csi"] = {**spec["csi"], "volumeHandle": name}
    elif "awsElasticBlockStore" in spec:
        spec["awsElasticBlockStore"] = {**spec["awsElasticBlockStore"], "volumeID": name}
    metadata = {**(template.get("metadata") or {}), "name": name}
    return {**template, "metadata": metadata, "spec": spec}


def _with_claim(pod: JsonObject, claim_name: str) -> JsonObject:
    volume = {"name": "vol", "persistentVolumeClaim": {"claimName": claim_name}}
    return {**pod, "spec": {**pod["spec"], "volumes": [volume]}}


async def paced(
    things: Sequence[T], do: Callable[[T], Awaitable[None]], *, per_second: float
) -> None:
    """Process items at a rate per second."""
    started = time.monotonic()
    for number, thing in enumerate(things, start=1):
        await asyncio.sleep(max(0.0, started + number / per_second - time.monotonic()))
        await do(thing)
