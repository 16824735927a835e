"""The total of all rows for pods of one shape, where nothing but the rows themselves decides.

Most pods ask for no more than room, labels and tolerations. For them a row's total depends on the
row alone, so it is kept, and after a placement one row of it is worked out again; choosing a node
is then looking for the maximum. Scores that are brought into a range by comparing rows make no
difference where all rows have the same, and are kept as `ComparedScore` says where they do.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from kubesched.cluster.arrays import BoolArray, IndexArray, Int64Array, Rows
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.shape import Shape
from kubesched.framework.answers import RejectRow
from kubesched.framework.best_rows import BestRows, best_of
from kubesched.framework.cached_column import FEW, SPARSE, CachedColumn
from kubesched.framework.compared_score import ComparedScore
from kubesched.framework.plugin import MAX_NODE_SCORE, RowScore

#: The total of a row that cannot take the pod.
NEVER: Final = -1
#: What is known of all rows is kept up to date row by row for so many.
MOST_ONE_BY_ONE: Final = 32


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
        reject_row: RejectRow,
        summed: Sequence[ScoreColumn],
        compared: Sequence[ComparedScore],
    ) -> None:
        self._shape = shape
        self.table = table
        self._node_filters = node_filters
        #: what filters say that look at the pods of a row
        self._pod_filters = pod_filters
        #: the same of one row as it is now
        self._reject_row = reject_row
        #: scores that count as they are
        self._summed = summed
        #: scores that are compared with those of other rows first
        self._compared = compared
        #: those of them that are not the same for all rows
        self._uneven: list[ComparedScore] = []
        #: plugins whose scores depend on more than a row
        plugins = *(each.plugin for each in summed), *(each.plugin for each in compared)
        self._with_epoch = [each for each in plugins if type(each).epoch is not RowScore.epoch]
        #: of each row, NEVER where it cannot take the pod
        self.totals: Int64Array = np.zeros(0, dtype=np.int64)
        #: which rows can take it
        self.passing: BoolArray = np.zeros(0, dtype=np.bool_)
        #: the same, None: not known
        self._nodes: NodeRows | None = None
        #: those of them with the highest total, None: not known
        self._best: BestRows | None = None
        self._position = -1
        #: how many pods asked
        self.uses = 0
        #: what the scores of each of these depend on, as far as it is not the row; None: unknown
        self._epochs: dict[RowScore, Hashable] | None = None
        #: up to where nodes were looked at to tell whether `_compared` makes a difference
        self._compared_at = -1
        #: whether totals can be kept although it does
        self._can_be_kept = False
        #: whether extremes were found since nodes, or which of them can take the pod, last changed
        self._is_settled = False

    def refresh(self) -> bool:
        """Bring totals up to date; False if it is not that easy.

        What is the same for all rows is left out of them.
        """
        self.uses += 1
        table = self.table
        epochs = {plugin: plugin.epoch(self._shape, table) for plugin in self._with_epoch}
        is_known = epochs == self._epochs and len(self.totals) == table.size
        if not is_known or self._compared_at != table.node_changes.position:
            is_known = self._compare() and is_known
        if not self._can_be_kept:
            return False
        changed = table.row_changes.rows_since(self._position) if is_known else None
        position = table.row_changes.position
        # Should a plugin raise, nothing is known any more.
        self._epochs = None
        if changed is None or len(changed) * SPARSE > table.size:
            done = self._work_out_all(epochs)
        else:
            done = self._work_out_few(changed, epochs) or self._work_out(changed, epochs)
            if done and not self._is_settled and self._settle():
                done = self._work_out_all(epochs)
        if done:
            self._epochs, self._position = epochs, position
        return done

    def holds_among(self, passing: BoolArray) -> bool:
        """Tell whether totals are the same if only some of the rows can take the pod."""
        return all(each.holds_among(passing) for each in self._uneven)

    def release(self) -> None:
        """Free the memory; the next one has all rows worked out."""
        self.totals, self.passing = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.bool_)
        self._nodes = self._best = self._epochs = None
        for each in self._compared:
            each.release()

    @property
    def nodes(self) -> NodeRows:
        """The rows that can take the pod; the same object as long as they are the same."""
        if self._nodes is None:
            # A copy: whoever got it may find out later which rows they are.
            self._nodes = NodeRows.where(self.table, self.passing.copy())
        return self._nodes

    def best(self) -> BestRows:
        """Return the rows with the highest total, if there are rows that can take the pod."""
        if self._best is None:
            self._best = best_of(self.totals)
        return self._best

    def _work_out_few(self, rows: IndexArray, epochs: Mapping[RowScore, Hashable]) -> bool:
        """Work a few rows out, one after the other; False if that does not pay or will not do."""
        if len(rows) > FEW:
            return False
        if len(rows) == 1:
            return self._work_out_one(rows.item(), epochs)
        return all(self._work_out_one(row, epochs) for row in rows.tolist())

    def _work_out_one(self, row: int, epochs: Mapping[RowScore, Hashable]) -> bool:
        """Work a row out by itself, for which arrays are slow; False if only they will do.

        What depends on the pods of the row is asked anew, past the columns, which are brought up to
        date when somebody needs more than a row of them.
        """
        if (
            not self.table.valid.item(row)
            or self._node_filters.current().item(row)
            or self._reject_row(row)
        ):
            self._set(row, NEVER)
            return True
        total = 0
        for plugin, weight, column in self._summed:
            if not plugin.reads_pods:
                score: int | None = column.current(epochs.get(plugin)).item(row)
            else:
                score = None if column.evaluate_row is None else column.evaluate_row(row)
            if score is None or not (plugin.proven_range or 0 <= score <= MAX_NODE_SCORE):
                return False
            total += score * weight
        for each in self._uneven:
            added = each.added_at(row)
            if added is None:
                return False
            total += added
        self._set(row, total)
        return True

    def _set(self, row: int, total: int) -> None:
        before = self.totals.item(row)
        if before == total:
            return
        self.totals[row] = total
        if NEVER in (before, total):
            self.passing[row] = total != NEVER
            self._nodes = None
            self._is_settled = False
        best = self._best
        if best is None:
            return
        if total >= best.total or (before == best.total and not best.remove(row, self.table.order)):
            self._best = None

    def _work_out(self, rows: IndexArray, epochs: Mapping[RowScore, Hashable]) -> bool:
        """Work rows out again; False if a score is out of its range, which others report."""
        passing = self._passing_of(rows)
        totals = self._totals_of(rows, passing, epochs)
        if totals is None:
            return False
        if len(rows) <= MOST_ONE_BY_ONE:
            for row, total in zip(rows.tolist(), totals.tolist(), strict=True):
                self._set(row, total)
        else:
            self.totals[rows] = totals
            self.passing[rows] = passing
            self._nodes = self._best = None
            self._is_settled = False
        return True

    def _work_out_all(self, epochs: Mapping[RowScore, Hashable]) -> bool:
        """The same for all rows."""
        self._nodes = self._best = None
        everything = slice(0, self.table.size)
        self.passing = self._passing_of(everything)
        self._settle()
        totals = self._totals_of(everything, self.passing, epochs)
        if totals is None:
            return False
        self.totals = totals
        return True

    def _passing_of(self, rows: Rows) -> BoolArray:
        """Return which rows can take the pod."""
        passing: BoolArray = self._pod_filters.at(rows) == 0
        passing &= self._node_filters.current()[rows] == 0
        passing &= self.table.valid[rows]
        return passing

    def _totals_of(
        self, rows: Rows, passing: BoolArray, epochs: Mapping[RowScore, Hashable]
    ) -> Int64Array | None:
        """Return the total of each row; None if a score is out of range."""
        totals = np.zeros(len(passing), dtype=np.int64)
        for scored in self._summed:
            plugin, column, epoch = scored.plugin, scored.column, epochs.get(scored.plugin)
            # What depends on pods is of no use for the next one: its total is all that is kept.
            scores = column.at(rows, epoch) if plugin.reads_pods else column.current(epoch)[rows]
            if not plugin.proven_range and _are_wrong(scores, passing):
                return None
            totals += scores if scored.weight == 1 else scores * scored.weight
        for each in self._uneven:
            added = each.added(rows)
            if added is None:
                return None
            totals += added
        np.copyto(totals, NEVER, where=~passing)
        return totals

    def _compare(self) -> bool:
        """Find out which scores differ among rows; tell whether these are the same as before."""
        uneven = [each for each in self._compared if not each.is_even()]
        is_same = uneven == self._uneven
        self._uneven, self._is_settled = uneven, False
        self._can_be_kept = all(each.by_extremes for each in uneven)
        self._compared_at = self.table.node_changes.position
        return is_same

    def _settle(self) -> bool:
        """Find the extremes of scores that are compared; tell whether they are others now."""
        self._is_settled = True
        moved = [each for each in self._uneven if each.settle(self.passing)]
        return bool(moved)


def _are_wrong(scores: Int64Array, passing: BoolArray) -> bool:
    """Tell whether rows that pass have a score out of range; those that do not may have any."""
    if not len(scores):
        return False
    if np.minimum.reduce(scores) >= 0 and np.maximum.reduce(scores) <= MAX_NODE_SCORE:
        return False
    return bool((((scores < 0) | (scores > MAX_NODE_SCORE)) & passing).any())
