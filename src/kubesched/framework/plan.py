"""What a profile has to do for pods of one shape, and what it already knows about them.

    row shape ──without requests──> Answers of plugins that look at nodes alone ──┬──> ShapePlan
        └─────────────────────────> Answers of those that look at pods, too ──────┘

A plan is made when a shape is first seen by a profile, and goes with the last pod of the shape.
What it knows of nodes by themselves it has in common with all plans whose shapes are the same but
for what they request: sizes differ from pod to pod more than anything else does.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from weakref import WeakValueDictionary, ref

import numpy as np

from kubesched.cluster.arrays import Int32Array, Int64Array
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.recent import Recent
from kubesched.cluster.resources import Requests
from kubesched.cluster.shape import Shape, shape_key, spec_for_nodes
from kubesched.framework.answers import Answers, Columns, RowLocalPlugins
from kubesched.framework.cached_column import CachedColumn
from kubesched.framework.compared_score import ComparedScore
from kubesched.framework.crowded import CrowdedRows
from kubesched.framework.observing import Unobserved
from kubesched.framework.plugin import Normalize, RowScore, is_by_extremes
from kubesched.framework.profile import ProfilePlugins, of_kind
from kubesched.framework.ranking import Ranking, ScoreColumn
from kubesched.framework.status_book import StatusBook

#: How much memory the plans of one profile may take.
PLAN_BYTES = 256 << 20
#: What a plan takes: its objects, and a few columns.
PLAN_OVERHEAD_BYTES = 12 << 10
ROW_BYTES = 64
#: So many plans outlive their pods: often the next pod like the one that went is about to come.
PLANS_WITHOUT_PODS = 64


class ScorePlugins:
    """The row-local scores of a profile, and how they are weighted."""

    def __init__(self, plugins: ProfilePlugins) -> None:
        self.weighted = [
            (plugin, weight) for plugin, weight in plugins.score if isinstance(plugin, RowScore)
        ]
        self.by_name = {plugin.name: plugin for plugin, _ in self.weighted}
        self.normalizers = of_kind(self.by_name.values(), Normalize)


class ShapePlan:
    """One profile's knowledge of one shape."""

    def __init__(
        self,
        shape: Shape,
        *,
        on_node: Answers,
        on_pods: Answers,
        scores: ScorePlugins,
        columns: Columns,
        book: StatusBook,
    ) -> None:
        self.shape = shape
        self._table = columns.table
        self._book = book
        self._on_node = on_node
        self._on_pods = on_pods
        self._score_plugins: Mapping[str, RowScore] = scores.by_name
        #: plugin → what PreFilter answered
        self.pre_filter = on_node.pre_filter | on_pods.pre_filter
        self.pre_score = on_node.pre_score | on_pods.pre_score
        #: plugin → its scores
        self._scores: dict[str, CachedColumn[np.int64]] = on_node.scores | on_pods.scores

        #: plugins of PreFilter that have nothing to do for the shape
        self.skips = on_node.filter_skips | on_pods.filter_skips
        #: whether PreFilter of row-local plugins neither rejects nor restricts
        self.is_unrestricted = on_node.is_unrestricted and on_pods.is_unrestricted
        #: plugins of PreScore that have nothing to do for the shape
        self.score_skips = on_node.score_skips | on_pods.score_skips
        #: whether PreScore of row-local plugins has nothing to complain about
        self.is_scorable = on_node.is_scorable and on_pods.is_scorable
        self.ranking = self._make_ranking(scores, columns)
        #: how many pods to wait with the next try to use the ranking
        self.pause = 0
        #: priority → rows where there is no room beside nominated pods
        self._crowded: Recent[int, CrowdedRows] = Recent(limit=8)

    @property
    def is_of_one_pod(self) -> bool:
        """Whether no second pod came so far."""
        return self.ranking is not None and self.ranking.uses < 2

    def release(self) -> None:
        """Free the memory of its own columns, whoever still knows it: they may be filled anew."""
        self._on_pods.release()
        if self.ranking is not None:
            self.ranking.release()

    def crowded(self, cluster: Cluster, priority: int) -> CrowdedRows:
        """Return where pods of some priority have to leave room to others."""
        crowded = self._crowded.get(priority)
        if crowded is None:
            crowded = self._crowded[priority] = CrowdedRows(cluster, priority)
        return crowded

    def _make_ranking(self, scores: ScorePlugins, columns: Columns) -> Ranking | None:
        """Return the ranking, None if a normalized score may depend on the pods of a row."""
        summed: list[ScoreColumn] = []
        compared: list[ComparedScore] = []
        for plugin, weight in scores.weighted:
            column = self._scores.get(plugin.name)
            if column is None:
                continue
            normalizer = scores.normalizers.get(plugin.name)
            if normalizer is None:
                summed.append(ScoreColumn(plugin, weight, column))
            elif plugin.reads_pods:
                return None
            else:
                compared.append(
                    ComparedScore(
                        plugin,
                        column,
                        shape=self.shape,
                        table=self._table,
                        weight=weight,
                        normalize=columns.normalizer(normalizer),
                        by_extremes=is_by_extremes(normalizer),
                    )
                )
        return Ranking(
            self.shape,
            self._table,
            node_filters=self._on_node.rejections,
            pod_filters=self._on_pods.rejections,
            reject_row=self._on_pods.rejection_of,
            summed=summed,
            compared=compared,
        )

    def rejections(self) -> Int32Array:
        """Return, for each row, the number of the first row-local rejection; 0 for none."""
        on_node, on_pods = self._on_node.rejections.current(), self._on_pods.rejections.current()
        if not on_node.any():
            return on_pods
        if not on_pods.any():
            return on_node
        return self._book.first(on_node, on_pods)

    def node_rejections(self) -> Int32Array:
        """Return the same as far as it does not depend on the pods of a row."""
        return self._on_node.rejections.current()

    def feasible(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Return which rows pass all row-local filters."""
        on_node, on_pods = self._on_node.rejections.current(), self._on_pods.rejections.current()
        passing: np.ndarray[tuple[int], np.dtype[np.bool_]] = (on_node | on_pods) == 0
        passing &= self._table.valid[: self._table.size]
        return passing

    def rejection_of(self, row: int) -> int:
        """Return the number of a row's first rejection with the pods it has now, 0 for none."""
        on_node = self._on_node.rejections.current().item(row)
        return self._book.earlier(on_node, self._on_pods.rejection_of(row))

    def scores(self, plugin: str) -> Int64Array | None:
        """Return a row-local plugin's score of each row; None if it skips this shape."""
        column = self._scores.get(plugin)
        if column is None:
            return None
        return column.current(self._score_plugins[plugin].epoch(self.shape, self._table))


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
        self._on_node = RowLocalPlugins(plugins, reads_pods=False)
        self._on_pods = RowLocalPlugins(plugins, reads_pods=True)
        self._scores = ScorePlugins(plugins)
        self._columns = Columns(table, book, observer)
        self._table = table
        self._book = book
        self._limit_bytes = limit_bytes
        #: the longest unused first
        self._plans: OrderedDict[ref[Shape], ShapePlan] = OrderedDict()
        #: shapes that stay although their pods may be gone
        self._held: Recent[Shape, Shape] = Recent(PLANS_WITHOUT_PODS)
        #: the one that was made last, if it is still there
        self._newest: Callable[[], ShapePlan | None] = lambda: None
        #: what is asked of nodes by themselves → what is known of them, as long as a plan needs it
        self._shared: WeakValueDictionary[bytes, Answers] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._plans)

    def plan(self, shape: Shape) -> ShapePlan:
        """Return the plan for a shape."""
        key = ref(shape)
        plan = self._plans.get(key)
        if self._held.get(shape) is None:
            self._held[shape] = shape
        if plan is None:
            self._make_room()
            # Not of the shape itself: a plan that refers to it would keep it, and so itself.
            like_it = shape.copy()
            plan = self._plans[ref(shape, self._forget)] = ShapePlan(
                like_it,
                on_node=self._about_nodes(like_it),
                on_pods=Answers(like_it, self._on_pods, self._columns),
                scores=self._scores,
                columns=self._columns,
                book=self._book,
            )
            self._newest = ref(plan)
        else:
            self._plans.move_to_end(key)
        return plan

    def shed(self) -> None:
        """Forget what was said about other pods once it has become too much.

        For the beginning of an attempt, when nobody keeps numbers of the book.
        """
        if self._book.is_full(self._table.size):
            self._book.clear()
            self.clear()

    def clear(self) -> None:
        """Give all plans up, and with them the numbers of the book that their columns hold."""
        self._held.clear()
        while self._plans:
            self._drop_oldest()
        for shared in list(self._shared.values()):
            shared.release()

    def _about_nodes(self, shape: Shape) -> Answers:
        """Return what is known of nodes by themselves, for all shapes that ask the same of them."""
        asked = shape
        if not self._on_node.read_requests:
            asked = Shape(
                spec_for_nodes(shape.spec),
                node_name=shape.node_name,
                requests=Requests({}, (0, 0)),
                scoring_requests={},
            )
        key = shape_key(asked.spec, asked.node_name)
        answers = self._shared.get(key)
        if answers is None:
            answers = self._shared[key] = Answers(asked, self._on_node, self._columns)
        return answers

    def _make_room(self) -> None:
        # Many a shape is of one pod only, and then its totals are of no use to anybody.
        newest = self._newest()
        if newest is not None and newest.is_of_one_pod:
            newest.release()
        per_plan = PLAN_OVERHEAD_BYTES + self._table.size * ROW_BYTES
        while len(self._plans) > max(self._limit_bytes // per_plan, 1):
            self._drop_oldest()

    def _forget(self, key: ref[Shape]) -> None:
        """Drop the plan of a shape that no pod has any more."""
        dropped = self._plans.pop(key, None)
        if dropped is not None:
            dropped.release()

    def _drop_oldest(self) -> None:
        _, dropped = self._plans.popitem(last=False)
        dropped.release()
