"""Equivalence classes of nodes for the search for the devices of some claims.

    layout of pools; of each device: kind, selected or not, values that are compared ──> Hardware
    hardware; of each device that matters: how much is taken ──> DeviceSignature

A search is a function of these. So what it finds on one node, in terms of places among the devices,
holds for all nodes with that signature, and thousands of nodes with the same hardware are searched
as often as they differ in what is taken of them. The hardware changes with what is published, so
after an allocation, only what is taken is looked at again.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from kubesched.cluster.arrays import BoolArray, IndexArray, Int32Array
from kubesched.cluster.device_table import BARE
from kubesched.cluster.device_uses import UNUSED
from kubesched.cluster.numbering import Numbering
from kubesched.cluster.visible_devices import NodeDevices, VisibleDevices
from kubesched.plugins.device_constraints import find_attribute
from kubesched.plugins.device_ledger import DeviceState
from kubesched.plugins.device_match import NO, States
from kubesched.plugins.device_requests import Wanted

#: The value of devices that match no request: they are not compared.
_NOT_COMPARED = 0


#: Number of the hardware, and how much is taken of each device that matters.
DeviceSignature = tuple[int, tuple[int, ...]]


class Hardware(NamedTuple):
    """What nodes have in common whose devices differ in nothing but in what is taken of them."""

    number: int
    #: places of devices of which it matters what is taken
    places: tuple[int, ...]
    #: the signature of nodes of whose devices nothing is taken: most of a large cluster
    unused: DeviceSignature


class NodeSignatures:
    """The device signatures of nodes, by the number of what they see, for what some claims want."""

    def __init__(self, wanted: Wanted, visible: VisibleDevices, state: DeviceState) -> None:
        self._wanted = wanted
        self._visible = visible
        self._table = state.table
        self._uses = state.uses
        self._values: Numbering[Hashable] = Numbering(first=_NOT_COMPARED + 1)
        self._numbers: Numbering[tuple[int, bytes]] = Numbering()
        #: number of what a node sees → its hardware
        self._hardware: dict[int, Hardware] = {}

    def forget(self, number: int) -> None:
        """Invalidate the signature of a number whose devices were published again."""
        self._hardware.pop(number, None)

    def of(self, numbers: Sequence[int]) -> list[DeviceSignature]:
        """Return the signature of each; the device states must be refreshed."""
        cached = self._hardware
        self._find([number for number in numbers if number not in cached])
        keys, levels, at = self._table.keys, self._uses.levels, self._visible.at
        in_use = self._uses.pools
        found = []
        for number in numbers:
            hardware, node = cached[number], at(number)
            if in_use.isdisjoint(node.pool_keys):
                found.append(hardware.unused)
                continue
            rows = node.relevant
            taken = levels([keys[rows[place]] for place in hardware.places])
            found.append((hardware.number, tuple(taken)))
        return found

    def _find(self, numbers: Sequence[int]) -> None:
        """Find out the hardware of some numbers."""
        if not numbers:
            return
        nodes = [self._visible.at(number) for number in numbers]
        rows = np.fromiter(chain.from_iterable([each.relevant for each in nodes]), dtype=np.intp)
        states = [match.states(rows) for match in self._wanted.matches]
        is_asked_for = np.zeros(len(rows), dtype=np.bool_)
        for state in states:
            is_asked_for |= state != NO
        properties = self._properties(rows, states, is_asked_for)
        flat, width = properties.tobytes(), properties.itemsize * properties.shape[1]
        known: dict[int, Hardware] = {}
        start = 0
        for number, each in zip(numbers, nodes, strict=True):
            end = start + len(each.relevant)
            kind = self._numbers((each.layout, flat[start * width : end * width]))
            hardware = known.get(kind)
            if hardware is None:
                places = self._places(each, rows[start:end], is_asked_for[start:end])
                hardware = Hardware(kind, places, (kind, (UNUSED,) * len(places)))
                known[kind] = hardware
            self._hardware[number] = hardware
            start = end

    def _places(
        self, node: NodeDevices, rows: IndexArray, is_asked_for: BoolArray
    ) -> tuple[int, ...]:
        """Return the places of devices that may be chosen, or draw on the same counters."""
        matters = is_asked_for.copy()
        if any(pool.counters for pool in node.pools):
            matters |= self._table.kinds[rows] != BARE
        return tuple(np.flatnonzero(matters).tolist())

    def _properties(
        self, rows: IndexArray, states: Sequence[States], is_asked_for: BoolArray
    ) -> Int32Array:
        """Return all that matters of devices but for what is taken, [device, property]."""
        compared, derived = self._wanted.compared, self._wanted.derived
        found = np.zeros((len(rows), 1 + len(states) + len(compared) + len(derived)), np.int32)
        found[:, 0] = self._table.kinds[rows]
        for column, each in enumerate(states, start=1):
            found[:, column] = each
        if not compared:
            return found
        table, number_of = self._table, self._values
        chosen = rows[is_asked_for].tolist()
        pairs = [(table.device_at(row), table.keys[row][0]) for row in chosen]
        for column, name in enumerate(compared, start=1 + len(states)):
            values = [number_of(find_attribute(device, driver, name)) for device, driver in pairs]
            found[is_asked_for, column] = values
        for column, of_requests in enumerate(derived, start=1 + len(states) + len(compared)):
            found[is_asked_for, column] = [number_of(of_requests.at(row)) for row in chosen]
        return found
