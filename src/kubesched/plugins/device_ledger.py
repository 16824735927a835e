"""Which devices a search has chosen so far, and whether another one may join them.

All that is chosen can be given back, in reverse order: devices, places in constraints, counters of
partitionable devices, shares of capacities.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

import msgspec

from kubesched.api import quantity
from kubesched.api.core import QuantityText
from kubesched.api.resource import Device, DeviceAttribute
from kubesched.cluster.device_table import DeviceTable
from kubesched.cluster.device_uses import DeviceUses
from kubesched.cluster.visible_devices import NodeDevices
from kubesched.plugins import device_capacity
from kubesched.plugins.device_capacity import CapacityError
from kubesched.plugins.device_constraints import Constraint, find_attribute
from kubesched.plugins.device_counters import CounterCache, CounterDraws
from kubesched.plugins.device_match import FAILED, NO, TAINTED
from kubesched.plugins.device_requests import AllocationError, Wanted, WantedRequest
from kubesched.plugins.device_rules import SearchRules

#: Capacity → how much of it a share takes.
Consumed = dict[str, QuantityText]


class Obstacle(StrEnum):
    """Why a device cannot serve a request; values are part of explanations."""

    NODE = "node"
    SELECTOR = "selector"
    TAINT = "taint"
    IN_USE = "in use"
    CAPACITY = "capacity"
    COUNTER = "counter"
    CONSTRAINT = "constraint"


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


class Ledger:
    """What is chosen so far, on one node."""

    def __init__(self, wanted: Wanted, visible: NodeDevices, state: DeviceState) -> None:
        self._wanted = wanted
        self._visible = visible
        self._table = state.table
        self._uses = state.uses
        self._rules = state.rules
        #: claim → its constraints
        self._constraints = [
            [Constraint(each, has_lists=state.rules.list_attributes) for each in claim.constraints]
            for claim in wanted.claims
        ]
        #: row → claims that it is chosen for
        self._chosen: dict[int, list[int]] = {}
        #: row → what shares that are chosen take of it
        self._shares: dict[int, dict[str, int]] = {}
        #: devices that no other one is as good as
        self._unique: set[int] = set()
        self._draws = CounterDraws(state.counters, has_groups=state.rules.compatibility_groups)

    def is_in_use(self, claim: int, request: WantedRequest, row: int) -> bool:
        """Return whether a device is taken; administrators only must not have it twice."""
        chosen = self._chosen.get(row, ())
        if request.is_admin:
            return claim in chosen
        if chosen:
            return True
        use = self._uses.of(self._table.keys[row])
        return use is not None and (use.dedicated > 0 or not self._rules.consumable)

    def is_selectable(self, claim: int, request: WantedRequest, row: int) -> bool:
        """Return whether a device is one that a request asks for, and can be used on the node.

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
        if row in self._visible.unusable or (
            device.consumes_counters and not self._rules.partitionable
        ):
            return None
        # Another share of a device takes nothing more from the counters.
        draws = bool(device.consumes_counters) and (is_exclusive or not self._is_shared(row))
        if draws and not self._draws.take(self._visible.pool_of(row), device):
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

    def obstacle(self, claim: int, request: WantedRequest, row: int) -> Obstacle | None:
        """Return why a device may not join those that are chosen; None if it may.

        Raises AllocationError if a selector has no answer.
        """
        if row in self._visible.unreachable:
            return Obstacle.NODE
        if not self.is_selectable(claim, request, row):
            return Obstacle.SELECTOR
        if request.match.at(row) == TAINTED:
            return Obstacle.TAINT
        if self.is_in_use(claim, request, row):
            return Obstacle.IN_USE
        return self._obstacle_beside_others(claim, request, row)

    def _obstacle_beside_others(
        self, claim: int, request: WantedRequest, row: int
    ) -> Obstacle | None:
        if not self.has_room(claim, request, row):
            return Obstacle.CAPACITY
        taken = self.take(claim, request, row)
        if taken is not None:
            self.give_back(taken)
            return None
        undo = Undo(claim, row, [], draws=False, is_exclusive=False)
        fits_constraints = self._constrain(claim, request, undo)
        self.give_back(undo)
        return Obstacle.COUNTER if fits_constraints else Obstacle.CONSTRAINT

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
            self._draws.give_back(self._visible.pool_of(row), self._table.device_at(row))

    def tell_apart(self, rows: Iterable[int]) -> None:
        """Let no other device be as good as one of these."""
        self._unique.update(rows)

    def class_of(self, row: int) -> Hashable:
        """Return what has to be equal of two devices for one to be as good as the other."""
        if row in self._unique:
            return row
        device, key = self._table.device_at(row), self._table.keys[row]
        use = self._uses.of(key)
        common = (
            tuple([match.at(row) for match in self._wanted.matches]),
            tuple(
                [
                    each.value_of(find_attribute(device, key[0], each.attribute))
                    for group in self._constraints
                    for each in group
                ]
            ),
            tuple([str(each.at(row)) for each in self._wanted.derived]),
            use and (use.dedicated > 0, use.shares > 0, tuple(sorted(use.consumed.items()))),
            tuple(self._chosen.get(row, ())),
            row in self._visible.unreachable,
            row in self._visible.unusable,
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
            None if shares is None else tuple(sorted(shares.items())),
        )

    # --- constraints and counters -----------------------------------------------------------------

    def _constrain(self, claim: int, request: WantedRequest, undo: Undo) -> bool:
        """Add a device to the constraints that concern it, until one forbids it."""
        for constraint in self._constraints[claim]:
            if not constraint.concerns(request.name, request.alternative):
                continue
            if constraint.add(self._attribute(request, undo.row, constraint.attribute)):
                undo.constraints.append(constraint)
            elif request.is_all:
                key = self._table.keys[undo.row]
                raise AllocationError(
                    f", request {request.own_name}: cannot add device {'/'.join(key)} because a "
                    "claim constraint would not be satisfied",
                    claim=claim,
                )
            else:
                return False
        return True

    def _attribute(self, request: WantedRequest, row: int, name: str) -> DeviceAttribute | None:
        """Return an attribute of a device: one that the request derives, or else the driver's.

        Raises AllocationError if it cannot be derived.
        """
        derived = request.derived.get(name)
        if derived is None:
            return find_attribute(self._table.device_at(row), self._table.keys[row][0], name)
        found = derived.at(row)
        if isinstance(found, DeviceAttribute):
            return found
        raise AllocationError(derived.failure(found, name, row))

    def _is_shared(self, row: int) -> bool:
        use = self._uses.of(self._table.keys[row])
        return (use is not None and use.shares > 0) or row in self._shares

    # --- capacity -----------------------------------------------------------------------------

    def has_room(
        self, claim: int, request: WantedRequest, row: int, doing: str = "checking"
    ) -> bool:
        """Return whether a device has enough left of its capacities.

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
        """Return whether a device would have enough if nothing of it was taken."""
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


def _nano(share: Consumed) -> dict[str, int]:
    return {name: quantity.nano(text) for name, text in share.items()}
