"""Which rows changed since somebody last looked.

Each change of a row is appended to a log. A reader keeps the position up to which it has read and
asks for the rows since: after one placement that is one row, however large the cluster. The log is
bounded; a reader that comes too late evaluates everything again.
"""

from __future__ import annotations

import numpy as np

from kubesched.cluster.arrays import IndexArray


class ChangeLog:
    """An append-only, bounded list of changed rows."""

    def __init__(self, limit: int = 65_536) -> None:
        #: position of the first entry that is still kept
        self._start = 0
        self._rows: list[int] = []
        #: the position after the newest change
        self.position = 0
        #: set while changes are tried out that will be undone
        self.paused = False
        self._limit = limit

    def record(self, row: int) -> None:
        """Note that `row` changed."""
        if self.paused:
            return
        self._rows.append(row)
        self.position += 1
        if len(self._rows) > self._limit:
            dropped = self._limit // 2
            del self._rows[:dropped]
            self._start += dropped

    def rows_since(self, position: int) -> IndexArray | None:
        """Return the distinct rows changed since `position`; None if that is too long ago."""
        if position < self._start:
            return None
        tail = self._rows[position - self._start :]
        if len(tail) > 1:
            tail = sorted(set(tail))
        return np.array(tail, dtype=np.intp)
