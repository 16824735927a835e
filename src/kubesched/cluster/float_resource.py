"""One resource of all rows as floats: allocatable and requested.

Scores need divisions, and float division is several times faster than integer division. Floats are
exact for amounts below a limit that real nodes stay under.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from kubesched.cluster.arrays import Float64Array, Int64Array
from kubesched.cluster.incremental import RowView

if TYPE_CHECKING:
    from kubesched.cluster.node_table import NodeTable

#: The sum of two amounts below this is still exact when it is multiplied by 100: 32 TiB of memory.
SMALL: Final = 1 << 45


class FloatResource(RowView):
    """A resource of the node table as float columns."""

    __slots__ = (
        "_non_zero",
        "_number",
        "allocatable",
        "divisor",
        "is_everywhere",
        "is_small",
        "requested",
    )

    derived = ("allocatable", "divisor", "requested", "is_everywhere", "is_small")

    def __init__(self, table: NodeTable, number: int, *, non_zero: bool) -> None:
        """With `non_zero`, pods that request none of it count with a default."""
        super().__init__(table, table.row_changes)
        self._number = number
        self._non_zero = non_zero
        #: allocatable of each row, and the same as a divisor: at least one
        self.allocatable: Float64Array
        self.divisor: Float64Array
        #: requested by the pods of each row
        self.requested: Float64Array
        #: whether every row has some
        self.is_everywhere: bool
        #: whether all amounts are below the limit; only then are the floats exact
        self.is_small: bool

    def rebuild(self) -> None:
        """Read all rows."""
        allocatable, requested = self._columns()
        self.is_small = _are_small(allocatable) and _are_small(requested)
        self.is_everywhere = bool(np.count_nonzero(allocatable) == len(allocatable))
        self.allocatable = allocatable.astype(np.float64)
        self.requested = requested.astype(np.float64)
        self.divisor = self.allocatable if self.is_everywhere else np.maximum(self.allocatable, 1)

    def update(self, rows: list[int]) -> bool:
        """Read the requested amounts of some rows; rebuild if these rows changed otherwise."""
        allocatable, requested = self._columns()
        if not self.is_small or len(self.requested) < self._table.size:
            return False
        for row in rows:
            amount = requested.item(row)
            if self.allocatable.item(row) != allocatable.item(row) or not 0 <= amount < SMALL:
                return False
            self.requested[row] = amount
        return True

    def _columns(self) -> tuple[Int64Array, Int64Array]:
        table, number = self._table, self._number
        requested = table.non_zero_requested if self._non_zero else table.requested
        return table.allocatable[number, : table.size], requested[number, : table.size]


def _are_small(amounts: Int64Array) -> bool:
    if not len(amounts):
        return True
    return bool(np.minimum.reduce(amounts) >= 0 and np.maximum.reduce(amounts) < SMALL)
