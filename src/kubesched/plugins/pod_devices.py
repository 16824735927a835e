"""The claims of one pod in one attempt: what they are, and what is decided about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kubesched.api.core import Pod
from kubesched.api.resource import (
    AllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
)
from kubesched.cluster.node_selector import SelectorMatch
from kubesched.cluster.pod_info import Claimed
from kubesched.framework.status import unresolvable
from kubesched.plugins.extended_claims import ExtendedClaim
from kubesched.plugins.pod_claims import user_pod

#: of nodes on which the devices of an allocated claim, or enough free ones, are not
NOT_AVAILABLE: Final = unresolvable("resourceclaim not available on the node")


class PodDevices:
    """The claims of one pod in one attempt."""

    def __init__(
        self,
        pod: Pod,
        claims: list[ResourceClaim],
        *,
        extended: ResourceClaim | None = None,
        extended_requests: Mapping[str, int] | None = None,
    ) -> None:
        self.pod = pod
        #: those that the pod names, and then the one for extended resources; replaced when written
        self.claims = claims if extended is None else [*claims, extended]
        self.has_extended = extended is not None
        #: name in the pod's spec → uid of the claim
        self.uids: Mapping[str, str] = {}
        #: which object each claim is to be reserved for, if not for the pod: its group
        self.users: Sequence[ResourceClaimConsumerReference] = ()
        #: whether nodes can be told apart by the alternatives that they have
        self.has_alternatives = any(
            request.first_available for claim in claims for request in claim.spec.devices.requests
        )
        #: extended resources that may be devices
        self.extended_requests = extended_requests or {}
        #: number of a claim → the nodes that its allocation is for; None for all
        self.allocated_for: dict[int, SelectorMatch | None] = {}
        #: those for whose devices kubelets have to leave out operations
        self.skipping: set[int] = set()
        #: allocations that are there, by number of the claim: written ones, and those in `reused`
        self.fixed: dict[int, AllocationResult] = {}
        #: allocations that were decided for another pod of the group, and are not written yet
        self.reused: dict[int, AllocationResult] = {}
        for number, claim in enumerate(self.claims):
            if claim.status.allocation is not None:
                self._fix(number, claim.status.allocation)
        #: those whose drivers failed to prepare the devices, or timed out
        self.lost: set[int] = set()
        #: those that could not be used on a node which nothing else spoke against
        self.unavailable: set[int] = set()
        #: those whose devices are so much of a resource of their node, and in use by another pod
        self.unshareable: set[int] = set()
        #: names of extended resources that are devices → the claim for them
        self.on_nodes: dict[frozenset[str], ExtendedClaim] = {}
        #: the same → what all claims ask for that have no devices yet
        self.asked: dict[frozenset[str], tuple[bytes, ...]] = {}
        #: number of a claim → what was decided for it, to be written
        self.decided: dict[int, AllocationResult] = {}
        #: number of a claim → uid that the decision is pending under
        self.pending: dict[int, str] = {}
        #: the claim for extended resources as decided for the chosen node
        self.extended_claim: ExtendedClaim | None = None
        #: what devices take of the chosen node's own resources, and whether that was written
        self.claimed: Claimed = ()
        self.has_written_claimed = False
        #: whether a search that takes long may go on in another attempt
        self.may_pause = False
        #: whether other pods of the group may use the same claims
        self.is_in_group = False

    def reuse(self, number: int, allocation: AllocationResult) -> None:
        """Take over what was decided about a claim for another pod of the group."""
        self.reused[number] = allocation
        self._fix(number, allocation)

    def _fix(self, number: int, allocation: AllocationResult) -> None:
        self.fixed[number] = allocation
        selector = allocation.node_selector
        self.allocated_for[number] = None if selector is None else SelectorMatch(None, selector)
        if skips_operations(allocation):
            self.skipping.add(number)

    def user_of(self, number: int) -> ResourceClaimConsumerReference:
        """Return which object a claim is to be reserved for."""
        return self.users[number] if number < len(self.users) else user_pod(self.pod)

    @property
    def to_allocate(self) -> list[int]:
        """Numbers of claims that have no devices yet."""
        return [number for number in range(len(self.claims)) if number not in self.fixed]

    @property
    def is_to_be_decided(self) -> bool:
        """Whether there is something to decide, or to share, when the pod has a node."""
        return len(self.fixed) < len(self.claims) or bool(self.reused)

    @property
    def extended(self) -> ResourceClaim | None:
        """The claim for extended resources."""
        return self.claims[-1] if self.has_extended else None

    @property
    def names_claims(self) -> bool:
        """Whether the pod names claims itself."""
        return len(self.claims) > self.has_extended

    @property
    def is_stale(self) -> bool:
        """Whether there is a claim for extended resources already, from an attempt that failed."""
        return self.extended is not None and bool(self.extended.spec.devices.requests)


def skips_operations(allocation: AllocationResult) -> bool:
    """Return whether kubelets have to skip operations for some device."""
    return any(each.skip_node_operations for each in allocation.devices.results)
