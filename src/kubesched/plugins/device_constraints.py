"""What the devices of a claim must have in common, or must not."""

from __future__ import annotations

from kubesched.api.resource import Device, DeviceAttribute, DeviceConstraint

#: Type and value; None for a value of a type that cannot be compared.
Value = tuple[str, str | int | bool] | None


class Constraint:
    """One constraint, with the devices that were chosen so far."""

    __slots__ = ("_attribute", "_is_distinct", "_requests", "_values")

    def __init__(self, constraint: DeviceConstraint) -> None:
        self._requests = frozenset(constraint.requests)
        self._is_distinct = constraint.match_attribute is None
        self._attribute = constraint.match_attribute or constraint.distinct_attribute or ""
        #: of the devices that were chosen, in order
        self._values: list[Value] = []

    def concerns(self, request: str, alternative: str) -> bool:
        """Tell whether the devices of a request, or of one of its alternatives, are concerned."""
        names = self._requests
        return (
            not names
            or request in names
            or (bool(alternative) and f"{request}/{alternative}" in names)
        )

    def add(self, device: Device, driver: str) -> bool:
        """Choose a device; return False, and do not, if the constraint forbids it."""
        attribute = find_attribute(device, driver, self._attribute)
        if attribute is None:
            return False
        value, chosen = comparable(attribute), self._values
        if chosen and (
            value is None or (value in chosen if self._is_distinct else value != chosen[0])
        ):
            return False
        chosen.append(value)
        return True

    def remove(self) -> None:
        """Take the last device back."""
        self._values.pop()

    def value_of(self, device: Device, driver: str) -> Value | bool:
        """Return what matters of a device: its value, or False if it has none."""
        attribute = find_attribute(device, driver, self._attribute)
        return False if attribute is None else comparable(attribute)


def find_attribute(device: Device, driver: str, name: str) -> DeviceAttribute | None:
    """Return an attribute by its full name; attributes without a domain have the driver's."""
    found = device.attributes.get(name)
    if found is not None:
        return found
    domain, slash, identifier = name.partition("/")
    return device.attributes.get(identifier) if slash and domain == driver else None


def comparable(attribute: DeviceAttribute) -> Value:
    """Return the value of an attribute, with its type."""
    if attribute.string_value is not None:
        return "string", attribute.string_value
    if attribute.int_value is not None:
        return "int", attribute.int_value
    if attribute.bool_value is not None:
        return "bool", attribute.bool_value
    if attribute.version_value is not None:
        return "version", attribute.version_value
    return None
