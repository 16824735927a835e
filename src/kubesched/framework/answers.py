"""Cached answers of row-local plugins about a signature: PreFilter, PreScore, filters, scores.

Plugins that read only node objects are cached apart from those that also read the pods on nodes:
their answers change seldom and mostly do not depend on the pod's requests, so many signatures can
share them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np

from kubesched.cluster.arrays import Int32Array, Int64Array
from kubesched.cluster.incremental import Column, EvaluateRow, Log
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.pod_signature import PodSignature
from kubesched.cluster.resources import Requests
from kubesched.framework.observing import NullObserver
from kubesched.framework.plugin import (
    NOTHING_TO_FILTER,
    PODS,
    REQUESTS,
    Normalize,
    Plugin,
    PreFilterResult,
    RowFilter,
    RowLocal,
    RowScore,
    SignaturePreFilter,
    SignaturePreScore,
)
from kubesched.framework.profile import ProfilePlugins, of_kind
from kubesched.framework.status import Code, Status
from kubesched.framework.status_book import StatusBook
from kubesched.framework.totals import RejectRow

#: Filters, each with its position: the first rejection in this order counts.
PlacedFilters: TypeAlias = Sequence[tuple[int, RowFilter]]


#: What PreFilter and PreScore return for a pod that they have nothing against.
_PASSES = (Code.SUCCESS, Code.SKIP)


class RowLocalPlugins:
    """Row-local plugins of a profile, grouped once, as plans are built often."""

    def __init__(self, plugins: ProfilePlugins, *, reads_pods: bool) -> None:
        def is_one(plugin: Plugin) -> bool:
            return isinstance(plugin, RowLocal) and (PODS in plugin.reads) == reads_pods

        self.reads_pods = reads_pods
        self.pre_filters = of_kind(filter(is_one, plugins.pre_filter), SignaturePreFilter)
        self.pre_scores = of_kind(filter(is_one, plugins.pre_score), SignaturePreScore)
        #: each with its position
        self.filters = [
            (order, plugin)
            for order, plugin in enumerate(plugins.filter)
            if isinstance(plugin, RowFilter) and is_one(plugin)
        ]
        self.scores = [
            plugin for plugin, _ in plugins.score if isinstance(plugin, RowScore) and is_one(plugin)
        ]
        asked: list[RowFilter | RowScore] = [plugin for _, plugin in self.filters]
        #: whether one of them reads the pod's requests
        self.read_requests = any(REQUESTS in plugin.reads for plugin in asked + self.scores)

    def ask_pre_filters(self, signature: PodSignature) -> dict[str, PreFilterResult]:
        """Return the result of PreFilter by plugin."""
        is_resize = signature.is_resize
        return {
            name: NOTHING_TO_FILTER
            if is_resize and plugin.skips_resizes
            else plugin.pre_filter(signature)
            for name, plugin in self.pre_filters.items()
        }

    def ask_pre_scores(self, signature: PodSignature) -> dict[str, Status]:
        """Return the result of PreScore by plugin."""
        return {name: plugin.pre_score(signature) for name, plugin in self.pre_scores.items()}


class RowScores(NamedTuple):
    """The cached scores of all rows, and a function that scores one row uncached."""

    column: Column[np.int64]
    evaluate_row: EvaluateRow


class Answers:
    """The answers of some plugins of a profile about a signature."""

    def __init__(self, signature: PodSignature, plugins: RowLocalPlugins, columns: Columns) -> None:
        """Answer for `signature`, which belongs to the answers from now on."""
        self._signature = signature
        self._plugins = plugins
        #: plugin → result of PreFilter
        self.pre_filter = plugins.ask_pre_filters(signature)
        self.pre_score = plugins.ask_pre_scores(signature)
        #: plugins that skip the signature in Filter, and in Score
        self.filter_skips = frozenset(
            [name for name, each in self.pre_filter.items() if each.status.code is Code.SKIP]
        )
        self.score_skips = frozenset(
            [name for name, status in self.pre_score.items() if status.code is Code.SKIP]
        )
        #: whether PreFilter neither rejects nor restricts
        self.is_unrestricted = all(
            each.status.code in _PASSES and each.node_names is None
            for each in self.pre_filter.values()
        )
        #: whether PreScore reports no error
        self.is_scorable = all(status.code in _PASSES for status in self.pre_score.values())
        table = columns.table
        log = table.row_changes if plugins.reads_pods else table.node_changes
        filters = [each for each in plugins.filters if each[1].name not in self.filter_skips]
        #: returns the number of a row's first rejection, uncached
        self.reject_row = columns.reject_row(signature, filters)
        #: the same for many rows
        self.reject = partial(columns.reject, signature, filters)
        #: the number of each row's first rejection, 0 for none
        self.rejections: Column[np.int32] = Column(
            table, log, self.reject, evaluate_row=self.reject_row
        )
        #: plugin → its scores, without plugins that skip the signature
        self.scores: dict[str, RowScores] = {
            plugin.name: columns.scores(signature, plugin, log)
            for plugin in plugins.scores
            if plugin.name not in self.score_skips
        }

    def take_over(self, signature: PodSignature) -> bool:
        """Answer for a signature with other requests from now on; False if that takes new answers.

        It does if PreFilter or PreScore return something else, as plugins may skip.
        """
        plugins = self._plugins
        if (
            plugins.ask_pre_filters(signature) != self.pre_filter
            or plugins.ask_pre_scores(signature) != self.pre_score
        ):
            return False
        self._signature.take_over(signature)
        self.forget()
        return True

    def forget(self) -> None:
        """Free the memory of all columns; views that still use them rebuild them."""
        self.rejections.forget()
        for scores in self.scores.values():
            scores.column.forget()


class Columns:
    """Evaluates row-local plugins of one profile, and times them."""

    def __init__(self, table: NodeTable, book: StatusBook, observer: NullObserver) -> None:
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
        # In reverse order, so that the first rejection overwrites later ones.
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
        """Return a function that gives the number of a row's first rejection, 0 for none."""
        observer, book, lap = self._observer, self._book, self._filter_lap
        # Built on first use: many signatures belong to a single pod.
        by_row: list[tuple[int, str, Callable[[int], Status | None]]] = []
        built_for: Requests | None = None

        def reject(row: int) -> int:
            nonlocal built_for
            if built_for is not signature.requests:
                built_for = signature.requests
                by_row[:] = [
                    (order, plugin.name, self._row_filter(plugin, signature))
                    for order, plugin in filters
                ]
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
        """Return a function that gives a row's rejection; scalar if the plugin has that form."""
        table = self.table
        return plugin.row_filter(signature, table) or (
            lambda row: plugin.filter(signature, NodeRows.one(table, row)).status_of(0)
        )

    def scores(self, signature: PodSignature, plugin: RowScore, log: Log[int]) -> RowScores:
        """Return a plugin's scores, which change with the rows of a log."""
        table, observer, lap = self.table, self._observer, self._score_lap
        score_row: Callable[[int], int | None]
        built_for: Requests | None = None

        def evaluate(nodes: NodeRows) -> Int64Array:
            started = observer.now() if observer.sampled else 0.0
            scores = plugin.score(signature, nodes)
            if observer.sampled:
                lap(plugin.name, Code.SUCCESS, started)
            return scores

        def evaluate_row(row: int) -> int | None:
            nonlocal score_row, built_for
            if built_for is not signature.requests:  # built on first use
                built_for = signature.requests
                score_row = plugin.row_scorer(signature, table) or (
                    lambda row: int(plugin.score(signature, NodeRows.one(table, row))[0])
                )
            if not observer.sampled:
                return score_row(row)
            started = observer.now()
            score = score_row(row)
            lap(plugin.name, Code.SUCCESS, started)
            return score

        depends_on_more = type(plugin).epoch is not RowScore.epoch
        stamp = partial(plugin.epoch, signature, table) if depends_on_more else None
        column = Column(table, log, evaluate, evaluate_row=evaluate_row, stamp=stamp)
        return RowScores(column, evaluate_row)

    def normalizer(self, plugin: Normalize) -> Callable[[Int64Array], Int64Array | None]:
        """Return the normalizer of a plugin whose `normalize` depends on the scores alone."""
        observer, lap = self._observer, self._normalize_lap

        def normalize(scores: Int64Array) -> Int64Array | None:
            started = observer.now() if observer.sampled else 0.0
            normalized = plugin.normalize(scores)
            if observer.sampled:
                lap(plugin.name, Code.SUCCESS, started)
            return normalized

        return normalize
