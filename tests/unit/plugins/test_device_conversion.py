"""Devices of slices as CEL values."""

from __future__ import annotations

from kubesched.plugins.device_conversion import converted
from tests.support.device_objects import DRIVER, device


def test_a_device_is_converted_once_for_a_driver() -> None:
    made = device("a", x=1)
    assert converted(made, DRIVER) is converted(made, DRIVER)
    assert converted(made, "other.example.com").attributes == {"other.example.com": {"x": 1}}
