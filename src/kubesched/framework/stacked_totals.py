"""The totals of rows with further pods of a signature on them, for equal members.

A placement changes nothing but the sums of its row. So the total of a row with some further pods
of the signature is a function of the row, cached like its total as it is: a gang that is tried on
a hundred placements, of which it gets one, changes the rows of that one alone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from copy import copy
from typing import Final

import numpy as np

from kubesched.cluster.arrays import IndexArray, Int32Array, Int64Array, grown
from kubesched.cluster.incremental import Column, EvaluateRow, RowView
from kubesched.cluster.node_rows import SupposedRows
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.resources import Requests
from kubesched.errors import require
from kubesched.framework.plugin import MAX_NODE_SCORE
from kubesched.framework.totals import INFEASIBLE, RejectRow, ScoreColumn

#: The total of a row that has a score out of range, and of one that is not computed.
OUT_OF_RANGE: Final = -2
UNKNOWN: Final = -3
#: After this many rows that were computed by themselves, all others are computed at once.
MOST_ALONE: Final = 32
#: An array of one row costs as much as so many rows without arrays.
ARRAY_COST: Final = 8

#: Returns the number of each row's first rejection, 0 for none.
Reject = Callable[[SupposedRows], Int32Array]


class StackedTotals(RowView):
    """The weighted sum of scores that are not normalized, with more pods of a signature.

    INFEASIBLE where the next pod would not pass, OUT_OF_RANGE where a score cannot count.
    """

    derived = ("values",)

    def __init__(
        self,
        table: NodeTable,
        *,
        requests: Requests,
        on_node: Column[np.int32],
        reject: Reject,
        reject_row: RejectRow,
        scores: Sequence[ScoreColumn],
        row_scorers: Sequence[EvaluateRow] | None,
    ) -> None:
        """Take the rejections by filters that read only nodes, and the filters that read pods.

        `requests` is what one of the pods adds to the sums of a row. `row_scorers` are those of
        `scores` that read pods, for one row: functions of its sums. None if one of them has only
        the array form.
        """
        #: columns of scores that read only nodes
        self._on_node_scores = [each.column for each in scores if not each.reads_pods]
        self._with_stamp = [each.column for each in scores if each.column.has_stamp]
        super().__init__(table, table.row_changes)
        self.requests = requests
        self._on_node = on_node
        self._reject = reject
        self._reject_row = reject_row
        self._scores = scores
        self._row_scorers = row_scorers
        #: [number of further pods, row] → total, UNKNOWN until it is read
        self.values: Int64Array
        #: how many rows were computed by themselves since all were
        self._alone = 0

    def stamp(self) -> Hashable:
        """Return what scores depend on beside their rows; scores of nodes are refreshed."""
        for column in self._on_node_scores:
            column.refresh()
        return tuple([column.stamp() for column in self._with_stamp])

    @property
    def has_stamp(self) -> bool:
        """Whether scores depend on more than rows, or must be refreshed."""
        return bool(self._with_stamp or self._on_node_scores)

    def rebuild(self) -> None:
        """Invalidate all totals."""
        self._alone = 0
        self.values = np.full((2, self._table.size), UNKNOWN, dtype=np.int64)

    def update(self, rows: list[int]) -> bool:
        """Invalidate the totals of some rows."""
        if self.values.shape[1] < self._table.size:
            self._grow(len(self.values))
        self.values[:, rows] = UNKNOWN
        return True

    def _grow(self, numbers: int) -> None:
        self.values = grown(self.values, (numbers, self._table.size), fill=UNKNOWN)

    def total(self, row: int, more: int) -> int:
        """Return the total of a row with some further pods; the view must be refreshed."""
        if more >= len(self.values):
            self._grow(2 * more)
        total = self.values.item(more, row)
        return total if total != UNKNOWN else self._compute_one(row, more)

    def as_it_is(self) -> Int64Array:
        """Return the total of each row without further pods; the view must be refreshed."""
        self._compute_all(0)
        return self.values[0]

    def _compute_all(self, more: int) -> None:
        rows = np.flatnonzero(self.values[more] == UNKNOWN)
        if len(rows):
            self.values[more, rows] = self._totals(rows, more)

    def _compute_one(self, row: int, more: int) -> int:
        """Compute a row by itself, or all others along with it if that was done too often."""
        total = self._total_by_row(row, more) if self._row_scorers is not None else None
        self._alone += 1 if total is not None else ARRAY_COST
        if self._alone > MOST_ALONE:
            self._alone = 0
            self._compute_all(more)
        elif total is None:
            rows = np.array([row], dtype=np.intp)
            self.values[more, row] = self._totals(rows, more).item()
        else:
            self.values[more, row] = total
        return self.values.item(more, row)

    def _total_by_row(self, row: int, more: int) -> int | None:
        """Return the total of a row by its sums, without arrays; None if that needs arrays."""
        if not self._table.valid.item(row) or self._on_node.current().item(row):
            return INFEASIBLE
        count_requests, requests = self._table.count_requests, self.requests
        count_requests(row, requests, more)
        try:
            return INFEASIBLE if self._reject_row(row) else self._sum_by_row(row)
        finally:
            count_requests(row, requests, -more)

    def _sum_by_row(self, row: int) -> int | None:
        total, scorers = 0, iter(self._row_scorers or ())
        for column, _, weight, reads_pods, is_proven in self._scores:
            score = next(scorers)(row) if reads_pods else column.values.item(row)
            if score is None:
                return None
            if not is_proven and not 0 <= score <= MAX_NODE_SCORE:
                return OUT_OF_RANGE
            total += score * weight
        return total

    def _totals(self, rows: IndexArray, more: int) -> Int64Array:
        """Evaluate filters and scores with the sums of more pods."""
        table, nodes = self._table, self._supposed(rows, more)
        passes = self._reject(nodes) == 0
        passes &= self._on_node.at(rows) == 0
        passes &= table.valid[rows]
        totals = np.zeros(len(rows), dtype=np.int64)
        is_wrong = np.zeros(len(rows), dtype=np.bool_)
        for column, _, weight, reads_pods, is_proven in self._scores:
            scores = column.supposed(nodes) if reads_pods else column.at(rows)
            if not is_proven:
                is_wrong |= (scores < 0) | (scores > MAX_NODE_SCORE)
            totals += scores if weight == 1 else scores * weight
        totals[is_wrong] = OUT_OF_RANGE
        totals[~passes] = INFEASIBLE
        return totals

    def _supposed(self, rows: IndexArray, more: int) -> SupposedRows:
        table, requests = self._table, self.requests
        requests.resolve(table.resources)
        requested = table.requested[:, rows]
        requested[requests.numbers] += more * requests.vector[:, np.newaxis]
        non_zero = table.non_zero_requested[:, rows]
        non_zero += more * np.array(requests.non_zero, dtype=np.int64)[:, np.newaxis]
        return SupposedRows(
            table,
            rows,
            requested=requested,
            pod_count=table.pod_count[rows] + more,
            non_zero_requested=non_zero,
        )

    def validate(self) -> None:
        """Recompute all cached totals, and compare."""
        self.refresh()
        twin = copy(self)
        twin.forget()
        twin.refresh()
        for more, known in enumerate(self.values != UNKNOWN):
            rows = np.flatnonzero(known)
            if len(rows):
                fresh = twin._totals(rows, more)  # noqa: SLF001 (its own class)
                is_same = np.array_equal(self.values[more, rows], fresh)
                require(is_same, f"totals with {more} further pods equal those computed anew")
