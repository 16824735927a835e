"""Claims to devices in simulated time: what the scheduler writes is there at once.

Devices that drivers would have to get ready are ready when they are allocated.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import count

from msgspec.structs import replace

from kubesched.api.core import Pod, PodExtendedResourceClaimStatus
from kubesched.api.resource import (
    AllocatedDeviceStatus,
    AllocationResult,
    DeviceCondition,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import Claimed
from kubesched.cluster.resource_claims import ClaimKey
from kubesched.kinds import KINDS
from kubesched.queue.scheduling_queue import SchedulingQueue
from kubesched.scheduler.store_handler import StoreHandler
from kubesched.simulate import polling

#: Versions that are newer than those of any object that a play begins with.
_FIRST_VERSION = 1 << 60


class SimulatedClaims:
    """Writes claims to where the scheduler reads them."""

    def __init__(self, cluster: Cluster) -> None:
        self._claims = cluster.devices.claims
        self._serial = count(_FIRST_VERSION)
        self._handler: StoreHandler[ResourceClaim] | None = None

    def attach(self, queue: SchedulingQueue) -> None:
        """Let pods that wait hear of what happens to claims."""
        self._handler = StoreHandler(KINDS["ResourceClaim"], self._claims, queue)

    async def bind(
        self,
        claim: ResourceClaim,
        allocation: AllocationResult | None,
        user: ResourceClaimConsumerReference,
        *,
        has_timestamp: bool,  # noqa: ARG002 (devices are ready at once)
        is_shared: bool = False,
    ) -> ResourceClaim:
        """Write an allocation, if there is one, and that a pod may use it."""
        newest = self._claims.get(claim.metadata.namespace, claim.metadata.name)
        if is_shared and newest is not None:
            claim = newest
            if any(each.uid == user.uid for each in claim.status.reserved_for):
                return claim
        status = claim.status
        if allocation is not None and not (is_shared and status.allocation is not None):
            status = replace(status, allocation=allocation, devices=_ready(allocation))
        users = (*status.reserved_for, user)
        return self._put(replace(claim, status=replace(status, reserved_for=users)))

    async def create(self, claim: ResourceClaim) -> ResourceClaim:
        """Create a claim, with a name of its own."""
        serial = next(self._serial)
        name = f"{claim.metadata.generate_name}{serial - _FIRST_VERSION}"
        meta = replace(claim.metadata, name=name, uid=f"simulated-claim-{serial}")
        return self._put(replace(claim, metadata=meta))

    async def map_extended_resources(
        self, pod: Pod, status: PodExtendedResourceClaimStatus
    ) -> None:
        """Take no note: no kubelet reads it."""

    async def claim_resources(self, pod: Pod, claimed: Claimed) -> None:
        """Take no note: no kubelet reads it."""

    async def poll(
        self,
        check: Callable[[], bool],
        *,
        claims: Collection[ClaimKey],  # noqa: ARG002 (what is written is there at once)
        timeout_s: float,
        interval_s: float,
    ) -> bool:
        """Poll until `check` returns True; False on timeout."""
        return await polling.poll(check, timeout_s=timeout_s, interval_s=interval_s)

    def announce_waiting(self, pod: Pod, node_name: str) -> None:
        """Say nothing."""

    def deallocate(self, claim: ResourceClaim) -> None:
        """Give up the allocation of a claim."""
        self._put(replace(claim, status=ResourceClaimStatus()))

    def unclaim_resources(self, pod: Pod) -> None:
        """Do nothing: it was not noted."""

    def unreserve(self, claim: ResourceClaim, uid: str) -> None:
        """Take back that a pod or a group may use a claim."""
        users = tuple(each for each in claim.status.reserved_for if each.uid != uid)
        self._put(replace(claim, status=replace(claim.status, reserved_for=users)))

    def add(self, claim: ResourceClaim) -> None:
        """Make a claim for a pod, as the controller of claims does."""
        self._put(claim)

    def release(self, pod: Pod) -> None:
        """Delete the claims of a pod that is gone, and let go of those that others made."""
        for claim in self._claims.of_pod(pod):
            owners = (each.uid for each in claim.metadata.owner_references if each.controller)
            if pod.metadata.uid in owners:
                self.delete(claim)
                continue
            users = tuple(e for e in claim.status.reserved_for if e.uid != pod.metadata.uid)
            status = replace(claim.status, reserved_for=users) if users else ResourceClaimStatus()
            if status != claim.status:
                self._put(replace(claim, status=status))

    def delete(self, claim: ResourceClaim) -> None:
        """Delete a claim."""
        if self._handler is not None:
            self._handler.on_delete(claim)

    def _put(self, claim: ResourceClaim) -> ResourceClaim:
        meta = replace(claim.metadata, resource_version=str(next(self._serial)))
        made = replace(claim, metadata=meta)
        old = self._claims.get(meta.namespace, meta.name)
        if self._handler is None:
            self._claims.put(made)
        elif old is None:
            self._handler.on_add(made, initial=False)
        else:
            self._handler.on_update(old, made)
        return made


def _ready(allocation: AllocationResult) -> tuple[AllocatedDeviceStatus, ...]:
    return tuple(
        AllocatedDeviceStatus(
            driver=each.driver,
            pool=each.pool,
            device=each.device,
            conditions=tuple(
                DeviceCondition(type=condition, status="True")
                for condition in each.binding_conditions
            ),
        )
        for each in allocation.devices.results
        if each.binding_conditions
    )
