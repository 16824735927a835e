"""Writes the allocation of devices to claims, and waits until the devices are ready.

    decided ──> create the claim for extended resources ──> finalizer, allocation, reservation
            ──> drivers get devices ready ──> the pod can be bound

What was written is not taken back, but for the reservation: the next attempt finds the allocation
and goes on from there, or gives it up if it is of no use.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from msgspec.structs import replace

from kubesched.api.core import PodExtendedResourceClaimStatus
from kubesched.api.meta import ObjectMeta
from kubesched.api.resource import ResourceClaim
from kubesched.clock import Clock
from kubesched.cluster.devices import Devices
from kubesched.errors import ClientError, ObjectError
from kubesched.framework.registry import ClaimWriter
from kubesched.framework.status import Status, unschedulable
from kubesched.metrics.recorder import Metrics
from kubesched.plugins import binding_conditions, extended_claims
from kubesched.plugins.binding_conditions import BindingFailedError, BindingTimeoutError
from kubesched.plugins.pod_claims import is_reserved_for, shown
from kubesched.plugins.pod_devices import PodDevices

DEALLOCATED: Final = unschedulable("deallocation of ResourceClaim completed")
DELETED: Final = unschedulable("deletion of ResourceClaim completed")
#: How long the watch may take to bring a claim that was created.
CREATED_TIMEOUT_S: Final = 120.0
#: How often it is looked whether it did, and whether devices are ready.
CREATED_INTERVAL_S: Final = 1.0
READY_INTERVAL_S: Final = 5.0
#: How the metric describes claims that the scheduler creates: no access for administrators, and
#: group and kind of their owner.
_CREATED_FOR: Final = ("false", "", "Pod")


class ClaimBinder:
    """Writes what was decided about claims, and waits for drivers."""

    def __init__(
        self,
        devices: Devices,
        writer: ClaimWriter,
        *,
        clock: Clock,
        metrics: Metrics,
        profile: str,
        timeout_s: float,
        has_binding_conditions: bool,
        of_groups: bool = False,
    ) -> None:
        """`of_groups` is the gate DRAWorkloadResourceClaims."""
        self._of_groups = of_groups
        self._claims = devices.claims
        self._writer = writer
        self._clock = clock
        self._metrics = metrics
        self._profile = profile
        self._timeout_s = timeout_s
        self._has_binding_conditions = has_binding_conditions

    def is_lost(self, claim: ResourceClaim) -> bool:
        """Return whether drivers failed to prepare the devices of a claim, or timed out."""
        try:
            return not binding_conditions.is_ready(claim) and self._is_late(claim)
        except BindingFailedError:
            return True

    def _is_late(self, claim: ResourceClaim) -> bool:
        return binding_conditions.is_late(claim, now=self._clock.time(), timeout_s=self._timeout_s)

    # --- in the background ------------------------------------------------------------------

    def deallocate(self, claim: ResourceClaim) -> None:
        """Give up the allocation of a claim that no pod uses."""
        self._writer.deallocate(claim)

    def unreserve_for(self, claim: ResourceClaim, uid: str) -> None:
        """Revoke that an object may use a claim."""
        self._writer.unreserve(claim, uid)

    def give_up(self, devices: PodDevices, unavailable: Collection[int]) -> Status | None:
        """Deallocate a claim whose allocation makes all nodes infeasible, if no other pod uses it.

        None if there is no such allocation, nor a claim left from an earlier attempt.
        """
        for number in sorted(unavailable):
            claim = devices.claims[number]
            if claim is devices.extended:
                if not extended_claims.is_in_memory(claim):
                    break
                continue
            if all(each.uid == devices.pod.metadata.uid for each in claim.status.reserved_for):
                self._writer.deallocate(claim)
                return DEALLOCATED
        if devices.extended is not None and not extended_claims.is_in_memory(devices.extended):
            self._writer.delete(devices.extended)
            return DELETED
        return None

    def unreserve(self, devices: PodDevices) -> None:
        """Give back the right to use claims, and delete what was created for the pod."""
        if devices.has_written_claimed:
            devices.has_written_claimed = False
            self._writer.unclaim_resources(devices.pod)
        for claim in devices.claims:
            if claim is devices.extended:
                if not extended_claims.is_in_memory(claim):
                    self._writer.delete(claim)
            elif claim.status.allocation is not None and is_reserved_for(devices.pod, claim):
                self._writer.unreserve(claim, devices.pod.metadata.uid)

    # --- in the binding cycle -----------------------------------------------------------------

    async def bind(self, devices: PodDevices, node_name: str) -> None:
        """Write what was decided, and wait until devices are ready.

        Raises ObjectError or ClientError in Kubernetes' words if that fails or takes too long.
        """
        for index, claim in enumerate(devices.claims):
            if not is_reserved_for(devices.pod, claim, of_groups=self._of_groups):
                await self._bind_claim(devices, index, node_name)
        if devices.claimed:
            await self._claim_resources(devices)
        if self._has_binding_conditions and any(
            binding_conditions.has_conditions(each) for each in devices.claims
        ):
            await self._wait(devices, node_name)

    async def _bind_claim(self, devices: PodDevices, index: int, node_name: str) -> None:
        claim, allocation = devices.claims[index], devices.decided.get(index)
        is_extended = claim is devices.extended
        if is_extended and allocation is None and not claim.spec.devices.requests:
            return  # device plugins offer everything
        if is_extended and extended_claims.is_in_memory(claim):
            claim = devices.claims[index] = await self._create(devices, node_name)
        claim = await self._writer.bind(
            claim,
            allocation,
            devices.user_of(index),
            has_timestamp=self._has_binding_conditions,
            is_shared=devices.is_in_group and not is_extended,
        )
        devices.claims[index] = claim
        if not is_extended:
            self._claims.written(claim)
            return
        key = (claim.metadata.namespace, claim.metadata.name)
        # Before its allocation is no longer pending, the claim has to be known.
        await self._writer.poll(
            lambda: self._claims.written(claim),
            claims=[key],
            timeout_s=CREATED_TIMEOUT_S,
            interval_s=CREATED_INTERVAL_S,
        )
        await self._map(devices, claim)

    async def _claim_resources(self, devices: PodDevices) -> None:
        """Write to the pod's status what its claims take of the node's own resources."""
        pod = devices.pod
        devices.has_written_claimed = True
        try:
            await self._writer.claim_resources(pod, devices.claimed)
        except ClientError as failed:
            text = f"updating pod {shown(pod)} NodeAllocatableResourceClaimStatuses: {failed}"
            raise ObjectError(text) from failed

    async def _create(self, devices: PodDevices, node_name: str) -> ResourceClaim:
        made = devices.extended_claim
        if made is None:
            raise ObjectError(f"extended resource claim not found for node {node_name}")
        meta = made.claim.metadata
        body = replace(
            made.claim,
            metadata=ObjectMeta(
                namespace=meta.namespace,
                generate_name=meta.generate_name,
                owner_references=meta.owner_references,
                annotations=meta.annotations,
            ),
        )
        creates = self._metrics.dynamic_resource_allocation_resourceclaim_creates
        try:
            created = await self._writer.create(body)
        except ClientError as failed:
            creates.labels("failure", *_CREATED_FOR).inc()
            where = f"{meta.namespace}/"
            raise ObjectError(f"create claim for extended resources {where}: {failed}") from failed
        creates.labels("success", *_CREATED_FOR).inc()
        return created

    async def _map(self, devices: PodDevices, claim: ResourceClaim) -> None:
        """Write to the pod's status which request serves which container."""
        pod, made = devices.pod, devices.extended_claim
        what = f"pod {shown(pod)} ExtendedResourceClaimStatus"
        if made is None or not made.mappings:
            raise ObjectError(f"nil or empty request mappings, no update of {what}")
        status = PodExtendedResourceClaimStatus(
            request_mappings=made.mappings, resource_claim_name=claim.metadata.name
        )
        try:
            await self._writer.map_extended_resources(pod, status)
        except ClientError as failed:
            raise ObjectError(f"update {what}: {failed}") from failed

    async def _wait(self, devices: PodDevices, node_name: str) -> None:
        self._writer.announce_waiting(devices.pod, node_name)
        started = self._clock.monotonic()
        keys = [(each.metadata.namespace, each.metadata.name) for each in devices.claims]
        status = "error"
        try:
            is_ready = await self._writer.poll(
                lambda: self._are_ready(devices),
                claims=keys,
                timeout_s=self._timeout_s,
                interval_s=READY_INTERVAL_S,
            )
            status = "success" if is_ready else "timeout"
        except BindingTimeoutError:
            status = "timeout"
            raise
        except BindingFailedError:
            status = "failure"
            raise
        finally:
            self._count(devices, status, self._clock.monotonic() - started)
        if not is_ready:
            text = f"{binding_conditions.TIMED_OUT}: context deadline exceeded"
            raise BindingTimeoutError(text)

    def _are_ready(self, devices: PodDevices) -> bool:
        for index, known in enumerate(devices.claims):
            namespace, name = known.metadata.namespace, known.metadata.name
            claim = self._claims.get(namespace, name)
            if claim is None:
                raise ObjectError(f'could not find ResourceClaim "{namespace}/{name}"')
            devices.claims[index] = claim
            if not binding_conditions.is_ready(claim):
                if self._is_late(claim):
                    raise BindingTimeoutError(f"{binding_conditions.TIMED_OUT}: claim={name}")
                return False
        return True

    def _count(self, devices: PodDevices, status: str, waited_s: float) -> None:
        waits = self._metrics.dra_bindingconditions_wait_duration
        allocations = self._metrics.dra_bindingconditions_allocations
        for claim in devices.claims:
            allocation = claim.status.allocation
            for result in () if allocation is None else allocation.devices.results:
                waits.labels(self._profile, result.driver, status).observe(waited_s)
                if result.binding_conditions:
                    allocations.labels(self._profile, result.driver, status).inc()
