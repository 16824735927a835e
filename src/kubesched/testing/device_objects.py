"""Devices for tests: slices, classes, and the claims of pods.

cluster.devices("n1", count=8, capacity={"memory": "80Gi"})   ──> DeviceClass, ResourceSlice
cluster.pod(devices=2)                                       ──> ResourceClaim of the pod
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypedDict

from msgspec.structs import replace

from kubesched.api.core import Pod, PodResourceClaim, PodResourceClaimStatus
from kubesched.api.meta import ObjectMeta, OwnerReference
from kubesched.api.resource import (
    CELDeviceSelector,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceClaim,
    DeviceClass,
    DeviceClassSpec,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    DeviceTaint,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimSpec,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from kubesched.cluster.cluster import Cluster
from kubesched.errors import UsageError
from kubesched.framework.cycle_state import CycleState
from kubesched.plugins.dynamic_resources import DynamicResources
from kubesched.plugins.pod_devices import PodDevices

#: Of devices and requests that name no other.
GPU = "gpu"
#: The name of a pod's own claim, as containers refer to it.
OWN_CLAIM = "devices"

#: How many devices a pod claims: of class `gpu`, or of several classes.
Claimed = int | Mapping[str, int]


class DeviceProperties(TypedDict, total=False):
    """Properties of devices; all of them are optional."""

    #: their class, ``gpu`` by default, which is made if it is not there
    device_class: str
    #: their driver, ``<class>.example.com`` by default
    driver: str
    attributes: Mapping[str, str | int | bool]
    #: ``{"memory": "80Gi"}``
    capacity: Mapping[str, str | int]
    #: ``key=value:Effect`` or ``key:Effect``
    taints: Iterable[str]
    #: whether several claims may have a share of each
    shareable: bool


def make_devices(node: str, count: int, given: DeviceProperties) -> ResourceSlice:
    """Make a slice with devices of a node, named after the class: ``gpu-0``, ``gpu-1``…"""
    name = given.get("device_class", GPU)
    driver = given.get("driver", f"{name}.example.com")
    pool = f"{node}-{name}"
    devices = tuple(_device(f"{name}-{number}", given) for number in range(count))
    return ResourceSlice(
        metadata=ObjectMeta(name=pool, uid=pool),
        spec=ResourceSliceSpec(
            driver=driver,
            node_name=node,
            pool=ResourcePool(name=pool, generation=1, resource_slice_count=1),
            devices=devices,
        ),
    )


def make_device_class(name: str = GPU, *, driver: str = "", selector: str = "") -> DeviceClass:
    """Make a class of the devices of a driver, or of those that a CEL expression selects."""
    expression = selector or f'device.driver == "{driver or f"{name}.example.com"}"'
    selectors = (DeviceSelector(cel=CELDeviceSelector(expression=expression)),)
    return DeviceClass(
        metadata=ObjectMeta(name=name, uid=name), spec=DeviceClassSpec(selectors=selectors)
    )


def make_device_claim(
    name: str,
    devices: Claimed = 1,
    *,
    selector: str = "",
    same: str = "",
    tolerations: Iterable[str] = (),
    namespace: str = "default",
) -> ResourceClaim:
    """Make a claim to devices, all with the `same` attribute if one is named.

    `selector` is a CEL expression; tolerations are ``key=value:Effect`` or ``key``.
    """
    counts = {GPU: devices} if isinstance(devices, int) else devices
    selectors = (DeviceSelector(cel=CELDeviceSelector(expression=selector)),) if selector else ()
    tolerated = tuple(_toleration(each) for each in tolerations)
    requests = tuple(
        DeviceRequest(
            name=each,
            exactly=ExactDeviceRequest(
                device_class_name=each,
                count=count,
                selectors=selectors,
                tolerations=tolerated,
            ),
        )
        for each, count in counts.items()
    )
    constraints = (DeviceConstraint(match_attribute=same),) if same else ()
    return ResourceClaim(
        metadata=ObjectMeta(name=name, namespace=namespace, uid=f"{namespace}/{name}"),
        spec=ResourceClaimSpec(devices=DeviceClaim(requests=requests, constraints=constraints)),
    )


def _device(name: str, given: DeviceProperties) -> Device:
    return Device(
        name=name,
        attributes={key: _attribute(each) for key, each in given.get("attributes", {}).items()},
        capacity={
            key: DeviceCapacity(value=each) for key, each in given.get("capacity", {}).items()
        },
        taints=tuple(_taint(each) for each in given.get("taints", ())),
        allow_multiple_allocations=given.get("shareable") or None,
    )


def _attribute(value: str | int | bool) -> DeviceAttribute:
    if isinstance(value, bool):
        return DeviceAttribute(bool_value=value)
    if isinstance(value, int):
        return DeviceAttribute(int_value=value)
    return DeviceAttribute(string_value=value)


def _taint(text: str) -> DeviceTaint:
    rest, colon, effect = text.rpartition(":")
    if not colon:
        raise UsageError(f"taint {text!r}: expected key=value:Effect or key:Effect")
    key, _, value = rest.partition("=")
    return DeviceTaint(key=key, value=value, effect=effect)


def _toleration(text: str) -> DeviceToleration:
    rest, colon, effect = text.rpartition(":")
    key, equals, value = (rest if colon else text).partition("=")
    operator = "Equal" if equals else "Exists"
    return DeviceToleration(key=key, operator=operator, value=value, effect=effect if colon else "")


# --- pods -----------------------------------------------------------------------------------------


def claiming(pod: Pod, claim: ResourceClaim) -> tuple[Pod, ResourceClaim]:
    """Return a pod with a claim of its own, and the claim."""
    meta = pod.metadata
    owner = OwnerReference(kind="Pod", name=meta.name, uid=meta.uid, controller=True)
    own = replace(claim, metadata=replace(claim.metadata, owner_references=(owner,)))
    reference = PodResourceClaim(name=OWN_CLAIM, resource_claim_template_name=OWN_CLAIM)
    made = PodResourceClaimStatus(name=OWN_CLAIM, resource_claim_name=claim.metadata.name)
    spec = replace(pod.spec, resource_claims=(*pod.spec.resource_claims, reference))
    statuses = (*pod.status.resource_claim_statuses, made)
    status = replace(pod.status, resource_claim_statuses=statuses)
    return replace(pod, spec=spec, status=status), own


def sharing(pod: Pod, names: Iterable[str]) -> Pod:
    """Return a pod that uses claims by their names."""
    references = tuple(PodResourceClaim(name=each, resource_claim_name=each) for each in names)
    return replace(pod, spec=replace(pod.spec, resource_claims=references))


def write_allocations(cluster: Cluster, pod: Pod, state: CycleState) -> tuple[str, ...]:
    """Write what was decided for a pod's claims, as binding does; return its devices."""
    found = state.get(DynamicResources.name)
    if not isinstance(found, PodDevices):
        return ()
    claims, meta = cluster.devices.claims, pod.metadata
    user = ResourceClaimConsumerReference(resource="pods", name=meta.name, uid=meta.uid)
    devices: list[str] = []
    for number, claim in enumerate(found.claims):
        allocation = found.decided.get(number) or claim.status.allocation
        if allocation is None:
            continue
        claims.drop(claim.metadata.uid, is_written=True)
        users = (*claim.status.reserved_for, user)
        status = replace(claim.status, allocation=allocation, reserved_for=users)
        claims.put(replace(claim, status=status))
        devices += (f"{each.pool}/{each.device}" for each in allocation.devices.results)
    found.pending.clear()
    return tuple(devices)
