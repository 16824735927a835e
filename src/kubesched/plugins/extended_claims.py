"""Claims for extended resources that device classes stand for.

    containers: example.com/gpu: 2 ── class that backs it ──> requests of one claim of the pod

The claim exists in memory only until the pod has a node: which resources are devices there, and
which a device plugin offers, differs from node to node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple
from uuid import uuid4

from msgspec.structs import replace

from kubesched.api import quantity
from kubesched.api.core import Container, ContainerExtendedResourceRequest, Pod
from kubesched.api.meta import ObjectMeta, OwnerReference
from kubesched.api.resource import (
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from kubesched.cluster.extended_resources import ExtendedResources, may_be_devices
from kubesched.cluster.pod_signature import is_sidecar
from kubesched.cluster.resource_claims import ANNOTATION_EXTENDED_RESOURCES
from kubesched.errors import ObjectError

#: Not a name that an object can have.
NAME_IN_MEMORY: Final = "<extended-resources>"

Mapped = ContainerExtendedResourceRequest


class ExtendedClaim(NamedTuple):
    """What is requested on a node, and which container gets what of it."""

    claim: ResourceClaim
    mappings: tuple[Mapped, ...]


def backed_by_devices(requests: Mapping[str, int], resources: ExtendedResources) -> dict[str, int]:
    """Return those of a pod's requests that may be for devices; empty if no class backs any.

    Which of them are for devices depends on the node.
    """
    found = {name: amount for name, amount in requests.items() if amount and may_be_devices(name)}
    return found if any(resources.class_of(name) for name in found) else {}


def claim_in_memory(pod: Pod) -> ResourceClaim:
    """Return the claim that is made for a pod, without any request yet."""
    meta = pod.metadata
    owner = OwnerReference(
        api_version="v1", kind="Pod", name=meta.name, uid=meta.uid, controller=True
    )
    return ResourceClaim(
        metadata=ObjectMeta(
            namespace=meta.namespace,
            name=NAME_IN_MEMORY,
            # Its allocation is pending under this one until the claim exists.
            uid=str(uuid4()),
            generate_name=f"{meta.name}-extended-resources-",
            owner_references=(owner,),
            annotations={ANNOTATION_EXTENDED_RESOURCES: "true"},
        )
    )


def is_in_memory(claim: ResourceClaim) -> bool:
    """Return whether a claim is yet to be created."""
    return claim.metadata.name == NAME_IN_MEMORY


def claim_on_node(
    claim: ResourceClaim, pod: Pod, names: Iterable[str], resources: ExtendedResources
) -> ExtendedClaim:
    """Return the claim for nodes on which these resources are devices."""
    requests: list[DeviceRequest] = []
    mappings: list[Mapped] = []
    for name in sorted(names):
        device_class = resources.class_of(name)
        if device_class is not None:
            made = _requests_for(pod, name, device_class.metadata.name)
            requests += made[0]
            mappings += made[1]
    requests.sort(key=lambda each: each.name)
    spec = ResourceClaimSpec(devices=DeviceClaim(requests=tuple(requests)))
    return ExtendedClaim(replace(claim, spec=spec), tuple(mappings))


def _requests_for(
    pod: Pod, resource: str, class_name: str
) -> tuple[list[DeviceRequest], list[Mapped]]:
    """Return requests for one resource, and which containers use them.

    Init containers that end before others start use the devices of those. What they need beyond
    that, they use one after the other, so the largest of these requests serves all of them.
    """
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    ending = [
        number for number, each in enumerate(pod.spec.init_containers) if not is_sidecar(each)
    ]
    lasting = [number for number in range(len(containers)) if number not in set(ending)]
    own: dict[int, DeviceRequest] = {}
    long_lived: list[Mapped] = []
    for number in lasting:
        made, mapped = _request_of(number, containers[number], resource, class_name, ())
        own.update({number: made} if made is not None else {})
        long_lived += mapped
    largest: DeviceRequest | None = None
    short_names: set[str] = set()
    short_lived: list[Mapped] = []
    for number in ending:
        reusable = [own[each] for each in sorted(own) if each >= number]
        made, mapped = _request_of(number, containers[number], resource, class_name, reusable)
        short_lived += mapped
        if made is not None:
            short_names.add(made.name)
            largest = made if largest is None or _count(largest) < _count(made) else largest
    if largest is not None:
        short_lived = [
            replace(each, request_name=largest.name) if each.request_name in short_names else each
            for each in short_lived
        ]
    requests = ([] if largest is None else [largest]) + [own[number] for number in sorted(own)]
    return requests, long_lived + short_lived


def _request_of(
    number: int,
    container: Container,
    resource: str,
    class_name: str,
    reusable: Sequence[DeviceRequest],
) -> tuple[DeviceRequest | None, list[Mapped]]:
    """Return what a container requests beyond what it can reuse, and all that it uses."""
    asked = (container.resources.requests if container.resources is not None else None) or {}
    wanted = _whole(asked[resource]) if resource in asked else 0
    if not wanted:
        return None, []
    mappings: list[Mapped] = []
    covered = 0
    for each in reusable:
        covered += _count(each)
        mappings.append(_mapped(container, resource, each.name))
        if covered >= wanted:
            return None, mappings
    name = f"container-{number}-request-{sorted(asked).index(resource)}"
    exactly = ExactDeviceRequest(
        device_class_name=class_name, allocation_mode="ExactCount", count=wanted - covered
    )
    mappings.append(_mapped(container, resource, name))
    return DeviceRequest(name=name, exactly=exactly), mappings


def _mapped(container: Container, resource: str, request: str) -> Mapped:
    return Mapped(container_name=container.name, resource_name=resource, request_name=request)


def _count(request: DeviceRequest) -> int:
    return 0 if request.exactly is None else request.exactly.count


def _whole(text: str | float) -> int:
    """Return an amount of devices; 0 for what is not a whole number."""
    try:
        amount = quantity.nano(text)
    except ObjectError:
        return 0
    return 0 if amount % 10**9 else amount // 10**9
