"""How much of a device's capacities a request takes, and whether that much is left.

A capacity may restrict which amounts can be requested: from a minimum in steps, or a list. What
is requested is rounded up to such an amount. All arithmetic is exact, in nano units.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubesched.api import quantity
from kubesched.api.core import QuantityText
from kubesched.api.resource import CapacityRequestPolicy, CapacityRequestPolicyRange, DeviceCapacity
from kubesched.errors import ObjectError

_NANO: Final = 10**9
_NANO_PER_MILLI: Final = 10**6
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL: Final = ("", "k", "M", "G", "T", "P", "E")
_NOT_REPRESENTABLE: Final = (
    "capacity request cannot be represented in the device's range arithmetic"
)

#: Capacity → amount in nano units.
Amounts = Mapping[str, int]


class CapacityError(ObjectError):
    """A capacity that no amount can be taken of; the text names it."""


def consumed(
    requests: Mapping[str, QuantityText],
    capacities: Mapping[str, DeviceCapacity],
    *,
    fractional: bool,
) -> dict[str, QuantityText]:
    """Return what a request takes of each capacity; raises CapacityError if that is no amount."""
    taken: dict[str, QuantityText] = {}
    for name, capacity in capacities.items():
        try:
            taken[name] = _taken(requests.get(name), capacity, fractional=fractional)
            if quantity.nano(taken[name]) < 0:
                raise CapacityError("capacity value is negative")
        except ObjectError as impossible:
            raise CapacityError(f'capacity "{name}": {impossible}') from None
    return taken


def fits(
    requests: Mapping[str, QuantityText],
    capacities: Mapping[str, DeviceCapacity],
    *,
    taken: Amounts,
    fractional: bool,
) -> bool:
    """Return whether a request may be served by a device of which `taken` is taken.

    Raises CapacityError if the request cannot be expressed in the terms of the device.
    """
    if not requests.keys() <= capacities.keys():
        return False  # another device may have enough
    wanted = consumed(requests, capacities, fractional=fractional)
    return all(
        not _violates(quantity.nano(wanted[name]), capacity.request_policy, fractional=fractional)
        and taken.get(name, 0) + quantity.nano(wanted[name]) <= quantity.nano(capacity.value)
        for name, capacity in capacities.items()
    )


def _taken(
    request: QuantityText | None, capacity: DeviceCapacity, *, fractional: bool
) -> QuantityText:
    policy = capacity.request_policy or CapacityRequestPolicy()
    if request is None:
        return capacity.value if policy.default is None else policy.default
    valid = policy.valid_range
    if valid is not None and valid.min is not None:
        return _in_range(request, valid.min, valid, fractional=fractional)
    larger = (each for each in policy.valid_values if quantity.compare(request, each) <= 0)
    return next(larger, request)


def _in_range(
    request: QuantityText,
    minimum: QuantityText,
    valid: CapacityRequestPolicyRange,
    *,
    fractional: bool,
) -> QuantityText:
    """Round a request up to the minimum, or to the next step above it."""
    asked, least = quantity.nano(request), quantity.nano(minimum)
    if asked < least:
        return minimum
    if valid.step is None:
        return request
    milli = _is_milli(valid, fractional=fractional)
    if milli:
        if asked % _NANO_PER_MILLI or abs(asked) > quantity.INT64_MAX * _NANO_PER_MILLI:
            raise _unrepresentable(f"request {request} is not a representable milli value")
        unit, overflow = _NANO_PER_MILLI, "passes the milli-value range"
    else:
        if asked > quantity.INT64_MAX * _NANO:
            raise _unrepresentable(f"request {request} exceeds MaxInt64")
        unit, overflow = _NANO, "passes MaxInt64"
    start, step = _units(least, unit), max(_units(quantity.nano(valid.step), unit), 1)
    rounded = start + -(-(_units(asked, unit) - start) // step) * step
    if rounded > quantity.INT64_MAX:
        raise _unrepresentable(f"rounding request {request} up to the next step {overflow}")
    return spelled(rounded * unit, like=valid.step)


def _violates(amount: int, policy: CapacityRequestPolicy | None, *, fractional: bool) -> bool:
    if policy is None:
        return False
    if policy.default is not None and amount == quantity.nano(policy.default):
        return False
    if policy.valid_range is not None:
        return _is_out_of(policy.valid_range, amount, fractional=fractional)
    if policy.valid_values:
        return all(amount != quantity.nano(each) for each in policy.valid_values)
    return False


def _is_out_of(valid: CapacityRequestPolicyRange, amount: int, *, fractional: bool) -> bool:
    if valid.max is not None and amount > quantity.nano(valid.max):
        return True
    if valid.step is None:
        return False
    unit = _NANO_PER_MILLI if _is_milli(valid, fractional=fractional) else _NANO
    if unit == _NANO_PER_MILLI and amount % unit:
        return True
    least = 0 if valid.min is None else quantity.nano(valid.min)
    step = max(_units(quantity.nano(valid.step), unit), 1)
    return (_units(amount, unit) - _units(least, unit)) % step != 0


def _is_milli(valid: CapacityRequestPolicyRange, *, fractional: bool) -> bool:
    """Return whether a range is counted in thousandths: all of it must be exact in them."""
    if not fractional:
        return False
    amounts = [
        quantity.nano(each) for each in (valid.min, valid.max, valid.step) if each is not None
    ]
    limit = quantity.INT64_MAX * _NANO_PER_MILLI
    return all(not each % _NANO_PER_MILLI and abs(each) <= limit for each in amounts)


def _units(amount: int, unit: int) -> int:
    """Return an amount in units, rounded up as Kubernetes does; at least one for steps."""
    return -(-amount // unit)


def spelled(amount: int, *, like: QuantityText) -> str:
    """Spell an amount with the kind of suffix that another one has."""
    if amount % _NANO_PER_MILLI:
        return f"{amount}n"
    if amount % _NANO:
        return f"{amount // _NANO_PER_MILLI}m"
    whole, power = amount // _NANO, 0
    is_binary = isinstance(like, str) and like.endswith("i")
    base, suffixes = (1024, _BINARY) if is_binary else (1000, _DECIMAL)
    while whole and whole % base == 0 and power < len(suffixes) - 1:
        whole, power = whole // base, power + 1
    return f"{whole}{suffixes[power]}"


def _unrepresentable(why: str) -> CapacityError:
    return CapacityError(f"{_NOT_REPRESENTABLE}: {why}")
