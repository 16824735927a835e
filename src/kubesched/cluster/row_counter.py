"""A count for each row, small where few rows have any."""

from __future__ import annotations

import numpy as np

from kubesched.cluster.arrays import Int32Array, grown

#: With more rows than that an array is quicker, and worth its memory.
SPARSE_ROWS = 64


class RowCounter:
    """Counts by row: a dict as long as few rows have any, then an array."""

    __slots__ = ("_dense", "_sparse", "total")

    def __init__(self) -> None:
        self._sparse: dict[int, int] = {}
        self._dense: Int32Array | None = None
        self.total = 0

    def add(self, row: int, amount: int) -> None:
        """Change the count of a row."""
        self.total += amount
        if self._dense is not None:
            if row >= len(self._dense):
                self._dense = grown(self._dense, (max(2 * len(self._dense), row + 1),))
            self._dense[row] += amount
            return
        count = self._sparse.get(row, 0) + amount
        if count:
            self._sparse[row] = count
        else:
            del self._sparse[row]
        if len(self._sparse) > SPARSE_ROWS:
            self._dense = self.counts(max(self._sparse) + 1)
            self._sparse = {}

    def counts(self, size: int) -> Int32Array:
        """Return the counts of the first `size` rows; not to be changed."""
        if self._dense is not None:
            if len(self._dense) < size:
                self._dense = grown(self._dense, (size,))
            return self._dense[:size]
        result = np.zeros(size, dtype=np.int32)
        for row, count in self._sparse.items():
            result[row] = count
        return result

    @property
    def nbytes(self) -> int:
        """About how much memory the counts take."""
        return 4096 if self._dense is None else self._dense.nbytes
