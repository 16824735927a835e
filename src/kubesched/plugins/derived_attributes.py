"""Attributes that a request derives from those of a device, by a CEL expression.

Constraints compare them as if drivers had published them. Each expression is evaluated once for a
device, when a constraint reads it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from kubesched import cel
from kubesched.api.resource import Device, DeviceAttribute
from kubesched.cel.library.semvers import Semver
from kubesched.cel.values import Value, is_list
from kubesched.cluster.device_table import DeviceTable
from kubesched.errors import CelError, CelRuntimeError
from kubesched.plugins.device_conversion import converted

if TYPE_CHECKING:
    from kubesched.cel.derived import DerivedAttribute

#: How many compiled expressions, and values of each, are cached.
_COMPILED: Final = 1024
_EVALUATED: Final = 65_536

#: An expression makes no sense, or has no value for a device.
DerivationError = CelError | CelRuntimeError


@lru_cache(maxsize=_COMPILED)
def _compiled(expression: str) -> DerivedAttribute | CelError:
    try:
        return cel.compile_derived_attribute(expression)
    except CelError as malformed:
        return malformed


class DerivedAttributes:
    """The values of an expression by device; by identity, as versions of a device are immutable."""

    def __init__(self, table: DeviceTable, expression: str) -> None:
        self._table = table
        self._expression = expression
        #: id → (device, its value); the reference keeps the id valid
        self._known: dict[int, tuple[Device, DeviceAttribute | DerivationError]] = {}

    def at(self, row: int) -> DeviceAttribute | DerivationError:
        """Return the attribute of a device, or why there is none."""
        device = self._table.device_at(row)
        cached = self._known.get(id(device))
        if cached is not None:
            return cached[1]
        if len(self._known) >= _EVALUATED:
            self._known.clear()
        found = self._evaluate(device, self._table.keys[row][0])
        self._known[id(device)] = device, found
        return found

    def failure(self, error: DerivationError, name: str, row: int) -> str:
        """Return the error text for a device without the attribute."""
        if isinstance(error, CelError):
            return f"compile derived attribute {name} failed: {error}"
        device = "/".join(self._table.keys[row])
        return f"evaluate derived attribute {name} on device {device} failed: {error}"

    def _evaluate(self, device: Device, driver: str) -> DeviceAttribute | DerivationError:
        compiled = _compiled(self._expression)
        if isinstance(compiled, CelError):
            return compiled
        try:
            return _attribute(compiled.value(converted(device, driver)))
        except CelRuntimeError as failed:
            return failed


def _attribute(value: Value) -> DeviceAttribute:
    """Return a value of CEL as drivers would publish it."""
    if not is_list(value):
        return _scalar(value)
    values = tuple(value)
    first = values[0] if values else ""
    if isinstance(first, bool):
        return DeviceAttribute(bool_values=values)
    if isinstance(first, int):
        return DeviceAttribute(int_values=values)
    if isinstance(first, Semver):
        return DeviceAttribute(version_values=tuple(each.text for each in values))
    return DeviceAttribute(string_values=values)


def _scalar(value: Value) -> DeviceAttribute:
    if isinstance(value, bool):
        return DeviceAttribute(bool_value=value)
    if isinstance(value, int):
        return DeviceAttribute(int_value=value)
    if isinstance(value, Semver):
        return DeviceAttribute(version_value=value.text)
    return DeviceAttribute(string_value=value)
