"""What a scheduler writes about claims, without deciding anything: the limit of the API server.

    claim ──> finalizer ──> allocation of devices that need not exist, and reservation

The requests are those of a scheduler, in number and in size. Devices have the names of the claim,
so that no two claims get the same.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Any

from msgspec import Struct

from kubesched.bench.pod_tracker import SeenMeta, SeenPod
from kubesched.client.informer import Informer
from kubesched.client.resources import RESOURCE_CLAIMS
from kubesched.client.rest import JSON_PATCH, ApiClient

_FINALIZER = "resource.kubernetes.io/delete-protection"
_DRIVER = "null.kubesched.example"


class SeenRequest(Struct, frozen=True, gc=False, rename="camel"):
    """A request of a claim: its name, how many devices, and its alternatives."""

    name: str = ""
    count: int = 1
    exactly: SeenRequest | None = None
    first_available: tuple[SeenRequest, ...] = ()


class SeenDevices(Struct, frozen=True, gc=False, rename="camel"):
    """The requests of a claim."""

    requests: tuple[SeenRequest, ...] = ()


class SeenClaimSpec(Struct, frozen=True, gc=False, rename="camel"):
    """Spec of a claim."""

    devices: SeenDevices = SeenDevices()


class SeenClaimMeta(Struct, frozen=True, gc=False, rename="camel"):
    """Metadata of a claim."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class SeenResourceClaim(Struct, frozen=True, gc=False, rename="camel"):
    """A claim, with the fields that a write needs."""

    metadata: SeenClaimMeta
    spec: SeenClaimSpec = SeenClaimSpec()
    status: dict[str, Any] = {}


class _Ignoring:
    def on_add(self, obj: SeenResourceClaim, initial: bool) -> None:
        pass

    def on_update(self, old: SeenResourceClaim, new: SeenResourceClaim) -> None:
        pass

    def on_delete(self, obj: SeenResourceClaim) -> None:
        pass


class NullClaims:
    """Writes claims of pods as a scheduler would."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self.informer = Informer(client, RESOURCE_CLAIMS, SeenResourceClaim, handler=_Ignoring())
        #: claim → whose turn it is to write it, and what was written
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._written: dict[str, SeenResourceClaim] = {}

    async def write(self, pod: SeenPod, node_name: str) -> None:
        """Allocate and reserve the claims of a pod."""
        for name in pod.claims:
            path = RESOURCE_CLAIMS.item(name, namespace=pod.metadata.namespace)
            async with self._turns[path]:
                await self._write(path, name, pod.metadata, node_name)

    async def _write(self, path: str, name: str, pod: SeenMeta, node_name: str) -> None:
        claim = self._written.get(path) or self.informer.get(name, namespace=pod.namespace)
        if claim is None:
            claim = await self._client.get(path, SeenResourceClaim)
        user = {"resource": "pods", "name": pod.name, "uid": pod.uid}
        status: dict[str, Any] = {"reservedFor": [*claim.status.get("reservedFor", ()), user]}
        if not claim.status.get("allocation"):
            body = [{"op": "add", "path": "/metadata/finalizers", "value": [_FINALIZER]}]
            await self._client.patch(path, body, content_type=JSON_PATCH)
            status["allocation"] = _allocation(claim, node_name)
        self._written[path] = await self._client.patch(
            f"{path}/status", {"status": status}, type=SeenResourceClaim
        )


def _allocation(claim: SeenResourceClaim, node_name: str) -> dict[str, Any]:
    results = [
        {"request": name, "driver": _DRIVER, "pool": node_name, "device": f"{base}-{number}"}
        for base, (name, count) in enumerate(map(_asked, claim.spec.devices.requests))
        for number in range(count)
    ]
    for each in results:
        each["device"] = f"{claim.metadata.uid[:8]}-{each['device']}"
    fields = [{"key": "metadata.name", "operator": "In", "values": [node_name]}]
    return {
        "devices": {"results": results},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": fields}]},
    }


def _asked(request: SeenRequest) -> tuple[str, int]:
    """Return the name and the count of what is asked for first."""
    if request.first_available:
        first = request.first_available[0]
        return f"{request.name}/{first.name}", first.count
    exactly = request.exactly
    return request.name, 1 if exactly is None else exactly.count
