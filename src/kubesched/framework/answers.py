"""What row-local plugins say about a shape: PreFilter, PreScore, first rejections, and scores.

    plugin.filter / plugin.score ──all rows, or many──> CachedColumn
    plugin.row_filter / row_scorer ──one row──────────────┘

Plugins that look at node objects alone and those that look at the pods on nodes are kept apart:
what the former say changes seldom, and mostly has nothing to do with how much a pod requests, so
that many shapes can share it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from kubesched.cluster.arrays import Int32Array, Int64Array
from kubesched.cluster.changes import ChangeLog
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.shape import Shape
from kubesched.framework.cached_column import CachedColumn
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.observing import Unobserved
from kubesched.framework.plugin import (
    Normalize,
    Plugin,
    PreFilterResult,
    RowFilter,
    RowScore,
    ShapePreFilter,
    ShapePreScore,
)
from kubesched.framework.profile import ProfilePlugins, of_kind
from kubesched.framework.status import Code, Status
from kubesched.framework.status_book import StatusBook

#: Filters, each with its position, which decides whose rejection counts.
PlacedFilters: TypeAlias = Sequence[tuple[int, RowFilter]]
#: Returns the number of a row's first rejection, 0 for none.
RejectRow: TypeAlias = Callable[[int], int]


class RowLocalPlugins:
    """Row-local plugins of a profile: sorted out once, as plans are made often."""

    def __init__(self, plugins: ProfilePlugins, *, reads_pods: bool) -> None:
        def is_one(plugin: Plugin) -> bool:
            return getattr(plugin, "reads_pods", True) == reads_pods

        self.reads_pods = reads_pods
        self.pre_filters = of_kind(filter(is_one, plugins.pre_filter), ShapePreFilter)
        self.pre_scores = of_kind(filter(is_one, plugins.pre_score), ShapePreScore)
        #: with the position of each
        self.filters = [
            (order, plugin)
            for order, plugin in enumerate(plugins.filter)
            if isinstance(plugin, RowFilter) and is_one(plugin)
        ]
        self.scores = [
            plugin for plugin, _ in plugins.score if isinstance(plugin, RowScore) and is_one(plugin)
        ]
        asked: list[RowFilter | RowScore] = [plugin for _, plugin in self.filters]
        #: whether one of them looks at what a pod requests
        self.read_requests = any(plugin.reads_requests for plugin in asked + self.scores)


class Answers:
    """What some plugins of a profile say about a shape."""

    def __init__(self, shape: Shape, plugins: RowLocalPlugins, columns: Columns) -> None:
        #: plugin → what PreFilter answered
        self.pre_filter: dict[str, PreFilterResult] = {
            name: plugin.pre_filter(shape) for name, plugin in plugins.pre_filters.items()
        }
        self.pre_score: dict[str, Status] = {
            name: plugin.pre_score(shape) for name, plugin in plugins.pre_scores.items()
        }
        #: plugins that have nothing to filter for the shape, and nothing to score
        self.filter_skips = frozenset(
            name for name, each in self.pre_filter.items() if each.status.code is Code.SKIP
        )
        self.score_skips = frozenset(
            name for name, status in self.pre_score.items() if status.code is Code.SKIP
        )
        #: whether PreFilter neither rejects nor restricts
        self.is_unrestricted = all(
            name in self.filter_skips or (each.status.ok and each.node_names is None)
            for name, each in self.pre_filter.items()
        )
        #: whether PreScore has nothing to complain about
        self.is_scorable = all(
            name in self.score_skips or status.ok for name, status in self.pre_score.items()
        )
        table = columns.table
        log = table.row_changes if plugins.reads_pods else table.node_changes
        filters = [each for each in plugins.filters if each[1].name not in self.filter_skips]
        self._reject_row = columns.reject_row(shape, filters)
        #: the number of each row's first rejection, 0 for none
        self.rejections = columns.of_filters(shape, filters, log, self._reject_row)
        #: plugin → its scores; those that skip the shape are left out
        self.scores: dict[str, CachedColumn[np.int64]] = {
            plugin.name: columns.of_score(shape, plugin, log)
            for plugin in plugins.scores
            if plugin.name not in self.score_skips
        }

    def rejection_of(self, row: int) -> int:
        """Return the number of a row's first rejection as the row is now, past the column."""
        return self._reject_row(row)

    def release(self) -> None:
        """Free the memory of all columns, whoever still knows them: they may be filled anew."""
        self.rejections.release()
        for scores in self.scores.values():
            scores.release()


class Columns:
    """Makes columns in one profile."""

    def __init__(self, table: NodeTable, book: StatusBook, observer: Unobserved) -> None:
        self.table = table
        self._book = book
        self._observer = observer
        self._filter_lap, self._score_lap = observer.lap("Filter"), observer.lap("Score")
        self._normalize_lap = observer.lap("ScoreExtensionNormalize")

    def of_filters(
        self, shape: Shape, filters: PlacedFilters, log: ChangeLog, reject_row: RejectRow
    ) -> CachedColumn[np.int32]:
        """Return a column of the numbers of rejections."""
        observer, book, lap = self._observer, self._book, self._filter_lap

        def evaluate(nodes: NodeRows) -> Int32Array:
            result = np.zeros(len(nodes), dtype=np.int32)
            # Backwards, so that of several rejections the first one stays.
            for order, plugin in reversed(filters):
                started = observer.now() if observer.sampled else 0.0
                verdict = plugin.filter(shape, nodes)
                if observer.sampled:
                    lap(plugin.name, Code.SUCCESS, started)
                numbers = book.numbers_of(verdict, order=order, plugin=plugin.name)
                if numbers is not None:
                    np.copyto(result, numbers, where=numbers > 0)
            return result

        return CachedColumn(self.table, log=log, evaluate=evaluate, evaluate_row=reject_row)

    def reject_row(self, shape: Shape, filters: PlacedFilters) -> RejectRow:
        """Return what gives the number of a row's first rejection as the row is now, 0 for none."""
        observer, book, lap = self._observer, self._book, self._filter_lap
        # Made when a row has to be looked at again: many a shape is of one pod only.
        ways: list[tuple[int, str, Callable[[int], Status | None]]] = []

        def reject(row: int) -> int:
            if not ways:
                ways.extend(
                    (order, plugin.name, self._row_filter(plugin, shape))
                    for order, plugin in filters
                )
            for order, name, refuse in ways:
                started = observer.now() if observer.sampled else 0.0
                status = refuse(row)
                if observer.sampled:
                    lap(name, Code.SUCCESS, started)
                if status is not None and not status.ok:
                    return book.number(order, status.by(name))
            return 0

        return reject

    def _row_filter(self, plugin: RowFilter, shape: Shape) -> Callable[[int], Status | None]:
        """Return what says why a row is turned away: the plugin's own way, or arrays of one row."""
        table = self.table
        return plugin.row_filter(shape, table) or (
            lambda row: plugin.filter(shape, NodeRows.one(table, row)).status_of(0)
        )

    def of_score(self, shape: Shape, plugin: RowScore, log: ChangeLog) -> CachedColumn[np.int64]:
        """Return a column of a plugin's scores."""
        table, observer, lap = self.table, self._observer, self._score_lap
        score_row: Callable[[int], int | None] | None = None

        def evaluate(nodes: NodeRows) -> Int64Array:
            started = observer.now() if observer.sampled else 0.0
            scores = plugin.score(shape, nodes)
            if observer.sampled:
                lap(plugin.name, Code.SUCCESS, started)
            return scores

        def evaluate_row(row: int) -> int | None:
            nonlocal score_row
            if score_row is None:  # as above
                score_row = plugin.row_scorer(shape, table) or (
                    lambda row: int(plugin.score(shape, NodeRows.one(table, row))[0])
                )
            if not observer.sampled:
                return score_row(row)
            started = observer.now()
            score = score_row(row)
            lap(plugin.name, Code.SUCCESS, started)
            return score

        return CachedColumn(table, log=log, evaluate=evaluate, evaluate_row=evaluate_row)

    def normalizer(self, plugin: Normalize) -> Callable[[Int64Array], Int64Array | None]:
        """Return what normalizes scores for a plugin that promises to look at nothing else."""
        observer, lap, state = self._observer, self._normalize_lap, CycleState()

        def normalize(scores: Int64Array) -> Int64Array | None:
            started = observer.now() if observer.sampled else 0.0
            normalized = plugin.normalize(state, scores)
            if observer.sampled:
                lap(plugin.name, Code.SUCCESS, started)
            return normalized

        return normalize
