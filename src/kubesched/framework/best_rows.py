"""The rows with the highest total, in the order of nodes.

A placement makes its row a little worse and leaves all others as they are. So what is best is kept,
and a row that is no longer among the best is taken out. Where rows come in the order of nodes is
found when somebody asks for one of them by its number; after that, those that were taken out are
skipped, until there are too many of them.
"""

from __future__ import annotations

from bisect import bisect_left, insort

import numpy as np

from kubesched.cluster.arrays import BoolArray, IndexArray, Int64Array
from kubesched.cluster.node_order import NodeOrder

#: Skipping so many that are gone takes about as long as finding the places of the rest anew.
MOST_GONE = 64


class BestRows:
    """Rows that nothing tells apart."""

    __slots__ = ("_count", "_gone", "_order", "_places", "_rows", "total")

    def __init__(self, total: int, rows: BoolArray) -> None:
        #: what they all have
        self.total = total
        #: which rows they are, all of which have a node
        self._rows = rows
        self._count = int(np.count_nonzero(rows))
        #: the order of nodes that places are in, None: places are not known
        self._order: IndexArray | None = None
        #: where they are in the order, ascending
        self._places: IndexArray
        #: indexes of places that are no longer among them, ascending
        self._gone: list[int] = []

    def __len__(self) -> int:
        return self._count

    def nth(self, number: int, order: NodeOrder) -> int:
        """Return one of the rows; numbers follow the order of nodes."""
        in_order = order.rows()
        if self._order is not in_order:
            self._order = in_order
            self._places = self._rows.take(in_order).nonzero()[0]
            self._gone = []
        for gone in self._gone:
            if gone > number:
                break
            number += 1
        return in_order.item(self._places.item(number))

    def among(self, rows: BoolArray) -> BestRows | None:
        """Return those that are among some rows; None if there are none."""
        both = self._rows & rows
        return BestRows(self.total, both) if np.count_nonzero(both) else None

    def remove(self, row: int, order: NodeOrder) -> bool:
        """Take one of the rows out; False if it is the only one."""
        if self._count == 1:
            return False
        self._rows[row] = False
        self._count -= 1
        if len(self._gone) == MOST_GONE:
            self._order = None
        elif self._order is order.rows():
            insort(self._gone, bisect_left(self._places, order.positions().item(row)))
        return True


def best_of(totals: Int64Array) -> BestRows:
    """Return the rows with the highest total."""
    # The method of arrays is slower: it asks more questions first.
    most = int(np.maximum.reduce(totals))
    return BestRows(most, totals == most)
