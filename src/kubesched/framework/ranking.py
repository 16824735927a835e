"""The total of all rows for pods of one shape, where nothing but the rows themselves decides.

Most pods ask for no more than room, labels and tolerations. For them a row's total depends on the
row alone, so it is kept, and after a placement one row of it is worked out again; choosing a node
is then looking for the maximum. Scores that are brought into a range by comparing rows do not fit
in, unless all rows have the same: then they make no difference.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from kubesched.cluster.arrays import BoolArray, IndexArray, Int64Array
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.shape import Shape
from kubesched.framework.cached_column import FEW, SPARSE, CachedColumn
from kubesched.framework.plugin import MAX_NODE_SCORE, RowScore

#: The total of a row that cannot take the pod.
NEVER: Final = -1


class ScoreColumn(NamedTuple):
    """What a plugin scores the rows, and its weight."""

    plugin: RowScore
    weight: int
    column: CachedColumn[np.int64]


class Ranking:
    """Totals of one shape in one profile."""

    def __init__(
        self,
        shape: Shape,
        table: NodeTable,
        *,
        node_filters: CachedColumn[np.int32],
        pod_filters: CachedColumn[np.int32],
        summed: Sequence[ScoreColumn],
        normalized: Mapping[RowScore, CachedColumn[np.int64]],
    ) -> None:
        self._shape = shape
        self._table = table
        self._node_filters = node_filters
        #: what filters say that look at the pods of a row
        self._pod_filters = pod_filters
        #: scores that count as they are
        self._summed = summed
        #: those of them that depend on more than a row
        self._with_epoch = [
            each.plugin for each in summed if type(each.plugin).epoch is not RowScore.epoch
        ]
        #: scores that are compared with those of other rows first
        self._normalized = normalized
        self._total: Int64Array = np.zeros(0, dtype=np.int64)
        self._position = -1
        #: what the scores of each of these depend on, as far as it is not the row; None: unknown
        self._epochs: dict[RowScore, Hashable] | None = None
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
        epochs = {plugin: plugin.epoch(self._shape, table) for plugin in self._with_epoch}
        changed = None
        if epochs == self._epochs and len(self._total) == table.size:
            changed = table.row_changes.rows_since(self._position)
        position = table.row_changes.position
        # Should a plugin raise, nothing is known any more.
        self._epochs = None
        if changed is None or len(changed) * SPARSE > table.size:
            changed = np.arange(table.size, dtype=np.intp)
            self._total = np.full(table.size, NEVER, dtype=np.int64)
        one_by_one = len(changed) <= FEW and self._pod_filters.evaluate_row is not None
        if (
            one_by_one and all(self._work_out_one(row, epochs) for row in changed.tolist())
        ) or self._work_out(changed, epochs):
            self._epochs, self._position = epochs, position
            return self._total
        return None

    def _work_out_one(self, row: int, epochs: Mapping[RowScore, Hashable]) -> bool:
        """Work a row out by itself, for which arrays are slow; False if only they will do.

        What depends on the pods of the row is asked anew, past the columns, which are brought up to
        date when somebody needs more than a row of them.
        """
        passes = self._pod_filters.evaluate_row
        if (
            passes is None
            or not self._table.valid[row]
            or self._node_filters.current()[row]
            or passes(row) is None
        ):
            self._total[row] = NEVER
            return passes is not None
        total = 0
        for plugin, weight, column in self._summed:
            if not plugin.reads_pods:
                score: int | None = column.current(epochs.get(plugin)).item(row)
            else:
                score = None if column.evaluate_row is None else column.evaluate_row(row)
            if score is None or not (plugin.proven_range or 0 <= score <= MAX_NODE_SCORE):
                return False
            total += score * weight
        self._total[row] = total
        return True

    def _work_out(self, rows: IndexArray, epochs: Mapping[RowScore, Hashable]) -> bool:
        """Work rows out again; False if a score is out of its range, which others report."""
        rejected = self._node_filters.current()[rows] | self._pod_filters.current()[rows]
        passing: BoolArray = self._table.valid[rows] & (rejected == 0)
        total = np.zeros(len(rows), dtype=np.int64)
        for scored in self._summed:
            plugin = scored.plugin
            scores = scored.column.current(epochs.get(plugin))[rows]
            if not plugin.proven_range:
                wrong = (scores < 0) | (scores > MAX_NODE_SCORE)
                if (wrong & passing).any():
                    return False
            total += scores * scored.weight
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
