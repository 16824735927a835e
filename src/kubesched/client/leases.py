"""One Lease of coordination.k8s.io/v1: read it, create it, replace it.

    get() ──> Lease(raw, record) ──> update(lease, fields of the spec) ──> Lease

The Lease is kept as it was read. Others may have added labels, annotations or unknown fields of the
spec, and a PUT replaces everything: so an update names the fields of the spec that change, and
sends the rest back unchanged.
"""

from __future__ import annotations

from typing import Any, Self

import msgspec
from msgspec import Struct

from kubesched.api.decoding import convert
from kubesched.client import resources
from kubesched.client.meta import ObjectReference, WireStruct
from kubesched.client.rest import ApiClient
from kubesched.errors import ClientError, NotFoundError

JsonObject = dict[str, Any]

_KIND = "Lease"


class LeaseRecord(WireStruct, frozen=True):
    """The fields that an election reads; equal records mean no renewal in between."""

    #: "": no holder
    holder_identity: str = ""
    lease_duration_seconds: int = 0
    acquire_time: str = ""
    renew_time: str = ""
    lease_transitions: int = 0
    strategy: str = ""
    preferred_holder: str = ""


class Lease(Struct, frozen=True, gc=False):
    """A Lease as it was read, and its record."""

    raw: JsonObject
    record: LeaseRecord

    @classmethod
    def of(cls, raw: JsonObject) -> Self:
        """Decode a Lease; raises ClientError if it is none."""
        spec = raw.get("spec")
        try:
            return cls(raw, convert(spec if isinstance(spec, dict) else {}, LeaseRecord))
        except msgspec.ValidationError as error:
            raise ClientError(f"the Lease cannot be read: {error}") from error

    def with_spec(self, changes: JsonObject) -> JsonObject:
        """Return the whole object with some fields of its spec changed."""
        return {**self.raw, "spec": {**(self.raw.get("spec") or {}), **changes}}

    def reference(self) -> ObjectReference:
        """Return a reference to the Lease, as events carry it."""
        meta = self.raw.get("metadata") or {}
        return ObjectReference(
            kind=_KIND,
            api_version=resources.LEASES.api_version,
            namespace=str(meta.get("namespace", "")),
            name=str(meta.get("name", "")),
            uid=str(meta.get("uid", "")),
            resource_version=str(meta.get("resourceVersion", "")),
        )


class LeaseClient:
    """Requests for one Lease; failures are the client's exceptions."""

    def __init__(self, client: ApiClient, *, namespace: str, name: str, timeout_s: float) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._path = resources.LEASES.item(name, namespace=namespace)
        self._timeout_s = timeout_s

    def __str__(self) -> str:
        return f"{self._namespace}/{self._name}"

    async def get(self) -> Lease | None:
        """Read the Lease; None if there is none."""
        try:
            raw = await self._client.get(self._path, dict[str, Any], timeout_s=self._timeout_s)
        except NotFoundError:
            return None
        return Lease.of(raw)

    async def create(self, spec: JsonObject) -> Lease:
        """Create the Lease; raises AlreadyExistsError if another replica was faster."""
        body = {
            "apiVersion": resources.LEASES.api_version,
            "kind": _KIND,
            "metadata": {"name": self._name, "namespace": self._namespace},
            "spec": spec,
        }
        path = resources.LEASES.collection(self._namespace)
        return Lease.of(
            await self._client.post(path, body, type=dict[str, Any], timeout_s=self._timeout_s)
        )

    async def update(self, lease: Lease, changes: JsonObject) -> Lease:
        """Change fields of the spec; raises ConflictError if `lease` is not the newest version."""
        body = lease.with_spec(changes)
        return Lease.of(
            await self._client.put(self._path, body, type=dict[str, Any], timeout_s=self._timeout_s)
        )
