"""From the claims of a pod to the nodes on which they can be served, and to their devices.

PreFilter   the claims: there? allocated? pending? ──> PodDevices
Filter      all nodes: allocated for them? devices left? ──> Verdict
Reserve     the chosen node: which devices? ──> pending allocations
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from kubesched.api.core import Pod
from kubesched.api.resource import AllocationResult, ResourceClaim
from kubesched.cluster.arrays import BoolArray, Int32Array, Int64Array
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.node_selector import SelectorMatch
from kubesched.framework.status import Status, error, unresolvable
from kubesched.framework.verdict import ALL_PASS, Verdict, first_of, reject
from kubesched.plugins import extended_claims
from kubesched.plugins.allocation_results import allocation_result
from kubesched.plugins.device_outcomes import (
    FAILS,
    FITS,
    INVALID,
    LACKS,
    UNKNOWN,
    Codes,
    OutcomeCache,
    Outcomes,
)
from kubesched.plugins.device_requests import asked_for
from kubesched.plugins.device_search import MAX_ALTERNATIVES
from kubesched.plugins.extended_claims import ExtendedClaim
from kubesched.plugins.pod_claims import shown

CANNOT_ALLOCATE: Final = unresolvable("cannot allocate all claims")
INVALID_POOLS: Final = unresolvable("invalid resource pools were encountered")
NOT_AVAILABLE: Final = unresolvable("resourceclaim not available on the node")
CANNOT_FIT: Final = unresolvable("cannot fit resource")
STALE_CLAIM: Final = unresolvable("cannot schedule extended resource claim")


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
        #: whether nodes can be told apart by the alternatives that they have
        self.has_alternatives = any(
            request.first_available for claim in claims for request in claim.spec.devices.requests
        )
        #: extended resources that may be devices
        self.extended_requests = extended_requests or {}
        #: number of a claim → the nodes that its allocation is for; None for all
        self.allocated_for: dict[int, SelectorMatch | None] = {}
        for number, claim in enumerate(self.claims):
            allocation = claim.status.allocation
            if allocation is not None:
                selector = allocation.node_selector
                match = None if selector is None else SelectorMatch(None, selector)
                self.allocated_for[number] = match
        #: those of which drivers say, or have let pass, that their devices cannot be had
        self.lost: set[int] = set()
        #: names of extended resources that are devices → the claim for them
        self.on_nodes: dict[frozenset[str], ExtendedClaim] = {}
        #: the same → what all claims ask for that have no devices yet
        self.asked: dict[frozenset[str], tuple[bytes, ...]] = {}
        #: numbers of claims that have no devices yet
        self.to_allocate = [
            number for number in range(len(self.claims)) if number not in self.allocated_for
        ]
        #: number of a claim → what was decided for it, to be written
        self.decided: dict[int, AllocationResult] = {}
        #: number of a claim → uid that the decision is pending under
        self.pending: dict[int, str] = {}
        #: the claim for extended resources as decided for the chosen node
        self.extended_claim: ExtendedClaim | None = None

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


class Allocator:
    """Finds nodes and devices for the claims of pods."""

    def __init__(
        self,
        cluster: Cluster,
        outcomes: OutcomeCache,
        *,
        timer: Callable[[], float],
        timeout_s: float,
    ) -> None:
        self._nodes = cluster.table
        self._devices = cluster.devices
        self._outcomes = outcomes
        self._timer = timer
        #: how long a search may take; 0 for as long as it takes
        self._timeout_s = timeout_s

    # --- nodes --------------------------------------------------------------------------------

    def verdict(self, devices: PodDevices, nodes: NodeRows) -> Verdict:
        """Say on which nodes the claims cannot be served."""
        if devices.is_stale:
            return reject(np.ones(len(nodes), dtype=np.bool_), STALE_CLAIM)
        if not devices.has_extended and not devices.allocated_for:
            return self._allocation_verdict(devices, frozenset(), None, nodes)
        unfit, kinds = self._by_kind(devices, nodes)
        parts = [reject(unfit, CANNOT_FIT)]
        if devices.to_allocate:
            parts += [
                self._allocation_verdict(devices, names, mask, nodes)
                for names, mask in kinds.items()
                if names is not None
            ]
        parts.append(reject(self.unavailable(devices, nodes, kinds), NOT_AVAILABLE))
        return first_of(*parts)

    def _by_kind(
        self, devices: PodDevices, nodes: NodeRows
    ) -> tuple[BoolArray, dict[frozenset[str] | None, BoolArray | None]]:
        """Return nodes that lack a resource, and the others by which resources are devices there.

        None stands for nodes on which there is nothing to allocate, and for all nodes.
        """
        if not devices.has_extended:
            return nodes.none(), {frozenset(): None}
        unfit = nodes.none()
        flags: list[tuple[str, BoolArray]] = []
        for name in devices.extended_requests:
            number = self._nodes.resources.find(name)
            absent = ~nodes.none() if number is None else nodes.allocatable(number) == 0
            if self._devices.extended_resources.class_of(name) is not None:
                flags.append((name, absent))
            else:
                unfit |= absent & ~self._lists(name, nodes, absent)
        kinds: dict[frozenset[str] | None, BoolArray | None] = {}
        keys = np.zeros(len(nodes), dtype=np.int64)
        for bit, (_, flag) in enumerate(flags):
            keys |= flag.astype(np.int64) << bit
        for key in np.unique(keys).tolist():
            names = frozenset(name for bit, (name, _) in enumerate(flags) if key >> bit & 1)
            # Where device plugins offer everything, there is nothing to do unless there are claims.
            is_idle = not names and not devices.names_claims
            kinds[None if is_idle else names] = keys == key
        return unfit, kinds

    def _lists(self, name: str, nodes: NodeRows, asked: BoolArray) -> BoolArray:
        """Tell which of the nodes asked about list a resource, be it with an amount of zero."""
        listed = nodes.none()
        rows = nodes.row_numbers()
        for position in np.flatnonzero(asked).tolist():
            row = int(rows[position])
            if self._nodes.valid[row]:
                listed[position] = name in (self._nodes.node_at(row).status.allocatable or {})
        return listed

    def _allocation_verdict(
        self,
        devices: PodDevices,
        names: frozenset[str],
        mask: BoolArray | None,
        nodes: NodeRows,
    ) -> Verdict:
        outcomes = self.outcomes(devices, names)
        numbers = self._outcomes.visible.of_row[nodes.rows]
        is_all = mask is None and len(numbers) == self._nodes.size
        wanted = numbers if mask is None else numbers[mask]
        outcomes.find(None if is_all else wanted, self._is_late())
        codes = outcomes.codes[numbers]
        if mask is not None:
            codes = np.where(mask, codes, FITS)
        if (codes == FITS).all():
            return ALL_PASS
        parts = [reject(codes == LACKS, CANNOT_ALLOCATE), reject(codes == INVALID, INVALID_POOLS)]
        parts += self._errors(devices, outcomes, codes, numbers)
        late = np.flatnonzero((codes == UNKNOWN) & self._nodes.valid[nodes.rows])
        if len(late):
            name = self._nodes.name_at(int(nodes.row_numbers()[late[0]]))
            parts.append(
                reject(
                    codes == UNKNOWN, error(f"node {name}: timed out trying to allocate devices")
                )
            )
        return first_of(*parts)

    def _errors(
        self, devices: PodDevices, outcomes: Outcomes, codes: Codes, numbers: Int32Array
    ) -> list[Verdict]:
        if not (codes == FAILS).any():
            return []
        names = [shown(devices.claims[number]) for number in devices.to_allocate]
        by_text: dict[str, list[int]] = {}
        for number in np.unique(numbers[codes == FAILS]).tolist():
            by_text.setdefault(outcomes.errors[number].message(names), []).append(number)
        return [
            reject((codes == FAILS) & np.isin(numbers, failing), error(text))
            for text, failing in by_text.items()
        ]

    def _is_late(self) -> Callable[[], bool]:
        if not self._timeout_s:
            return lambda: False
        deadline = self._timer() + self._timeout_s
        return lambda: self._timer() > deadline

    def outcomes(self, devices: PodDevices, names: frozenset[str]) -> Outcomes:
        """Return what is known about the claims, where some extended resources are devices."""
        asked = devices.asked.get(names)
        if asked is None:
            claims = self.claims_for(devices, names)
            asked = devices.asked[names] = tuple(map(asked_for, claims))
        return self._outcomes.of(asked)

    def claims_for(self, devices: PodDevices, names: frozenset[str]) -> list[ResourceClaim]:
        """Return the claims to allocate, where some extended resources are devices."""
        found = [devices.claims[number] for number in devices.to_allocate]
        if devices.extended is not None and found and found[-1] is devices.extended:
            found[-1] = self.extended_claim(devices, names).claim
        return found

    def extended_claim(self, devices: PodDevices, names: frozenset[str]) -> ExtendedClaim:
        """Return the claim for extended resources, where some of them are devices."""
        known = devices.on_nodes.get(names)
        if known is None and devices.extended is not None:
            known = devices.on_nodes[names] = extended_claims.claim_on_node(
                devices.extended, devices.pod, names, self._devices.extended_resources
            )
        if known is None:
            raise ValueError("the pod has no extended resources that are devices")
        return known

    def unavailable(
        self,
        devices: PodDevices,
        nodes: NodeRows,
        kinds: Mapping[frozenset[str] | None, BoolArray | None] | None = None,
    ) -> BoolArray:
        """Tell on which nodes a claim cannot be used whose devices are allocated."""
        result = nodes.none()
        for mask in self.unavailable_by_claim(devices, nodes).values():
            result |= mask
        idle = (kinds or {}).get(None)
        return result if idle is None else result & ~idle

    def unavailable_by_claim(self, devices: PodDevices, nodes: NodeRows) -> dict[int, BoolArray]:
        """Return the same for each claim that cannot be used on some node."""
        found = {}
        for number, match in devices.allocated_for.items():
            mask = nodes.none() if match is None else ~match(nodes)
            if number in devices.lost:
                mask[:] = True
            if mask.any():
                found[number] = mask
        return found

    # --- scores -------------------------------------------------------------------------------

    def scores(self, devices: PodDevices, nodes: NodeRows) -> Int64Array | None:
        """Return a score for each node: the sum over requests with alternatives."""
        if not devices.has_alternatives or not devices.to_allocate:
            return None
        total: Int64Array | None = None
        fixed = sum(map(_score_of, devices.claims))
        numbers = None
        for names, mask in self._by_kind(devices, nodes)[1].items():
            if names is None:
                continue
            outcomes = self.outcomes(devices, names)
            if not outcomes.wanted.has_alternatives and not fixed:
                continue
            if numbers is None:
                numbers = self._outcomes.visible.of_row[nodes.rows]
            outcomes.find(numbers, lambda: False)
            scores = outcomes.scores[numbers] + fixed
            if mask is not None:
                scores = np.where(mask, scores, 0)
            total = scores if total is None else total + scores
        return total

    # --- one node -----------------------------------------------------------------------------

    def decide(self, devices: PodDevices, node_name: str) -> Status | None:
        """Choose devices on a node and count them as taken; return what went wrong, if anything."""
        row = self._nodes.row_of(node_name)
        if row is None:
            return error("claim allocation not found for node")
        _, kinds = self._by_kind(devices, NodeRows.one(self._nodes, row))
        (names,) = kinds
        if names is None:
            return None
        claims = self.claims_for(devices, names)
        outcomes = self.outcomes(devices, names)
        number = self._outcomes.visible.of_row.item(row)
        outcomes.find(np.array([number], dtype=np.int32), lambda: False)
        solution = outcomes.solution(number)
        if solution is None:
            # It was found before, unless the cluster changed after the decision was made.
            return error("claim allocation not found for node")
        for position, index in enumerate(devices.to_allocate):
            wanted = outcomes.wanted.claims[position]
            chosen = [
                group[which]
                for group, which in zip(wanted.requests, solution.chosen[position], strict=True)
            ]
            devices.decided[index] = allocation_result(
                claims[position].spec.devices,
                solution.picks[position],
                chosen,
                table=self._devices.table,
                node_name=node_name,
            )
        if devices.has_extended:
            devices.extended_claim = self.extended_claim(devices, names)
        for index, allocation in devices.decided.items():
            uid = devices.claims[index].metadata.uid
            devices.pending[index] = uid
            self._devices.claims.signal(uid, allocation)
        return None

    def drop(self, devices: PodDevices, *, is_written: bool = False) -> None:
        """Stop counting what was decided: it was written, or comes to nothing."""
        for uid in devices.pending.values():
            self._devices.claims.drop(uid, is_written=is_written)
        devices.pending.clear()


def _score_of(claim: ResourceClaim) -> int:
    """Return the score of the alternatives that a claim with devices got."""
    allocation = claim.status.allocation
    if allocation is None:
        return 0
    got = {each.request for each in allocation.devices.results}
    return sum(
        MAX_ALTERNATIVES - number
        for request in claim.spec.devices.requests
        if request.exactly is None
        for number, each in enumerate(request.first_available)
        if f"{request.name}/{each.name}" in got
    )
