"""Devices that pods claim: ``resource.k8s.io/v1``, also known as DRA.

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
    """An expression that is true for the devices that are meant."""

    expression: str = ""


class DeviceSelector(ApiStruct, frozen=True):
    """What a device must be like; without ``cel`` it is of a form that is not known here."""

    cel: CELDeviceSelector | None = None


class OpaqueDeviceConfiguration(ApiStruct, frozen=True):
    """Parameters that only a driver understands."""

    driver: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)


class DeviceClassConfiguration(ApiStruct, frozen=True):
    """Configuration for devices of a class."""

    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(ApiStruct, frozen=True):
    """Which devices a class has, and how they are configured."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    #: pods may ask for devices of the class as if they were this resource of a node
    extended_resource_name: str | None = None


class DeviceClass(ApiStruct, frozen=True):
    """A class of devices."""

    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceClassSpec = DeviceClassSpec()


# --- slices: the devices that there are -----------------------------------------------------------


class ResourcePool(ApiStruct, frozen=True):
    """The pool that a slice is part of; it is complete if all slices of a generation are there."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class DeviceCounter(ApiStruct, frozen=True):
    """An amount that several devices draw on."""

    value: QuantityText = 0


class CounterSet(ApiStruct, frozen=True):
    """Counters that devices of the pool share."""

    name: str = ""
    counters: dict[str, DeviceCounter] = field(default_factory=dict)


class DeviceCounterConsumption(ApiStruct, frozen=True):
    """What a device takes from a set of counters."""

    counter_set: str = ""
    counters: dict[str, DeviceCounter] = field(default_factory=dict)
    #: devices that draw on the set at the same time need one of these in common
    compatibility_groups: tuple[str, ...] = ()


class DeviceAttribute(ApiStruct, frozen=True):
    """A property of a device: one of these values, or one of these lists."""

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
    """Which amounts of a capacity may be asked for, and what counts if none is."""

    default: QuantityText | None = None
    valid_values: tuple[QuantityText, ...] = ()
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(ApiStruct, frozen=True):
    """How much a device has of something."""

    value: QuantityText = 0
    request_policy: CapacityRequestPolicy | None = None


class DeviceTaint(ApiStruct, frozen=True):
    """What keeps claims without a toleration from a device."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class Device(ApiStruct, frozen=True):
    """One device."""

    name: str = ""
    attributes: dict[str, DeviceAttribute] = field(default_factory=dict)
    capacity: dict[str, DeviceCapacity] = field(default_factory=dict)
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    #: where it can be used, if the slice says perDeviceNodeSelection
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool | None = None


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
    """A taint of devices that does not matter to a request."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class CapacityRequirements(ApiStruct, frozen=True):
    """How much of a device's capacity is asked for."""

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
    """Something that is asked for: exactly this, or the first of these that can be had."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(ApiStruct, frozen=True):
    """What the devices of several requests must have in common, or must not."""

    #: names of requests; none means all
    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaimConfiguration(ApiStruct, frozen=True):
    """Configuration for the devices of some requests."""

    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(ApiStruct, frozen=True):
    """The devices that a claim asks for."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(ApiStruct, frozen=True):
    """What a claim asks for."""

    devices: DeviceClaim = DeviceClaim()


# --- claims: what they got ----------------------------------------------------------------------


class DeviceRequestAllocationResult(ApiStruct, frozen=True):
    """One device that was allocated."""

    #: name of the request, or "request/alternative"
    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    #: tells several uses of the same device apart
    share_id: str | None = field(default=None, name="shareID")
    consumed_capacity: ResourceList = field(default_factory=dict)
    #: what the kubelet leaves out for the device; nodes have to be able to
    skip_node_operations: tuple[str, ...] = ()


class DeviceAllocationConfiguration(ApiStruct, frozen=True):
    """Configuration as it was when the devices were allocated."""

    source: str = ""
    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceAllocationResult(ApiStruct, frozen=True):
    """All devices that were allocated for a claim."""

    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()


class AllocationResult(ApiStruct, frozen=True):
    """What a claim got, and the nodes where it can be used."""

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
    """What a driver, or a controller, says about an allocated device."""

    type: str = ""
    status: str = ""
    observed_generation: int = 0
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class NetworkDeviceData(ApiStruct, frozen=True):
    """What a network device is called and where it is reached."""

    interface_name: str = ""
    ips: tuple[str, ...] = ()
    hardware_address: str = ""


class AllocatedDeviceStatus(ApiStruct, frozen=True):
    """What became of a device that was allocated."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = field(default=None, name="shareID")
    conditions: tuple[DeviceCondition, ...] = ()
    data: dict[str, Any] = field(default_factory=dict)
    network_data: NetworkDeviceData | None = None


class ResourceClaimStatus(ApiStruct, frozen=True):
    """What a claim got, and which pods may use it."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(ApiStruct, frozen=True):
    """A claim to devices."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()
