"""Claims to devices: as the watch shows them, as we wrote them, and what we decided about them.

    decided ── signal ──> pending ── written ──> shown as written ── watch ──> shown as observed
                             └─────── failed ──> dropped

Whichever version of a claim is the newest counts: the answer to a write comes before the watch
brings it, and the watch may bring older versions after it. An allocation that was decided and not
written yet is *pending*: its devices count as taken, and other pods have to wait for the claim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kubesched.api.core import Pod
from kubesched.api.meta import ObjectMeta
from kubesched.api.resource import AllocationResult, ResourceClaim
from kubesched.cluster.device_uses import DeviceUses, Results
from kubesched.cluster.incremental import Log
from kubesched.cluster.object_store import HasMeta, NamespacedStore
from kubesched.errors import require

#: Namespace and name of a claim.
ClaimKey = tuple[str, str]

ANNOTATION_EXTENDED_RESOURCES = "resource.kubernetes.io/extended-resource-claim"


class PendingAllocation:
    """An allocation that was decided and not written yet."""

    __slots__ = ("allocation", "sharers")

    def __init__(self, allocation: AllocationResult) -> None:
        self.allocation = allocation
        #: how many pods count on it
        self.sharers = 1


class ResourceClaims(NamespacedStore[ResourceClaim]):
    """All claims, and the devices that they take."""

    def __init__(self, uses: DeviceUses, changes: Log[ClaimKey] | None = None) -> None:
        super().__init__(changes)
        self._uses = uses
        #: versions that are newer than what the watch has brought
        self._written: dict[ClaimKey, ResourceClaim] = {}
        #: claim → what is counted as taken on its behalf
        self._counted: dict[ClaimKey, Results] = {}
        #: uid → pending allocation
        self._pending: dict[str, PendingAllocation] = {}
        #: called for each decision, and for each that is dropped (None); recordings need it
        self.on_decision: Callable[[str, AllocationResult | None, bool], None] | None = None
        self._by_owner = self._indexed(lambda claim: _extended_owner(claim.metadata))

    def __iter__(self) -> Iterator[ResourceClaim]:
        return iter([self._written.get(key, claim) for key, claim in self._objects.items()])

    def get(self, namespace: str, name: str) -> ResourceClaim | None:
        """Return the newest version of a claim."""
        return self.newest((namespace, name))

    def newest(self, key: ClaimKey) -> ResourceClaim | None:
        """Return the newest version of a claim, by its key."""
        return self._written.get(key) or self._objects.get(key)

    def of_extended_resources(self, pod_uid: str) -> ResourceClaim | None:
        """Return the claim that was made for the extended resources of a pod, if there is one."""
        for key in self._by_owner.keys(pod_uid):
            return self.get(*key)
        return None

    def of_pod(self, pod: Pod) -> list[ResourceClaim]:
        """Return the claims that a pod uses, as far as they are there."""
        made = {each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses}
        names = (
            each.resource_claim_name or made.get(each.name) for each in pod.spec.resource_claims
        )
        found = [self.get(pod.metadata.namespace, name) for name in names if name]
        found.append(self.of_extended_resources(pod.metadata.uid))
        return [claim for claim in found if claim is not None]

    def put(self, obj: ResourceClaim) -> None:
        """Take over what the watch brings."""
        key = self.key_of(obj)
        written = self._written.get(key)
        if written is not None and not is_newer(written, obj):
            del self._written[key]
        super().put(obj)

    def remove(self, obj: HasMeta) -> None:
        """Remove a claim."""
        self._written.pop(self.key_of(obj), None)
        super().remove(obj)

    def written(self, claim: ResourceClaim) -> bool:
        """Store the response to a write; return whether the claim exists."""
        key = self.key_of(claim)
        observed = self._objects.get(key)
        if observed is None:
            return False
        if is_newer(claim, observed):
            self._written[key] = claim
            self._changed(key)
        return True

    def _changed(self, key: ClaimKey) -> None:
        # First, because the listeners of the change read the devices.
        claim = self.get(*key)
        allocation = None if claim is None else claim.status.allocation
        results = () if allocation is None else allocation.devices.results
        before = self._counted.get(key, ())
        if results != before:
            self._uses.give_back(before)
            self._uses.take(results)
            if results:
                self._counted[key] = results
            else:
                del self._counted[key]
        super()._changed(key)

    # --- decisions that are not written yet -------------------------------------------------------

    def pending(self, uid: str) -> AllocationResult | None:
        """Return the pending allocation of a claim."""
        found = self._pending.get(uid)
        return None if found is None else found.allocation

    def decisions(self) -> Iterator[tuple[str, AllocationResult]]:
        """Return what was decided and not written yet, once for each pod that counts on it."""
        for uid, each in self._pending.items():
            for _ in range(each.sharers):
                yield uid, each.allocation

    @property
    def pending_count(self) -> int:
        """The number of allocations that were decided and not written yet."""
        return len(self._pending)

    def signal(self, uid: str, allocation: AllocationResult) -> None:
        """Count an allocation as decided, on behalf of one pod."""
        if self.on_decision is not None:
            self.on_decision(uid, allocation, False)
        found = self._pending.get(uid)
        if found is not None:
            found.sharers += 1
            return
        self._pending[uid] = PendingAllocation(allocation)
        self._uses.take(allocation.devices.results)

    def drop(self, uid: str, *, is_written: bool = False) -> bool:
        """Remove a pod from a pending allocation; return whether that ended the allocation."""
        found = self._pending.get(uid)
        if found is None:
            return False
        if self.on_decision is not None:
            self.on_decision(uid, None, is_written)
        if found.sharers > 1 and not is_written:
            found.sharers -= 1
            return False
        del self._pending[uid]
        self._uses.give_back(found.allocation.devices.results)
        return True

    def validate(self) -> None:
        """Check the counts against claims and decisions."""
        super().validate()
        for key, written in self._written.items():
            require(key in self._objects, f"the claim {key} that was written is known")
            require(is_newer(written, self._objects[key]), f"the written version of {key}")
        pending = [each.allocation.devices.results for each in self._pending.values()]
        shown = [each.status.allocation for each in self]
        allocated = [each.devices.results for each in shown if each is not None]
        self._uses.validate([*allocated, *pending])


def _extended_owner(meta: ObjectMeta) -> str:
    """Return the uid of the pod whose extended resources a claim is for, "" if it is another."""
    if (meta.annotations or {}).get(ANNOTATION_EXTENDED_RESOURCES) != "true":
        return ""
    return next((each.uid for each in meta.owner_references if each.controller), "")


def is_newer(one: ResourceClaim, other: ResourceClaim) -> bool:
    """Return whether a version of a claim is newer than another; False if not comparable."""
    mine, theirs = one.metadata.resource_version, other.metadata.resource_version
    return (
        one.metadata.uid == other.metadata.uid
        and mine.isdecimal()
        and theirs.isdecimal()
        and int(mine) > int(theirs)
    )
