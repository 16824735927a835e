"""The total of all rows for pods of one shape, where nothing but the rows themselves decides.

Most pods ask for no more than room, labels and tolerations. For them a row's total depends on the
row alone, so it is kept, and after a placement one row of it is worked out again; choosing a node
is then looking for the maximum. Scores that are brought into a range by comparing rows do not fit
in, unless all rows have the same: then they make no difference.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Final

import numpy as np

from kubesched.cluster.arrays import BoolArray, IndexArray, Int64Array
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.shape import Shape
from kubesched.framework.cached_column import SPARSE, CachedColumn
from kubesched.framework.plugin import MAX_NODE_SCORE, RowScore

#: The total of a row that cannot take the pod.
NEVER: Final = -1

ScoreColumn = tuple[RowScore, CachedColumn[np.int64]]


class Ranking:
    """Totals of one shape in one profile."""

    def __init__(
        self,
        shape: Shape,
        table: NodeTable,
        *,
        filters: tuple[CachedColumn[np.int32], CachedColumn[np.int32]],
        summed: Mapping[RowScore, tuple[int, CachedColumn[np.int64]]],
        normalized: Mapping[RowScore, CachedColumn[np.int64]],
    ) -> None:
        self._shape = shape
        self._table = table
        self._filters = filters
        #: scores that count as they are, with their weights
        self._summed = summed
        #: scores that are compared with those of other rows first
        self._normalized = normalized
        self._total: Int64Array = np.zeros(0, dtype=np.int64)
        self._position = -1
        self._epochs: Hashable = None
        #: up to where nodes were looked at to tell whether `_normalized` makes a difference
        self._compared_at = -1
        self._is_even = False

    def total(self) -> Int64Array | None:
        """Return the total of each row, NEVER where it does not pass; None if it is not that easy.

        Constants that are the same for all rows are left out.
        """
        if not self._is_same_everywhere():
            return None
        table = self._table
        epochs = tuple(plugin.epoch(self._shape, table) for plugin in self._summed)
        changed = None
        if epochs == self._epochs and len(self._total) == table.size:
            changed = table.row_changes.rows_since(self._position)
        self._epochs, self._position = epochs, table.row_changes.position
        columns = {
            plugin: (weight, column.current(epoch))
            for (plugin, (weight, column)), epoch in zip(self._summed.items(), epochs, strict=True)
        }
        if changed is None or len(changed) * SPARSE > table.size:
            changed = np.arange(table.size, dtype=np.intp)
            self._total = np.full(table.size, NEVER, dtype=np.int64)
        if len(changed) == 1:
            is_fine = self._work_out_one(int(changed[0]), columns)
        else:
            is_fine = self._work_out(changed, columns)
        if not is_fine:
            self._epochs = None
            return None
        return self._total

    def _work_out_one(self, row: int, columns: Mapping[RowScore, tuple[int, Int64Array]]) -> bool:
        """Do the same for one row, for which arrays are slow."""
        on_node, on_pods = self._filters
        if on_node.current()[row] or on_pods.current()[row] or not self._table.valid[row]:
            self._total[row] = NEVER
            return True
        total = 0
        for plugin, (weight, column) in columns.items():
            score = column.item(row)
            if not plugin.proven_range and not 0 <= score <= MAX_NODE_SCORE:
                return False
            total += score * weight
        self._total[row] = total
        return True

    def _work_out(
        self, rows: IndexArray, columns: Mapping[RowScore, tuple[int, Int64Array]]
    ) -> bool:
        """Work rows out again; False if a score is out of its range, which others report."""
        on_node, on_pods = (column.current() for column in self._filters)
        passing: BoolArray = (on_node[rows] | on_pods[rows]) == 0
        passing &= self._table.valid[rows]
        total = np.zeros(len(rows), dtype=np.int64)
        for plugin, (weight, column) in columns.items():
            scores = column[rows]
            if not plugin.proven_range:
                wrong = (scores < 0) | (scores > MAX_NODE_SCORE)
                if (wrong & passing).any():
                    return False
            total += scores * weight
        total[~passing] = NEVER
        self._total[rows] = total
        return True

    def _is_same_everywhere(self) -> bool:
        """Tell whether scores that are compared among rows are the same for all of them."""
        position = self._table.node_changes.position
        if self._compared_at != position:
            self._compared_at = position
            valid = self._table.valid[: self._table.size]
            self._is_even = all(
                _is_constant(column.current(plugin.epoch(self._shape, self._table))[valid])
                for plugin, column in self._normalized.items()
            )
        return self._is_even


def _is_constant(values: Int64Array) -> bool:
    return len(values) == 0 or bool((values == values[0]).all())
