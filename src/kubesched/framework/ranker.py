"""Choosing by totals that are kept: the short way, for pods that some node can take as it is.

    plan's ranking ──> total of each row ──> without rows that cluster-wide filters reject
                                         ──> without rows whose room is promised to others
                                         ──> plus what cluster-wide scores add

It comes to the same node as filtering and scoring step by step, which is for all other pods: those
that are restricted to some nodes, or that fit nowhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from kubesched.cluster.arrays import BoolArray, Int64Array
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.best_rows import BestRows, best_of
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.observing import Unobserved
from kubesched.framework.plan import Plans, ShapePlan
from kubesched.framework.plugin import Filter, PreFilter
from kubesched.framework.profile import AskedAt, ProfilePlugins, of_kind
from kubesched.framework.ranking import NEVER, Ranking
from kubesched.framework.scoring import Scoring
from kubesched.framework.skipped import SkippedPlugins
from kubesched.framework.status import Code

#: Returns which of some rows have no room beside the pods nominated to them; None: an error.
Crowded: TypeAlias = Callable[[CycleState, PodInfo, BoolArray], BoolArray | None]

#: After a pod for which the ranking was no use, so many of its shape are evaluated step by step.
PAUSE = 16


class Ranked:
    """What there is to choose from."""

    __slots__ = ("_passing", "_ranking", "added", "feasible", "nodes")

    def __init__(self, ranking: Ranking, passing: BoolArray | None) -> None:
        self._ranking = ranking
        #: which rows can take the pod, None if they are all that the ranking lets pass
        self._passing = passing
        #: the same
        self.nodes = ranking.nodes if passing is None else NodeRows.where(ranking.table, passing)
        #: how many they are
        self.feasible = self.nodes.count
        #: what cluster-wide scores add for each of them, None for nothing
        self.added: Int64Array | None = None

    @property
    def totals(self) -> Int64Array:
        """How good each row is that can take the pod."""
        kept = self._ranking.totals[self.nodes.rows]
        return kept if self.added is None else kept + self.added

    def best(self) -> BestRows:
        """Return the rows with the highest total."""
        if self.added is not None:
            totals, size = self.totals, self.nodes.table.size
            if len(totals) == size:
                return best_of(totals)
            of_all = np.full(size, NEVER, dtype=np.int64)
            of_all[self.nodes.rows] = totals
            return best_of(of_all)
        best = self._ranking.best()
        if self._passing is None:
            return best
        return best.among(self._passing) or best_of(
            np.where(self._passing, self._ranking.totals, NEVER)
        )


class Ranker:
    """Totals of all rows for one pod after the other, in one profile."""

    def __init__(
        self,
        plugins: ProfilePlugins,
        cluster: Cluster,
        *,
        plans: Plans,
        scoring: Scoring,
        observer: Unobserved,
        crowded: Crowded,
    ) -> None:
        self._cluster = cluster
        self._table = cluster.table
        self._plans = plans
        self._scoring = scoring
        self._crowded = crowded
        self._observer = observer
        self._pre_filter_lap, self._filter_lap = observer.lap("PreFilter"), observer.lap("Filter")
        self._skipped = SkippedPlugins()
        self._pre_filters = AskedAt(
            of_kind(plugins.pre_filter, PreFilter).values(), plugins.only_with_volumes
        )
        self._filters = of_kind(plugins.filter, Filter)

    def rank(self, state: CycleState, pod: PodInfo) -> Ranked | None:
        """Return what rows can take the pod, and how good they are for it.

        Only where some row can, and where what is kept of the rows themselves is of use: None
        otherwise. What PreFilter plugins answered is then in the state, for the full evaluation.
        """
        self._plans.shed()
        plan = self._plans.plan(pod.shape.row_shape)
        ranking = plan.ranking
        if ranking is None or not plan.is_unrestricted:
            return None
        if plan.pause:
            plan.pause -= 1
            return None
        observer = self._observer
        started = observer.begin()
        everywhere = NodeRows.all_of(self._table)
        ranked = None
        if self._lets_all_be_ranked(state, pod, plan, everywhere):
            after_pre_filter = observer.now()
            if ranking.refresh():
                ranked = self._filter(state, pod, everywhere, ranking)
        if ranked is None or not ranked.feasible:
            plan.pause = PAUSE
            return None
        after_filter = observer.now()
        if ranked.feasible == 1:
            # There is nothing to choose.
            observer.filtered(state, len(self._table), (started, after_pre_filter, after_filter))
            return ranked
        self._scoring.prepare(state, pod, plan, ranked.nodes)
        after_pre_score = observer.now()
        ranked.added = self._scoring.cluster_wide(state, pod, ranked.nodes)
        times = started, after_pre_filter, after_filter, after_pre_score, observer.now()
        observer.ranked(state, len(self._table), ranked.feasible, times)
        return ranked

    def _lets_all_be_ranked(
        self, state: CycleState, pod: PodInfo, plan: ShapePlan, everywhere: NodeRows
    ) -> bool:
        """Run PreFilter of cluster-wide plugins; False if one rejects or restricts."""
        asked = self._pre_filters.about(pod)
        skipped = asked.idle.copy()
        timed = self._observer.sampled
        started = self._observer.now() if timed else 0.0
        for name, plugin in asked.plugins:
            result = state.pre_filtered[name] = plugin.pre_filter(state, pod, everywhere)
            if timed:
                started = self._pre_filter_lap(name, result.status.code, started)
            if result.status.code is Code.SKIP:
                skipped.append(name)
            elif not result.status.ok or result.node_names is not None:
                return False
        state.skip_filter = self._skipped.of(plan.skips, skipped)
        return True

    def _filter(
        self, state: CycleState, pod: PodInfo, everywhere: NodeRows, ranking: Ranking
    ) -> Ranked | None:
        """Leave rows out that cluster-wide filters reject, or that have no room beside others.

        None if one reports an error, or if totals are others for those rows alone that are left.
        """
        passing: BoolArray | None = None
        for name, plugin in self._filters.items():
            if name in state.skip_filter:
                continue
            started = self._observer.now() if self._observer.sampled else 0.0
            masks = plugin.turned_away(state, pod, everywhere)
            if masks is None:
                verdict = plugin.filter(state, pod, everywhere)
                if not all(status.rejected for status in verdict.statuses):
                    return None
                rejected = verdict.rejected()
                masks = () if rejected is None else (rejected,)
            if self._observer.sampled:
                self._filter_lap(name, Code.SUCCESS, started)
            for mask in masks:
                # Greater: it passed so far, and is not turned away.
                passing = np.greater(ranking.passing if passing is None else passing, mask)
        if len(self._cluster.nominator):
            left = ranking.passing if passing is None else passing
            crowded = self._crowded(state, pod, left)
            if crowded is None:
                return None
            if np.count_nonzero(crowded):
                passing = np.greater(left, crowded)
        if passing is not None and not ranking.holds_among(passing):
            return None
        return Ranked(ranking, passing)
