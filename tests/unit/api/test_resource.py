"""Devices, their classes and claims: which fields of the API are read."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import Struct

from kubesched.api import resource
from kubesched.api.decoding import decoder_of
from kubesched.api.meta import ApiStruct
from kubesched.snapshot import api_fields

#: Structs whose name in the API is that of something else here.
NAMES = {"DeviceCounter": "Counter", "DeviceCondition": "Condition"}
#: Not for schedulers.
UNREAD = {
    "ResourceSliceSpec": {"partitionTypeAttribute"},
    "DeviceTaintRule": {"status"},
}
STRUCTS = [
    each
    for each in vars(resource).values()
    if isinstance(each, type)
    and issubclass(each, ApiStruct)
    and each.__module__ == resource.__name__
]


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda struct: struct.__name__)
def test_each_struct_has_the_fields_that_the_api_has(struct: type[Struct]) -> None:
    fields = api_fields.known()[NAMES.get(struct.__name__, struct.__name__)]
    unread = UNREAD.get(struct.__name__, set())
    assert unread <= fields.keys()
    read = fields.keys() - {"apiVersion", "kind"} - unread
    assert set(struct.__struct_encode_fields__) == read


def test_a_slice_is_read_with_its_devices() -> None:
    text = b"""{"metadata":{"name":"s"},"spec":{
        "driver":"gpu.example.com","nodeName":"n1",
        "pool":{"name":"n1","generation":3,"resourceSliceCount":1},
        "sharedCounters":[{"name":"card","counters":{"memory":{"value":"80Gi"}}}],
        "devices":[{"name":"gpu-0",
            "attributes":{"model":{"string":"A"},"index":{"int":0},"ecc":{"bool":false},
                          "driverVersion":{"version":"1.2.3"},"links":{"ints":[1,2]}},
            "capacity":{"memory":{"value":"40Gi","requestPolicy":{"default":"1Gi",
                "validRange":{"min":"1Gi","step":"1Gi"}}}},
            "consumesCounters":[{"counterSet":"card","counters":{"memory":{"value":"40Gi"}}}],
            "taints":[{"key":"broken","effect":"NoSchedule"}]}]}}"""

    read = decoder_of(resource.ResourceSlice).decode(text)

    (device,) = read.spec.devices
    assert read.spec.pool == resource.ResourcePool(name="n1", generation=3, resource_slice_count=1)
    assert device.attributes["index"].int_value == 0
    assert device.attributes["ecc"].bool_value is False
    assert device.attributes["model"].int_value is None
    assert device.attributes["links"].int_values == (1, 2)
    policy = device.capacity["memory"].request_policy
    assert policy is not None
    assert policy.valid_range == resource.CapacityRequestPolicyRange(min="1Gi", step="1Gi")
    assert device.consumes_counters[0].counters["memory"].value == "40Gi"
    # What is written back is what was read: nothing is lost on the way.
    assert msgspec.json.decode(msgspec.json.encode(read)) == msgspec.json.decode(text)
