"""What devices take of their node's own resources (gate DRANodeAllocatableResources).

    devices of all claims ──> status of each claim ──> the pod requests so much more ──> fits?

A device may *be* so much cpu or memory of its node (a mapping), and its use may cost some more (an
overhead), per pod and per container that uses it. How much is known only with an allocation. So the
nodes are filtered again, and from there on the pod counts for all of it, as its status records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from kubesched.api import names, quantity
from kubesched.api.core import (
    NodeAllocatableMappedResources,
    NodeAllocatableOverheadResources,
    NodeAllocatableResourceClaimStatus,
    Pod,
    QuantityText,
)
from kubesched.api.requests import (
    claimed_amounts,
    container_limits,
    container_requests,
    is_pod_level_resource,
)
from kubesched.api.resource import Device, NodeAllocatableMapping, ResourceClaim
from kubesched.cluster.device_table import DeviceKey
from kubesched.cluster.pod_info import Claimed
from kubesched.errors import ObjectError
from kubesched.framework.status import Status, unresolvable
from kubesched.plugins.device_capacity import spelled

_NANO: Final = 10**9


class UsedDevice(NamedTuple):
    """A device of a claim."""

    key: DeviceKey
    #: what the claim takes of its capacities; None if it has the device for itself
    consumed: Mapping[str, QuantityText] | None
    #: what the slice declares about it for the node, or why it declares nothing
    device: Device | str

    @property
    def takes_resources(self) -> bool:
        """Whether it takes something of its node's own resources."""
        return isinstance(self.device, Device) and bool(self.device.node_allocatable_resources)


class UsedClaim(NamedTuple):
    """A claim with devices."""

    claim: ResourceClaim
    devices: tuple[UsedDevice, ...]


class _Amount:
    """A sum of quantities, spelled like the first of them."""

    __slots__ = ("_like", "_nano")

    def __init__(self) -> None:
        self._nano = 0
        self._like: QuantityText = ""

    def add(self, amount: int, like: QuantityText) -> None:
        """Add an amount in nano units."""
        if not self._nano:
            self._like = like
        self._nano += amount

    def __str__(self) -> str:
        return spelled(self._nano, like=self._like)


def claim_statuses(
    pod: Pod, claims: Sequence[UsedClaim], uids: Mapping[str, str]
) -> tuple[NodeAllocatableResourceClaimStatus, ...]:
    """Return what claims take of their node's own resources; none for those that take nothing.

    `uids` has the claim behind each name in the pod's spec. Raises ObjectError if that cannot be
    told.
    """
    found: list[NodeAllocatableResourceClaimStatus] = []
    for claim, devices in claims:
        if not any(each.takes_resources for each in devices):
            continue
        status = _status_of(claim, devices)
        if status.mapping or status.overhead:
            users = tuple(
                container.name
                for container in (*pod.spec.init_containers, *pod.spec.containers)
                for each in (container.resources.claims if container.resources else ())
                if uids.get(each.name) == claim.metadata.uid
            )
            found.append(replace(status, containers=users))
    return tuple(sorted(found, key=lambda each: each.resource_claim_name))


def _status_of(
    claim: ResourceClaim, devices: Sequence[UsedDevice]
) -> NodeAllocatableResourceClaimStatus:
    mapped: dict[str, _Amount] = {}
    per_pod: dict[str, _Amount] = {}
    per_container: dict[str, _Amount] = {}
    where = f"claim {claim.metadata.namespace}/{claim.metadata.name}"
    for used in devices:
        if isinstance(used.device, str):
            driver, _, name = used.key
            raise ObjectError(f"{where}, device {name}, driver {driver}: {used.device}")
        for resource, takes in used.device.node_allocatable_resources.items():
            if takes.mapping is not None:
                _map(mapped, resource, takes.mapping, used, where)
            overhead = takes.overhead
            if overhead is not None and overhead.per_pod is not None:
                _add(per_pod, resource, overhead.per_pod)
            if overhead is not None and overhead.per_container is not None:
                _add(per_container, resource, overhead.per_container)
    return NodeAllocatableResourceClaimStatus(
        resource_claim_name=claim.metadata.name,
        mapping=tuple(
            NodeAllocatableMappedResources(name=name, quantity=str(amount))
            for name, amount in sorted(mapped.items())
        ),
        overhead=tuple(
            NodeAllocatableOverheadResources(
                name=name,
                per_pod=str(per_pod[name]) if name in per_pod else None,
                per_container=str(per_container[name]) if name in per_container else None,
            )
            for name in sorted(per_pod.keys() | per_container.keys())
        ),
    )


def _map(
    mapped: dict[str, _Amount],
    resource: str,
    mapping: NodeAllocatableMapping,
    used: UsedDevice,
    where: str,
) -> None:
    key = mapping.capacity_key
    if not key:
        if mapping.device_multiplier is not None:
            _add(mapped, resource, mapping.device_multiplier)
        return
    if used.consumed is None:
        raise ObjectError(
            f"{where}, device {used.key[2]}: ConsumedCapacity is nil, but Capacity key '{key}' is "
            f"set in NodeAllocatableResources for resource {resource}"
        )
    if key in used.consumed:
        consumed, factor = used.consumed[key], mapping.capacity_multiplier
        amount = quantity.nano(consumed)
        if factor is not None:
            amount = -(-amount * quantity.nano(factor) // _NANO)
        mapped.setdefault(resource, _Amount()).add(amount, consumed)


def _add(amounts: dict[str, _Amount], resource: str, text: QuantityText) -> None:
    amounts.setdefault(resource, _Amount()).add(quantity.nano(text), text)


def with_claims(pod: Pod, claimed: Claimed) -> Pod:
    """Return a pod whose status declares what its claims take."""
    return replace(
        pod, status=replace(pod.status, node_allocatable_resource_claim_statuses=claimed)
    )


def uncovered(pod: Pod) -> Status | None:
    """Return why the resources of a pod as a whole do not cover those of its parts and claims."""
    whole = pod.spec.resources
    if whole is None or not pod.status.node_allocatable_resource_claim_statuses:
        return None
    return _uncovered_requests(pod, whole.requests or {}) or _uncovered_limits(
        pod, whole.limits or {}
    )


def _uncovered_requests(pod: Pod, whole: Mapping[str, QuantityText]) -> Status | None:
    parts = container_requests(pod)
    for name, text in sorted(whole.items()):
        if is_pod_level_resource(name) and parts.get(name, 0) > quantity.nano(text):
            return unresolvable(
                f"pod level request for {name} is insufficient to cover the aggregated container "
                "and node-allocatable DRA requests"
            )
    return None


def _uncovered_limits(pod: Pod, whole: Mapping[str, QuantityText]) -> Status | None:
    for name, amount in sorted(container_limits(pod).items() if whole else ()):
        is_counted = name.startswith(names.HUGEPAGES_PREFIX) and name in whole
        if is_counted and amount > quantity.nano(whole[name]):
            return unresolvable(
                f"pod level limit for {name} is insufficient to cover the aggregated container "
                "and node-allocatable DRA limits"
            )
    for container in pod.spec.containers if whole else ():
        own = claimed_amounts(pod, container.name)
        limits = (container.resources.limits if container.resources else None) or {}
        for name, text in sorted(limits.items()):
            if name.startswith(names.HUGEPAGES_PREFIX) or name not in whole:
                continue
            if quantity.nano(text) + own.get(name, 0) > quantity.nano(whole[name]):
                return unresolvable(
                    f"pod level limit for {name} is insufficient to cover the limit and DRA "
                    f"overhead for container {container.name}"
                )
    return None
