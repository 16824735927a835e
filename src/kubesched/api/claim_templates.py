"""Claims that are made for a pod from templates, as the controller of claims makes them.

A pod that is not created yet has no controller that works for it; in simulations and files there is
none at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from kubesched.api.core import Pod, PodResourceClaim, PodResourceClaimStatus
from kubesched.api.meta import ObjectMeta, OwnerReference
from kubesched.api.resource import ResourceClaim, ResourceClaimTemplate

#: Returns the template with a namespace and a name, None if there is none.
FindTemplate = Callable[[str, str], ResourceClaimTemplate | None]


def among(templates: Iterable[ResourceClaimTemplate]) -> FindTemplate:
    """Return a search among some templates."""
    known = {(each.metadata.namespace, each.metadata.name): each for each in templates}
    return lambda namespace, name: known.get((namespace, name))


def with_claims(pod: Pod, find: FindTemplate) -> tuple[Pod, tuple[ResourceClaim, ...]]:
    """Return a pod whose claims are made, and the claims.

    A claim that the pod has already stays, and one whose template is not known stays missing.
    """
    made: list[ResourceClaim] = []
    statuses = {each.name: each for each in pod.status.resource_claim_statuses}
    for reference in pod.spec.resource_claims:
        name = reference.resource_claim_template_name
        if name is None or reference.name in statuses:
            continue
        template = find(pod.metadata.namespace, name)
        if template is not None:
            claim = _claim(pod, reference, template)
            made.append(claim)
            statuses[reference.name] = PodResourceClaimStatus(
                name=reference.name, resource_claim_name=claim.metadata.name
            )
    if not made:
        return pod, ()
    status = replace(pod.status, resource_claim_statuses=tuple(statuses.values()))
    return replace(pod, status=status), tuple(made)


def without_own_claims(pod: Pod) -> Pod:
    """Return a pod as it is before claims are made for it."""
    if not pod.status.resource_claim_statuses:
        return pod
    return replace(pod, status=replace(pod.status, resource_claim_statuses=()))


def _claim(pod: Pod, reference: PodResourceClaim, template: ResourceClaimTemplate) -> ResourceClaim:
    meta, common = pod.metadata, template.spec.metadata
    owner = OwnerReference(kind="Pod", name=meta.name, uid=meta.uid, controller=True)
    return ResourceClaim(
        metadata=ObjectMeta(
            name=f"{meta.name}-{reference.name}",
            namespace=meta.namespace,
            uid=f"{meta.uid}/{reference.name}",
            labels=common.labels,
            annotations=common.annotations,
            owner_references=(owner,),
        ),
        spec=template.spec.spec,
    )
