"""Devices for the engine alone: eight on each node, one of them in parts, and claims to them."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from kubesched.api.core import Pod, PodResourceClaim
from kubesched.api.meta import ObjectMeta
from kubesched.api.resource import (
    CELDeviceSelector,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceClaim,
    DeviceClass,
    DeviceClassSpec,
    DeviceConstraint,
    DeviceCounter,
    DeviceCounterConsumption,
    DeviceRequest,
    DeviceSelector,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from kubesched.bench.decision_pods import make_pod
from kubesched.cluster.devices import Devices

DRIVER = "gpu.bench.example"
WHOLE, PARTS = "whole", "parts"
#: devices of a node, and of a NUMA node of it
PER_NODE, PER_NUMA = 8, 4
#: parts that each of two cards of a node can be cut into
PARTS_PER_CARD = 7


def one_device(number: int) -> Pod:
    """A pod that claims a device."""
    return _claiming("one-device", number)


def four_devices(number: int) -> Pod:
    """A pod that claims four devices of one NUMA node."""
    return _claiming("four-devices", number)


def device_part(number: int) -> Pod:
    """A pod that claims a part of a device."""
    return _claiming("device-part", number)


def put_devices(devices: Devices, *, nodes: int, pods: int) -> None:
    """Put what these pods need: slices of each node, and a claim for each pod."""
    for name in (WHOLE, PARTS):
        expression = (
            f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].kind == "{name}"'
        )
        spec = DeviceClassSpec(selectors=(_selector(expression),))
        devices.classes.put(DeviceClass(metadata=ObjectMeta(name=name), spec=spec))
    for number in range(nodes):
        for each in (_whole_devices(number), *_parts(number)):
            devices.slices.put(each)
    for workload, asked in _ASKED.items():
        for number in range(pods):
            name = f"{workload}-{number}"
            meta = ObjectMeta(
                name=name, namespace=make_pod(0).metadata.namespace, uid=name, resource_version="1"
            )
            devices.claims.put(ResourceClaim(metadata=meta, spec=ResourceClaimSpec(devices=asked)))


def _claiming(workload: str, number: int) -> Pod:
    pod = make_pod(number)
    claim = PodResourceClaim(name="devices", resource_claim_name=f"{workload}-{number}")
    return replace(pod, spec=replace(pod.spec, resource_claims=(claim,)))


def _whole_devices(number: int) -> ResourceSlice:
    devices = tuple(
        Device(
            name=f"gpu-{each}",
            attributes={
                "kind": DeviceAttribute(string_value=WHOLE),
                "numa": DeviceAttribute(int_value=each // PER_NUMA),
                "uuid": DeviceAttribute(string_value=f"{number}-{each}"),
            },
        )
        for each in range(PER_NODE)
    )
    return _slice(number, "whole", ResourceSliceSpec(devices=devices), count=1)


def _parts(number: int) -> list[ResourceSlice]:
    cards = [f"card-{each}" for each in range(2)]
    devices = tuple(
        Device(
            name=f"{card}-{size}-{each}",
            attributes={"kind": DeviceAttribute(string_value=PARTS)},
            consumes_counters=(
                DeviceCounterConsumption(
                    counter_set=card, counters={"slices": DeviceCounter(value=size)}
                ),
            ),
        )
        for card in cards
        for size in (PARTS_PER_CARD, 1)
        for each in range(PARTS_PER_CARD // size)
    )
    whole = {"slices": DeviceCounter(value=PARTS_PER_CARD)}
    counters = tuple(CounterSet(name=card, counters=whole) for card in cards)
    return [
        _slice(number, "parts", ResourceSliceSpec(devices=devices), count=2),
        _slice(number, "parts", ResourceSliceSpec(shared_counters=counters), count=2, suffix="-c"),
    ]


def _slice(
    number: int, pool: str, spec: ResourceSliceSpec, *, count: int, suffix: str = ""
) -> ResourceSlice:
    name = f"{pool}-{number}"
    return ResourceSlice(
        metadata=ObjectMeta(name=f"{name}{suffix}"),
        spec=replace(
            spec,
            driver=DRIVER,
            node_name=f"node-{number}",
            pool=ResourcePool(name=name, generation=1, resource_slice_count=count),
        ),
    )


def _selector(expression: str) -> DeviceSelector:
    return DeviceSelector(cel=CELDeviceSelector(expression=expression))


def _asked(class_name: str, count: int, *constraints: DeviceConstraint) -> DeviceClaim:
    exactly = ExactDeviceRequest(
        device_class_name=class_name, allocation_mode="ExactCount", count=count
    )
    return DeviceClaim(
        requests=(DeviceRequest(name="devices", exactly=exactly),), constraints=constraints
    )


_ASKED: Mapping[str, DeviceClaim] = {
    "one-device": _asked(WHOLE, 1),
    "four-devices": _asked(WHOLE, 4, DeviceConstraint(match_attribute=f"{DRIVER}/numa")),
    "device-part": _asked(PARTS, 1),
}
