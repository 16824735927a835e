"""The row-local part of a decision, cached by pod signature and updated row by row.

    filters ──> PassingRows ──┬──> NormalizedScore   lowest and highest score among passing rows
    scores ───────────────────┴──> Totals ──> BestRows

After a placement one row changes: its filters and scores are evaluated again, and it may leave the
best rows. A normalized score depends on other rows through the lowest and highest score of the
passing rows; these rarely change, unless nodes change or become full.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Sequence
from typing import Final, NamedTuple

import numpy as np

from kubesched.cluster.arrays import BoolArray, IndexArray, Int32Array, Int64Array, Rows, grown
from kubesched.cluster.incremental import FEW_ROWS, Column, EvaluateRow, RowView, View
from kubesched.cluster.node_order import NodeOrder
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.node_table import NodeTable
from kubesched.errors import require
from kubesched.framework.plugin import MAX_NODE_SCORE

#: The total of an infeasible row.
INFEASIBLE: Final = -1
#: Up to this many changed rows, the best rows are updated row by row; above, recomputed.
MOST_UPDATED: Final = 32
#: Skipping this many removed rows costs about as much as locating the remaining ones again.
MOST_REMOVED: Final = 64

#: Returns the number of a row's first rejection in its current state, 0 for none.
RejectRow = Callable[[int], int]


class PassingRows(RowView):
    """The rows that pass all row-local filters of a signature."""

    __slots__ = ("_nodes", "_on_node", "_on_pods", "_reject_row", "changed", "mask")

    derived = ("mask",)

    def __init__(
        self,
        table: NodeTable,
        *,
        on_node: Column[np.int32],
        on_pods: Column[np.int32],
        reject_row: RejectRow,
    ) -> None:
        """Take the rejections by filters that read only nodes, and by those that also read pods.

        `reject_row` gives the latter for one row.
        """
        super().__init__(table, table.row_changes)
        self._on_node = on_node
        self._on_pods = on_pods
        self._reject_row = reject_row
        self.mask: BoolArray = np.zeros(0, dtype=np.bool_)
        #: incremented when the set of passing rows changes
        self.changed = 0
        #: the passing rows; computed on demand
        self._nodes: NodeRows | None = None

    def at(self, rows: Rows) -> BoolArray:
        """Return which of some rows pass; caches nothing if the view was never refreshed."""
        if self.is_known:
            self.refresh()
            return self.mask[rows]
        return self._evaluate(rows, self._on_node.at(rows))

    @property
    def nodes(self) -> NodeRows:
        """The passing rows; the same object until they change."""
        if self._nodes is None:
            # A copy: row numbers may be computed later.
            self._nodes = NodeRows.where(self._table, self.mask.copy())
        return self._nodes

    def rebuild(self) -> None:
        """Evaluate all rows."""
        everything = slice(0, self._table.size)
        self.mask = self._evaluate(everything, self._on_node.current())
        self._note_change()

    def update(self, rows: list[int]) -> bool:
        """Evaluate some rows."""
        if len(self.mask) < self._table.size:
            self.mask = grown(self.mask, (self._table.size,), fill=False)
        on_node = self._on_node.current()
        if len(rows) > FEW_ROWS:
            changed = np.array(rows, dtype=np.intp)
            self.mask[changed] = self._evaluate(changed, on_node[changed])
            self._note_change()
            return True
        valid = self._table.valid
        for row in rows:
            passes = bool(valid.item(row) and not on_node.item(row) and not self._reject_row(row))
            if passes != self.mask.item(row):
                self.mask[row] = passes
                self._note_change()
        return True

    def passes(self, row: int) -> bool:
        """Tell whether a row passes in its current state, uncached."""
        on_node = self._on_node.current()
        return bool(
            self._table.valid.item(row) and not on_node.item(row) and not self._reject_row(row)
        )

    def forget(self) -> None:
        """Drop the mask and free its memory."""
        super().forget()
        self._nodes = None
        self.mask = np.zeros(0, dtype=np.bool_)

    def _note_change(self) -> None:
        self._nodes = None
        self.changed += 1

    def _evaluate(self, rows: Rows, on_node: Int32Array) -> BoolArray:
        mask: BoolArray = self._on_pods.at(rows) == 0
        mask &= on_node == 0
        mask &= self._table.valid[rows]
        return mask


class NormalizedScore(View):
    """The normalized and weighted scores of one plugin.

    For a normalizer that depends only on a row's score and on min and max over all rows.
    """

    __slots__ = (
        "_added",
        "_at_extremes",
        "_differences",
        "_normalize",
        "_passing",
        "_weight",
        "column",
        "extremes",
        "is_proven",
    )

    derived = ("extremes",)

    def __init__(
        self,
        column: Column[np.int64],
        passing: PassingRows,
        *,
        weight: int,
        normalize: Callable[[Int64Array], Int64Array | None],
        is_proven: bool,
    ) -> None:
        super().__init__()
        self.column = column
        self._passing = passing
        self._weight = weight
        self._normalize = normalize
        #: whether normalized scores are proven to be in range
        self.is_proven = is_proven
        #: lowest and highest score of the passing rows
        self.extremes: tuple[int, int] = (0, 0)
        #: which of these rows have the lowest, and the highest; none if all are equal
        self._at_extremes: tuple[BoolArray, ...] = ()
        #: score → weighted normalized score
        self._added: dict[int, int | None] = {}
        #: (min, max) under a mask → difference for each row
        self._differences: dict[tuple[int, int], Int64Array | None] = {}

    @property
    def makes_a_difference(self) -> bool:
        """Whether passing rows have different scores."""
        return self.extremes[0] != self.extremes[1]

    def stamp(self) -> Hashable:
        """Return the version of the scores, and of the passing rows."""
        self.column.refresh()
        self._passing.refresh()
        return self.column.version, self._passing.changed

    def rebuild(self) -> None:
        """Find min and max."""
        extremes, scores, mask = (0, 0), self.column.values, self._passing.mask
        self._differences, self._at_extremes = {}, ()
        if not self.column.is_uniform():
            extremes = _extremes(scores[mask])
        if extremes != self.extremes:
            self.extremes, self._added = extremes, {}
        if self.makes_a_difference:
            self._at_extremes = tuple((scores == each) & mask for each in extremes)

    def difference(self, mask: BoolArray) -> Int64Array | None:
        """Return the change for each row if only the passing rows of a mask count.

        The same array for all masks with the same min and max, None for no change. Raises
        ValueError if a score is out of range.
        """
        if all(np.count_nonzero(each & mask) for each in self._at_extremes):
            return None
        extremes = _extremes(self.column.values[mask])
        if extremes not in self._differences:
            before, after = (
                self.added(self._all(), self.extremes),
                self.added(self._all(), extremes),
            )
            if before is None or after is None:
                raise ValueError("a normalized score is out of range")
            self._differences[extremes] = after - before
        return self._differences[extremes]

    def _all(self) -> slice:
        return slice(0, len(self.column.values))

    def added(self, rows: Rows, extremes: tuple[int, int]) -> Int64Array | None:
        """Return the weighted normalized scores, given min and max; None if one is out of range."""
        return self._added_to(self.column.at(rows), extremes)

    def added_at(self, row: int) -> int | None:
        """Return the weighted normalized score of one row; the view must be refreshed."""
        score = self.column.values.item(row)
        if score not in self._added:
            one = self._added_to(np.array([score], dtype=np.int64), self.extremes)
            self._added[score] = None if one is None else one.item()
        return self._added[score]

    def extremes_at(self, rows: Rows, mask: BoolArray) -> tuple[int, int]:
        """Return the lowest and highest score of the rows that are in the mask."""
        return _extremes(self.column.at(rows)[mask])

    def _added_to(self, scores: Int64Array, extremes: tuple[int, int]) -> Int64Array | None:
        if extremes[0] == extremes[1]:
            return np.zeros_like(scores)
        # Rows that do not pass may exceed min and max, and must not count.
        normalized = self._normalize(np.clip(np.append(scores, extremes), *extremes))
        if normalized is None:
            return np.zeros_like(scores)
        if not self.is_proven and not _in_range(normalized):
            return None
        return normalized[:-2] * self._weight


class ScoreColumn(NamedTuple):
    """A plugin's scores that are not normalized, and their weight."""

    column: Column[np.int64]
    #: scores one row, uncached
    evaluate_row: EvaluateRow
    weight: int
    #: whether scores depend on the row's pods: then they are cached only in the totals
    reads_pods: bool
    #: whether scores are proven to be in range
    is_proven: bool


class Totals(RowView):
    """The weighted sum of row-local scores, for each passing row."""

    derived = ("totals", "in_range")

    def __init__(
        self,
        table: NodeTable,
        passing: PassingRows,
        *,
        scores: Sequence[ScoreColumn],
        normalized: Sequence[NormalizedScore],
    ) -> None:
        super().__init__(table, table.row_changes)
        self._passing = passing
        self._scores = scores
        self.normalized = normalized
        #: score columns that read only nodes, shared with other signatures
        self._on_node = [each.column for each in scores if not each.reads_pods]
        #: those of all such scores that depend on more than their rows
        self._with_stamp = [
            column
            for column in (*self._on_node, *(each.column for each in normalized))
            if column.has_stamp
        ]
        #: what the last stamp was made of
        self._inputs: Hashable = None
        self._last_stamp: Hashable = None
        #: of each row, INFEASIBLE where it does not pass
        self.totals: Int64Array = np.zeros(0, dtype=np.int64)
        #: whether all scores are in range; if not, totals are undefined
        self.in_range = True
        #: rows with the highest total; computed on demand
        self._best: BestRows | None = None
        #: number of attempts that read the totals
        self.uses = 0

    def stamp(self) -> Hashable:
        """Return what all rows depend on."""
        passing, with_stamp = self._passing, self._with_stamp
        passing.refresh()
        inputs: Hashable = (
            self._table.node_changes.position,
            passing.changed,
            *([column.stamp() for column in with_stamp] if with_stamp else ()),
        )
        if inputs == self._inputs:
            return self._last_stamp
        for each in self.normalized:
            each.refresh()
        for column in self._on_node:
            column.refresh()
        self._inputs = inputs
        self._last_stamp = (
            tuple([(each.extremes, each.column.last_stamp) for each in self.normalized]),
            tuple([column.last_stamp for column in self._on_node]),
        )
        return self._last_stamp

    def best(self) -> BestRows:
        """Return the rows with the highest total; at least one row must pass."""
        if self._best is None:
            self._best = best_of(self.totals)
        return self._best

    def at(self, rows: Rows, mask: BoolArray) -> Int64Array | None:
        """Return the totals of some rows, uncached; None if a score is out of range.

        `mask` tells which of them are feasible.
        """
        totals = self._sums(rows, mask)
        for each in self.normalized:
            extremes = each.extremes_at(rows, mask)
            if totals is not None and extremes[0] != extremes[1]:
                added = each.added(rows, extremes)
                totals = None if added is None else totals + added
        return totals

    def adjusted(self, mask: BoolArray) -> Int64Array | None:
        """Return all totals, given that only the passing rows of a mask are feasible.

        The same array as `totals` if that changes nothing; None if a score is out of range.
        """
        totals = self.totals
        for each in self.normalized:
            try:
                difference = each.difference(mask)
            except ValueError:
                return None
            if difference is not None:
                totals = totals + difference
        return totals

    def rebuild(self) -> None:
        """Sum all rows."""
        self._best = None
        self.in_range = True
        everything, mask = slice(0, self._table.size), self._passing.mask
        totals = self._with_normalized(self._sums(everything, mask), everything)
        if totals is None:
            self.in_range, totals = False, np.zeros(self._table.size, dtype=np.int64)
        np.copyto(totals, INFEASIBLE, where=~mask)
        self.totals = totals

    def update(self, rows: list[int]) -> bool:
        """Sum some rows."""
        if not self.in_range:
            return False
        if len(self.totals) < self._table.size:
            self.totals = grown(self.totals, (self._table.size,), fill=INFEASIBLE)
            self._best = None
        if len(rows) <= FEW_ROWS and self._update_by_row(rows):
            return True
        changed = np.array(rows, dtype=np.intp)
        mask = self._passing.mask[changed]
        totals = self._with_normalized(self._sums(changed, mask), changed)
        if totals is None:
            return False
        np.copyto(totals, INFEASIBLE, where=~mask)
        if len(rows) > MOST_UPDATED:
            self.totals[changed] = totals
            self._best = None
        else:
            for row, total in zip(rows, totals.tolist(), strict=True):
                self._set(row, total)
        return True

    def _update_by_row(self, rows: list[int]) -> bool:
        """Sum row by row, where arrays are slow; False to fall back to arrays."""
        mask = self._passing.mask
        for row in rows:
            total = self.total_of(row) if mask.item(row) else INFEASIBLE
            if total is None:
                return False
            self._set(row, total)
        return True

    def total_of(self, row: int) -> int | None:
        """Return the total of a passing row in its current state; None if only arrays can tell."""
        total = 0
        for column, evaluate_row, weight, reads_pods, is_proven in self._scores:
            score = evaluate_row(row) if reads_pods else column.values.item(row)
            if score is None or not (is_proven or 0 <= score <= MAX_NODE_SCORE):
                return None
            total += score * weight
        for each in self.normalized:
            if each.makes_a_difference:
                added = each.added_at(row)
                if added is None:
                    return None
                total += added
        return total

    def _set(self, row: int, total: int) -> None:
        before = self.totals.item(row)
        if before == total:
            return
        self.totals[row] = total
        best = self._best
        if best is None:
            return
        is_left = before == best.total and not best.remove(row, self._table.order)
        if is_left or total >= best.total:
            self._best = None

    def _with_normalized(self, totals: Int64Array | None, rows: Rows) -> Int64Array | None:
        """Add normalized scores; None if one is out of range."""
        for each in self.normalized:
            if totals is not None and each.makes_a_difference:
                added = each.added(rows, each.extremes)
                totals = None if added is None else totals + added
        return totals

    def _sums(self, rows: Rows, mask: BoolArray) -> Int64Array | None:
        """Return the sum of the scores that are not normalized; None if one is out of range."""
        totals: Int64Array | None = None
        for column, _, weight, _, is_proven in self._scores:
            scores = column.at(rows)
            if not is_proven and _are_wrong(scores, mask):
                return None
            if totals is None:  # a new array: the column's own must not change
                totals = scores * weight
            else:
                totals += scores if weight == 1 else scores * weight
        return np.zeros(len(mask), dtype=np.int64) if totals is None else totals

    def forget(self) -> None:
        """Invalidate the view and free its memory."""
        super().forget()
        self._best = self._inputs = None
        self.totals = np.zeros(0, dtype=np.int64)

    def validate(self) -> None:
        """Compare with totals built from scratch, and the best rows as well."""
        super().validate()
        if self._best is not None:
            require(self._best.same_as(best_of(self.totals)), "rows with the highest total")


class BestRows:
    """The rows with the highest total, in node order.

    A placement lowers the total of its row and leaves all others as they are. So the best rows are
    cached, and a row that falls behind is removed. Positions are computed when a row is first
    requested by its number; removed rows are then skipped, until there are too many of them.
    """

    __slots__ = ("_count", "_order", "_places", "_removed", "_rows", "total")

    def __init__(self, total: int, rows: BoolArray) -> None:
        #: their common total
        self.total = total
        #: mask of these rows, all of which have a node
        self._rows = rows
        self._count = int(np.count_nonzero(rows))
        #: the node order that positions refer to; None: not computed
        self._order: IndexArray | None = None
        #: positions in the order, ascending
        self._places: IndexArray
        #: indexes of removed positions, ascending
        self._removed: list[int] = []

    def __len__(self) -> int:
        return self._count

    def nth(self, number: int, order: NodeOrder) -> int:
        """Return the row with a number, in node order."""
        in_order = order.rows()
        if self._order is not in_order:
            self._order = in_order
            self._places = self._rows.take(in_order).nonzero()[0]
            self._removed = []
        for removed in self._removed:
            if removed > number:
                break
            number += 1
        return in_order.item(self._places.item(number))

    def among(self, rows: BoolArray) -> BestRows | None:
        """Return the best rows within a mask; None if there are none."""
        both = self._rows & rows
        return BestRows(self.total, both) if np.count_nonzero(both) else None

    def remove(self, row: int, order: NodeOrder) -> bool:
        """Remove one of the rows; False if it is the only one."""
        if self._count == 1:
            return False
        self._rows[row] = False
        self._count -= 1
        if len(self._removed) == MOST_REMOVED:
            self._order = None
        elif self._order is order.rows():
            insort(self._removed, bisect_left(self._places, order.positions().item(row)))
        return True

    def same_as(self, other: BestRows) -> bool:
        """Tell whether the rows and their total are equal."""
        return self.total == other.total and np.array_equal(self._rows, other._rows)


def best_of(totals: Int64Array) -> BestRows:
    """Return the rows with the highest total."""
    # The function is slower than the ufunc: it checks its arguments first.
    most = int(np.maximum.reduce(totals))
    return BestRows(most, totals == most)


def _extremes(scores: Int64Array) -> tuple[int, int]:
    return (int(scores.min()), int(scores.max())) if len(scores) else (0, 0)


def _in_range(scores: Int64Array) -> bool:
    # The ufuncs are faster than the methods.
    return bool(np.minimum.reduce(scores) >= 0 and np.maximum.reduce(scores) <= MAX_NODE_SCORE)


def _are_wrong(scores: Int64Array, mask: BoolArray) -> bool:
    """Tell whether a feasible row has a score out of range; others may have any."""
    if not len(scores) or _in_range(scores):
        return False
    return bool((((scores < 0) | (scores > MAX_NODE_SCORE)) & mask).any())
