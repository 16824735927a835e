"""Devices of slices as CEL values."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from kubesched import cel
from kubesched.api.resource import Device, DeviceAttribute, DeviceCapacity
from kubesched.cel.library import quantities, semvers
from kubesched.cel.library.quantities import Quantity
from kubesched.cel.values import Err, Value
from kubesched.errors import CelRuntimeError

#: How many devices converted to CEL values are cached.
_CONVERTED: Final = 65_536
#: How many versions and lists are cached as valid or invalid.
_VALUES: Final = 4096


class _Converted:
    """Devices as CEL values; by identity, as versions are immutable."""

    def __init__(self) -> None:
        #: id → (device, driver, its CEL value); the reference keeps the id valid
        self._known: dict[int, tuple[Device, str, cel.CelDevice]] = {}

    def __call__(self, device: Device, driver: str) -> cel.CelDevice:
        cached = self._known.get(id(device))
        if cached is not None and cached[1] == driver:
            return cached[2]
        if len(self._known) >= _CONVERTED:
            self._known.clear()
        made = _convert(device, driver)
        self._known[id(device)] = device, driver, made
        return made


converted: Final = _Converted()


@lru_cache(maxsize=_VALUES)
def has_value(attribute: DeviceAttribute) -> bool:
    """Return whether an attribute has a value, and one of its type."""
    try:
        _value("", attribute)
    except CelRuntimeError:
        return False
    return True


def is_amount(capacity: DeviceCapacity) -> bool:
    """Return whether a capacity is a quantity."""
    return not isinstance(quantities.parse(str(capacity.value)), Err)


def _convert(device: Device, driver: str) -> cel.CelDevice:
    attributes = {name: _value(name, each) for name, each in device.attributes.items()}
    capacity: dict[str, Quantity] = {}
    for name, each in device.capacity.items():
        amount = quantities.parse(str(each.value))
        if isinstance(amount, Err):
            raise CelRuntimeError(f"capacity {name}: {amount.message}")
        capacity[name] = amount
    is_shareable = bool(device.allow_multiple_allocations)
    return cel.CelDevice(driver, attributes, capacity, allow_multiple_allocations=is_shareable)


def _value(name: str, attribute: DeviceAttribute) -> Value:
    """Return the value of an attribute; raises CelRuntimeError if it has none."""
    for values in (attribute.int_values, attribute.bool_values, attribute.string_values):
        if values:
            return list(values)
    if attribute.version_values:
        return [_version(name, each) for each in attribute.version_values]
    if attribute.version_value is not None:
        return _version(name, attribute.version_value)
    for value in (attribute.int_value, attribute.bool_value, attribute.string_value):
        if value is not None:
            return value
    raise CelRuntimeError(f"attribute {name}: unsupported attribute value")


def _version(name: str, text: str) -> Value:
    version = semvers.parse(text)
    if isinstance(version, Err):
        raise CelRuntimeError(f"attribute {name}: parse semantic version: {version.message}")
    return version
