"""Claims of a group of pods: what its members share in one attempt, and what is given up after it.

    member decides ──> its allocation is pending ──> the next member reuses it
    the group does not fit ──> allocations that keep members from all nodes are given up

With the gate DRAWorkloadResourceClaims, claims that the group names are reserved for the group.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from kubesched.api.resource import ResourceClaim
from kubesched.api.scheduling import PodGroup
from kubesched.cluster.devices import Devices
from kubesched.cluster.pod_groups import PodGroups, key_of_group
from kubesched.cluster.pod_info import PodInfo
from kubesched.errors import ObjectError
from kubesched.framework.status import Status, error, unresolvable, unschedulable
from kubesched.plugins.claim_binder import ClaimBinder
from kubesched.plugins.pod_claims import claim_name_of_group, is_for_group, is_reserved_for
from kubesched.plugins.pod_devices import PodDevices

GROUP_CLAIMS_DONE: Final = unschedulable("deallocation and deletion of ResourceClaims completed")
_DEALLOCATED: Final = unschedulable("deallocation of PodGroup ResourceClaim completed")
_UNRESERVED: Final = unresolvable("ResourceClaim unreserved for PodGroup")


class GroupDevices:
    """What members of a group have decided in one attempt at it."""

    def __init__(self) -> None:
        #: uid of a claim → uids of the pods that share its pending allocation
        self.pending: dict[str, set[str]] = {}
        #: uid of a pod → its claims
        self.pods: dict[str, PodDevices] = {}

    def share(self, devices: PodDevices) -> None:
        """Let other members use what was decided for a pod."""
        for uid in devices.pending.values():
            self.pending.setdefault(uid, set()).add(devices.pod.metadata.uid)

    def forget(self, uids: Iterable[str]) -> None:
        """Share allocations no longer that are not pending any more."""
        for uid in uids:
            self.pending.pop(uid, None)


class GroupClaims:
    """Gives up claims of groups that could not be placed."""

    def __init__(
        self, devices: Devices, groups: PodGroups, binder: ClaimBinder, *, of_groups: bool
    ) -> None:
        self._claims = devices.claims
        self._groups = groups
        self._binder = binder
        #: the gate DRAWorkloadResourceClaims
        self._of_groups = of_groups

    def give_up(self, group: PodGroup, pods: Sequence[PodInfo], known: GroupDevices) -> Status:
        """Deallocate claims that make all nodes infeasible; the group's own ones last."""
        is_left = False
        for pod in pods:
            devices = known.pods.get(pod.uid)
            if devices is not None and self._binder.give_up(devices, devices.unavailable) is None:
                is_left = True
        if is_left and self._of_groups and pods:
            placed = self._groups.members(key_of_group(group)).placed_count
            status = None if placed else self._give_up_own(group, pods[0], known)
            if status is not None:
                return status
        return GROUP_CLAIMS_DONE

    def _give_up_own(self, group: PodGroup, pod: PodInfo, known: GroupDevices) -> Status | None:
        """Deallocate a claim of the group, or its reservation; None if there is none."""
        for devices in known.pods.values():
            for number in sorted(devices.unavailable):
                claim = devices.claims[number]
                if _is_only_for(group, claim):
                    self._binder.deallocate(claim)
                    return _DEALLOCATED
        for reference in group.spec.resource_claims:
            try:
                name = claim_name_of_group(group, reference)
            except ObjectError as missing:
                return error(str(missing))
            if name is None:
                continue
            namespace = group.metadata.namespace
            found = self._claims.get(namespace, name)
            if found is None:
                return error(f'could not find ResourceClaim "{namespace}/{name}"')
            if reference.resource_claim_name is None and not is_for_group(group, found):
                continue
            is_reserved = is_reserved_for(pod.pod, found, of_groups=True)
            if found.status.allocation is not None and is_reserved:
                self._binder.unreserve_for(found, group.metadata.uid)
                return _UNRESERVED
        return None


def _is_only_for(group: PodGroup, claim: ResourceClaim) -> bool:
    users = [each.uid for each in claim.status.reserved_for]
    return users in ([], [group.metadata.uid])
