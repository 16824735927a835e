"""What the devices of a claim must have in common, or must not.

An attribute is a set of values of one type: of one value, or with the gate DRAListTypeAttributes of
all values of a list. Devices that have to match must have a value in common, all of them; devices
that have to be distinct must not, any two of them.
"""

from __future__ import annotations

from kubesched.api.resource import Device, DeviceAttribute, DeviceConstraint

#: Type and values; None for an attribute of a type that cannot be compared.
Values = tuple[str, frozenset[str | int | bool]] | None


class Constraint:
    """One constraint, with the devices that were chosen so far."""

    __slots__ = ("_chosen", "_has_lists", "_is_distinct", "_requests", "attribute")

    def __init__(self, constraint: DeviceConstraint, *, has_lists: bool = False) -> None:
        self._requests = frozenset(constraint.requests)
        self._is_distinct = constraint.match_attribute is None
        self._has_lists = has_lists
        #: full name of the attribute that is compared
        self.attribute = constraint.match_attribute or constraint.distinct_attribute or ""
        #: after each device that was chosen: its values, or those that all have in common so far
        self._chosen: list[Values] = []

    def concerns(self, request: str, alternative: str) -> bool:
        """Return whether the devices of a request, or of one of its alternatives, are concerned."""
        names = self._requests
        return (
            not names
            or request in names
            or (bool(alternative) and f"{request}/{alternative}" in names)
        )

    def add(self, attribute: DeviceAttribute | None) -> bool:
        """Choose a device with such an attribute; return False, and do not, if it is forbidden."""
        if attribute is None:
            return False
        values, chosen = self._values(attribute), self._chosen
        if values is None and (chosen or self._has_lists):
            return False
        if chosen and self._is_distinct:
            if any(_in_common(values, each) for each in chosen):
                return False
        elif chosen:
            values = _in_common(values, chosen[-1])
            if values is None:
                return False
        chosen.append(values)
        return True

    def remove(self) -> None:
        """Take the last device back."""
        self._chosen.pop()

    def value_of(self, attribute: DeviceAttribute | None) -> Values | bool:
        """Return what matters of a device: its values, or False if it has none."""
        return False if attribute is None else self._values(attribute)

    def _values(self, attribute: DeviceAttribute) -> Values:
        return (_listed(attribute) if self._has_lists else None) or comparable(attribute)


def find_attribute(device: Device, driver: str, name: str) -> DeviceAttribute | None:
    """Return an attribute by its full name; attributes without a domain have the driver's."""
    found = device.attributes.get(name)
    if found is not None:
        return found
    domain, slash, identifier = name.partition("/")
    return device.attributes.get(identifier) if slash and domain == driver else None


def comparable(attribute: DeviceAttribute) -> Values:
    """Return the value of an attribute that has one, with its type."""
    if attribute.string_value is not None:
        return "string", frozenset({attribute.string_value})
    if attribute.int_value is not None:
        return "int", frozenset({attribute.int_value})
    if attribute.bool_value is not None:
        return "bool", frozenset({attribute.bool_value})
    if attribute.version_value is not None:
        return "version", frozenset({attribute.version_value})
    return None


def _listed(attribute: DeviceAttribute) -> Values:
    """Return the values of an attribute that is a list, with their type."""
    if attribute.int_values:
        return "int", frozenset(attribute.int_values)
    if attribute.bool_values:
        return "bool", frozenset(attribute.bool_values)
    if attribute.string_values:
        return "string", frozenset(attribute.string_values)
    if attribute.version_values:
        return "version", frozenset(attribute.version_values)
    return None


def _in_common(one: Values, other: Values) -> Values:
    """Return the values that two attributes share, None if there are none."""
    if one is None or other is None or one[0] != other[0]:
        return None
    values = one[1] & other[1]
    return (one[0], values) if values else None
