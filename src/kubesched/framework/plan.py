"""What a profile caches about pods of one signature.

    signature ──without requests──> Answers of plugins that read only nodes ────┬──> SignaturePlan
        └─────────────────────────> Answers of plugins that also read pods ─────┘

A plan is built when a profile first sees a signature, and dropped with the last pod that has it.
Its answers about node objects are shared with all plans whose signatures differ only in requests,
which vary more than anything else between pods.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import cached_property, partial
from typing import NamedTuple
from weakref import WeakValueDictionary, ref

import numpy as np

from kubesched.cluster.arrays import IndexArray, Int32Array, Int64Array
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.incremental import Column, EvaluateRow, LazyRows
from kubesched.cluster.node_rows import NodeRows, SupposedRows
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_signature import PodSignature, signature_key, spec_for_nodes
from kubesched.cluster.recent import Recent
from kubesched.cluster.resources import Requests
from kubesched.framework.answers import Answers, Columns, RowLocalPlugins, RowScores
from kubesched.framework.observing import NullObserver
from kubesched.framework.plugin import (
    PODS,
    Normalize,
    PreFilterResult,
    RowScore,
    is_by_min_max,
)
from kubesched.framework.profile import ProfilePlugins, of_kind
from kubesched.framework.stacked_totals import StackedTotals
from kubesched.framework.status import Status
from kubesched.framework.status_book import StatusBook
from kubesched.framework.totals import NormalizedScore, PassingRows, ScoreColumn, Totals

#: Memory limit of the plans of one profile.
PLAN_BYTES = 256 << 20
#: Estimated size of a plan: its objects, and a few columns.
PLAN_OVERHEAD_BYTES = 12 << 10
ROW_BYTES = 64
#: This many plans outlive their pods: a replacement of a deleted pod often follows at once.
PLANS_WITHOUT_PODS = 64


class ScorePlugins:
    """The row-local scores of a profile, and their weights."""

    def __init__(self, plugins: ProfilePlugins) -> None:
        #: with the weight of each, and whether it reads pods
        self.weighted = [
            (plugin, weight, PODS in plugin.reads)
            for plugin, weight in plugins.score
            if isinstance(plugin, RowScore)
        ]
        self.normalizers = of_kind((plugin for plugin, _, _ in self.weighted), Normalize)


class RawScore(NamedTuple):
    """Scores that must be normalized among the feasible nodes of each attempt."""

    plugin: RowScore
    weight: int
    column: Column[np.int64]


class BesideNominated(LazyRows):
    """Rejections of rows beside their nominated pods, for pods of one signature and priority.

    The number of the rejection, 0 where the pod fits or no pod is nominated. Many pods are
    evaluated while victims terminate, and all of them must leave the nominated pods' requests free.
    """

    def __init__(
        self, cluster: Cluster, priority: int, reject: Callable[[SupposedRows], Int32Array]
    ) -> None:
        super().__init__(cluster.table, cluster.table.row_changes, cluster.nominator.changes)
        self._nominated = cluster.nominated_rows
        self._priority = priority
        self._reject = reject

    def empty(self, size: int) -> Int32Array:
        """Return uninitialized numbers for `size` rows."""
        return np.zeros(size, dtype=np.int32)

    def compute(self, rows: IndexArray) -> None:
        """Run filters with the nominated pods placed on their rows."""
        self.values[rows] = 0
        sums = self._nominated.requests(self._priority)
        rows = rows[sums.pod_count[rows] > 0]
        if len(rows):
            nodes = self._with(rows, sums.requested[:, rows], sums.pod_count[rows])
            self.values[rows] = self._reject(nodes)

    def rejections(self, pod: PodInfo) -> Int32Array:
        """Return the number of each row's rejection; read-only."""
        self.refresh()
        self.ensure(np.flatnonzero(~self.known))
        own = self._nominated.own_row(pod)
        if own is None:
            return self.values
        # On the pod's own nominated node, only the other pods count.
        numbers, row = self.values.copy(), np.array([own], dtype=np.intp)
        requested, pod_count = self._nominated.reserved_on(row, pod)
        numbers[own] = 0
        if pod_count[0]:
            numbers[own] = self._reject(self._with(row, requested, pod_count))[0]
        return numbers

    def _with(self, rows: IndexArray, requested: Int64Array, pod_count: Int64Array) -> SupposedRows:
        table = self._table
        return SupposedRows(
            table,
            rows,
            requested=requested + table.requested[:, rows],
            pod_count=pod_count + table.pod_count[rows],
        )


class SignaturePlan:
    """What one profile caches about one signature."""

    def __init__(
        self,
        signature: PodSignature,
        *,
        on_node: Answers,
        on_pods: Answers,
        scores: ScorePlugins,
        columns: Columns,
        book: StatusBook,
    ) -> None:
        self.signature = signature
        self._table = columns.table
        self._book = book
        self._on_node = on_node
        self._on_pods = on_pods
        #: plugins that skip the signature in Filter, and in Score
        self.filter_skips = on_node.filter_skips | on_pods.filter_skips
        self.score_skips = on_node.score_skips | on_pods.score_skips
        #: whether PreFilter of row-local plugins neither rejects nor restricts
        self.is_unrestricted = on_node.is_unrestricted and on_pods.is_unrestricted
        #: whether PreScore of row-local plugins reports no error
        self.is_scorable = on_node.is_scorable and on_pods.is_scorable
        #: plugin → its scores
        self.scores: dict[str, RowScores] = on_node.scores | on_pods.scores
        self.passing = PassingRows(
            self._table,
            on_node=on_node.rejections,
            on_pods=on_pods.rejections,
            reject_row=on_pods.reject_row,
        )
        #: scores whose normalizer depends on more than min and max
        self.raw_scores: list[RawScore] = []
        #: scores that are not normalized
        self._summed: list[ScoreColumn] = []
        self._weighted = scores.weighted
        self.totals = self._make_totals(scores, columns)
        #: priority → rejections beside nominated pods
        self._beside: Recent[int, BesideNominated] = Recent(limit=8)
        #: totals with more pods of the signature, once members of a group were alike
        self._stacked: StackedTotals | None = None

    @cached_property
    def pre_filter(self) -> dict[str, PreFilterResult]:
        """The result of PreFilter by plugin."""
        return self._on_node.pre_filter | self._on_pods.pre_filter

    @cached_property
    def pre_score(self) -> dict[str, Status]:
        """The result of PreScore by plugin."""
        return self._on_node.pre_score | self._on_pods.pre_score

    @property
    def is_of_one_pod(self) -> bool:
        """Whether only one pod of the signature was scheduled so far."""
        return self.totals.uses < 2

    def take_over(self, signature: PodSignature, on_node: Answers) -> bool:
        """Be the plan of another signature from now on; False if it cannot.

        It can if the signatures differ only in requests, so that `on_node` is the same, and
        plugins that read pods skip neither or both. No reader may still use the plan.
        """
        if on_node is not self._on_node or not self._on_pods.take_over(signature):
            return False
        self.passing.forget()
        self.totals.forget()
        self.totals.uses = 0
        self._beside.clear()
        self._stacked = None
        return True

    def forget(self) -> None:
        """Free the memory of its own columns; attempts that still use it rebuild them."""
        self._on_pods.forget()
        self.passing.forget()
        self.totals.forget()
        self._stacked = None

    def beside_nominated(self, cluster: Cluster, priority: int) -> BesideNominated:
        """Return the rejections beside nominated pods, for pods of some priority."""
        beside = self._beside.get(priority)
        if beside is None:
            reject = partial(_rejections_of, self._on_node, self._on_pods, self._book)
            beside = self._beside[priority] = BesideNominated(cluster, priority, reject)
        return beside

    def stacked(self, requests: Requests) -> StackedTotals:
        """Return the totals with more pods on each row, which request what is given."""
        stacked = self._stacked
        if stacked is None or stacked.requests is not requests:
            stacked = self._stacked = StackedTotals(
                self._table,
                requests=requests,
                on_node=self._on_node.rejections,
                reject=self._on_pods.reject,
                reject_row=self._on_pods.reject_row,
                scores=self._summed,
                row_scorers=self._row_scorers(),
            )
        return stacked

    def _row_scorers(self) -> list[EvaluateRow] | None:
        """Return functions that score one row by its sums; None if a plugin has none."""
        found = [
            plugin.row_scorer(self.signature, self._table)
            for plugin, _, reads_pods in self._weighted
            if reads_pods and plugin.name in self.scores
        ]
        scorers = [each for each in found if each is not None]
        return scorers if len(scorers) == len(found) else None

    def _make_totals(self, scores: ScorePlugins, columns: Columns) -> Totals:
        summed = self._summed
        normalized: list[NormalizedScore] = []
        for plugin, weight, reads_pods in scores.weighted:
            if plugin.name not in self.scores:
                continue
            column, evaluate_row = self.scores[plugin.name]
            normalizer = scores.normalizers.get(plugin.name)
            proven = plugin.proven_range
            if normalizer is None:
                summed.append(ScoreColumn(column, evaluate_row, weight, reads_pods, proven))
            elif reads_pods or not is_by_min_max(normalizer):
                self.raw_scores.append(RawScore(plugin, weight, column))
            else:
                normalized.append(
                    NormalizedScore(
                        column,
                        self.passing,
                        weight=weight,
                        normalize=columns.normalizer(normalizer),
                        is_proven=proven,
                    )
                )
        return Totals(self._table, self.passing, scores=summed, normalized=normalized)

    def rejections(self) -> Int32Array:
        """Return, for each row, the number of the first row-local rejection; 0 for none."""
        on_node, on_pods = self._on_node.rejections.current(), self._on_pods.rejections.current()
        return _first(self._book, on_node, on_pods)

    def rejections_of(self, nodes: NodeRows) -> Int32Array:
        """Return the same for some rows, possibly hypothetical ones."""
        return _rejections_of(self._on_node, self._on_pods, self._book, nodes)

    def rejection_of(self, row: int) -> int:
        """Return the same for one row, in its current state."""
        on_node = self._on_node.rejections.current().item(row)
        return self._book.earlier(on_node, self._on_pods.reject_row(row))


def _rejections_of(
    on_node: Answers, on_pods: Answers, book: StatusBook, nodes: NodeRows
) -> Int32Array:
    # Rejections by filters that read only nodes do not depend on pods, and are cached.
    by_node = on_node.rejections.at(nodes.rows)
    if isinstance(nodes, SupposedRows) and len(nodes) == 1:
        # An array of one element costs as much as one of many.
        with nodes.supposed() as row:
            number = book.earlier(by_node.item(0), on_pods.reject_row(row))
        return np.array([number], dtype=np.int32)
    return _first(book, by_node, on_pods.reject(nodes))


def _first(book: StatusBook, on_node: Int32Array, on_pods: Int32Array) -> Int32Array:
    if not np.count_nonzero(on_node):
        return on_pods
    if not np.count_nonzero(on_pods):
        return on_node
    return book.first(on_node, on_pods)


class Plans:
    """The plans of one profile; the least recently used are dropped when memory runs short."""

    def __init__(
        self,
        plugins: ProfilePlugins,
        table: NodeTable,
        book: StatusBook,
        *,
        observer: NullObserver,
        limit_bytes: int = PLAN_BYTES,
    ) -> None:
        self._on_node = RowLocalPlugins(plugins, reads_pods=False)
        self._on_pods = RowLocalPlugins(plugins, reads_pods=True)
        self._scores = ScorePlugins(plugins)
        self._columns = Columns(table, book, observer)
        self._table = table
        self._book = book
        self._limit_bytes = limit_bytes
        #: least recently used first
        self._plans: OrderedDict[ref[PodSignature], SignaturePlan] = OrderedDict()
        #: signatures kept alive although their pods may be gone
        self._held: Recent[PodSignature, PodSignature] = Recent(PLANS_WITHOUT_PODS)
        #: the newest plan, and its key
        self._newest: SignaturePlan | None = None
        self._newest_key: ref[PodSignature] | None = None
        #: whether only one attempt has read the newest plan
        self._is_newest_free = False
        #: signature without requests → shared answers about nodes, while a plan uses them
        self._shared: WeakValueDictionary[bytes, Answers] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._plans)

    def plan(self, signature: PodSignature) -> SignaturePlan:
        """Return the plan for a signature."""
        plan = self._find(signature)
        if plan is None:
            self._make_room()
            plan = self._add(signature, self._build(signature, self._about_nodes(signature)))
        if plan is self._newest:
            self._is_newest_free = False
        return plan

    def for_attempt(self, signature: PodSignature) -> SignaturePlan:
        """Return the plan for a signature, until the next attempt begins.

        Many signatures belong to a single pod: a plan that only one attempt has used becomes that
        of the next signature which differs only in requests. That takes a third of the time.
        """
        plan = self._find(signature)
        if plan is None:
            on_node = self._about_nodes(signature)
            plan = self._take_over(signature, on_node)
            if plan is None:
                self._make_room()
                plan = self._build(signature, on_node)
            self._add(signature, plan)
            self._is_newest_free = True
        return plan

    def _find(self, signature: PodSignature) -> SignaturePlan | None:
        if self._held.get(signature) is None:
            self._held[signature] = signature
        key = ref(signature)
        plan = self._plans.get(key)
        if plan is not None:
            self._plans.move_to_end(key)
        return plan

    def _build(self, signature: PodSignature, on_node: Answers) -> SignaturePlan:
        # A copy: a plan that refers to the signature itself would keep it, and so itself, alive.
        like_it = signature.copy()
        return SignaturePlan(
            like_it,
            on_node=on_node,
            on_pods=Answers(like_it, self._on_pods, self._columns),
            scores=self._scores,
            columns=self._columns,
            book=self._book,
        )

    def _add(self, signature: PodSignature, plan: SignaturePlan) -> SignaturePlan:
        key = ref(signature, self._forget)
        self._plans[key] = plan
        self._newest, self._newest_key = plan, key
        return plan

    def _take_over(self, signature: PodSignature, on_node: Answers) -> SignaturePlan | None:
        """Return the newest plan, for this signature, if no reader uses it any more."""
        plan, key = self._newest, self._newest_key
        if plan is None or key is None or not self._is_newest_free or not plan.is_of_one_pod:
            return None
        if not plan.take_over(signature, on_node):
            return None
        self._plans.pop(key, None)
        return plan

    def shed(self) -> None:
        """Drop everything once the status book is too large.

        Called at the start of an attempt, when no status numbers are in use.
        """
        if self._book.is_full(self._table.size):
            self._book.clear()
            self.clear()

    def clear(self) -> None:
        """Drop all plans, and with them the status numbers in their columns."""
        self._held.clear()
        while self._plans:
            self._drop_oldest()
        for shared in list(self._shared.values()):
            shared.forget()

    def _about_nodes(self, signature: PodSignature) -> Answers:
        """Return the answers about node objects, shared by signatures that differ in requests."""
        spec, node_name, is_resize = signature.spec, signature.node_name, signature.is_resize
        reads_requests = self._on_node.read_requests
        if not reads_requests:
            spec = spec_for_nodes(spec)
        key = signature_key(spec, node_name, is_resize=is_resize)
        answers = self._shared.get(key)
        if answers is None:
            asked = signature.copy()
            if not reads_requests:
                asked = PodSignature(
                    spec,
                    node_name=node_name,
                    requests=Requests({}, (0, 0)),
                    scoring_requests={},
                    is_resize=is_resize,
                )
            answers = self._shared[key] = Answers(asked, self._on_node, self._columns)
        return answers

    def _make_room(self) -> None:
        # Many signatures belong to a single pod, whose totals are never read again.
        newest = self._newest
        if newest is not None and newest.is_of_one_pod:
            newest.forget()
        per_plan = PLAN_OVERHEAD_BYTES + self._table.size * ROW_BYTES
        while len(self._plans) > max(self._limit_bytes // per_plan, 1):
            self._drop_oldest()

    def _forget(self, key: ref[PodSignature]) -> None:
        """Drop the plan of a signature that no pod has any more."""
        dropped = self._plans.pop(key, None)
        if dropped is not None:
            dropped.forget()

    def _drop_oldest(self) -> None:
        _, dropped = self._plans.popitem(last=False)
        dropped.forget()
