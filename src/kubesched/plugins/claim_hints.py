"""What may help a pod that waits for devices, and how to tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from kubesched.api.core import Pod
from kubesched.api.resource import ResourceClaim
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.resource_claims import ResourceClaims
from kubesched.errors import ObjectError
from kubesched.plugins.pod_claims import usable_claims
from kubesched.queue.events import Action, ClusterEvent, Resource
from kubesched.queue.hints import Change, Registration

_CHANGED: Final = Action.ADD | Action.UPDATE


def registrations(claims: ResourceClaims) -> Sequence[Registration]:
    """Return what may help, with hints that look at claims as they are by then."""
    after_claim_change = _after_claim_change(claims)

    def after_pod_change(pod: PodInfo, change: Change[Pod]) -> bool:  # noqa: ARG001 (it is the same)
        """The claims that the pod waits for were made."""
        return change.new is None or _are_there(change.new, claims)

    claim_changes = Action.ADD | Action.UPDATE | Action.DELETE
    on_node = Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE
    generated = Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM
    return (
        # Labels decide which devices a node can use.
        Registration(ClusterEvent(Resource.NODE, on_node)),
        Registration(ClusterEvent(Resource.RESOURCE_CLAIM, claim_changes), after_claim_change),
        Registration(ClusterEvent(Resource.TARGET_POD, generated), after_pod_change),
        Registration(ClusterEvent(Resource.DEVICE_CLASS, _CHANGED)),
        Registration(ClusterEvent(Resource.RESOURCE_SLICE, _CHANGED)),
        # A taint that goes makes a device available. In kube-scheduler its slice changes then.
        Registration(
            ClusterEvent(Resource.DEVICE_TAINT_RULE, Action.ADD | Action.UPDATE | Action.DELETE)
        ),
    )


def _after_claim_change(
    claims: ResourceClaims,
) -> Callable[[PodInfo, Change[ResourceClaim]], bool]:
    def after_claim_change(pod: PodInfo, change: Change[ResourceClaim]) -> bool:
        """Devices were given back, or a claim of the pod's own came or changed."""
        old, new = change.old, change.new
        was_allocated = old is not None and old.status.allocation is not None
        if new is None:
            return was_allocated
        try:
            own = usable_claims(pod.pod, claims)
        except ObjectError:
            return False  # it could not be scheduled all the same
        if was_allocated and new.status.allocation is None:
            return True
        if all(each.metadata.uid != new.metadata.uid for each in own):
            return False
        return old is None or old.status != new.status

    return after_claim_change


def _are_there(pod: Pod, claims: ResourceClaims) -> bool:
    try:
        usable_claims(pod, claims)
    except ObjectError:
        return False
    return True
