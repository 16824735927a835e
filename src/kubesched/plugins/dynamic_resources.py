"""DynamicResources: a pod goes where it can have the devices that it claims.

PreEnqueue  the claims exist, and are for the pod
PreFilter   the claims: usable? allocated? being allocated? ──> PodDevices
Filter      all nodes: are devices left, or allocated for them? ──> device_allocation
PostFilter  a claim that is allocated on other nodes, and not in use, is deallocated
Score       requests with alternatives: the earlier the one that can be had, the better
Reserve     devices are chosen on the node that won, and count as taken
PreBind     that is written, and drivers get devices ready ──> claim_binder
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

from kubesched.api.core import Pod
from kubesched.api.resource import ResourceClaim, ResourceClaimConsumerReference
from kubesched.api.scheduling import PodGroup
from kubesched.cluster.arrays import Int64Array
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_groups import named_group
from kubesched.cluster.pod_info import PodInfo
from kubesched.config.args import DynamicResourcesArgs
from kubesched.errors import ClientError, ObjectError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.detail import Detail
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.group import GroupInfo, GroupTrial, PodGroupPostFilterResult
from kubesched.framework.plugin import (
    NOTHING_AGAINST,
    NOTHING_TO_FILTER,
    Filter,
    Normalize,
    PodGroupPostFilter,
    PostFilter,
    PostFilterResult,
    PreBind,
    PreEnqueue,
    PreFilter,
    PreFilterResult,
    Reserve,
    Score,
)
from kubesched.framework.registry import PluginContext
from kubesched.framework.status import SKIP, SUCCESS, Status, error, unresolvable, unschedulable
from kubesched.framework.verdict import ALL_PASS, Verdict
from kubesched.plugins import claim_hints, extended_claims
from kubesched.plugins.claim_binder import ClaimBinder
from kubesched.plugins.device_rules import SearchRules
from kubesched.plugins.group_claims import GroupClaims, GroupDevices
from kubesched.plugins.node_footprint import Footprints
from kubesched.plugins.normalize import scale_to_best
from kubesched.plugins.pod_claims import (
    is_reserved_for,
    named_claims,
    shown,
    usable_claims,
    user_of,
)
from kubesched.plugins.pod_devices import NOT_AVAILABLE, PodDevices
from kubesched.queue.hints import Registrations

if TYPE_CHECKING:
    from kubesched.plugins.device_allocation import Allocator
    from kubesched.plugins.device_census import CountedRequest, DeviceCensus

NOTHING_TO_FREE: Final = PostFilterResult(unschedulable())
#: The error of a plugin whose PreFilter did not run.
NO_STATE: Final = error("not found")

DEFAULT_BINDING_TIMEOUT_S: Final = 600.0


class DynamicResources(
    PreEnqueue,
    PreFilter,
    Filter,
    PostFilter,
    PodGroupPostFilter,
    Score,
    Normalize,
    Reserve,
    PreBind,
):
    """Allocates devices."""

    name = "DynamicResources"
    repeats_skip = True
    parallel = True
    proven_range = True
    skips_resizes = True

    def __init__(
        self,
        cluster: Cluster,
        *,
        make_allocator: Callable[[], Allocator],
        binder: ClaimBinder,
        has_binding_conditions: bool,
        topology_gate: bool,
        of_groups: bool,
        footprints: Footprints | None,
    ) -> None:
        self._devices = cluster.devices
        self._groups = cluster.groups
        self._group_claims = GroupClaims(
            cluster.devices, cluster.groups, binder, of_groups=of_groups
        )
        self._of_groups = of_groups
        self._footprints = footprints
        self._nodes = cluster.table
        self._make_allocator = make_allocator
        self._binder = binder
        self._has_binding_conditions = has_binding_conditions
        self._topology_gate = topology_gate

    @classmethod
    def create(cls, context: PluginContext) -> DynamicResources:
        """Make the plugin."""
        args, gates = context.profile.args(cls.name, DynamicResourcesArgs), context.gates
        devices = context.cluster.devices
        rules = SearchRules.of(gates)
        has_binding_conditions = rules.binding_conditions
        timeout = args.filter_timeout if gates.enabled("DRASchedulerFilterTimeout") else None
        binding = args.binding_timeout
        of_groups = gates.enabled("DRAWorkloadResourceClaims")
        footprints = None
        if gates.enabled("DRANodeAllocatableResources"):
            footprints = Footprints(context.cluster, pod_level=gates.enabled("PodLevelResources"))

        def make() -> Allocator:
            # The search, and CEL, are imported by the first pod with claims: most clusters have no
            # such pods, and both are a tenth of what a start would import.
            from kubesched.plugins.device_allocation import make_allocator  # noqa: PLC0415

            return make_allocator(
                context.cluster,
                gates,
                rules,
                timer=context.clock.monotonic,
                timeout_s=0.0 if timeout is None else timeout.seconds,
                footprints=footprints,
            )

        return cls(
            context.cluster,
            make_allocator=make,
            binder=ClaimBinder(
                devices,
                context.claim_writer,
                clock=context.clock,
                metrics=context.metrics,
                profile=context.profile.scheduler_name,
                timeout_s=DEFAULT_BINDING_TIMEOUT_S if binding is None else binding.seconds,
                has_binding_conditions=has_binding_conditions,
                of_groups=of_groups,
            ),
            has_binding_conditions=has_binding_conditions,
            of_groups=of_groups,
            footprints=footprints,
            topology_gate=gates.enabled("TopologyAwareWorkloadScheduling"),
        )

    @cached_property
    def _allocator(self) -> Allocator:
        """Made for the first pod with claims."""
        return self._make_allocator()

    def events_to_register(self) -> Registrations:
        """Events that bring a claim to a pod, or devices to a claim."""
        return claim_hints.registrations(self._devices, of_groups=self._of_groups)

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """Keep pods out whose claims are not there yet."""
        if not pod.pod.spec.resource_claims:
            return SUCCESS
        try:
            usable_claims(pod.pod, self._devices.claims, of_groups=self._of_groups)
        except ObjectError as missing:
            return unresolvable(str(missing))
        return SUCCESS

    # --- finding nodes --------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> PreFilterResult:  # noqa: ARG002
        """Skip pods without claims; reject pods whose claims cannot be served anywhere."""
        state.write(self.name, None)
        group = _group_devices(state)
        resources = self._devices.extended_resources
        requested = (
            extended_claims.backed_by_devices(pod.signature.requests.amounts, resources)
            if resources
            else {}
        )
        if not requested and not pod.pod.spec.resource_claims:
            return NOTHING_TO_FILTER
        try:
            named = named_claims(pod.pod, self._devices.claims, of_groups=self._of_groups)
            users = self._users(pod.pod)
        except ObjectError as unusable:
            return PreFilterResult(unresolvable(str(unusable)))
        claims = [claim for _, claim in named]
        if not claims and not requested:
            return NOTHING_TO_FILTER
        extended = None
        if requested:
            found = self._devices.claims.of_extended_resources(pod.uid)
            extended = extended_claims.claim_in_memory(pod.pod) if found is None else found
        devices = PodDevices(pod.pod, claims, extended=extended, extended_requests=requested)
        devices.uids = {name: claim.metadata.uid for name, claim in named}
        devices.users, devices.is_in_group = users, group is not None
        devices.may_pause = state.may_pause
        if group is not None:
            group.pods[pod.uid] = devices
        rejected = self._check(devices, group)
        if rejected is not None:
            return PreFilterResult(rejected)
        if self._footprints is not None and self._footprints.are_needed:
            self._look_at_nodes(devices, group, self._footprints)
            state.counts_on = partial(self._allocator.on_node, devices)
        state.write(self.name, devices)
        return NOTHING_AGAINST

    def _users(self, pod: Pod) -> list[ResourceClaimConsumerReference]:
        """Return which object each claim is to be reserved for; raises ObjectError."""
        key = named_group(pod)
        if not self._of_groups or not pod.spec.resource_claims:
            return []
        group = None
        if key is not None:
            group = self._groups.objects.get(key.namespace, key.name)
            if group is None:
                raise ObjectError(f"pod group state not found for pod group {key}")
        return [user_of(pod, group, each) for each in pod.spec.resource_claims]

    def _look_at_nodes(
        self, devices: PodDevices, group: GroupDevices | None, footprints: Footprints
    ) -> None:
        """Note claims that another pod uses, and whose devices are so much of their node."""
        for number, allocation in devices.fixed.items():
            claim = devices.claims[number]
            others = group.pending.get(claim.metadata.uid, set()) if group is not None else set()
            is_used = bool(claim.status.reserved_for) and not is_reserved_for(
                devices.pod, claim, of_groups=self._of_groups
            )
            if (is_used or others - {devices.pod.metadata.uid}) and footprints.is_mapped(
                allocation
            ):
                devices.unshareable.add(number)

    def _check(self, devices: PodDevices, group: GroupDevices | None) -> Status | None:
        """Return why claims cannot be served on any node."""
        for number, claim in enumerate(devices.claims):
            if number in devices.allocated_for:
                if self._has_binding_conditions and self._binder.is_lost(claim):
                    devices.lost.add(number)
                continue
            pending = self._devices.claims.pending(claim.metadata.uid)
            if pending is not None and group is not None and claim.metadata.uid in group.pending:
                devices.reuse(number, pending)
                continue
            if pending is not None:
                text = f"resource claim {shown(claim)} is in the process of being allocated"
                return unresolvable(text)
            rejected = None if claim is devices.extended else self._check_classes(claim)
            if rejected is not None:
                return rejected
        return None

    def _check_classes(self, claim: ResourceClaim) -> Status | None:
        for request in claim.spec.devices.requests:
            if request.exactly is not None:
                asked = {request.name: request.exactly.device_class_name}
            elif request.first_available:
                asked = {
                    f"{request.name}/{each.name}": each.device_class_name
                    for each in request.first_available
                }
            else:
                where = f"resource claim {shown(claim)}, request {request.name}"
                return unresolvable(f"{where}: unknown request type")
            for name, class_name in asked.items():
                if not class_name:
                    return error(f"request {name}: unsupported request type")
                if self._devices.classes.get(class_name) is None:
                    return unresolvable(f"request {name}: device class {class_name} does not exist")
        return None

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Verdict:  # noqa: ARG002
        """Reject nodes on which the claims cannot be served."""
        devices = _devices(state)
        return ALL_PASS if devices is None else self._allocator.verdict(devices, nodes)

    def census(self, state: CycleState) -> list[DeviceCensus]:
        """Return what speaks against devices for a pod, after PreFilter; for explanations."""
        devices = _devices(state)
        return [] if devices is None else self._allocator.census(devices)

    def details(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Iterator[Detail]:  # noqa: ARG002
        """Return how many devices nodes have for each request that cannot be served there."""
        rejected = set(nodes.row_numbers().tolist())
        for census in self.census(state):
            told: set[int] = set()
            for number, rows in census.rows_with_devices().items():
                here = tuple(row for row in rows if row in rejected)
                told.update(here)
                for counted in census.count(number) if here else ():
                    if counted.missing:
                        yield _missing_devices(census, counted, here)
            without = tuple(sorted(rejected - told))
            if without:
                yield Detail("the node has no devices", {"devices": 0}, rows=without)

    def post_filter(
        self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis
    ) -> PostFilterResult:
        """Deallocate a claim that makes all nodes infeasible, if no other pod uses it."""
        if pod.signature.is_resize:
            return NOTHING_TO_FREE
        if not state.has(self.name):
            return PostFilterResult(NO_STATE)
        devices = _devices(state)
        if devices is None:
            return NOTHING_TO_FREE
        given_up = self._binder.give_up(devices, self._unavailable(devices, diagnosis))
        return NOTHING_TO_FREE if given_up is None else PostFilterResult(given_up)

    def pod_group_post_filter(
        self,
        state: CycleState,
        group: GroupInfo,
        trial: GroupTrial,  # noqa: ARG002
    ) -> PodGroupPostFilterResult:
        """Give up allocations that keep members from all nodes.

        kube-scheduler reports success even if it had nothing to do, unless the group is one of
        groups, or is to be in one topology domain.
        """
        podgroup = group.group
        if not isinstance(podgroup, PodGroup) or self._heeds_topology(group):
            return PodGroupPostFilterResult(unschedulable())
        known = state.get(self.name)
        if not isinstance(known, GroupDevices):
            return PodGroupPostFilterResult(error("not found"))
        return PodGroupPostFilterResult(self._group_claims.give_up(podgroup, group.pods, known))

    def _heeds_topology(self, group: GroupInfo) -> bool:
        return self._topology_gate and group.group.spec.scheduling_constraints is not None

    def _unavailable(self, devices: PodDevices, diagnosis: Diagnosis) -> set[int]:
        """Return the claims that cannot be used on a node which nothing else speaks against."""
        rows = diagnosis.rows_rejected_with(NOT_AVAILABLE.by(self.name))
        if not len(rows):
            return set()
        return set(self._allocator.unavailable_by_claim(devices, NodeRows(self._nodes, rows)))

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Int64Array | None:  # noqa: ARG002
        """Prefer nodes on which earlier alternatives can be had."""
        devices = _devices(state)
        return None if devices is None else self._allocator.scores(devices, nodes)

    def normalize(self, scores: Int64Array) -> Int64Array:
        """Give the best node 100."""
        return scale_to_best(scores)

    # --- one node -------------------------------------------------------------------------------

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:  # noqa: ARG002
        """Choose devices, and count them as taken."""
        if not state.has(self.name):
            return NO_STATE
        devices = _devices(state)
        if devices is None or not devices.is_to_be_decided:
            return SUCCESS
        try:
            rejected = self._allocator.decide(devices, node_name)
        except ObjectError as impossible:
            return error(str(impossible))
        group = _group_devices(state)
        if rejected is None and group is not None:
            group.share(devices)
        return rejected or SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:  # noqa: ARG002
        """Give everything back."""
        devices = _devices(state)
        if devices is not None:
            gone = self._allocator.drop(devices)
            group = _group_devices(state)
            if group is not None:
                group.forget(gone)
            self._binder.unreserve(devices)

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:  # noqa: ARG002
        """Skip pods without claims."""
        if not state.has(self.name):
            return NO_STATE
        return SKIP if _devices(state) is None else SUCCESS

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:  # noqa: ARG002
        """Write which devices claims got and who may use them; wait until devices are ready."""
        devices = _devices(state)
        if devices is None:
            return SUCCESS
        try:
            await self._binder.bind(devices, node_name)
        except (ObjectError, ClientError) as failed:
            return error(str(failed))
        self._allocator.drop(devices, is_written=True)
        return SUCCESS


def _group_devices(state: CycleState) -> GroupDevices | None:
    """Return what members have decided in the attempt at the pod's group, None outside of one."""
    if state.group is None:
        return None
    found = state.group.get(DynamicResources.name)
    if not isinstance(found, GroupDevices):
        found = GroupDevices()
        state.group.write(DynamicResources.name, found)
    return found


def _devices(state: CycleState) -> PodDevices | None:
    found = state.get(DynamicResources.name)
    return found if isinstance(found, PodDevices) else None


def _missing_devices(
    census: DeviceCensus, counted: CountedRequest, rows: tuple[int, ...]
) -> Detail:
    claim, request = shown(census.claims[counted.claim]), counted.request.full_name
    usable, wanted, devices = len(counted.usable), counted.wanted, len(counted.obstacles)
    return Detail(
        f"request {request} of claim {claim}: {wanted} wanted, {usable} of {devices} usable",
        {
            "claim": claim,
            "request": request,
            "requested": wanted,
            "free": usable,
            "devices": devices,
        },
        rows=rows,
    )
