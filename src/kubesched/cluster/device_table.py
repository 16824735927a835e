"""Devices as rows: what each is, and the taints that it has.

A row is a device of a slice, of any generation of its pool; which of them can be allocated
is a question of pools. A device that a new version of its slice changes gets another row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np

from kubesched.api import quantity
from kubesched.api.core import NodeSelector, QuantityText
from kubesched.api.resource import Device, DeviceTaint, ResourceSliceSpec
from kubesched.cluster.arrays import Int32Array, grown
from kubesched.cluster.incremental import Log
from kubesched.cluster.numbering import Numbering
from kubesched.errors import InvariantError, ObjectError, require

#: Driver, pool and name of a device.
DeviceKey = tuple[str, str, str]
#: The kind of devices that have attributes and nothing else that matters to allocation.
BARE: Final = 0

_encode: Final = msgspec.json.Encoder(order="deterministic").encode


class Reach(NamedTuple):
    """The node, or the nodes, that a device is for; neither means all of them."""

    node_name: str | None
    selector: NodeSelector | None


class DeviceTable:
    """One row a device."""

    def __init__(self) -> None:
        #: number of rows ever in use at once; every column is valid up to here
        self.size = 0
        #: row → device, None for rows that are free
        self.devices: list[Device | None] = []
        #: row → who it is; of a free row, who it was
        self.keys: list[DeviceKey] = []
        #: row → the taints of its slice, and of rules
        self.taints: list[tuple[DeviceTaint, ...]] = []
        #: whether a device is allocated as a whole and draws on nothing that others share
        self.plain: list[bool] = []
        #: row → number of its kind: capacities, counters, and how it is allocated
        self.kinds: Int32Array = np.zeros(16, dtype=np.int32)
        self._numbers: Numbering[bytes] = Numbering(first=BARE + 1)
        #: rows whose device has taints
        self.tainted: set[int] = set()
        #: row → which nodes it is for
        self.reach: list[Reach] = []
        #: row → what the kubelet leaves out for it
        self.skipped: list[tuple[str, ...]] = []
        #: how many devices take something of their node's own resources
        self.takers = 0
        #: rows whose device came, went, or got other taints
        self.changes: Log[int] = Log()
        self._free: list[int] = []

    def __len__(self) -> int:
        return self.size - len(self._free)

    @property
    def free_rows(self) -> Sequence[int]:
        """Rows without a device."""
        return self._free

    def add(self, spec: ResourceSliceSpec, device: Device, taints: tuple[DeviceTaint, ...]) -> int:
        """Give a device of a slice a row."""
        key = (spec.driver, spec.pool.name, device.name)
        of = device if spec.per_device_node_selection else spec
        reach = Reach(of.node_name, of.node_selector)
        if self._free:
            row = self._free.pop()
            self.devices[row], self.keys[row], self.taints[row] = device, key, taints
            self.plain[row], self.reach[row] = is_plain(device), reach
            self.skipped[row] = spec.skip_node_operations
        else:
            row, self.size = self.size, self.size + 1
            self.devices.append(device)
            self.keys.append(key)
            self.taints.append(taints)
            self.plain.append(is_plain(device))
            self.reach.append(reach)
            self.skipped.append(spec.skip_node_operations)
            if row == len(self.kinds):
                self.kinds = grown(self.kinds, (2 * row,))
        self.kinds[row] = self._kind_of(device)
        if taints:
            self.tainted.add(row)
        self.takers += bool(device.node_allocatable_resources)
        self.changes.record(row)
        return row

    def _kind_of(self, device: Device) -> int:
        """Return a number that devices have in common which differ in name and attributes only."""
        is_shareable = bool(device.allow_multiple_allocations)
        has_conditions = bool(device.binding_conditions)
        if not (device.capacity or device.consumes_counters or is_shareable or has_conditions):
            return BARE
        kind = (device.capacity, device.consumes_counters, is_shareable, has_conditions)
        return self._numbers(_encode(kind))

    def remove(self, row: int) -> None:
        """Remove a device."""
        self.takers -= bool(self.device_at(row).node_allocatable_resources)
        self.devices[row], self.taints[row] = None, ()
        self.plain[row] = False
        self.tainted.discard(row)
        self._free.append(row)
        self.changes.record(row)

    def set_taints(self, row: int, taints: tuple[DeviceTaint, ...]) -> bool:
        """Take over the taints of a device; return whether they are others than before."""
        if self.taints[row] == taints:
            return False
        self.taints[row] = taints
        if taints:
            self.tainted.add(row)
        else:
            self.tainted.discard(row)
        self.changes.record(row)
        return True

    def device_at(self, row: int) -> Device:
        """Return the device of a row that is in use."""
        device = self.devices[row]
        if device is None:
            raise InvariantError(f"row {row} has no device")
        return device

    def validate(self) -> None:
        """Check that all columns have the same length, and that free rows are free."""
        for column in (self.devices, self.keys, self.taints, self.plain, self.reach, self.skipped):
            require(len(column) == self.size, "one element a row")
        takers = [each for each in self.devices if each and each.node_allocatable_resources]
        require(len(takers) == self.takers, "devices that take something of their node")
        free = set(self._free)
        require(len(free) == len(self._free), "a row is free once")
        for row, device in enumerate(self.devices):
            require((device is None) == (row in free), f"row {row} is free or has a device")
            require(self.plain[row] == (device is not None and is_plain(device)), "plain")
            require((row in self.tainted) == bool(self.taints[row]), f"row {row} has taints")
            if device is not None:
                require(self.kinds.item(row) == self._kind_of(device), f"the kind of row {row}")


def is_plain(device: Device) -> bool:
    """Return whether a device can be allocated if it is free, without further conditions."""
    return (
        not device.allow_multiple_allocations
        and not device.consumes_counters
        and all(
            each.request_policy is None and _is_amount(each.value)
            for each in device.capacity.values()
        )
    )


def _is_amount(text: QuantityText) -> bool:
    try:
        return quantity.nano(text) >= 0
    except ObjectError:
        return False
