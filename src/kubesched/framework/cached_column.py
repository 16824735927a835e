"""One value a row, computed again only where the row changed."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from kubesched.cluster.arrays import IndexArray, Rows, grown
from kubesched.cluster.changes import ChangeLog
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.node_table import NodeTable

D = TypeVar("D", bound=np.generic)

#: With more than one changed row in so many, evaluating all rows at once is cheaper.
SPARSE = 4
#: Up to so many rows, one after the other is cheaper than an array of them.
FEW = 2

#: Evaluates one row; None if only an array will do.
EvaluateRow = Callable[[int], int | None]


class CachedColumn(Generic[D]):
    """The results of a row-local function, kept up to date from a change log."""

    __slots__ = (
        "_epoch",
        "_evaluate",
        "_even",
        "_log",
        "_position",
        "_table",
        "_values",
        "evaluate_row",
    )

    def __init__(
        self,
        table: NodeTable,
        *,
        log: ChangeLog,
        evaluate: Callable[[NodeRows], npt.NDArray[D]],
        evaluate_row: EvaluateRow | None = None,
    ) -> None:
        self._table = table
        self._log = log
        self._evaluate = evaluate
        #: says the same of one row, where that can be had for less
        self.evaluate_row = evaluate_row
        #: None until somebody asks
        self._values: npt.NDArray[D] | None = None
        self._position = 0
        self._epoch: Hashable = None
        #: whether all rows have the same value, None: not known
        self._even: bool | None = None

    def release(self) -> None:
        """Free the memory; whoever asks has all rows evaluated."""
        self._values = None

    def current(self, epoch: Hashable = None) -> npt.NDArray[D]:
        """Return the value of each row of the table; a new `epoch` makes all rows stale."""
        values = self._values
        changed = None
        if values is not None and epoch == self._epoch:
            if self._position == self._log.position and len(values) == self._table.size:
                return values
            changed = self._log.rows_since(self._position)
        position = self._log.position
        if values is None or changed is None or len(changed) * SPARSE > self._table.size:
            values = self._values = self._evaluate(NodeRows.all_of(self._table))
        else:
            if len(values) < self._table.size:
                values = self._values = grown(values, (self._table.size,))
            self._refresh(values, changed)
        # Only now: should a plugin raise, the rows are as stale as they were.
        self._position, self._epoch = position, epoch
        self._even = None
        return values

    def at(self, rows: Rows, epoch: Hashable = None) -> npt.NDArray[D]:
        """Return the values of some rows, without keeping them if nobody has asked for all yet."""
        if self._values is None:
            return self._evaluate(NodeRows(self._table, rows))
        return self.current(epoch)[rows]

    def is_even(self, epoch: Hashable = None) -> bool:
        """Tell whether all rows with a node have the same value."""
        values = self.current(epoch)
        if self._even is None:
            there = values[self._table.valid[: self._table.size]]
            self._even = len(there) == 0 or bool((there == there[0]).all())
        return self._even

    def _refresh(self, values: npt.NDArray[D], changed: IndexArray) -> None:
        if self.evaluate_row is not None and len(changed) <= FEW:
            for row in changed.tolist():
                value = self.evaluate_row(row)
                if value is None:
                    break
                values[row] = value
            else:
                return
        values[changed] = self._evaluate(NodeRows(self._table, changed))
