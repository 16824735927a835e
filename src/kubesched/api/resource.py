"""Dynamic resource allocation (DRA), ``resource.k8s.io/v1``.

pod ── resourceClaims ──> ResourceClaim ── deviceClassName ──> DeviceClass
                              │ status.allocation                 │ selectors (CEL)
                              v                                   v
                          driver, pool, device  <── named by ── ResourceSlice.spec.devices
"""

from __future__ import annotations

from typing import Any

from msgspec import field

from kubesched.api.core import NodeSelector, QuantityText, ResourceList
from kubesched.api.meta import ApiStruct, ObjectMeta

# --- classes ------------------------------------------------------------------------------------


class CELDeviceSelector(ApiStruct, frozen=True):
    """A CEL expression that selects devices."""

    expression: str = ""


class DeviceSelector(ApiStruct, frozen=True):
    """A condition on devices; without ``cel`` it is of a form unknown here."""

    cel: CELDeviceSelector | None = None


class OpaqueDeviceConfiguration(ApiStruct, frozen=True):
    """Parameters that only a driver understands."""

    driver: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)


class DeviceClassConfiguration(ApiStruct, frozen=True):
    """Configuration for devices of a class."""

    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(ApiStruct, frozen=True):
    """The devices of a class, and their configuration."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    #: extended resource name under which pods may request devices of the class
    extended_resource_name: str | None = None


class DeviceClass(ApiStruct, frozen=True):
    """A class of devices."""

    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceClassSpec = DeviceClassSpec()


# --- slices: the available devices ----------------------------------------------------------------


class ResourcePool(ApiStruct, frozen=True):
    """The pool of a slice; complete if all slices of its generation exist."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class DeviceCounter(ApiStruct, frozen=True):
    """An amount shared by several devices."""

    value: QuantityText = 0


class CounterSet(ApiStruct, frozen=True):
    """Counters that devices of the pool share."""

    name: str = ""
    counters: dict[str, DeviceCounter] = field(default_factory=dict)


class DeviceCounterConsumption(ApiStruct, frozen=True):
    """What a device consumes of a counter set."""

    counter_set: str = ""
    counters: dict[str, DeviceCounter] = field(default_factory=dict)
    #: devices that draw on the set at the same time need one of these in common
    compatibility_groups: tuple[str, ...] = ()


class DeviceAttribute(ApiStruct, frozen=True):
    """A property of a device: one of these values or lists."""

    int_value: int | None = field(default=None, name="int")
    bool_value: bool | None = field(default=None, name="bool")
    string_value: str | None = field(default=None, name="string")
    version_value: str | None = field(default=None, name="version")
    int_values: tuple[int, ...] = field(default=(), name="ints")
    bool_values: tuple[bool, ...] = field(default=(), name="bools")
    string_values: tuple[str, ...] = field(default=(), name="strings")
    version_values: tuple[str, ...] = field(default=(), name="versions")


class CapacityRequestPolicyRange(ApiStruct, frozen=True):
    """Amounts from ``min`` to ``max``, in steps."""

    min: QuantityText | None = None
    max: QuantityText | None = None
    step: QuantityText | None = None


class CapacityRequestPolicy(ApiStruct, frozen=True):
    """Valid amounts of a capacity, and the default."""

    default: QuantityText | None = None
    valid_values: tuple[QuantityText, ...] = ()
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(ApiStruct, frozen=True):
    """A device's capacity of something."""

    value: QuantityText = 0
    request_policy: CapacityRequestPolicy | None = None


class DeviceTaint(ApiStruct, frozen=True):
    """Repels claims that do not tolerate it."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class NodeAllocatableMapping(ApiStruct, frozen=True):
    """What a device is of a node's own resource: part of a capacity, or so much a device."""

    capacity_key: str | None = None
    capacity_multiplier: QuantityText | None = None
    device_multiplier: QuantityText | None = None


class NodeAllocatableOverhead(ApiStruct, frozen=True):
    """What the use of a device costs of a node's own resource."""

    per_pod: QuantityText | None = None
    per_container: QuantityText | None = None


class NodeAllocatableResource(ApiStruct, frozen=True):
    """What a device takes of one of its node's own resources, such as cpu or memory."""

    mapping: NodeAllocatableMapping | None = None
    overhead: NodeAllocatableOverhead | None = None


class Device(ApiStruct, frozen=True):
    """One device."""

    name: str = ""
    attributes: dict[str, DeviceAttribute] = field(default_factory=dict)
    capacity: dict[str, DeviceCapacity] = field(default_factory=dict)
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    #: the nodes that can use it, with perDeviceNodeSelection in the slice
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool | None = None
    #: resource of the node → what the device takes of it
    node_allocatable_resources: dict[str, NodeAllocatableResource] = field(default_factory=dict)


class ResourceSliceSpec(ApiStruct, frozen=True):
    """Devices, or counters, of one driver and pool, and the nodes that can use them."""

    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    devices: tuple[Device, ...] = ()
    per_device_node_selection: bool | None = None
    shared_counters: tuple[CounterSet, ...] = ()
    #: what the kubelet leaves out for the devices; nodes have to be able to
    skip_node_operations: tuple[str, ...] = ()


class ResourceSlice(ApiStruct, frozen=True):
    """Part of a pool of devices."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceSliceSpec = ResourceSliceSpec()


# --- taints that an administrator gives to devices ------------------------------------------------


class DeviceTaintSelector(ApiStruct, frozen=True):
    """The devices that a rule is about; what is not named may be anything."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(ApiStruct, frozen=True):
    """A taint, and the devices that have it; without a selector these are none."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRule(ApiStruct, frozen=True):
    """A taint for devices, beside those that their drivers give them."""

    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()


# --- claims: what is asked for ------------------------------------------------------------------


class DeviceToleration(ApiStruct, frozen=True):
    """A taint of devices that a request tolerates."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class CapacityRequirements(ApiStruct, frozen=True):
    """The requested capacity of a device."""

    requests: ResourceList = field(default_factory=dict)


class DeviceDerivedAttribute(ApiStruct, frozen=True):
    """An attribute that is computed from those of the device."""

    name: str = ""
    expression: str = ""


class ExactDeviceRequest(ApiStruct, frozen=True):
    """Devices of one class."""

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: int = 0
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] = ()


class DeviceSubRequest(ApiStruct, frozen=True):
    """One of several alternatives."""

    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: int = 0
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] = ()


class DeviceRequest(ApiStruct, frozen=True):
    """A request: exactly one, or the first available of several."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(ApiStruct, frozen=True):
    """A constraint on the devices of several requests: equal or distinct attributes."""

    #: names of requests; empty means all
    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaimConfiguration(ApiStruct, frozen=True):
    """Configuration for the devices of some requests."""

    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(ApiStruct, frozen=True):
    """The devices that a claim requests."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(ApiStruct, frozen=True):
    """The desired state of a claim."""

    devices: DeviceClaim = DeviceClaim()


# --- claims: allocations -----------------------------------------------------------------------


class DeviceRequestAllocationResult(ApiStruct, frozen=True):
    """An allocated device."""

    #: name of the request, or "request/alternative"
    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    #: distinguishes several uses of the same device
    share_id: str | None = field(default=None, name="shareID")
    consumed_capacity: ResourceList = field(default_factory=dict)
    #: what the kubelet leaves out for the device; nodes have to be able to
    skip_node_operations: tuple[str, ...] = ()


class DeviceAllocationConfiguration(ApiStruct, frozen=True):
    """Configuration at the time of the allocation."""

    source: str = ""
    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceAllocationResult(ApiStruct, frozen=True):
    """All devices allocated for a claim."""

    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()


class AllocationResult(ApiStruct, frozen=True):
    """The allocation of a claim, and the nodes where it can be used."""

    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ResourceClaimConsumerReference(ApiStruct, frozen=True):
    """An object, nearly always a pod, that may use a claim."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class DeviceCondition(ApiStruct, frozen=True):
    """A condition of an allocated device, set by a driver or a controller."""

    type: str = ""
    status: str = ""
    observed_generation: int = 0
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class NetworkDeviceData(ApiStruct, frozen=True):
    """Name and addresses of a network device."""

    interface_name: str = ""
    ips: tuple[str, ...] = ()
    hardware_address: str = ""


class AllocatedDeviceStatus(ApiStruct, frozen=True):
    """The state of an allocated device."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = field(default=None, name="shareID")
    conditions: tuple[DeviceCondition, ...] = ()
    data: dict[str, Any] = field(default_factory=dict)
    network_data: NetworkDeviceData | None = None


class ResourceClaimStatus(ApiStruct, frozen=True):
    """The allocation of a claim, and the pods that may use it."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(ApiStruct, frozen=True):
    """A claim to devices."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourceClaimTemplateSpec(ApiStruct, frozen=True):
    """What claims have that are made from a template."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(ApiStruct, frozen=True):
    """A controller makes a claim of it for each pod that refers to it."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()
