"""The devices of slices in the columns over which CEL evaluates selectors.

A request that was never seen before is compared with all devices at once. Later, devices that
change are evaluated one by one.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

import numpy as np

from kubesched import cel
from kubesched.api.resource import Device
from kubesched.cel.device_values import DeviceValueTable, cell_of
from kubesched.cel.reads import DRIVER, SHAREABLE, DeviceColumn
from kubesched.cluster.arrays import BoolArray
from kubesched.cluster.device_table import DeviceTable
from kubesched.cluster.incremental import View
from kubesched.cluster.recent import Recent
from kubesched.errors import CelRuntimeError, require
from kubesched.plugins.device_conversion import converted, has_value, is_amount
from kubesched.plugins.device_match import SaidOfAll

if TYPE_CHECKING:
    from kubesched.cel.columns import ColumnSelector

#: Columns never drop a value, so they are rebuilt after this many changes per row.
CHANGES_PER_ROW: Final = 4
#: How many selectors are cached, with their results by value.
SELECTORS: Final = 256
_NO_DEVICE: Final = cel.CelDevice("")


class DeviceColumns(View):
    """All devices, as columns of what selectors read of them."""

    derived = ("has_device",)

    def __init__(self, table: DeviceTable) -> None:
        super().__init__(table.changes)
        self._table = table
        self._values = DeviceValueTable(self)
        self._changes = 0
        #: row → whether it has a device that can be evaluated
        self.has_device: BoolArray = np.zeros(0, dtype=np.bool_)
        #: kind of devices → whether their capacities make sense
        self._has_amounts: dict[int, bool] = {}
        self._selectors: Recent[str, ColumnSelector] = Recent(SELECTORS)

    def rebuild(self) -> None:
        """Take over all devices."""
        self._values, self._changes = DeviceValueTable(self), 0
        self._has_amounts = {}
        rows = range(self._table.size)
        self.has_device = np.array([self._has_device(row) for row in rows], dtype=np.bool_)

    def update(self, rows: list[int]) -> bool:
        """Take over some devices."""
        self._changes += len(rows)
        if self._changes > CHANGES_PER_ROW * self._table.size:
            return False
        more = self._table.size - len(self.has_device)
        self.has_device = np.concatenate([self.has_device, np.zeros(more, dtype=np.bool_)])
        self.has_device[rows] = [self._has_device(row) for row in rows]
        self._values.changed(rows)
        return True

    def _has_device(self, row: int) -> bool:
        """Return whether a row has a device whose values are all valid.

        For any other, evaluating it alone raises the reason.
        """
        device = self._table.devices[row]
        if device is None:
            return False
        for each in device.attributes.values():
            is_plain = not (
                each.string_value is None and each.int_value is None and each.bool_value is None
            )
            # Others are versions, or lists of some type.
            if not is_plain and not has_value(each):
                return False
        kind = self._table.kinds.item(row)
        has_amounts = self._has_amounts.get(kind)
        if has_amounts is None:
            has_amounts = self._has_amounts[kind] = all(map(is_amount, device.capacity.values()))
        return has_amounts

    # --- devices as the columns see them ----------------------------------------------------------

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.has_device)

    def device(self, row: int) -> cel.CelDevice:
        """Return a device in CEL's terms; an empty one in place of those that make no sense."""
        return self._converted(row) if self.has_device[row] else _NO_DEVICE

    def _converted(self, row: int) -> cel.CelDevice:
        return converted(self._table.device_at(row), self._table.keys[row][0])

    def keys(self, column: DeviceColumn, rows: Sequence[int]) -> Sequence[Hashable]:
        """Return what devices have in a column; nothing, for those that cannot be evaluated."""
        devices, keys = self._table.devices, self._table.keys
        is_asked = self.has_device[np.array(rows, dtype=np.intp)].tolist()
        chosen = [
            (device, keys[row][0])
            for row, is_there in zip(rows, is_asked, strict=True)
            if is_there and (device := devices[row]) is not None
        ]
        found = iter(_read(column, chosen))
        return [next(found) if is_there else None for is_there in is_asked]

    def evaluate(self, expression: str) -> SaidOfAll:
        """Return a selector's result for all devices; raises CelError if it is invalid."""
        self.refresh()
        selector = self._selectors.get(expression)
        if selector is None:
            selector = self._selectors[expression] = cel.compile_column_selector(expression)
        said = selector.answers(self._values)
        return SaidOfAll(said.matches, said.failed, self.has_device)

    def validate(self) -> None:
        """Compare with the devices of the table."""
        self.refresh()
        require(len(self.has_device) == self._table.size, "one row a device")
        for row in range(self._table.size):
            fresh = self._fresh(row)
            require(self.has_device[row] == (fresh is not None), f"row {row} can be evaluated")
            for column in self._values.columns():
                value = self._values.values(column)[self._values.codes(column)[row]]
                want = None if fresh is None else cell_of(fresh, column)
                require(value == want, f"{column} of row {row}")

    def _fresh(self, row: int) -> cel.CelDevice | None:
        try:
            return None if self._table.devices[row] is None else self._converted(row)
        except CelRuntimeError:
            return None


def _read(column: DeviceColumn, devices: list[tuple[Device, str]]) -> Sequence[Hashable]:
    """Return what devices with their drivers have in a column."""
    if column == DRIVER:
        return [driver for _, driver in devices]
    if column == SHAREABLE:
        return [bool(each.allow_multiple_allocations) for each, _ in devices]
    domain, name, full_name = column.domain, column.name, f"{column.domain}/{column.name}"
    if column.field == "attributes":
        return [
            (each.attributes.get(full_name) or each.attributes.get(name))
            if driver == domain
            else each.attributes.get(full_name)
            for each, driver in devices
        ]
    found = [
        (each.capacity.get(full_name) or each.capacity.get(name))
        if driver == domain
        else each.capacity.get(full_name)
        for each, driver in devices
    ]
    return [None if each is None else each.value for each in found]


_known: Final[WeakKeyDictionary[DeviceTable, DeviceColumns]] = WeakKeyDictionary()


def columns_of(table: DeviceTable) -> DeviceColumns:
    """Return the columns of a table, which all profiles share."""
    columns = _known.get(table)
    if columns is None:
        columns = _known[table] = DeviceColumns(table)
    return columns
