"""What the scheduler writes about claims to devices: what they get, and which pods may use them.

    ResourceClaim   finalizer, status.allocation, status.reservedFor
    Pod             which claim serves its extended resources, and what claims take of its node

Only what changes is sent, as a patch that names the version the decision was made from. If
another client has changed the claim meanwhile, it is read again, and looked at again: most such
changes do no harm.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine
from typing import Any, Final
from weakref import WeakValueDictionary

import msgspec
from msgspec.structs import replace

from kubesched import logs
from kubesched.api.core import Pod, PodExtendedResourceClaimStatus
from kubesched.api.decoding import decoder_of
from kubesched.api.resource import (
    AllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
)
from kubesched.client import resources
from kubesched.client.protobuf_meta import PROTOBUF, resource_version, with_finalizers
from kubesched.client.rest import JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, ApiClient
from kubesched.clock import Clock
from kubesched.cluster.pod_info import Claimed
from kubesched.cluster.resource_claims import ClaimKey, ResourceClaims, is_newer
from kubesched.errors import (
    ClientError,
    ConflictError,
    InvalidError,
    NotFoundError,
    ObjectError,
)
from kubesched.scheduler.claim_waiting import ClaimWaiting
from kubesched.scheduler.recorders import Recorders
from kubesched.scheduler.tasks import Tasks
from kubesched.scheduler.timestamps import rfc3339

_log = logs.get_logger(__name__)

#: The finalizer that keeps a claim until its devices are deallocated.
FINALIZER: Final = "resource.kubernetes.io/delete-protection"
#: What objects are called in logs.
_KINDS: Final[dict[type, str]] = {ResourceClaim: "resourceclaim", Pod: "pod"}
#: Pauses between the tries of a write that met a conflict.
RETRY_PAUSES_S: Final = (0.01, 0.01, 0.01, 0.01)


class ClaimWrites:
    """Writes decisions about claims and waits for what becomes of them."""

    def __init__(
        self, client: ApiClient, claims: ResourceClaims, *, recorders: Recorders, clock: Clock
    ) -> None:
        self._client = client
        self._claims = claims
        self._recorders = recorders
        self._clock = clock
        #: writes that no pod waits for
        self.tasks = Tasks()
        #: uid of a claim → the lock for changing it, while a writer holds or awaits it
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        #: the tasks that wait for a change of a claim
        self._waiting = ClaimWaiting()
        claims.listeners.append(self._waiting.changed)

    # --- claims of a pod that is about to be bound ----------------------------------------------

    async def bind(
        self,
        claim: ResourceClaim,
        allocation: AllocationResult | None,
        user: ResourceClaimConsumerReference,
        *,
        has_timestamp: bool,
        is_shared: bool = False,
    ) -> ResourceClaim:
        """Write an allocation, if there is one, and that a pod may use it; return the claim then.

        With `is_shared` the pods of a group share the claim: all but the first find what it
        wrote. Raises ObjectError if the claim is not as it was, or cannot be written.
        """

        async def write(newest: ResourceClaim) -> ResourceClaim:
            return await self._bind(newest, allocation, user, has_timestamp=has_timestamp)

        # Of many pods that share a claim, one after the other changes what the last one left:
        # at once, they would all meet conflicts, until they may try no more.
        async with self._turns.setdefault(claim.metadata.uid, asyncio.Lock()):
            newest = self._newest(claim)
            if is_shared:
                if any(each.uid == user.uid for each in newest.status.reserved_for):
                    return newest
                if newest.status.allocation is not None:
                    allocation = None
            written = await self._on_newest(newest, write)
            self._claims.written(written)
            return written

    def _newest(self, claim: ResourceClaim) -> ResourceClaim:
        """Return the newest version of a claim that was received."""
        known = self._claims.get(claim.metadata.namespace, claim.metadata.name)
        return claim if known is None or not is_newer(known, claim) else known

    async def _on_newest(
        self,
        claim: ResourceClaim,
        write: Callable[[ResourceClaim], Coroutine[Any, Any, ResourceClaim]],
    ) -> ResourceClaim:
        """Write to a claim; if it has changed, read it and try again."""
        for pause_s in (*RETRY_PAUSES_S, None):
            try:
                return await write(claim)
            except _ConflictError as conflict:
                if pause_s is None:
                    raise ObjectError(str(conflict)) from conflict
                await asyncio.sleep(pause_s)
            try:
                claim = await self._client.get(_path(claim), ResourceClaim)
            except ClientError as failed:
                text = f"get updated claim {_shown(claim)} after conflict: {failed}"
                raise ObjectError(text) from failed
        raise AssertionError("unreachable")

    async def _bind(
        self,
        claim: ResourceClaim,
        allocation: AllocationResult | None,
        user: ResourceClaimConsumerReference,
        *,
        has_timestamp: bool,
    ) -> ResourceClaim:
        shown = _shown(claim)
        if claim.metadata.deletion_timestamp is not None:
            raise ObjectError(f"claim {shown} got deleted in the meantime")
        doing = f"add reservation to claim {shown}"
        if allocation is not None:
            if claim.status.allocation is not None:
                raise ObjectError(f"claim {shown} got allocated elsewhere in the meantime")
            if FINALIZER not in claim.metadata.finalizers:
                finalizers = [*claim.metadata.finalizers, FINALIZER]
                claim = await self._finalize(claim, finalizers, f"add finalizer to claim {shown}")
            doing = f"add allocation and reservation to claim {shown}"
        given = allocation or claim.status.allocation
        if given is None and has_timestamp:
            raise ObjectError(f"claim {shown} got deallocated elsewhere in the meantime")
        status: dict[str, Any] = {
            "reservedFor": msgspec.to_builtins((*claim.status.reserved_for, user))
        }
        if given is not None:
            if has_timestamp and given.allocation_timestamp is None:
                given = replace(given, allocation_timestamp=rfc3339(self._clock.time()))
            if given is not claim.status.allocation:
                status["allocation"] = msgspec.to_builtins(given)
        body = {"metadata": _version(claim), "status": status}
        return await self._patch(_path(claim, "status"), body, doing)

    async def _finalize(
        self, claim: ResourceClaim, finalizers: list[str], doing: str
    ) -> ResourceClaim:
        """Write the finalizers of a claim.

        As a JSON patch: of all kinds of patches it alone leaves the rest as it is, byte by byte.
        The parameters of drivers are immutable down to the order of their keys.
        """
        body = [
            {"op": "add", "path": f"/metadata/{name}", "value": value}
            for name, value in {**_version(claim), "finalizers": finalizers}.items()
        ]
        try:
            return await self._patch(_path(claim), body, doing, content_type=JSON_PATCH)
        except _InvalidError:
            # Blanks among the parameters are lost in JSON, which counts as a change of them.
            return await self._finalize_in_protobuf(claim, finalizers, doing)

    async def _finalize_in_protobuf(
        self, claim: ResourceClaim, finalizers: list[str], doing: str
    ) -> ResourceClaim:
        path = _path(claim)
        try:
            found = await self._client.request("GET", path, content_type=PROTOBUF)
            if resource_version(found.body) != claim.metadata.resource_version:
                raise _ConflictError(f"{doing}: the claim has changed")
            body = with_finalizers(found.body, finalizers)
            answer = await self._client.request("PUT", path, body=body, content_type=PROTOBUF)
            return decoder_of(ResourceClaim).decode(answer.body)
        except ConflictError as conflict:
            raise _ConflictError(f"{doing}: {conflict}") from conflict
        except ClientError as failed:
            raise ObjectError(f"{doing}: {failed}") from failed

    async def _patch(
        self, path: str, body: object, doing: str, *, content_type: str = MERGE_PATCH
    ) -> ResourceClaim:
        try:
            return await self._client.patch(
                path, body, content_type=content_type, type=ResourceClaim
            )
        except ConflictError as conflict:
            raise _ConflictError(f"{doing}: {conflict}") from conflict
        except InvalidError as refused:
            raise _InvalidError(f"{doing}: {refused}") from refused
        except ClientError as failed:
            raise ObjectError(f"{doing}: {failed}") from failed

    async def create(self, claim: ResourceClaim) -> ResourceClaim:
        """Create a claim; raises ClientError if that fails."""
        path = resources.RESOURCE_CLAIMS.collection(claim.metadata.namespace)
        body = {
            "apiVersion": resources.RESOURCE_CLAIMS.api_version,
            "kind": "ResourceClaim",
            **msgspec.to_builtins(claim),
        }
        return await self._client.post(path, body, type=ResourceClaim)

    async def map_extended_resources(
        self, pod: Pod, status: PodExtendedResourceClaimStatus
    ) -> None:
        """Write to a pod's status which claim serves its extended resources."""
        body = {
            "metadata": {"uid": pod.metadata.uid},
            "status": {"extendedResourceClaimStatus": msgspec.to_builtins(status)},
        }
        await self._client.patch(_status_path(pod), body, content_type=STRATEGIC_MERGE_PATCH)

    async def claim_resources(self, pod: Pod, claimed: Claimed) -> None:
        """Write to a pod's status what its claims take of its node's own resources."""
        status = {"nodeAllocatableResourceClaimStatuses": msgspec.to_builtins(claimed)}
        body = {"metadata": {"uid": pod.metadata.uid}, "status": status}
        await self._client.patch(_status_path(pod), body, content_type=STRATEGIC_MERGE_PATCH)

    def announce_waiting(self, pod: Pod, node_name: str) -> None:
        """Report in an event that a pod waits until drivers get its devices ready."""
        self._recorders.normal(
            pod,
            reason="BindingConditionsPending",
            action="Scheduling",
            note=f"waiting for binding conditions for device on node {node_name}",
        )

    async def poll(
        self,
        check: Callable[[], bool],
        *,
        claims: Collection[ClaimKey],
        timeout_s: float,
        interval_s: float,
    ) -> bool:
        """Ask until the answer is yes; False if that does not happen in time."""
        return await self._waiting.until(
            check, claims=claims, timeout_s=timeout_s, interval_s=interval_s
        )

    # --- in the background ------------------------------------------------------------------------

    def deallocate(self, claim: ResourceClaim) -> None:
        """Give up the allocation of a claim, unless it has changed meanwhile."""
        body = {
            "metadata": _version(claim),
            "status": {"allocation": None, "reservedFor": None, "devices": None},
        }
        self._start("deallocate", claim, self._client.patch(_path(claim, "status"), body))

    def unclaim_resources(self, pod: Pod) -> None:
        """Clear what a pod's status declares of its node's own resources."""
        # An empty list clears the field; a missing field would leave it.
        body = {
            "metadata": {"uid": pod.metadata.uid},
            "status": {"nodeAllocatableResourceClaimStatuses": []},
        }
        self._start("unclaim resources", pod, self._client.patch(_status_path(pod), body))

    def unreserve(self, claim: ResourceClaim, uid: str) -> None:
        """Revoke that an object may use a claim, even if the claim has changed otherwise."""
        entry = {"$patch": "delete", "uid": uid}
        body = {"metadata": {"uid": claim.metadata.uid}, "status": {"reservedFor": [entry]}}
        self._start(
            "unreserve",
            claim,
            self._client.patch(_path(claim, "status"), body, content_type=STRATEGIC_MERGE_PATCH),
        )

    def delete(self, claim: ResourceClaim) -> None:
        """Delete a claim, which nothing protects any more."""
        self._start("delete", claim, self._delete(claim))

    async def _delete(self, claim: ResourceClaim) -> None:
        async def unprotect(newest: ResourceClaim) -> ResourceClaim:
            finalizers = [each for each in newest.metadata.finalizers if each != FINALIZER]
            doing = f"update resourceclaim {_shown(newest)}"
            return await self._finalize(newest, finalizers, doing)

        if FINALIZER in claim.metadata.finalizers:
            claim = await self._on_newest(claim, unprotect)
        await self._client.delete(_path(claim), {"preconditions": {"uid": claim.metadata.uid}})

    def _start(self, doing: str, obj: ResourceClaim | Pod, work: Coroutine[Any, Any, None]) -> None:
        async def do() -> None:
            try:
                await work
            except NotFoundError:
                pass  # it is deleted already
            except (ObjectError, ClientError) as failed:
                # The next attempt at the pod finds the claim as it is, and tries again.
                _log.error(doing, failed, **{_KINDS[type(obj)]: _shown(obj)})

        self.tasks.start(do())


class _ConflictError(ObjectError):
    """A claim that has changed meanwhile."""


class _InvalidError(ObjectError):
    """A write that the API server refuses."""


def _path(claim: ResourceClaim, subresource: str = "") -> str:
    meta = claim.metadata
    return resources.RESOURCE_CLAIMS.item(
        meta.name, namespace=meta.namespace, subresource=subresource
    )


def _version(claim: ResourceClaim) -> dict[str, Any]:
    return {"resourceVersion": claim.metadata.resource_version, "uid": claim.metadata.uid}


def _status_path(pod: Pod) -> str:
    meta = pod.metadata
    return resources.PODS.item(meta.name, namespace=meta.namespace, subresource="status")


def _shown(obj: ResourceClaim | Pod) -> str:
    return f"{obj.metadata.namespace}/{obj.metadata.name}"
