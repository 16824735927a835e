"""The rows with the highest total, in the order of nodes.

A placement makes its row a little worse and leaves all others as they are. So what is best is kept,
and a row that is no longer among the best is noted as gone; once too many are, all is found anew.
"""

from __future__ import annotations

from bisect import bisect_left, insort

from kubesched.cluster.arrays import BoolArray, IndexArray
from kubesched.cluster.node_order import NodeOrder

#: Skipping so many that are gone takes about as long as finding the rest anew.
MOST_GONE = 64


class BestRows:
    """Rows that nothing tells apart."""

    __slots__ = ("_gone", "_order", "_places", "total")

    def __init__(self, total: int, rows: BoolArray, order: NodeOrder) -> None:
        #: what they all have
        self.total = total
        self._order = order.rows()
        #: their places in the order, ascending
        self._places: IndexArray = rows.take(self._order).nonzero()[0]
        #: indexes of those that are no longer among them, ascending
        self._gone: list[int] = []

    def __len__(self) -> int:
        return len(self._places) - len(self._gone)

    def nth(self, number: int) -> int:
        """Return one of the rows; numbers follow the order of nodes."""
        for gone in self._gone:
            if gone > number:
                break
            number += 1
        return self._order.item(self._places.item(number))

    def is_of(self, order: NodeOrder) -> bool:
        """Tell whether nodes are still in the order that these rows are in."""
        return self._order is order.rows()

    def remove(self, row: int, order: NodeOrder) -> bool:
        """Take one of the rows out; False if it is better to find them all anew."""
        if not self.is_of(order) or len(self._gone) >= MOST_GONE or len(self) == 1:
            return False
        insort(self._gone, bisect_left(self._places, order.positions().item(row)))
        return True
