"""Devices of slices in the terms of the expressions that select them."""

from __future__ import annotations

import pytest

from kubesched.api.resource import Device, DeviceAttribute, DeviceCapacity
from kubesched.errors import CelError, CelRuntimeError
from kubesched.plugins.device_selectors import compile_selector
from tests.support.device_objects import DRIVER, device

OF = f'device.attributes["{DRIVER}"]'


def says(expression: str, made: Device) -> bool:
    return compile_selector(expression).matches(made, DRIVER)


@pytest.mark.parametrize(
    "expression",
    [
        f'device.driver == "{DRIVER}"',
        f"{OF}.cores == 8",
        f"{OF}.fast",
        f'{OF}.model == "x"',
        f'{OF}.version.isGreaterThan(semver("1.9.0"))',
        f"{OF}.sockets.includes(1) && !{OF}.sockets.includes(3)",
        f"{OF}.versions[0].major() == 2",
        f'device.capacity["{DRIVER}"].memory.compareTo(quantity("1Gi")) == 0',
        "device.allowMultipleAllocations",
        'device.attributes["other.example.com"].x == 1',
        '!("y" in device.attributes["nowhere.example.com"])',
    ],
)
def test_expressions_see_all_of_a_device(expression: str) -> None:
    made = Device(
        name="a",
        allow_multiple_allocations=True,
        attributes={
            **device("a", cores=8, fast=True, model="x", sockets=[0, 1]).attributes,
            "version": DeviceAttribute(version_value="1.10.0"),
            "versions": DeviceAttribute(version_values=("2.0.0",)),
            "other.example.com/x": DeviceAttribute(int_value=1),
        },
        capacity={"memory": DeviceCapacity(value="1Gi")},
    )
    assert says(expression, made)


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (
            Device(attributes={"v": DeviceAttribute(version_value="1")}),
            "attribute v: parse semantic version: No Major.Minor.Patch elements found",
        ),
        (Device(attributes={"v": DeviceAttribute()}), "attribute v: unsupported attribute value"),
        (Device(capacity={"m": DeviceCapacity(value="much")}), "capacity m: "),
    ],
)
def test_a_device_that_cannot_be_expressed_says_why(made: Device, text: str) -> None:
    with pytest.raises(CelRuntimeError, match=text.replace(".", r"\.")):
        says("true", made)


def test_an_expression_that_makes_no_sense_is_refused_each_time() -> None:
    for _ in range(2):
        with pytest.raises(CelError, match="must evaluate to bool or the unknown type, not int"):
            compile_selector("1")
