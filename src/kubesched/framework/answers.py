"""What row-local plugins say about a signature: PreFilter, PreScore, rejections, and scores.

Plugins that read node objects only and those that read the pods on nodes are kept apart: what the
former say changes seldom, and mostly does not depend on how much a pod requests, so that many
signatures can share it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np

from kubesched.cluster.arrays import Int32Array, Int64Array
from kubesched.cluster.incremental import Column, EvaluateRow
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.pod_signature import PodSignature
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.observing import Unobserved
from kubesched.framework.plugin import (
    NOTHING_TO_FILTER,
    Normalize,
    Plugin,
    PreFilterResult,
    RowFilter,
    RowScore,
    SignaturePreFilter,
    SignaturePreScore,
)
from kubesched.framework.profile import ProfilePlugins, of_kind
from kubesched.framework.status import Code, Status
from kubesched.framework.status_book import StatusBook
from kubesched.framework.totals import RejectRow

#: Filters, each with its position, which decides whose rejection counts.
PlacedFilters: TypeAlias = Sequence[tuple[int, RowFilter]]


class RowLocalPlugins:
    """Row-local plugins of a profile: sorted out once, as plans are made often."""

    def __init__(self, plugins: ProfilePlugins, *, reads_pods: bool) -> None:
        def is_one(plugin: Plugin) -> bool:
            return getattr(plugin, "reads_pods", True) == reads_pods

        self.reads_pods = reads_pods
        self.pre_filters = of_kind(filter(is_one, plugins.pre_filter), SignaturePreFilter)
        self.pre_scores = of_kind(filter(is_one, plugins.pre_score), SignaturePreScore)
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
        #: whether one of them reads what a pod requests
        self.read_requests = any(plugin.reads_requests for plugin in asked + self.scores)


class RowScores(NamedTuple):
    """A plugin's scores of all rows, and of one row as it is now."""

    column: Column[np.int64]
    evaluate_row: EvaluateRow


class Answers:
    """What some plugins of a profile say about a signature."""

    def __init__(self, signature: PodSignature, plugins: RowLocalPlugins, columns: Columns) -> None:
        #: plugin → what PreFilter answered
        self.pre_filter: dict[str, PreFilterResult] = {
            name: _ask_pre_filter(plugin, signature) for name, plugin in plugins.pre_filters.items()
        }
        self.pre_score: dict[str, Status] = {
            name: plugin.pre_score(signature) for name, plugin in plugins.pre_scores.items()
        }
        #: plugins that have nothing to filter for the signature, and nothing to score
        self.filter_skips = {
            name for name, each in self.pre_filter.items() if each.status.code is Code.SKIP
        }
        self.score_skips = {
            name for name, status in self.pre_score.items() if status.code is Code.SKIP
        }
        table = columns.table
        log = table.row_changes if plugins.reads_pods else table.node_changes
        filters = [each for each in plugins.filters if each[1].name not in self.filter_skips]
        #: returns the number of a row's first rejection as the row is now, past the column
        self.reject_row = columns.reject_row(signature, filters)
        #: returns the same of many rows
        self.reject = partial(columns.reject, signature, filters)
        #: the number of each row's first rejection, 0 for none
        self.rejections: Column[np.int32] = Column(
            table, log, self.reject, evaluate_row=self.reject_row
        )
        #: plugin → its scores; those that skip the signature are left out
        self.scores: dict[str, RowScores] = {
            plugin.name: columns.scores(signature, plugin)
            for plugin in plugins.scores
            if plugin.name not in self.score_skips
        }

    def forget(self) -> None:
        """Free the memory of all columns; views that still use them fill them anew."""
        self.rejections.forget()
        for scores in self.scores.values():
            scores.column.forget()


def _ask_pre_filter(plugin: SignaturePreFilter, signature: PodSignature) -> PreFilterResult:
    if signature.is_resize and plugin.skips_resizes:
        return NOTHING_TO_FILTER
    return plugin.pre_filter(signature)


class Columns:
    """Evaluates row-local plugins of one profile, each of them timed."""

    def __init__(self, table: NodeTable, book: StatusBook, observer: Unobserved) -> None:
        self.table = table
        self._book = book
        self._observer = observer
        self._filter_lap, self._score_lap = observer.lap("Filter"), observer.lap("Score")
        self._normalize_lap = observer.lap("ScoreExtensionNormalize")

    def reject(
        self, signature: PodSignature, filters: PlacedFilters, nodes: NodeRows
    ) -> Int32Array:
        """Return the number of each row's first rejection, 0 for none."""
        observer, result = self._observer, np.zeros(len(nodes), dtype=np.int32)
        # Backwards, so that of several rejections the first one stays.
        for order, plugin in reversed(filters):
            started = observer.now() if observer.sampled else 0.0
            verdict = plugin.filter(signature, nodes)
            if observer.sampled:
                self._filter_lap(plugin.name, Code.SUCCESS, started)
            numbers = self._book.numbers_of(verdict, order=order, plugin=plugin.name)
            if numbers is not None:
                np.copyto(result, numbers, where=numbers > 0)
        return result

    def reject_row(self, signature: PodSignature, filters: PlacedFilters) -> RejectRow:
        """Return what gives the number of a row's first rejection as the row is now, 0 for none."""
        observer, book, lap = self._observer, self._book, self._filter_lap
        # Made when a row has to be looked at again: many a signature is of one pod only.
        by_row: list[tuple[int, str, Callable[[int], Status | None]]] = []

        def reject(row: int) -> int:
            if not by_row:
                by_row.extend(
                    (order, plugin.name, self._row_filter(plugin, signature))
                    for order, plugin in filters
                )
            for order, name, rejection in by_row:
                started = observer.now() if observer.sampled else 0.0
                status = rejection(row)
                if observer.sampled:
                    lap(name, Code.SUCCESS, started)
                if status is not None and not status.ok:
                    return book.number(order, status.by(name))
            return 0

        return reject

    def _row_filter(
        self, plugin: RowFilter, signature: PodSignature
    ) -> Callable[[int], Status | None]:
        """Return what says why a row is rejected: the plugin's own way, or arrays of one row."""
        table = self.table
        return plugin.row_filter(signature, table) or (
            lambda row: plugin.filter(signature, NodeRows.one(table, row)).status_of(0)
        )

    def scores(self, signature: PodSignature, plugin: RowScore) -> RowScores:
        """Return a plugin's scores."""
        table, observer, lap = self.table, self._observer, self._score_lap
        score_row: Callable[[int], int | None] | None = None

        def evaluate(nodes: NodeRows) -> Int64Array:
            started = observer.now() if observer.sampled else 0.0
            scores = plugin.score(signature, nodes)
            if observer.sampled:
                lap(plugin.name, Code.SUCCESS, started)
            return scores

        def evaluate_row(row: int) -> int | None:
            nonlocal score_row
            if score_row is None:  # as above
                score_row = plugin.row_scorer(signature, table) or (
                    lambda row: int(plugin.score(signature, NodeRows.one(table, row))[0])
                )
            if not observer.sampled:
                return score_row(row)
            started = observer.now()
            score = score_row(row)
            lap(plugin.name, Code.SUCCESS, started)
            return score

        log = table.row_changes if plugin.reads_pods else table.node_changes
        depends_on_more = type(plugin).epoch is not RowScore.epoch
        stamp = partial(plugin.epoch, signature, table) if depends_on_more else None
        column = Column(table, log, evaluate, evaluate_row=evaluate_row, stamp=stamp)
        return RowScores(column, evaluate_row)

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
