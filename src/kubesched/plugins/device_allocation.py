"""From the claims of a pod to the nodes on which they can be served, and to their devices.

PreFilter   the claims: there? allocated? pending? ──> PodDevices
Filter      all nodes: allocated for them? devices left? ──> Verdict
Reserve     the chosen node: which devices? ──> pending allocations
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import numpy as np

from kubesched.api.resource import AllocationResult, ResourceClaim
from kubesched.cluster.arrays import BoolArray, Int32Array, Int64Array
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.visible_devices import OPTIONAL_NODE_OPERATIONS
from kubesched.config.features import FeatureGates
from kubesched.framework.attempt_error import AttemptPausedError
from kubesched.framework.status import Status, error, unresolvable
from kubesched.framework.verdict import ALL_PASS, Verdict, first_of, reject
from kubesched.plugins import extended_claims
from kubesched.plugins.allocation_results import allocation_result
from kubesched.plugins.device_census import DeviceCensus
from kubesched.plugins.device_counters import CounterCache
from kubesched.plugins.device_ledger import DeviceState
from kubesched.plugins.device_outcomes import (
    FAILS,
    FITS,
    INVALID,
    LACKS,
    LATE,
    UNKNOWN,
    Codes,
    OutcomeCache,
    Outcomes,
)
from kubesched.plugins.device_requests import RequestCompiler, asked_for
from kubesched.plugins.device_rules import SearchRules
from kubesched.plugins.device_search import MAX_ALTERNATIVES, Pick
from kubesched.plugins.device_selectors import compile_selector
from kubesched.plugins.extended_claims import ExtendedClaim
from kubesched.plugins.node_allocatable import UsedDevice
from kubesched.plugins.node_footprint import Footprints, NodeGroup
from kubesched.plugins.pod_claims import shown
from kubesched.plugins.pod_devices import NOT_AVAILABLE, PodDevices
from kubesched.plugins.search_budget import SearchBudget

CANNOT_ALLOCATE: Final = unresolvable("cannot allocate all claims")
INVALID_POOLS: Final = unresolvable("invalid resource pools were encountered")
CANNOT_FIT: Final = unresolvable("cannot fit resource")
STALE_CLAIM: Final = unresolvable("cannot schedule extended resource claim")


def make_allocator(
    cluster: Cluster,
    gates: FeatureGates,
    rules: SearchRules,
    *,
    timer: Callable[[], float],
    timeout_s: float,
    footprints: Footprints | None,
) -> Allocator:
    """Make an allocator with its caches."""
    devices = cluster.devices
    counters = CounterCache(devices.table, devices.uses)
    outcomes = OutcomeCache(
        devices,
        visible=devices.visible(rules.of_pools),
        state=DeviceState(devices.table, devices.uses, counters, rules),
        compiler=RequestCompiler(
            devices, compile_selector, taints=gates.enabled("DRADeviceTaints"), rules=rules
        ),
    )
    return Allocator(cluster, outcomes, timer=timer, timeout_s=timeout_s, footprints=footprints)


class Allocator:
    """Finds nodes and devices for the claims of pods."""

    def __init__(
        self,
        cluster: Cluster,
        outcomes: OutcomeCache,
        *,
        timer: Callable[[], float],
        timeout_s: float,
        footprints: Footprints | None = None,
    ) -> None:
        """`footprints` are given if devices may take something of their node's own resources."""
        self._nodes = cluster.table
        self._compiler = cluster.compiler
        self._devices = cluster.devices
        self._footprints = footprints
        self._outcomes = outcomes
        self._timer = timer
        #: how long a search may take; 0 for as long as it takes
        self._timeout_s = timeout_s

    # --- nodes --------------------------------------------------------------------------------

    def verdict(self, devices: PodDevices, nodes: NodeRows) -> Verdict:
        """Reject the nodes on which the claims cannot be allocated."""
        if devices.is_stale:
            return reject(np.ones(len(nodes), dtype=np.bool_), STALE_CLAIM)
        footprints = self._footprints if self.has_footprints else None
        if not devices.has_extended and not devices.allocated_for and footprints is None:
            return self._allocation_verdict(devices, frozenset(), None, nodes)
        unfit, kinds = self._by_kind(devices, nodes)
        unavailable = self.unavailable_by_claim(devices, nodes)
        parts = [reject(unfit, CANNOT_FIT)]
        parts += [
            reject(
                self._usable(devices, number, nodes),
                unresolvable(
                    f"node allocatable resource claim {devices.claims[number].metadata.name} has a "
                    "mapped device and cannot be shared across pods"
                ),
            )
            for number in sorted(devices.unshareable)
        ]
        parts += [
            reject(
                ~can_skip(nodes),
                unresolvable(
                    f"resource claim {shown(devices.claims[number])} allocation requires "
                    "DRAOptionalNodeOperations feature on the node"
                ),
            )
            for number in devices.reused
            if number in devices.skipping
        ]
        if devices.to_allocate:
            parts += [
                self._allocation_verdict(devices, names, mask, nodes)
                for names, mask in kinds.items()
                if names is not None
            ]
        if footprints is not None:
            groups = list(self._groups(devices, kinds, nodes))
            parts.append(footprints.verdict(devices, groups, nodes))
        missing = self._any_of(unavailable, kinds, nodes)
        found = first_of(*parts, reject(missing, NOT_AVAILABLE))
        if devices.is_in_group and missing.any():
            for mask in first_of(*parts).masks():
                missing &= ~mask
            reached = missing & self._nodes.valid[nodes.rows]
            devices.unavailable |= {n for n, mask in unavailable.items() if (mask & reached).any()}
        return found

    @property
    def has_footprints(self) -> bool:
        """Whether devices take something of their node's own resources."""
        return self._footprints is not None and self._footprints.are_needed

    def _groups(
        self,
        devices: PodDevices,
        kinds: Mapping[frozenset[str] | None, BoolArray | None],
        nodes: NodeRows,
    ) -> Iterator[NodeGroup]:
        """Return the nodes on which all claims can be served, by the devices they get there."""
        everywhere = np.ones(len(nodes), dtype=np.bool_)
        for names, mask in kinds.items():
            if names is None:
                continue
            here = everywhere if mask is None else mask
            if not devices.to_allocate:
                yield NodeGroup(here, {})
                continue
            outcomes = self.outcomes(devices, names)
            numbers = self._outcomes.visible.of_row[nodes.rows]
            here = here & (outcomes.codes[numbers] == FITS)
            for number in np.unique(numbers[here]).tolist():
                solution = outcomes.solution(number)
                if solution is not None:
                    used = {
                        index: tuple(map(self._used, solution.picks[position]))
                        for position, index in enumerate(devices.to_allocate)
                    }
                    yield NodeGroup(here & (numbers == number), used)

    def _used(self, pick: Pick) -> UsedDevice:
        table = self._devices.table
        return UsedDevice(table.keys[pick.row], pick.share, table.device_at(pick.row))

    def on_node(self, devices: PodDevices, pod: PodInfo, node_name: str) -> PodInfo:
        """Return what a pod counts for on a node that was found to fit, its devices included."""
        row = self._nodes.row_of(node_name)
        if self._footprints is None or row is None:
            return pod
        node = NodeRows.one(self._nodes, row)
        groups = self._groups(devices, self._by_kind(devices, node)[1], node)
        devices.claimed = ()
        for group in groups:
            devices.claimed = self._footprints.claimed(devices, group, node)
        if devices.claimed == pod.pod.status.node_allocatable_resource_claim_statuses:
            return pod
        return self._compiler.claiming(pod, devices.claimed)

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
        """Return which of the selected nodes list a resource, be it with an amount of zero."""
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
        budget = self._budget(may_pause=devices.may_pause)
        if not outcomes.find(None if is_all else wanted, budget) and budget.is_paused:
            raise AttemptPausedError("the search for devices goes on in the next attempt")
        codes = outcomes.codes[numbers]
        if mask is not None:
            codes = np.where(mask, codes, FITS)
        if (codes == FITS).all():
            return ALL_PASS
        parts = [reject(codes == LACKS, CANNOT_ALLOCATE), reject(codes == INVALID, INVALID_POOLS)]
        parts += self._errors(devices, outcomes, codes, numbers)
        is_open = (codes == LATE) | (codes == UNKNOWN)
        late = np.flatnonzero(is_open & self._nodes.valid[nodes.rows])
        if len(late):
            # The node whose search timed out first, then those that were not searched.
            first = late[codes[late].argmax()]
            name = self._nodes.name_at(int(nodes.row_numbers()[first]))
            text = f"node {name}: timed out trying to allocate devices"
            parts.append(reject(is_open, error(text)))
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

    def _budget(self, *, may_pause: bool) -> SearchBudget:
        return SearchBudget(self._timer, self._timeout_s, may_pause=may_pause)

    def outcomes(self, devices: PodDevices, names: frozenset[str]) -> Outcomes:
        """Return the outcomes of the claims, where some extended resources are devices."""
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

    def _any_of(
        self,
        unavailable: Mapping[int, BoolArray],
        kinds: Mapping[frozenset[str] | None, BoolArray | None],
        nodes: NodeRows,
    ) -> BoolArray:
        """Return on which nodes a claim cannot be used whose devices are allocated."""
        result = nodes.none()
        for mask in unavailable.values():
            result |= mask
        idle = kinds.get(None)
        return result if idle is None else result & ~idle

    def unavailable_by_claim(self, devices: PodDevices, nodes: NodeRows) -> dict[int, BoolArray]:
        """Return the nodes on which claims cannot be used whose devices are allocated."""
        found = {}
        for number in devices.allocated_for:
            mask = ~self._usable(devices, number, nodes)
            if number in devices.lost:
                mask[:] = True
            if mask.any():
                found[number] = mask
        return found

    def _usable(self, devices: PodDevices, number: int, nodes: NodeRows) -> BoolArray:
        """Return on which nodes the devices of a claim can be used, once they are ready."""
        match = devices.allocated_for[number]
        mask = ~nodes.none() if match is None else match(nodes)
        if number in devices.skipping and number not in devices.reused:
            mask = mask & can_skip(nodes)
        return mask

    def census(self, devices: PodDevices) -> list[DeviceCensus]:
        """Return what speaks against devices for the claims that have none yet.

        One for each set of extended resources that are devices on some node.
        """
        if not devices.to_allocate or devices.is_stale:
            return []
        everywhere, valid = NodeRows.all_of(self._nodes), self._nodes.valid[: self._nodes.size]
        return [
            DeviceCensus(
                self.claims_for(devices, names),
                self.outcomes(devices, names).wanted,
                self._outcomes.visible,
                self._outcomes.state,
                valid if mask is None else mask & valid,
            )
            for names, mask in self._by_kind(devices, everywhere)[1].items()
            if names is not None
        ]

    # --- scores -------------------------------------------------------------------------------

    def scores(self, devices: PodDevices, nodes: NodeRows) -> Int64Array | None:
        """Return a score for each node: the sum over requests with alternatives."""
        if not devices.has_alternatives or not devices.to_allocate:
            return None
        total: Int64Array | None = None
        fixed = sum(
            _score_of(devices.claims[number], each) for number, each in devices.fixed.items()
        )
        numbers = None
        for names, mask in self._by_kind(devices, nodes)[1].items():
            if names is None:
                continue
            outcomes = self.outcomes(devices, names)
            if not outcomes.wanted.has_alternatives and not fixed:
                continue
            if numbers is None:
                numbers = self._outcomes.visible.of_row[nodes.rows]
            outcomes.find(numbers, self._budget(may_pause=False))
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
        devices.decided = dict(devices.reused)
        status = self._choose(devices, names, row) if devices.to_allocate else None
        if status is None:
            self._signal(devices)
        return status

    def _choose(self, devices: PodDevices, names: frozenset[str], row: int) -> Status | None:
        """Choose devices on a node, where some extended resources are devices."""
        node_name = self._nodes.name_at(row)
        claims = self.claims_for(devices, names)
        outcomes = self.outcomes(devices, names)
        number = self._outcomes.visible.of_row.item(row)
        if outcomes.codes[number] == UNKNOWN:
            one = np.array([number], dtype=np.int32)
            outcomes.find(one, self._budget(may_pause=False))
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
                rules=self._outcomes.rules,
            )
        if devices.has_extended:
            devices.extended_claim = self.extended_claim(devices, names)
        return None

    def _signal(self, devices: PodDevices) -> None:
        """Count what was decided as taken."""
        for index, allocation in devices.decided.items():
            claim = devices.claims[index]
            uid = claim.metadata.uid
            if index in devices.reused:
                # It may have been written since it was decided for another pod.
                newest = self._devices.claims.get(claim.metadata.namespace, claim.metadata.name)
                if newest is not None and newest.status.allocation is not None:
                    continue
                devices.decided[index] = self._devices.claims.pending(uid) or allocation
            devices.pending[index] = uid
            self._devices.claims.signal(uid, allocation)

    def drop(self, devices: PodDevices, *, is_written: bool = False) -> list[str]:
        """Drop the assumed allocations: they were written, or abandoned.

        Returns the uids of claims that no other pod counts on.
        """
        uids = list(devices.pending.values())
        devices.pending.clear()
        return [uid for uid in uids if self._devices.claims.drop(uid, is_written=is_written)]


def can_skip(nodes: NodeRows) -> BoolArray:
    """Return which nodes declare that their kubelets can skip device operations."""
    features = nodes.table.features
    able = [OPTIONAL_NODE_OPERATIONS in each for each in features.vocabulary.values]
    return np.array(able, dtype=np.bool_)[features.ids[nodes.rows]]


def _score_of(claim: ResourceClaim, allocation: AllocationResult) -> int:
    """Return the score of the alternatives that a claim with devices got."""
    got = {each.request for each in allocation.devices.results}
    return sum(
        MAX_ALTERNATIVES - number
        for request in claim.spec.devices.requests
        if request.exactly is None
        for number, each in enumerate(request.first_available)
        if f"{request.name}/{each.name}" in got
    )
