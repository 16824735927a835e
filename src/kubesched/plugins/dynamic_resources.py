"""DynamicResources: a pod goes where it can have the devices that it claims.

PreEnqueue  the claims exist, and are for the pod
PreFilter   the claims: usable? allocated? being allocated? ──> PodDevices
Filter      all nodes: are devices left, or allocated for them? ──> device_allocation
PostFilter  a claim whose devices are elsewhere, and not in use, is deallocated
Score       requests with alternatives: the earlier the one that can be had, the better
Reserve     devices are chosen on the node that won, and count as taken
PreBind     that is written, and drivers get devices ready ──> claim_binder
"""

from __future__ import annotations

from typing import Final

from kubesched.api.resource import ResourceClaim
from kubesched.cluster.arrays import Int64Array
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.device_pools import PoolRules
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.config.args import DynamicResourcesArgs
from kubesched.errors import ClientError, ObjectError
from kubesched.framework.cycle_state import CycleState
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
from kubesched.plugins.device_allocation import NOT_AVAILABLE, Allocator, PodDevices
from kubesched.plugins.device_ledger import CounterCache, DeviceState, SearchRules
from kubesched.plugins.device_outcomes import OutcomeCache
from kubesched.plugins.device_requests import RequestCompiler
from kubesched.plugins.device_selectors import compile_selector
from kubesched.plugins.normalize import scale_to_best
from kubesched.plugins.pod_claims import shown, usable_claims
from kubesched.queue.hints import Registrations

NOTHING_TO_FREE: Final = PostFilterResult(unschedulable())
DEALLOCATED: Final = PostFilterResult(unschedulable("deallocation of ResourceClaim completed"))
DELETED: Final = PostFilterResult(unschedulable("deletion of ResourceClaim completed"))
#: What a plugin says whose PreFilter did not run.
NO_STATE: Final = error("not found")

GROUP_CLAIMS_DONE: Final = "deallocation and deletion of ResourceClaims completed"
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
    parallel = True
    proven_range = True
    skips_resizes = True

    def __init__(
        self,
        cluster: Cluster,
        *,
        allocator: Allocator,
        binder: ClaimBinder,
        has_binding_conditions: bool,
        topology_gate: bool,
    ) -> None:
        self._devices = cluster.devices
        self._nodes = cluster.table
        self._allocator = allocator
        self._binder = binder
        self._has_binding_conditions = has_binding_conditions
        self._topology_gate = topology_gate

    @classmethod
    def create(cls, context: PluginContext) -> DynamicResources:
        """Make the plugin."""
        args, gates = context.profile.args(cls.name, DynamicResourcesArgs), context.gates
        devices = context.cluster.devices
        has_binding_conditions = gates.enabled("DRADeviceBindingConditions") and gates.enabled(
            "DRAResourceClaimDeviceStatus"
        )
        rules = SearchRules(
            partitionable=gates.enabled("DRAPartitionableDevices"),
            consumable=gates.enabled("DRAConsumableCapacity"),
            binding_conditions=has_binding_conditions,
            fractional=gates.enabled("DRAFractionalCapacityRange"),
        )
        counters = CounterCache(devices.table, devices.uses)
        outcomes = OutcomeCache(
            devices,
            visible=devices.visible(PoolRules(partitionable=rules.partitionable)),
            state=DeviceState(devices.table, devices.uses, counters, rules),
            compiler=RequestCompiler(
                devices,
                compile_selector,
                taints=gates.enabled("DRADeviceTaints"),
                consumable=rules.consumable,
            ),
        )
        timeout = args.filter_timeout if gates.enabled("DRASchedulerFilterTimeout") else None
        binding = args.binding_timeout
        return cls(
            context.cluster,
            allocator=Allocator(
                context.cluster,
                outcomes,
                timer=context.clock.monotonic,
                timeout_s=0.0 if timeout is None else timeout.seconds,
            ),
            binder=ClaimBinder(
                devices,
                context.claim_writer,
                clock=context.clock,
                metrics=context.metrics,
                profile=context.profile.scheduler_name,
                timeout_s=DEFAULT_BINDING_TIMEOUT_S if binding is None else binding.seconds,
                has_binding_conditions=has_binding_conditions,
            ),
            has_binding_conditions=has_binding_conditions,
            topology_gate=gates.enabled("TopologyAwareWorkloadScheduling"),
        )

    def events_to_register(self) -> Registrations:
        """Events that bring a claim to a pod, or devices to a claim."""
        return claim_hints.registrations(self._devices.claims)

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """Keep pods out whose claims are not there yet."""
        if not pod.pod.spec.resource_claims:
            return SUCCESS
        try:
            usable_claims(pod.pod, self._devices.claims)
        except ObjectError as missing:
            return unresolvable(str(missing))
        return SUCCESS

    # --- finding nodes --------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> PreFilterResult:  # noqa: ARG002
        """Skip pods without claims; reject pods whose claims cannot be served anywhere."""
        state.write(self.name, None)
        if state.group is not None:
            state.group.write(self.name, None)
        try:
            claims = usable_claims(pod.pod, self._devices.claims)
        except ObjectError as unusable:
            return PreFilterResult(unresolvable(str(unusable)))
        resources = self._devices.extended_resources
        requested = (
            extended_claims.backed_by_devices(pod.signature.requests.amounts, resources)
            if resources
            else {}
        )
        if not claims and not requested:
            return NOTHING_TO_FILTER
        extended = None
        if requested:
            found = self._devices.claims.of_extended_resources(pod.uid)
            extended = extended_claims.claim_in_memory(pod.pod) if found is None else found
        devices = PodDevices(pod.pod, claims, extended=extended, extended_requests=requested)
        rejected = self._check(devices)
        if rejected is not None:
            return PreFilterResult(rejected)
        state.write(self.name, devices)
        return NOTHING_AGAINST

    def _check(self, devices: PodDevices) -> Status | None:
        """Return why claims cannot be served on any node."""
        for number, claim in enumerate(devices.claims):
            if number in devices.allocated_for:
                if self._has_binding_conditions and self._binder.is_lost(claim):
                    devices.lost.add(number)
                continue
            if self._devices.claims.pending(claim.metadata.uid) is not None:
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

    def post_filter(
        self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis
    ) -> PostFilterResult:
        """Give up an allocation that keeps the pod from all nodes, if no other pod uses it."""
        if pod.signature.is_resize:
            return NOTHING_TO_FREE
        if not state.has(self.name):
            return PostFilterResult(NO_STATE)
        devices = _devices(state)
        if devices is None:
            return NOTHING_TO_FREE
        for number in sorted(self._unavailable(devices, diagnosis)):
            claim = devices.claims[number]
            if claim is devices.extended:
                if not extended_claims.is_in_memory(claim):
                    break
                continue
            if all(each.uid == pod.uid for each in claim.status.reserved_for):
                self._binder.deallocate(claim)
                return DEALLOCATED
        if devices.extended is not None and not extended_claims.is_in_memory(devices.extended):
            self._binder.delete(devices.extended)
            return DELETED
        return NOTHING_TO_FREE

    def pod_group_post_filter(
        self,
        state: CycleState,
        group: GroupInfo,
        trial: GroupTrial,  # noqa: ARG002
    ) -> PodGroupPostFilterResult:
        """Say that all claims were taken back: there are none.

        That is what kube-scheduler says even if it had nothing to do, unless the group is one of
        groups, or is to be in one topology domain.
        """
        if group.is_composite or self._heeds_topology(group):
            return PodGroupPostFilterResult(unschedulable())
        if not state.has(self.name):
            return PodGroupPostFilterResult(error("not found"))
        return PodGroupPostFilterResult(unschedulable(GROUP_CLAIMS_DONE))

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
        if devices is None or not devices.to_allocate:
            return SUCCESS
        try:
            return self._allocator.decide(devices, node_name) or SUCCESS
        except ObjectError as impossible:
            return error(str(impossible))

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:  # noqa: ARG002
        """Give everything back."""
        devices = _devices(state)
        if devices is not None:
            self._allocator.drop(devices)
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


def _devices(state: CycleState) -> PodDevices | None:
    found = state.get(DynamicResources.name)
    return found if isinstance(found, PodDevices) else None
