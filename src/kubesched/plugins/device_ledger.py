"""Which devices a search has chosen so far, and whether another one may join them.

All that is chosen can be given back, in reverse order: devices, places in constraints, counters of
partitionable devices, shares of capacities.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import NamedTuple

import msgspec

from kubesched.api import quantity
from kubesched.api.core import QuantityText
from kubesched.api.resource import Device
from kubesched.cluster.device_pools import PoolView, amounts
from kubesched.cluster.device_table import DeviceTable
from kubesched.cluster.device_uses import DeviceUses, PoolKey
from kubesched.cluster.visible_devices import NodeDevices
from kubesched.plugins import device_capacity
from kubesched.plugins.device_capacity import CapacityError
from kubesched.plugins.device_constraints import Constraint
from kubesched.plugins.device_match import FAILED, NO, TAINTED
from kubesched.plugins.device_requests import AllocationError, Wanted, WantedRequest

#: Capacity → how much of it a share takes.
Consumed = dict[str, QuantityText]


class SearchRules(msgspec.Struct, frozen=True):
    """What feature gates say about the allocation of devices."""

    partitionable: bool = True
    consumable: bool = True
    binding_conditions: bool = True
    fractional: bool = False


class DeviceState(NamedTuple):
    """The devices that there are, and what is taken of them."""

    table: DeviceTable
    uses: DeviceUses
    counters: CounterCache
    rules: SearchRules


class Undo(NamedTuple):
    """What is given back with a device."""

    claim: int
    row: int
    #: of these constraints the device is part
    constraints: list[Constraint]
    #: whether it draws on counters, and whether the claim has it for itself
    draws: bool
    is_exclusive: bool
    share: Consumed | None = None
    #: whether another share of the device was chosen before
    was_shared: bool = False


class CounterCache:
    """What is left of the counters of pools, until a device of the pool is taken or given back."""

    def __init__(self, table: DeviceTable, uses: DeviceUses) -> None:
        self._table = table
        self._uses = uses
        self._known: dict[PoolKey, tuple[PoolView, int, dict[str, dict[str, int]]]] = {}

    def left(self, pool: PoolView) -> dict[str, dict[str, int]]:
        """Return what is left of a pool's counters; less than nothing counts as nothing."""
        version = self._uses.version_of(pool.key)
        known = self._known.get(pool.key)
        if known is not None and known[0] is pool and known[1] == version:
            return known[2]
        left = {name: dict(counters) for name, counters in pool.counters.items()}
        for row in pool.counter_users:
            if self._uses.of(self._table.keys[row]) is None:
                continue
            for each in self._table.device_at(row).consumes_counters:
                of_set = left[each.counter_set]
                for name, amount in amounts(each.counters).items():
                    of_set[name] -= amount
        self._known[pool.key] = pool, version, left
        return left


class Ledger:
    """What is chosen so far, on one node."""

    def __init__(self, wanted: Wanted, visible: NodeDevices, state: DeviceState) -> None:
        self._wanted = wanted
        self._visible = visible
        self._table = state.table
        self._uses = state.uses
        self._counters = state.counters
        self._rules = state.rules
        #: claim → its constraints
        self._constraints = [
            [Constraint(each) for each in claim.constraints] for claim in wanted.claims
        ]
        #: row → claims that it is chosen for
        self._chosen: dict[int, list[int]] = {}
        #: row → what shares that are chosen take of it
        self._shares: dict[int, dict[str, int]] = {}
        #: pool → what devices that are chosen take of its counters
        self._drawn: dict[PoolKey, dict[str, dict[str, int]]] = {}

    def is_in_use(self, claim: int, request: WantedRequest, row: int) -> bool:
        """Tell whether a device is taken; administrators only must not have it twice."""
        chosen = self._chosen.get(row, ())
        if request.is_admin:
            return claim in chosen
        if chosen:
            return True
        use = self._uses.of(self._table.keys[row])
        return use is not None and (use.dedicated > 0 or not self._rules.consumable)

    def is_selectable(self, claim: int, request: WantedRequest, row: int) -> bool:
        """Tell whether a device is one that a request asks for, and can be used on the node.

        Raises AllocationError if a selector has no answer.
        """
        device = self._table.device_at(row)
        if device.binding_conditions and not self._rules.binding_conditions:
            return False
        match = request.match
        state = match.at(row)
        if state == FAILED:
            failure = match.failure(row)
            raise AllocationError(failure.text, claim=claim if failure.names_claim else None)
        return state != NO and row not in self._visible.unreachable

    def take(self, claim: int, request: WantedRequest, row: int) -> Undo | None:
        """Choose a device that is selectable; None, and do not, if something speaks against it."""
        device = self._table.device_at(row)
        is_exclusive = not (self._rules.consumable and bool(device.allow_multiple_allocations))
        if self.is_in_use(claim, request, row) and (is_exclusive or not request.is_admin):
            return None
        draws = False
        if device.consumes_counters:
            if not self._rules.partitionable:
                return None
            # Another share of a device takes nothing more from the counters.
            draws = is_exclusive or not self._is_shared(row)
            if draws and not self._draw(row, device):
                return None
        undo = Undo(claim, row, [], draws, is_exclusive=False)
        if request.match.at(row) == TAINTED or not self._constrain(claim, request, undo):
            self.give_back(undo)
            return None
        if is_exclusive:
            self._chosen.setdefault(row, []).append(claim)
            undo = undo._replace(is_exclusive=True)
        if not self.has_room(claim, request, row, "rechecking"):
            self.give_back(undo)
            return None
        return undo if is_exclusive else self._with_share(undo, request, device)

    def give_back(self, undo: Undo) -> None:
        """Take a choice back, which must be the last one."""
        claim, row = undo.claim, undo.row
        if undo.share is not None:
            shares = self._shares[row]
            for name, amount in _nano(undo.share).items():
                shares[name] -= amount
            if not undo.was_shared:
                del self._shares[row]
        if undo.is_exclusive:
            self._chosen[row].remove(claim)
        for constraint in undo.constraints:
            constraint.remove()
        if undo.draws:
            drawn = self._drawn[self._visible.pool_of[row].key]
            _add_counters(drawn, self._table.device_at(row), -1)

    def class_of(self, row: int) -> Hashable:
        """Return what has to be equal of two devices for one to be as good as the other."""
        device, key = self._table.device_at(row), self._table.keys[row]
        use = self._uses.of(key)
        common = (
            tuple([match.at(row) for match in self._wanted.matches]),
            tuple([each.value_of(device, key[0]) for group in self._constraints for each in group]),
            use and (use.dedicated > 0, use.shares > 0, tuple(sorted(use.consumed.items()))),
            tuple(self._chosen.get(row, ())),
            row in self._visible.unreachable,
            bool(device.binding_conditions),
        )
        if self._table.plain[row] and not device.capacity:
            return common
        shares = self._shares.get(row)
        drawn = (device.consumes_counters, device.capacity, device.allow_multiple_allocations)
        return (
            *common,
            key[:2],
            msgspec.json.encode(drawn, order="deterministic"),
            shares and tuple(sorted(shares.items())),
        )

    # --- constraints and counters -----------------------------------------------------------------

    def _constrain(self, claim: int, request: WantedRequest, undo: Undo) -> bool:
        """Add a device to the constraints that concern it, until one forbids it."""
        key = self._table.keys[undo.row]
        device = self._table.device_at(undo.row)
        for constraint in self._constraints[claim]:
            if not constraint.concerns(request.name, request.alternative):
                continue
            if constraint.add(device, key[0]):
                undo.constraints.append(constraint)
            elif request.is_all:
                raise AllocationError(
                    f", request {request.own_name}: cannot add device {'/'.join(key)} because a "
                    "claim constraint would not be satisfied",
                    claim=claim,
                )
            else:
                return False
        return True

    def _is_shared(self, row: int) -> bool:
        use = self._uses.of(self._table.keys[row])
        return (use is not None and use.shares > 0) or row in self._shares

    def _draw(self, row: int, device: Device) -> bool:
        """Take what a device draws from the counters of its pool, if all of them suffice."""
        pool = self._visible.pool_of[row]
        drawn = self._drawn.setdefault(pool.key, {})
        _add_counters(drawn, device, 1)
        for name, counters in self._counters.left(pool).items():
            of_set = drawn.get(name, {})
            if any(amount < of_set.get(counter, 0) for counter, amount in counters.items()):
                _add_counters(drawn, device, -1)
                return False
        return True

    # --- capacity -----------------------------------------------------------------------------

    def has_room(
        self, claim: int, request: WantedRequest, row: int, doing: str = "checking"
    ) -> bool:
        """Tell whether a device has enough left of its capacities.

        Raises AllocationError if what is asked for cannot be expressed in the device's terms.
        """
        if self._table.plain[row] and not request.capacity:
            return True
        key = self._table.keys[row]
        use = self._uses.of(key)
        taken = {} if use is None else dict(use.consumed)
        for name, amount in self._shares.get(row, {}).items():
            taken[name] = taken.get(name, 0) + amount
        doing = f"{doing} capacity for device {'/'.join(key)}"
        return self._has_capacity(claim, request, row, taken, doing)

    def could_have_room(self, claim: int, request: WantedRequest, row: int) -> bool:
        """Tell whether a device would have enough if nothing of it was taken."""
        name = self._table.device_at(row).name
        return self._has_capacity(claim, request, row, {}, f"checking capacity for device {name}")

    def _has_capacity(
        self, claim: int, request: WantedRequest, row: int, taken: Mapping[str, int], doing: str
    ) -> bool:
        if not self._rules.consumable:
            return True
        try:
            return device_capacity.fits(
                request.capacity,
                self._table.device_at(row).capacity,
                taken=taken,
                fractional=self._rules.fractional,
            )
        except CapacityError as impossible:
            raise AllocationError(
                f", request {request.own_name}: {doing}: {impossible}", claim=claim
            ) from None

    def _with_share(self, undo: Undo, request: WantedRequest, device: Device) -> Undo:
        """Take a share of a device."""
        share = device_capacity.consumed(
            request.capacity, device.capacity, fractional=self._rules.fractional
        )
        was_shared = undo.row in self._shares
        shares = self._shares.setdefault(undo.row, {})
        for name, amount in _nano(share).items():
            shares[name] = shares.get(name, 0) + amount
        return undo._replace(share=share, was_shared=was_shared)


def _add_counters(drawn: dict[str, dict[str, int]], device: Device, sign: int) -> None:
    for each in device.consumes_counters:
        of_set = drawn.setdefault(each.counter_set, {})
        for name, amount in amounts(each.counters).items():
            of_set[name] = of_set.get(name, 0) + sign * amount


def _nano(share: Consumed) -> dict[str, int]:
    return {name: quantity.nano(text) for name, text in share.items()}
