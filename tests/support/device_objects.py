"""Builders of devices: slices, classes, claims, and pods that claim.

slice_of("gpus", device("a", model="x"), device("b"), node="n1")
claim("c", request("r", count=2)), claiming(pod("p"), "c")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import convert
from msgspec.structs import replace

from kubesched.api.core import NodeSelector, Pod, PodResourceClaim, PodResourceClaimStatus
from kubesched.api.meta import ObjectMeta, OwnerReference
from kubesched.api.resource import (
    AllocationResult,
    CapacityRequestPolicy,
    CapacityRequirements,
    CELDeviceSelector,
    CounterSet,
    Device,
    DeviceAllocationResult,
    DeviceAttribute,
    DeviceCapacity,
    DeviceClaim,
    DeviceClass,
    DeviceClassSpec,
    DeviceConstraint,
    DeviceCounter,
    DeviceCounterConsumption,
    DeviceDerivedAttribute,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceSelector,
    DeviceSubRequest,
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
    DeviceToleration,
    ExactDeviceRequest,
    NodeAllocatableResource,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from kubesched.cluster.cluster import Cluster
from kubesched.kinds import KINDS

DRIVER = "gpu.example.com"
CLASS = "gpu"


# --- devices ------------------------------------------------------------------------------------


#: What a device says of itself: a value, or a list of them.
Said = str | int | bool | Sequence[str | int | bool]


def attribute(value: Said) -> DeviceAttribute:
    if not isinstance(value, str | int):
        kind = {bool: "bool", int: "int"}.get(type(value[0]), "string")
        made: DeviceAttribute = convert({f"{kind}s": list(value)}, type=DeviceAttribute)
        return made
    if isinstance(value, bool):
        return DeviceAttribute(bool_value=value)
    if isinstance(value, int):
        return DeviceAttribute(int_value=value)
    return DeviceAttribute(string_value=value)


def capacity(value: str, **policy: Any) -> DeviceCapacity:
    return DeviceCapacity(
        value=value, request_policy=CapacityRequestPolicy(**policy) if policy else None
    )


def taint(effect: str = "NoSchedule", key: str = "broken", value: str = "") -> DeviceTaint:
    return DeviceTaint(key=key, value=value, effect=effect)


def device(
    name: str,
    *,
    capacities: Mapping[str, str | DeviceCapacity] | None = None,
    counters: Mapping[str, Mapping[str, str]] | None = None,
    shareable: bool = False,
    taints: Sequence[DeviceTaint] = (),
    conditions: Sequence[str] = (),
    failures: Sequence[str] = (),
    node: str | None = None,
    selector: NodeSelector | None = None,
    everywhere: bool | None = None,
    binds: bool = False,
    groups: Sequence[str] = (),
    gives: Mapping[str, NodeAllocatableResource] | None = None,
    **attributes: Said,
) -> Device:
    return Device(
        name=name,
        attributes={key: attribute(value) for key, value in attributes.items()},
        capacity={
            key: value if isinstance(value, DeviceCapacity) else capacity(value)
            for key, value in (capacities or {}).items()
        },
        consumes_counters=tuple(
            DeviceCounterConsumption(
                counter_set=name,
                counters={key: DeviceCounter(value=value) for key, value in taken.items()},
                compatibility_groups=tuple(groups),
            )
            for name, taken in (counters or {}).items()
        ),
        allow_multiple_allocations=shareable or None,
        taints=tuple(taints),
        binding_conditions=tuple(conditions),
        binding_failure_conditions=tuple(failures),
        node_name=node,
        node_selector=selector,
        all_nodes=everywhere,
        binds_to_node=binds or None,
        node_allocatable_resources=dict(gives or {}),
    )


def slice_of(
    name: str,
    *devices: Device,
    node: str | None = None,
    pool: str = "",
    driver: str = DRIVER,
    generation: int = 1,
    slices: int = 1,
    selector: NodeSelector | None = None,
    everywhere: bool | None = None,
    per_device: bool | None = None,
    counters: Mapping[str, Mapping[str, str]] | None = None,
    skips: Sequence[str] = (),
) -> ResourceSlice:
    return ResourceSlice(
        metadata=ObjectMeta(name=name),
        spec=ResourceSliceSpec(
            driver=driver,
            pool=ResourcePool(
                name=pool or node or name, generation=generation, resource_slice_count=slices
            ),
            node_name=node,
            node_selector=selector,
            all_nodes=everywhere,
            per_device_node_selection=per_device,
            devices=devices,
            shared_counters=tuple(
                CounterSet(
                    name=each,
                    counters={key: DeviceCounter(value=value) for key, value in amounts.items()},
                )
                for each, amounts in (counters or {}).items()
            ),
            skip_node_operations=tuple(skips),
        ),
    )


def device_class(
    name: str = CLASS, *expressions: str, resource: str | None = None, created: str | None = None
) -> DeviceClass:
    return DeviceClass(
        metadata=ObjectMeta(name=name, creation_timestamp=created),
        spec=DeviceClassSpec(selectors=selectors(*expressions), extended_resource_name=resource),
    )


def selectors(*expressions: str) -> tuple[DeviceSelector, ...]:
    return tuple(DeviceSelector(cel=CELDeviceSelector(expression=each)) for each in expressions)


def taint_rule(
    name: str = "rule",
    *,
    effect: str = "NoSchedule",
    driver: str | None = None,
    pool: str | None = None,
    device_name: str | None = None,
) -> DeviceTaintRule:
    selector = DeviceTaintSelector(driver=driver, pool=pool, device=device_name)
    spec = DeviceTaintRuleSpec(device_selector=selector, taint=taint(effect))
    return DeviceTaintRule(metadata=ObjectMeta(name=name), spec=spec)


# --- claims -------------------------------------------------------------------------------------


def request(
    name: str = "r",
    *expressions: str,
    count: int = 1,
    every: bool = False,
    admin: bool | None = None,
    of: str = CLASS,
    tolerates: Sequence[DeviceToleration] = (),
    capacities: Mapping[str, str] | None = None,
    derives: Mapping[str, str] | None = None,
) -> DeviceRequest:
    return DeviceRequest(
        name=name,
        exactly=ExactDeviceRequest(
            device_class_name=of,
            selectors=selectors(*expressions),
            allocation_mode="All" if every else "ExactCount",
            count=0 if every else count,
            admin_access=admin,
            tolerations=tuple(tolerates),
            capacity=required(capacities),
            derived_attributes=derived(derives),
        ),
    )


def required(capacities: Mapping[str, str] | None) -> CapacityRequirements | None:
    return None if capacities is None else CapacityRequirements(requests=dict(capacities))


def derived(expressions: Mapping[str, str] | None) -> tuple[DeviceDerivedAttribute, ...]:
    return tuple(
        DeviceDerivedAttribute(name=f"{DRIVER}/{name}", expression=expression)
        for name, expression in (expressions or {}).items()
    )


def first_of(name: str, *alternatives: DeviceSubRequest) -> DeviceRequest:
    return DeviceRequest(name=name, first_available=alternatives)


def alternative(
    name: str,
    *expressions: str,
    count: int = 1,
    every: bool = False,
    of: str = CLASS,
    capacities: Mapping[str, str] | None = None,
    derives: Mapping[str, str] | None = None,
) -> DeviceSubRequest:
    return DeviceSubRequest(
        name=name,
        device_class_name=of,
        selectors=selectors(*expressions),
        allocation_mode="All" if every else "ExactCount",
        count=0 if every else count,
        capacity=required(capacities),
        derived_attributes=derived(derives),
    )


def same(attribute_name: str, *requests: str) -> DeviceConstraint:
    return DeviceConstraint(requests=requests, match_attribute=f"{DRIVER}/{attribute_name}")


def different(attribute_name: str, *requests: str) -> DeviceConstraint:
    return DeviceConstraint(requests=requests, distinct_attribute=f"{DRIVER}/{attribute_name}")


def claim(
    name: str = "c",
    *requests: DeviceRequest,
    constraints: Sequence[DeviceConstraint] = (),
    owner: str | None = None,
    version: str = "1",
    uid: str = "",
    annotations: Mapping[str, str] | None = None,
) -> ResourceClaim:
    references = () if owner is None else (OwnerReference(uid=owner, name=owner, controller=True),)
    return ResourceClaim(
        metadata=ObjectMeta(
            name=name,
            namespace="default",
            uid=uid or f"claim-{name}",
            resource_version=version,
            owner_references=references,
            annotations=None if annotations is None else dict(annotations),
        ),
        spec=ResourceClaimSpec(
            devices=DeviceClaim(requests=requests, constraints=tuple(constraints))
        ),
    )


def result(
    name: str,
    pool: str = "n1",
    *,
    of: str = "r",
    admin: bool | None = None,
    share: str | None = None,
    consumed: Mapping[str, str] | None = None,
    conditions: Sequence[str] = (),
    failures: Sequence[str] = (),
    skips: Sequence[str] = (),
) -> DeviceRequestAllocationResult:
    return DeviceRequestAllocationResult(
        request=of,
        driver=DRIVER,
        pool=pool,
        device=name,
        admin_access=admin,
        share_id=share,
        consumed_capacity=dict(consumed or {}),
        binding_conditions=tuple(conditions),
        binding_failure_conditions=tuple(failures),
        skip_node_operations=tuple(skips),
    )


def allocation(
    *results: DeviceRequestAllocationResult, selector: NodeSelector | None = None
) -> AllocationResult:
    return AllocationResult(devices=DeviceAllocationResult(results=results), node_selector=selector)


def allocated(
    made: ResourceClaim,
    *results: DeviceRequestAllocationResult,
    selector: NodeSelector | None = None,
    users: Sequence[str] = (),
    version: str = "",
) -> ResourceClaim:
    references = (ResourceClaimConsumerReference(resource="pods", name=u, uid=u) for u in users)
    status = ResourceClaimStatus(
        allocation=allocation(*results, selector=selector), reserved_for=tuple(references)
    )
    meta = replace(made.metadata, resource_version=version or made.metadata.resource_version)
    return replace(made, metadata=meta, status=status)


def claiming(made: Pod, *names: str) -> Pod:
    claims = tuple(PodResourceClaim(name=each, resource_claim_name=each) for each in names)
    return replace(made, spec=replace(made.spec, resource_claims=claims))


def claiming_from_template(made: Pod, template: str, given: str | None = "") -> Pod:
    """A pod whose claim is made for it: not yet, if `given` is "", never, if it is None."""
    claims = (PodResourceClaim(name="own", resource_claim_template_name=template),)
    status = made.status
    if given != "":
        entry = PodResourceClaimStatus(name="own", resource_claim_name=given)
        status = replace(status, resource_claim_statuses=(entry,))
    return replace(made, spec=replace(made.spec, resource_claims=claims), status=status)


def fill(cluster: Cluster, *objects: Any) -> None:
    """Put objects where a cluster keeps them."""
    for each in objects:
        store = KINDS[type(each).__name__].store
        assert store is not None
        store(cluster).put(each)
