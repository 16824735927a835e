"""The claims to devices that a pod refers to: by name, or made for it from a template."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kubesched.api.core import Pod, PodResourceClaim, PodResourceClaimStatus
from kubesched.api.resource import ResourceClaim, ResourceClaimConsumerReference
from kubesched.api.scheduling import (
    PodGroup,
    PodGroupResourceClaim,
    PodGroupResourceClaimStatus,
)
from kubesched.cluster.resource_claims import ResourceClaims
from kubesched.errors import ObjectError

#: API group and resource of pod groups.
POD_GROUPS: Final = ("scheduling.k8s.io", "podgroups")
_UNSUPPORTED: Final = "none of the supported fields are set"


def usable_claims(
    pod: Pod, claims: ResourceClaims, *, of_groups: bool = False
) -> list[ResourceClaim]:
    """Return the claims of a pod; raises ObjectError if one is missing, or not for the pod.

    `of_groups` is the gate DRAWorkloadResourceClaims: claims may be made for the pod's group.
    """
    return [claim for _, claim in named_claims(pod, claims, of_groups=of_groups)]


def named_claims(
    pod: Pod, claims: ResourceClaims, *, of_groups: bool
) -> list[tuple[str, ResourceClaim]]:
    """Return the same with the name that each claim has in the pod's spec."""
    found = []
    namespace = pod.metadata.namespace
    for reference in pod.spec.resource_claims:
        name = claim_name(pod, reference)
        if name is None:
            continue  # the pod does not need one
        claim = claims.get(namespace, name)
        if claim is None:
            raise ObjectError(f'could not find ResourceClaim "{namespace}/{name}"')
        if claim.metadata.deletion_timestamp is not None:
            raise ObjectError(f'resourceclaim "{name}" is being deleted')
        if reference.resource_claim_name is None:
            _check_owner(pod, claim, of_groups=of_groups)
        found.append((reference.name, claim))
    return found


def claim_name(pod: Pod, reference: PodResourceClaim) -> str | None:
    """Return the name of a claim; None if a controller found that the pod does not need one.

    Raises ObjectError if the controller has not made it yet.
    """
    where = f'pod "{pod.metadata.namespace}/{pod.metadata.name}"'
    return _claim_name(reference, pod.status.resource_claim_statuses, where, f'"{reference.name}"')


def is_reserved_for(pod: Pod, claim: ResourceClaim, *, of_groups: bool = False) -> bool:
    """Return whether a pod may use a claim already, by itself or as one of its group."""
    group = pod.spec.scheduling_group
    return any(
        each.uid == pod.metadata.uid
        or (
            of_groups
            and group is not None
            and group.pod_group_name is not None
            and (each.api_group, each.resource, each.name) == (*POD_GROUPS, group.pod_group_name)
        )
        for each in claim.status.reserved_for
    )


def user_of(
    pod: Pod, group: PodGroup | None, reference: PodResourceClaim
) -> ResourceClaimConsumerReference:
    """Return which object a claim is to be reserved for: the pod, or its group if that has it too.

    Raises ObjectError if a reference makes no sense.
    """
    own = (reference.name, reference.resource_claim_name, reference.resource_claim_template_name)
    if own[1:] == (None, None):
        raise ObjectError(f"Pod {shown(pod)} claim {reference.name}: {_UNSUPPORTED}")
    for each in () if group is None else group.spec.resource_claims:
        of_group = (each.name, each.resource_claim_name, each.resource_claim_template_name)
        if group is None or of_group[1:] == (None, None):
            raise ObjectError(
                f"PodGroup {group and shown(group)} claim {each.name}: {_UNSUPPORTED}"
            )
        if of_group == own:
            meta, (api_group, resource) = group.metadata, POD_GROUPS
            return ResourceClaimConsumerReference(
                api_group=api_group, resource=resource, name=meta.name, uid=meta.uid
            )
    return user_pod(pod)


def user_pod(pod: Pod) -> ResourceClaimConsumerReference:
    """Return the `reservedFor` entry of a pod."""
    meta = pod.metadata
    return ResourceClaimConsumerReference(resource="pods", name=meta.name, uid=meta.uid)


def claim_name_of_group(group: PodGroup, reference: PodGroupResourceClaim) -> str | None:
    """Return the name of a group's claim; None if a controller found that it does not need one.

    Raises ObjectError if the controller has not made it yet.
    """
    where = f"PodGroup {shown(group)}"
    return _claim_name(reference, group.status.resource_claim_statuses, where, reference.name)


def _claim_name(
    reference: PodResourceClaim | PodGroupResourceClaim,
    statuses: Iterable[PodResourceClaimStatus | PodGroupResourceClaimStatus],
    where: str,
    name: str,
) -> str | None:
    if reference.resource_claim_name is not None:
        return reference.resource_claim_name
    if reference.resource_claim_template_name is None:
        raise ObjectError(f"{where}, spec.resourceClaim {name}: {_UNSUPPORTED}")
    for status in statuses:
        if status.name == reference.name:
            return status.resource_claim_name
    raise ObjectError(f"{where}: ResourceClaim not created yet")


def shown(obj: ResourceClaim | Pod | PodGroup) -> str:
    """Return what an object is called in messages."""
    return f"{obj.metadata.namespace}/{obj.metadata.name}"


def _check_owner(pod: Pod, claim: ResourceClaim, *, of_groups: bool) -> None:
    """Raise ObjectError if a claim was made from a template for another pod or group."""
    owner = next((each for each in claim.metadata.owner_references if each.controller), None)
    if owner is not None and owner.uid == pod.metadata.uid:
        return
    text = f"ResourceClaim {shown(claim)} was not created for Pod {shown(pod)}"
    group = pod.spec.scheduling_group
    if not of_groups or group is None or group.pod_group_name is None:
        raise ObjectError(f"{text} (Pod is not owner)")
    if (
        owner is None
        or (owner.kind, owner.name) != ("PodGroup", group.pod_group_name)
        or not owner.api_version.startswith(f"{POD_GROUPS[0]}/")
    ):
        name = group.pod_group_name
        raise ObjectError(f"{text} (neither Pod nor PodGroup {name} is the owner)")


def is_for_group(group: PodGroup, claim: ResourceClaim) -> bool:
    """Return whether a claim was made for a group."""
    return any(
        each.controller and each.uid == group.metadata.uid
        for each in claim.metadata.owner_references
    )
