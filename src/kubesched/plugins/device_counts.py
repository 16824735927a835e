"""How many devices of a class each node has, and how many of them are allocated.

Scoring by an extended resource that a class backs counts its devices. Unlike allocation, it
takes every slice as it is: whether pools are complete, or generations current, does not matter.
Nor are selectors told which devices can be shared.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import numpy as np

from kubesched.api.resource import DeviceClass
from kubesched.cluster.arrays import Int64Array, Rows
from kubesched.cluster.device_pools import PoolSlice
from kubesched.cluster.device_uses import PoolKey
from kubesched.cluster.devices import Devices
from kubesched.cluster.incremental import View
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.recent import Recent
from kubesched.cluster.visible_devices import usable_on
from kubesched.plugins.device_match import (
    ANY_TAINT,
    FAILED,
    NO,
    Compile,
    DeviceMatch,
    LocatedSelector,
    blind,
)


class _Share(NamedTuple):
    """What a slice adds to some rows."""

    rows: Rows
    #: devices, those that are allocated, and those that a selector has no answer for
    counts: Int64Array


class DeviceCounts(View):
    """For each row, how many devices of one class there are, and how many are allocated."""

    derived = ("counts",)

    def __init__(self, table: NodeTable, devices: Devices, match: DeviceMatch) -> None:
        super().__init__(table.node_changes, devices.pool_changes, devices.uses.changes)
        self._table = table
        self._devices = devices
        self._match = match
        #: [devices, allocated, without an answer; row]
        self.counts: Int64Array
        #: pool → what was added for it
        self._shares: dict[PoolKey, list[_Share]]

    def rebuild(self) -> None:
        """Count all devices."""
        self.counts = np.zeros((3, self._table.size), dtype=np.int64)
        self._shares = {}
        self._match.refresh()
        for key in self._devices.pool_keys():
            self._add(key)

    def update(self, rows: list[int], pools: list[PoolKey], used: list[PoolKey]) -> bool:
        """Count the devices of some pools anew."""
        if rows:
            return False
        self._match.refresh()
        for key in dict.fromkeys((*pools, *used)):
            for share in self._shares.pop(key, ()):
                self.counts[:, share.rows] -= share.counts[:, None]
            self._add(key)
        return True

    def _add(self, key: PoolKey) -> None:
        shares = [share for each in self._devices.slices_of(key) for share in self._shares_of(each)]
        for share in shares:
            self.counts[:, share.rows] += share.counts[:, None]
        if shares:
            self._shares[key] = shares

    def _shares_of(self, each: PoolSlice) -> Sequence[_Share]:
        nodes = NodeRows.all_of(self._table)
        if each.device_places is not None:
            return [
                _Share(np.flatnonzero(usable_on(place, nodes)), self._count((row,)))
                for row, place in zip(each.rows, each.device_places, strict=True)
            ]
        if each.place is None:
            return ()
        if each.node_name:
            row = self._table.row_of(each.node_name)
            at: Rows = slice(0, 0) if row is None else slice(row, row + 1)
        else:
            at = np.flatnonzero(usable_on(each.place, nodes))
        return [_Share(at, self._count(each.rows))]

    def _count(self, rows: Sequence[int]) -> Int64Array:
        table, uses = self._devices.table, self._devices.uses
        states = [(row, self._match.at(row)) for row in rows]
        found = [row for row, state in states if state not in (NO, FAILED)]
        taken = sum(uses.of(table.keys[row]) is not None for row in found)
        failed = sum(state == FAILED for _, state in states)
        return np.array([len(found), taken, failed], dtype=np.int64)

    def at(self, rows: Rows) -> tuple[Int64Array, Int64Array]:
        """Return how many devices some rows have, and how many are allocated; none if in doubt."""
        self.refresh()
        there, taken, failed = self.counts[:, rows]
        is_known = failed == 0
        return there * is_known, taken * is_known


class CountedDevices:
    """The devices that extended resources stand for, counted by class."""

    def __init__(self, table: NodeTable, devices: Devices, compile_selector: Compile) -> None:
        self._table = table
        self._devices = devices
        self._compile = compile_selector
        self._cache: Recent[str, tuple[DeviceClass, DeviceCounts]] = Recent(limit=64)

    def of(self, resource: str) -> DeviceCounts | None:
        """Return the devices that back a resource, None if there are none."""
        device_class = self._devices.extended_resources.class_of(resource)
        if device_class is None:
            return None
        cached = self._cache.get(resource)
        if cached is not None and cached[0] is device_class:
            return cached[1]
        match = DeviceMatch(
            self._devices.table,
            selectors=[
                LocatedSelector(device_class.metadata.name, number, each.cel.expression)
                for number, each in enumerate(device_class.spec.selectors)
                if each.cel is not None
            ],
            tolerations=(ANY_TAINT,),
            compile_selector=blind(self._compile),
        )
        counts = DeviceCounts(self._table, self._devices, match)
        self._cache[resource] = device_class, counts
        return counts

    def epoch(self, resources: Sequence[str]) -> Hashable:
        """Return what the numbers of some resources depend on, None if no devices count."""
        if not any(self._devices.extended_resources.class_of(each) for each in resources):
            return None
        devices = self._devices
        return (
            devices.classes.changes.position,
            devices.pool_changes.position,
            devices.uses.changes.position,
        )


#: Returns the devices that back a resource.
FindDevices = Callable[[str], DeviceCounts | None]
