"""What a profile has to do for pods of one shape, and what it already knows about them.

A plan is made when a shape is first seen by a profile. It holds the answers of PreFilter and
PreScore of row-local plugins, which depend on the shape alone, and the cached columns of their
filters and scores.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence

import numpy as np

from kubesched.cluster.arrays import Int32Array, Int64Array
from kubesched.cluster.changes import ChangeLog
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.recent import Recent
from kubesched.cluster.shape import Shape
from kubesched.framework.cached_column import CachedColumn
from kubesched.framework.crowded import CrowdedRows
from kubesched.framework.observing import Unobserved
from kubesched.framework.plugin import (
    Normalize,
    PreFilterResult,
    RowFilter,
    RowScore,
    ShapePreFilter,
    ShapePreScore,
)
from kubesched.framework.profile import ProfilePlugins, of_kind
from kubesched.framework.ranking import Ranking, ScoreColumn
from kubesched.framework.status import Code, Status
from kubesched.framework.status_book import StatusBook

#: How much memory the plans of one profile may take.
PLAN_BYTES = 256 << 20
#: What a plan takes: its objects, and a few columns.
PLAN_OVERHEAD_BYTES = 12 << 10
ROW_BYTES = 64


class RowLocalPlugins:
    """The row-local plugins of a profile: sorted out once, as plans are made often."""

    def __init__(self, plugins: ProfilePlugins) -> None:
        self.pre_filters = of_kind(plugins.pre_filter, ShapePreFilter)
        self.pre_scores = of_kind(plugins.pre_score, ShapePreScore)
        #: with the position of each
        self.filters = [
            (order, plugin)
            for order, plugin in enumerate(plugins.filter)
            if isinstance(plugin, RowFilter)
        ]
        #: with the weight of each
        self.scores = [
            (plugin, weight) for plugin, weight in plugins.score if isinstance(plugin, RowScore)
        ]
        self.normalizers = of_kind((plugin for plugin, _ in plugins.score), Normalize)


class ShapePlan:
    """One profile's knowledge of one shape."""

    def __init__(
        self,
        shape: Shape,
        plugins: RowLocalPlugins,
        table: NodeTable,
        book: StatusBook,
        observer: Unobserved,
    ) -> None:
        self.shape = shape
        self._table = table
        self._book = book
        self._observer = observer
        #: plugin → what PreFilter answered
        self.pre_filter: dict[str, PreFilterResult] = {
            name: plugin.pre_filter(shape) for name, plugin in plugins.pre_filters.items()
        }
        self.pre_score: dict[str, Status] = {
            name: plugin.pre_score(shape) for name, plugin in plugins.pre_scores.items()
        }
        filters = [each for each in plugins.filters if not self._skips_filter(each[1].name)]
        on_nodes = [(order, each) for order, each in filters if not each.reads_pods]
        on_pods = [(order, each) for order, each in filters if each.reads_pods]
        self._node_filters = self._filter_column(on_nodes, table.node_changes)
        self._pod_filters = self._filter_column(on_pods, table.row_changes)
        #: plugin → its scores
        self._scores: dict[str, tuple[RowScore, CachedColumn[np.int64]]] = {
            plugin.name: (plugin, self._score_column(plugin))
            for plugin, _ in plugins.scores
            if not self._skips_score(plugin.name)
        }

        #: plugins of PreFilter that have nothing to do for the shape
        self.skips = frozenset(name for name in self.pre_filter if self._skips_filter(name))
        #: whether PreFilter of row-local plugins neither rejects nor restricts
        self.is_unrestricted = all(
            name in self.skips or (result.status.ok and result.node_names is None)
            for name, result in self.pre_filter.items()
        )
        #: plugins of PreScore that have nothing to do for the shape
        self.score_skips = frozenset(name for name in self.pre_score if self._skips_score(name))
        #: whether PreScore of row-local plugins has nothing to complain about
        self.is_scorable = all(
            name in self.score_skips or status.ok for name, status in self.pre_score.items()
        )
        self.ranking = self._make_ranking(plugins)
        #: how many pods to wait with the next try to use the ranking
        self.pause = 0
        #: priority → rows where there is no room beside nominated pods
        self._crowded: Recent[int, CrowdedRows] = Recent(limit=8)

    def release(self) -> None:
        """Free the memory of all columns, whoever still knows the plan: they may be filled anew."""
        for column in (self._node_filters, self._pod_filters):
            column.release()
        for _, scores in self._scores.values():
            scores.release()
        if self.ranking is not None:
            self.ranking.release()

    def crowded(self, cluster: Cluster, priority: int) -> CrowdedRows:
        """Return where pods of some priority have to leave room to others."""
        crowded = self._crowded.get(priority)
        if crowded is None:
            crowded = self._crowded[priority] = CrowdedRows(cluster, priority)
        return crowded

    def _make_ranking(self, plugins: RowLocalPlugins) -> Ranking | None:
        """Return the ranking, None if a normalized score may depend on the pods of a row."""
        summed: list[ScoreColumn] = []
        normalized: dict[RowScore, CachedColumn[np.int64]] = {}
        for plugin, weight in plugins.scores:
            found = self._scores.get(plugin.name)
            if found is None:
                continue
            column = found[1]
            if plugin.name not in plugins.normalizers:
                summed.append(ScoreColumn(plugin, weight, column))
            elif plugin.reads_pods:
                return None
            else:
                normalized[plugin] = column
        return Ranking(
            self.shape,
            self._table,
            node_filters=self._node_filters,
            pod_filters=self._pod_filters,
            summed=summed,
            normalized=normalized,
        )

    def rejections(self) -> Int32Array:
        """Return, for each row, the number of the first row-local rejection; 0 for none."""
        on_node, on_pods = self._node_filters.current(), self._pod_filters.current()
        if not on_node.any():
            return on_pods
        if not on_pods.any():
            return on_node
        return self._book.first(on_node, on_pods)

    def node_rejections(self) -> Int32Array:
        """Return the same as far as it does not depend on the pods of a row."""
        return self._node_filters.current()

    def feasible(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Return which rows pass all row-local filters."""
        on_node, on_pods = self._node_filters.current(), self._pod_filters.current()
        passing: np.ndarray[tuple[int], np.dtype[np.bool_]] = (on_node | on_pods) == 0
        passing &= self._table.valid[: self._table.size]
        return passing

    def scores(self, plugin: str) -> Int64Array | None:
        """Return a row-local plugin's score of each row; None if it skips this shape."""
        found = self._scores.get(plugin)
        if found is None:
            return None
        row_score, column = found
        return column.current(row_score.epoch(self.shape, self._table))

    def _skips_filter(self, plugin: str) -> bool:
        result = self.pre_filter.get(plugin)
        return result is not None and result.status.code is Code.SKIP

    def _skips_score(self, plugin: str) -> bool:
        status = self.pre_score.get(plugin)
        return status is not None and status.code is Code.SKIP

    def _filter_column(
        self, filters: Sequence[tuple[int, RowFilter]], log: ChangeLog
    ) -> CachedColumn[np.int32]:
        observer, lap = self._observer, self._observer.lap("Filter")

        def evaluate(nodes: NodeRows) -> Int32Array:
            result = np.zeros(len(nodes), dtype=np.int32)
            # Backwards, so that of several rejections the first one stays.
            for order, plugin in reversed(filters):
                started = observer.now() if observer.sampled else 0.0
                verdict = plugin.filter(self.shape, nodes)
                if observer.sampled:
                    lap(plugin.name, Code.SUCCESS, started)
                numbers = self._book.numbers_of(verdict, order=order, plugin=plugin.name)
                if numbers is not None:
                    np.copyto(result, numbers, where=numbers > 0)
            return result

        # Made when a row has to be looked at again: many a shape is of one pod only.
        passes: list[Callable[[int], bool]] = []

        def evaluate_row(row: int) -> int | None:
            if not passes:
                passes.extend(self._row_filter(plugin) for _, plugin in filters)
            if not observer.sampled:
                return 0 if all(each(row) for each in passes) else None
            for (_, plugin), each in zip(filters, passes, strict=True):
                started = observer.now()
                does_pass = each(row)
                lap(plugin.name, Code.SUCCESS, started)
                if not does_pass:
                    return None
            return 0

        return CachedColumn(
            self._table,
            log=log,
            evaluate=evaluate,
            evaluate_row=evaluate_row,
        )

    def _row_filter(self, plugin: RowFilter) -> Callable[[int], bool]:
        """Return what tells whether one row passes: the plugin's own way, or arrays of one row."""

        def passes(row: int) -> bool:
            answers = plugin.filter(self.shape, NodeRows.one(self._table, row)).answers
            return answers is None or not answers[0]

        return plugin.row_filter(self.shape, self._table) or passes

    def _score_column(self, plugin: RowScore) -> CachedColumn[np.int64]:
        table, shape, observer = self._table, self.shape, self._observer
        lap = observer.lap("Score")
        log = table.row_changes if plugin.reads_pods else table.node_changes
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


class Plans:
    """The plans of one profile, those longest unused given up when memory runs short."""

    def __init__(
        self,
        plugins: ProfilePlugins,
        table: NodeTable,
        book: StatusBook,
        *,
        observer: Unobserved,
        limit_bytes: int = PLAN_BYTES,
    ) -> None:
        self._plugins = RowLocalPlugins(plugins)
        self._table = table
        self._book = book
        self._observer = observer
        self._limit_bytes = limit_bytes
        self._plans: OrderedDict[Shape, ShapePlan] = OrderedDict()

    def __len__(self) -> int:
        return len(self._plans)

    def plan(self, shape: Shape) -> ShapePlan:
        """Return the plan for a shape."""
        plan = self._plans.get(shape)
        if plan is None:
            self._make_room()
            plan = self._plans[shape] = ShapePlan(
                shape, self._plugins, self._table, self._book, self._observer
            )
        else:
            self._plans.move_to_end(shape)
        return plan

    def clear(self) -> None:
        """Give all plans up, and with them the numbers of the book that their columns hold."""
        while self._plans:
            self._drop_oldest()

    def _make_room(self) -> None:
        per_plan = PLAN_OVERHEAD_BYTES + self._table.size * ROW_BYTES
        while len(self._plans) > max(self._limit_bytes // per_plan, 1):
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        _, dropped = self._plans.popitem(last=False)
        dropped.release()
