"""The devices of a table as columns of value numbers, which selectors over all devices read.

    table = DeviceValueTable(cells)    # cells: how the caller keeps its devices
    table.changed(rows)                # when devices come, change or go

A table keeps a column for each attribute and capacity that an expression reads: the number of
the device's value among the distinct values of the column, 0 if it has none. There are few
distinct values, so a value is converted to CEL's terms once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from kubesched.cel.device import CelDevice
from kubesched.cel.reads import DRIVER, SHAREABLE, DeviceColumn
from kubesched.cel.values import Value

Codes = npt.NDArray[np.int64]

#: The number of no value.
ABSENT: Final = 0


class DeviceCells(Protocol):
    """Devices as their owner keeps them, one row each."""

    def __len__(self) -> int:
        """Return the number of rows."""

    def keys(self, column: DeviceColumn, rows: Sequence[int]) -> Sequence[Hashable]:
        """Return what each of some devices has in a column, None for nothing.

        Equal keys must mean values that no expression can tell apart.
        """

    def device(self, row: int) -> CelDevice:
        """Return a device in CEL's terms."""


class _Column:
    """The values of one attribute or capacity, by number; number 0 is no value."""

    def __init__(self, name: DeviceColumn, cells: DeviceCells) -> None:
        self._name = name
        self._cells = cells
        self.values: list[Value] = [None]
        self._numbers: dict[Hashable, int] = {None: ABSENT}
        self.codes: Codes = np.zeros(0, dtype=np.int64)
        self.put(range(len(cells)))

    def put(self, rows: Sequence[int]) -> None:
        """Look at some devices again."""
        if len(self.codes) < len(self._cells):
            self.codes = np.concatenate(
                [self.codes, np.zeros(len(self._cells) - len(self.codes), dtype=np.int64)]
            )
        known = self._numbers.get
        found = [
            self._add(key, row) if (number := known(key)) is None else number
            for key, row in zip(self._cells.keys(self._name, rows), rows, strict=True)
        ]
        self.codes[np.array(rows, dtype=np.intp)] = found

    def _add(self, key: Hashable, row: int) -> int:
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.values)
            self.values.append(cell_of(self._cells.device(row), self._name))
        return number


class DeviceValueTable:
    """Devices as columns of value numbers; one row a device.

    A column is made when an expression reads it: most attributes interest no expression.
    """

    def __init__(self, cells: DeviceCells) -> None:
        self._cells = cells
        self._columns: dict[DeviceColumn, _Column] = {}

    def __len__(self) -> int:
        return len(self._cells)

    def changed(self, rows: Sequence[int]) -> None:
        """Look at some devices again; all that are new must be among them."""
        for column in self._columns.values():
            column.put(rows)

    def device(self, row: int) -> CelDevice:
        """Return a device in CEL's terms."""
        return self._cells.device(row)

    def codes(self, column: DeviceColumn) -> Codes:
        """Return the numbers of the values of a column."""
        return self._column(column).codes

    def values(self, column: DeviceColumn) -> Sequence[Value]:
        """Return the distinct values of a column, by number."""
        return self._column(column).values

    def columns(self) -> Iterable[DeviceColumn]:
        """Return the columns that expressions have read."""
        return self._columns.keys()

    def _column(self, column: DeviceColumn) -> _Column:
        found = self._columns.get(column)
        if found is None:
            found = self._columns[column] = _Column(column, self._cells)
        return found


def cell_of(device: CelDevice, column: DeviceColumn) -> Value | None:
    """Return a value of a device, None if it has none."""
    if column == DRIVER:
        return device.driver
    if column == SHAREABLE:
        return device.is_shareable
    domains = device.attributes if column.field == "attributes" else device.capacity
    names = domains.get(column.domain)
    return None if names is None else names.get(column.name)
