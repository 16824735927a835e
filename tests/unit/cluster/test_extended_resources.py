"""Extended resources that device classes stand for."""

from __future__ import annotations

from kubesched.api.meta import ObjectMeta
from kubesched.api.resource import DeviceClass, DeviceClassSpec
from kubesched.cluster.extended_resources import ExtendedResources, may_be_devices
from kubesched.cluster.object_store import NamedStore


def device_class(name: str, resource: str | None = None, created: str = "") -> DeviceClass:
    return DeviceClass(
        metadata=ObjectMeta(name=name, creation_timestamp=created),
        spec=DeviceClassSpec(extended_resource_name=resource),
    )


def resources(*classes: DeviceClass) -> ExtendedResources:
    store = NamedStore[DeviceClass]()
    for each in classes:
        store.put(each)
    return ExtendedResources(store)


def chosen(found: ExtendedResources, resource: str) -> str | None:
    known = found.class_of(resource)
    return None if known is None else known.metadata.name


def test_a_class_stands_for_its_explicit_and_its_implicit_name() -> None:
    found = resources(device_class("gpu", "example.com/gpu"))

    assert chosen(found, "example.com/gpu") == "gpu"
    assert chosen(found, "deviceclass.resource.kubernetes.io/gpu") == "gpu"
    assert chosen(found, "example.com/other") is None


def test_of_two_classes_for_a_resource_the_newer_counts_then_the_first_by_name() -> None:
    old = device_class("a", "example.com/gpu", "2026-01-01T00:00:00Z")
    new = device_class("z", "example.com/gpu", "2026-02-01T00:00:00Z")
    same = device_class("y", "example.com/gpu", "2026-02-01T00:00:00Z")

    assert chosen(resources(old, new), "example.com/gpu") == "z"
    assert chosen(resources(new, same, old), "example.com/gpu") == "y"


def test_classes_that_come_and_go_are_followed() -> None:
    store = NamedStore[DeviceClass]()
    found = ExtendedResources(store)
    assert not found

    store.put(device_class("gpu", "example.com/gpu"))
    assert found.names() == {"example.com/gpu", "deviceclass.resource.kubernetes.io/gpu"}

    store.remove(device_class("gpu"))
    assert not found
    found.validate()


def test_resources_of_kubernetes_itself_are_no_devices() -> None:
    assert may_be_devices("example.com/gpu")
    assert may_be_devices("deviceclass.resource.kubernetes.io/gpu")
    assert not may_be_devices("cpu")
    assert not may_be_devices("hugepages-2Mi")
