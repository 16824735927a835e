"""The claims to devices that a pod refers to: by name, or made for it from a template."""

from __future__ import annotations

from kubesched.api.core import Pod, PodResourceClaim
from kubesched.api.resource import ResourceClaim
from kubesched.cluster.resource_claims import ResourceClaims
from kubesched.errors import ObjectError


def usable_claims(pod: Pod, claims: ResourceClaims) -> list[ResourceClaim]:
    """Return the claims of a pod; raises ObjectError if one is missing, or not for the pod."""
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
        if reference.resource_claim_name is None and not _is_for(pod, claim):
            raise ObjectError(
                f"ResourceClaim {namespace}/{name} was not created for Pod "
                f"{namespace}/{pod.metadata.name} (Pod is not owner)"
            )
        found.append(claim)
    return found


def claim_name(pod: Pod, reference: PodResourceClaim) -> str | None:
    """Return the name of a claim; None if a controller found that the pod does not need one.

    Raises ObjectError if the controller has not made it yet.
    """
    if reference.resource_claim_name is not None:
        return reference.resource_claim_name
    shown = f'pod "{pod.metadata.namespace}/{pod.metadata.name}"'
    if reference.resource_claim_template_name is None:
        raise ObjectError(
            f'{shown}, spec.resourceClaim "{reference.name}": none of the supported fields are set'
        )
    for status in pod.status.resource_claim_statuses:
        if status.name == reference.name:
            return status.resource_claim_name
    raise ObjectError(f"{shown}: ResourceClaim not created yet")


def is_reserved_for(pod: Pod, claim: ResourceClaim) -> bool:
    """Tell whether a pod may use a claim already."""
    return any(each.uid == pod.metadata.uid for each in claim.status.reserved_for)


def shown(claim: ResourceClaim) -> str:
    """Return what a claim is called in messages."""
    return f"{claim.metadata.namespace}/{claim.metadata.name}"


def _is_for(pod: Pod, claim: ResourceClaim) -> bool:
    return any(
        each.controller and each.uid == pod.metadata.uid for each in claim.metadata.owner_references
    )
