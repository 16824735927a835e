"""One resource in all rows, in floats: what there is of it, and what is taken.

Scores are made of divisions, which floats do in a fraction of the time that integers take. They are
exact as long as amounts are small, which those of real nodes are. A pod changes one row, so what
was made of the others is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from kubesched.cluster.arrays import Float64Array, IndexArray, Int64Array
from kubesched.errors import require

if TYPE_CHECKING:
    from kubesched.cluster.node_table import NodeTable

#: The sum of two amounts below this is still exact when it is multiplied by 100: 32 TiB of memory.
SMALL: Final = 1 << 45
#: Up to so many rows, and one in so many more, are read one by one: more are cheaper all at once.
FEW: Final = 4
SPARSE: Final = 64


class Stock:
    """What the node table says of a resource; brought up to date by `refresh`."""

    __slots__ = (
        "_non_zero",
        "_number",
        "_position",
        "_table",
        "divisor",
        "is_everywhere",
        "is_small",
        "taken",
        "there",
    )

    def __init__(self, table: NodeTable, number: int, *, non_zero: bool) -> None:
        """With `non_zero`, pods that request none of it take a little all the same."""
        self._table = table
        self._number = number
        self._non_zero = non_zero
        #: how far the log of rows was read
        self._position = -1
        #: what each row has, and the same to divide by: at least one
        self.there: Float64Array = np.zeros(0)
        self.divisor: Float64Array = np.zeros(0)
        #: what is taken of it
        self.taken: Float64Array = np.zeros(0)
        #: whether every row has some
        self.is_everywhere = True
        #: whether all amounts are; only then may they be used
        self.is_small = False

    def refresh(self) -> None:
        """Read what changed since the last time."""
        log, size = self._table.row_changes, self._table.size
        if self._position == log.position and len(self.taken) == size:
            return
        changed = None
        if self.is_small and len(self.taken) == size:
            changed = log.rows_since(self._position)
        self._position = log.position
        if changed is None or len(changed) > FEW + size // SPARSE or not self._read(changed):
            self._read_all()

    def validate(self) -> None:
        """Compare all rows with the table; raise InvariantError if one disagrees."""
        self.refresh()
        there, taken = self._columns()
        require(self.is_small == (_are_small(there) and _are_small(taken)), "small amounts")
        require(self.is_everywhere == bool(there.all()), "rows that have some")
        require(bool((self.divisor == np.maximum(there, 1)).all()), "divisors")
        require(bool((self.there == there).all() and (self.taken == taken).all()), "amounts")

    def _columns(self) -> tuple[Int64Array, Int64Array]:
        table, number = self._table, self._number
        taken = table.non_zero_requested if self._non_zero else table.requested
        return table.allocatable[number, : table.size], taken[number, : table.size]

    def _read(self, rows: IndexArray) -> bool:
        """Read a few rows; False if that is not all there is to do."""
        allocatable, requested = self._columns()
        for row in rows.tolist():
            taken = requested.item(row)
            if self.there.item(row) != allocatable.item(row) or not 0 <= taken < SMALL:
                return False
            self.taken[row] = taken
        return True

    def _read_all(self) -> None:
        there, taken = self._columns()
        self.is_small = _are_small(there) and _are_small(taken)
        self.is_everywhere = bool(np.count_nonzero(there) == len(there))
        self.there, self.taken = there.astype(np.float64), taken.astype(np.float64)
        self.divisor = self.there if self.is_everywhere else np.maximum(self.there, 1)


def _are_small(amounts: Int64Array) -> bool:
    if not len(amounts):
        return True
    return bool(np.minimum.reduce(amounts) >= 0 and np.maximum.reduce(amounts) < SMALL)
