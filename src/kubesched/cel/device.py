"""A device as selectors see it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubesched.cel.library import quantities, semvers
from kubesched.cel.library.quantities import Quantity
from kubesched.cel.library.semvers import Semver
from kubesched.cel.values import DefaultMap, Err, StringMap, Value
from kubesched.errors import CelRuntimeError

#: The variable that an expression reads.
DEVICE: Final = "device"

_EMPTY: Final[dict[str, dict[str, Value]]] = {}


def version(text: str) -> Semver:
    """Return the value of an attribute of type version; raises CelRuntimeError."""
    parsed = semvers.parse(text)
    if isinstance(parsed, Err):
        raise CelRuntimeError(f"parse semantic version: {parsed.message}")
    return parsed


def quantity(text: str) -> Quantity:
    """Return the value of a capacity; raises CelRuntimeError."""
    parsed = quantities.parse(text)
    if isinstance(parsed, Err):
        raise CelRuntimeError(parsed.message)
    return parsed


class CelDevice:
    """A device: attributes and capacities by domain and name, as CEL values.

    Names without a domain are in the driver's. Attributes are strings, ints, bools, versions (see
    ``version``), or lists of these; capacities are quantities (see ``quantity``).
    """

    __slots__ = ("_value", "attributes", "capacity", "driver", "is_shareable")

    def __init__(
        self,
        driver: str,
        attributes: Mapping[str, Value] | None = None,
        capacity: Mapping[str, Quantity] | None = None,
        *,
        allow_multiple_allocations: bool = False,
    ) -> None:
        self.driver = driver
        self.is_shareable = allow_multiple_allocations
        self.attributes = _by_domain(attributes, driver)
        self.capacity = _by_domain(capacity, driver)
        self._value: StringMap | None = None

    @property
    def value(self) -> StringMap:
        """The variable ``device``."""
        if self._value is None:
            self._value = StringMap(
                {
                    "driver": self.driver,
                    "allowMultipleAllocations": self.is_shareable,
                    "attributes": DefaultMap(_wrapped(self.attributes)),
                    "capacity": DefaultMap(_wrapped(self.capacity)),
                }
            )
        return self._value


def _by_domain(values: Mapping[str, Value] | None, driver: str) -> dict[str, dict[str, Value]]:
    if not values:
        return _EMPTY
    result: dict[str, dict[str, Value]] = {}
    for qualified, value in values.items():
        domain, slash, name = qualified.partition("/")
        if slash:
            result.setdefault(domain, {})[name] = value
        else:
            # The same name with the driver's domain has precedence, as in constraints.
            result.setdefault(driver, {}).setdefault(qualified, value)
    return result


def _wrapped(values: dict[str, dict[str, Value]]) -> dict[str, Value]:
    return {domain: StringMap(names) for domain, names in values.items()}
