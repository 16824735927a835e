"""Scores that are compared among rows before they count, kept as long as that gives the same.

How much a normalized score is worth depends on which rows can take the pod: the best of them gets
100. But for most plugins nothing matters of other rows than the highest and the lowest of their
scores (`by_extremes`), and these stay the same from pod to pod, unless nodes change or become full.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kubesched.cluster.arrays import BoolArray, Int64Array, Rows
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.shape import Shape
from kubesched.framework.cached_column import CachedColumn
from kubesched.framework.plugin import MAX_NODE_SCORE, RowScore


class ComparedScore:
    """What one plugin adds to the totals of one shape."""

    __slots__ = (
        "_added",
        "_at_extremes",
        "_column",
        "_extremes",
        "_normalize",
        "_shape",
        "_table",
        "_weight",
        "by_extremes",
        "plugin",
    )

    def __init__(
        self,
        plugin: RowScore,
        column: CachedColumn[np.int64],
        *,
        shape: Shape,
        table: NodeTable,
        weight: int,
        normalize: Callable[[Int64Array], Int64Array | None],
        by_extremes: bool,
    ) -> None:
        self.plugin = plugin
        #: whether nothing but the extremes matters of other rows
        self.by_extremes = by_extremes
        self._column = column
        self._shape = shape
        self._table = table
        self._weight = weight
        self._normalize = normalize
        #: the lowest and the highest score of rows that can take the pod
        self._extremes = (0, 0)
        #: which of these rows have the one, and the other
        self._at_extremes: tuple[BoolArray, ...] = ()
        #: score → what it adds, as far as somebody asked
        self._added: dict[int, int] = {}

    def is_even(self) -> bool:
        """Tell whether all rows have the same score: then it makes no difference."""
        return self._column.is_even(self.plugin.epoch(self._shape, self._table))

    def release(self) -> None:
        """Free the memory; it must be settled before it is asked again."""
        self._at_extremes = ()

    def settle(self, passing: BoolArray) -> bool:
        """Find the extremes of rows that can take the pod; tell whether they are others now."""
        scores = self._scores()
        there = scores[passing]
        extremes = (int(there.min()), int(there.max())) if len(there) else (0, 0)
        self._at_extremes = tuple((scores == each) & passing for each in extremes)
        if extremes == self._extremes:
            return False
        self._extremes, self._added = extremes, {}
        return True

    def holds_among(self, passing: BoolArray) -> bool:
        """Tell whether the extremes of fewer rows are the same."""
        return all(np.count_nonzero(each & passing) for each in self._at_extremes)

    def added(self, rows: Rows) -> Int64Array | None:
        """Return what is added to the total of each row; None if that is out of its range."""
        return self._added_for(self._scores()[rows])

    def added_at(self, row: int) -> int | None:
        """Return the same of one row."""
        score = self._scores().item(row)
        added = self._added.get(score)
        if added is None:
            one = self._added_for(np.array([score], dtype=np.int64))
            if one is None:
                return None
            added = self._added[score] = one.item()
        return added

    def _scores(self) -> Int64Array:
        return self._column.current(self.plugin.epoch(self._shape, self._table))

    def _added_for(self, scores: Int64Array) -> Int64Array | None:
        # Rows that cannot take the pod may be beyond the extremes, which has nothing to say.
        compared = np.clip(np.append(scores, self._extremes), *self._extremes)
        normalized = self._normalize(compared)
        if normalized is None:
            return np.zeros_like(scores)
        if not self.plugin.proven_range and not _in_range(normalized):
            return None
        return normalized[:-2] * self._weight


def _in_range(scores: Int64Array) -> bool:
    return bool(scores.min() >= 0 and scores.max() <= MAX_NODE_SCORE)
