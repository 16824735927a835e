"""The devices of slices in the columns over which CEL evaluates selectors.

A request that was never seen before is compared with all devices at once. Later, devices that
change are asked about one by one.
"""

from __future__ import annotations

from typing import Final
from weakref import WeakKeyDictionary

import numpy as np

from kubesched import cel
from kubesched.cel.columns import ColumnSelector
from kubesched.cel.columns import DeviceTable as Columns
from kubesched.cluster.arrays import BoolArray
from kubesched.cluster.device_table import DeviceTable
from kubesched.cluster.incremental import View
from kubesched.cluster.recent import Recent
from kubesched.errors import CelRuntimeError, require
from kubesched.plugins.device_match import SaidOfAll
from kubesched.plugins.device_selectors import converted

#: Columns remember every value there ever was: they are made anew after so many changes a row.
CHANGES_PER_ROW: Final = 4
#: So many selectors are remembered, with what they say of values.
SELECTORS: Final = 256

_NO_DEVICE: Final = cel.Device("")


class DeviceColumns(View):
    """All devices, in CEL's terms."""

    derived = ("has_device",)

    def __init__(self, table: DeviceTable) -> None:
        super().__init__(table.changes)
        self._table = table
        self._columns = Columns()
        self._changes = 0
        #: row → whether it has a device that can be asked about at all
        self.has_device: BoolArray = np.zeros(0, dtype=np.bool_)
        self._selectors: Recent[str, ColumnSelector] = Recent(SELECTORS)

    def rebuild(self) -> None:
        """Take over all devices."""
        self._columns, self._changes = Columns(), 0
        self.has_device = np.zeros(self._table.size, dtype=np.bool_)
        for row in range(self._table.size):
            self._put(row)

    def update(self, rows: list[int]) -> bool:
        """Take over some devices."""
        self._changes += len(rows)
        if self._changes > CHANGES_PER_ROW * self._table.size:
            return False
        more = self._table.size - len(self.has_device)
        self.has_device = np.concatenate([self.has_device, np.zeros(more, dtype=np.bool_)])
        for row in sorted(rows):
            self._put(row)
        return True

    def _put(self, row: int) -> None:
        device = self._table.devices[row]
        made, is_there = _NO_DEVICE, device is not None
        if device is not None:
            try:
                made = converted(device, self._table.keys[row][0])
            except CelRuntimeError:
                is_there = False  # asking about it alone tells why
        self.has_device[row] = is_there
        self._columns.add(made, None if row == len(self._columns) else row)

    def evaluate(self, expression: str) -> SaidOfAll:
        """Return what a selector says of all devices; raises CelError if it makes no sense."""
        self.refresh()
        selector = self._selectors.get(expression)
        if selector is None:
            selector = self._selectors[expression] = ColumnSelector(
                cel.compile_selector(expression)
            )
        said = selector.answers(self._columns)
        return SaidOfAll(said.matches, said.failed, self.has_device)

    def validate(self) -> None:
        """Compare with the devices of the table."""
        self.refresh()
        require(len(self._columns) == self._table.size == len(self.has_device), "one row a device")
        for row, device in enumerate(self._table.devices):
            known = self._columns.devices[row]
            if device is None:
                require(not self.has_device[row], f"row {row} has no device")
            elif self.has_device[row]:
                fresh = converted(device, self._table.keys[row][0])
                require(known.attributes == fresh.attributes, f"attributes of row {row}")
                require(known.driver == fresh.driver, f"driver of row {row}")


_known: Final[WeakKeyDictionary[DeviceTable, DeviceColumns]] = WeakKeyDictionary()


def columns_of(table: DeviceTable) -> DeviceColumns:
    """Return the columns of a table, which all profiles share."""
    columns = _known.get(table)
    if columns is None:
        columns = _known[table] = DeviceColumns(table)
    return columns
