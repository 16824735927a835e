"""One resource of all rows as floats: allocatable, requested, and requested as scores count it.

Scores need divisions, and float division is several times faster than integer division. Floats are
exact for amounts below a limit that real nodes stay under.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from kubesched.cluster.arrays import Float64Array, Int64Array, grown
from kubesched.cluster.incremental import RowView

if TYPE_CHECKING:
    from kubesched.cluster.node_table import NodeTable

#: The sum of two amounts below this is still exact when it is multiplied by 100: 32 TiB of memory.
SMALL: Final = 1 << 45


class FloatResource(RowView):
    """A resource of the node table as float columns."""

    __slots__ = (
        "_number",
        "allocatable",
        "divisor",
        "is_everywhere",
        "is_small",
        "non_zero_requested",
        "requested",
    )

    derived = (
        "allocatable",
        "divisor",
        "requested",
        "non_zero_requested",
        "is_everywhere",
        "is_small",
    )

    def __init__(self, table: NodeTable, number: int) -> None:
        super().__init__(table, table.row_changes)
        self._number = number
        #: allocatable of each row, and the same as a divisor: at least one
        self.allocatable: Float64Array
        self.divisor: Float64Array
        #: requested by the pods of each row
        self.requested: Float64Array
        #: the same; of cpu and memory, with a default for pods that request none
        self.non_zero_requested: Float64Array
        #: whether every row has some
        self.is_everywhere: bool
        #: whether all amounts are below the limit; only then are the floats exact
        self.is_small: bool

    def rebuild(self) -> None:
        """Read all rows."""
        allocatable, requested, non_zero = columns = self._columns()
        self.is_small = all(map(_are_small, columns))
        self.is_everywhere = self._are_all_there(allocatable)
        self.allocatable = allocatable.astype(np.float64)
        self.divisor = self.allocatable if self.is_everywhere else np.maximum(self.allocatable, 1)
        self.requested = requested.astype(np.float64)
        self.non_zero_requested = non_zero.astype(np.float64)

    def update(self, rows: list[int]) -> bool:
        """Read some rows; rebuild if that changes what is said of all rows."""
        if not self.is_small or (self.is_everywhere and len(self.divisor) < self._table.size):
            return False
        self._grow(self._table.size)
        allocatable, requested, non_zero = self._columns()
        has_node_changes = False
        for row in rows:
            there, amount, counted = allocatable.item(row), requested.item(row), non_zero.item(row)
            if not (0 <= there < SMALL and 0 <= amount < SMALL and 0 <= counted < SMALL):
                return False
            if self.allocatable.item(row) != there:
                if self.is_everywhere and not there:
                    return False
                self.allocatable[row], self.divisor[row] = there, max(there, 1)
                has_node_changes = True
            self.requested[row], self.non_zero_requested[row] = amount, counted
        return not has_node_changes or self.is_everywhere == self._are_all_there(allocatable)

    def _grow(self, size: int) -> None:
        if len(self.divisor) < size:
            self.allocatable = grown(self.allocatable, (size,))
            self.divisor = grown(self.divisor, (size,), fill=1)
            self.requested = grown(self.requested, (size,))
            self.non_zero_requested = grown(self.non_zero_requested, (size,))

    @staticmethod
    def _are_all_there(allocatable: Int64Array) -> bool:
        return bool(np.count_nonzero(allocatable) == len(allocatable))

    def _columns(self) -> tuple[Int64Array, Int64Array, Int64Array]:
        table, number = self._table, self._number
        requested = table.requested[number, : table.size]
        non_zero = requested
        if number < len(table.non_zero_requested):
            non_zero = table.non_zero_requested[number, : table.size]
        return table.allocatable[number, : table.size], requested, non_zero


def _are_small(amounts: Int64Array) -> bool:
    if not len(amounts):
        return True
    return bool(np.minimum.reduce(amounts) >= 0 and np.maximum.reduce(amounts) < SMALL)
