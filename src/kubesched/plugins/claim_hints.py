"""Events that may help a pod rejected for its devices, with their queueing hints."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final

from kubesched.api.core import Pod
from kubesched.api.resource import ResourceClaim
from kubesched.cluster.devices import Devices
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.resource_claims import ResourceClaims
from kubesched.errors import ObjectError
from kubesched.plugins.pod_claims import usable_claims
from kubesched.queue.events import Action, ClusterEvent, Resource
from kubesched.queue.hints import Change, Registration

_CHANGED: Final = Action.ADD | Action.UPDATE


def registrations(devices: Devices, *, of_groups: bool = False) -> Sequence[Registration]:
    """Return the registrations; their hints read claims as they are when the hint runs."""
    claims = devices.claims
    after_claim_change = _after_claim_change(claims, of_groups=of_groups)

    def users_of_claim(change: Change[ResourceClaim]) -> Collection[str] | None:
        """Devices that are given back may help any pod, all else only pods with the claim."""
        claim = change.newest
        if claim is None or _gives_devices_back(change):
            return None
        return devices.claim_users.of((claim.metadata.namespace, claim.metadata.name))

    def may_help_alike(pod: PodInfo, change: Change[ResourceClaim]) -> bool:  # noqa: ARG001
        """Of claims that groups share, pods need not be known as users."""
        return of_groups or change.newest is None or _gives_devices_back(change)

    def uids_of_users(change: Change[ResourceClaim]) -> Collection[str]:
        claim = change.newest
        key = None if claim is None else (claim.metadata.namespace, claim.metadata.name)
        return () if key is None else devices.claim_users.uids(key)

    def after_pod_change(pod: PodInfo, change: Change[Pod]) -> bool:  # noqa: ARG001 (it is the same)
        """The claims that the pod waits for were made."""
        return change.new is None or _are_there(change.new, claims, of_groups=of_groups)

    claim_changes = Action.ADD | Action.UPDATE | Action.DELETE
    on_node = Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE
    generated = Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM
    return (
        # Labels decide which devices a node can use.
        Registration(ClusterEvent(Resource.NODE, on_node)),
        Registration(
            ClusterEvent(Resource.RESOURCE_CLAIM, claim_changes),
            after_claim_change,
            pre_hint=users_of_claim,
            screen=may_help_alike,
            apart=uids_of_users,
        ),
        Registration(ClusterEvent(Resource.TARGET_POD, generated), after_pod_change),
        Registration(ClusterEvent(Resource.DEVICE_CLASS, _CHANGED)),
        Registration(ClusterEvent(Resource.RESOURCE_SLICE, _CHANGED)),
        # A taint that goes makes a device available. In kube-scheduler its slice changes then.
        Registration(
            ClusterEvent(Resource.DEVICE_TAINT_RULE, Action.ADD | Action.UPDATE | Action.DELETE)
        ),
    )


def _after_claim_change(
    claims: ResourceClaims, *, of_groups: bool
) -> Callable[[PodInfo, Change[ResourceClaim]], bool]:
    def after_claim_change(pod: PodInfo, change: Change[ResourceClaim]) -> bool:
        """Devices were given back, or a claim of the pod's own came or changed."""
        old, new = change.old, change.new
        if new is None:
            return _gives_devices_back(change)
        try:
            own = usable_claims(pod.pod, claims, of_groups=of_groups)
        except ObjectError:
            return False  # it could not be scheduled all the same
        if _gives_devices_back(change):
            return True
        if all(each.metadata.uid != new.metadata.uid for each in own):
            return False
        return old is None or old.status != new.status

    return after_claim_change


def _gives_devices_back(change: Change[ResourceClaim]) -> bool:
    old, new = change.old, change.new
    was_allocated = old is not None and old.status.allocation is not None
    return was_allocated and (new is None or new.status.allocation is None)


def _are_there(pod: Pod, claims: ResourceClaims, *, of_groups: bool) -> bool:
    try:
        usable_claims(pod, claims, of_groups=of_groups)
    except ObjectError:
        return False
    return True
