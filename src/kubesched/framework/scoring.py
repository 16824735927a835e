"""How good nodes are for a pod: PreScore, Score and Normalize of a profile, for many rows at once.

Row-local plugins answer from the plan's cached columns; cluster-wide ones are asked for the rows
that are feasible.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from kubesched.cluster.arrays import Int64Array
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.cycle_state import NO_PLUGINS, CycleState
from kubesched.framework.observing import Unobserved
from kubesched.framework.plan import SignaturePlan
from kubesched.framework.plugin import MAX_NODE_SCORE, Normalize, PreScore, RowScore, Score
from kubesched.framework.profile import ProfilePlugins, of_kind
from kubesched.framework.skipped import SkippedPlugins
from kubesched.framework.status import Code, Status, error


class PluginScores(Struct, frozen=True):
    """One plugin's scores of the feasible nodes."""

    plugin: str
    weight: int
    raw: Int64Array
    normalized: Int64Array


class Scoring:
    """The scores of one profile."""

    def __init__(self, plugins: ProfilePlugins, table: NodeTable, observer: Unobserved) -> None:
        self._table = table
        self._observer = observer
        self._pre_score_lap, self._score_lap = observer.lap("PreScore"), observer.lap("Score")
        self._normalize_lap = observer.lap("ScoreExtensionNormalize")
        self._skipped = SkippedPlugins()
        self._plugins = plugins.score
        self._pre_scores = plugins.pre_score
        # Which kind a plugin is, is asked once: the cycle has better things to do.
        self._cluster_pre_scores = of_kind(plugins.pre_score, PreScore)
        self._asked_pre_scores = list(self._cluster_pre_scores.items())
        self._cluster_scores = of_kind((plugin for plugin, _ in plugins.score), Score)
        #: with the weight of each, and whether it can tell at once what is to be added
        self._weighted_cluster_scores = [
            (plugin.name, plugin, weight, type(plugin).weighted is not Score.weighted)
            for plugin, weight in plugins.score
            if isinstance(plugin, Score)
        ]
        self._normalizers = of_kind((plugin for plugin, _ in plugins.score), Normalize)

    def total(
        self, state: CycleState, pod: PodInfo, plan: SignaturePlan, nodes: NodeRows
    ) -> Int64Array:
        """Return the weighted sum of all scores for each of the feasible nodes; after `prepare`."""
        total = np.zeros(len(nodes), dtype=np.int64)
        for each in self.by_plugin(state, pod, plan, nodes):
            total += each.normalized * each.weight
        return total

    def by_plugin(
        self, state: CycleState, pod: PodInfo, plan: SignaturePlan, nodes: NodeRows
    ) -> list[PluginScores]:
        """Return each plugin's scores; those that skip are left out; after `prepare`."""
        nothing = np.zeros(len(nodes), dtype=np.int64)
        found = []
        for plugin, weight in self._plugins:
            if plugin.name in state.skip_score:
                continue
            cluster_wide = self._cluster_scores.get(plugin.name)
            if cluster_wide is not None:
                raw = self._score(cluster_wide, state, pod, nodes)
            else:
                raw = plan.scores[plugin.name].column.current()[nodes.rows]
            normalized = None if raw is None else self._normal(plugin, state, raw)
            found.append(
                PluginScores(
                    plugin.name,
                    weight,
                    nothing if raw is None else raw,
                    nothing if normalized is None else normalized,
                )
            )
        return found

    def others(
        self, state: CycleState, pod: PodInfo, plan: SignaturePlan, nodes: NodeRows
    ) -> Int64Array | None:
        """Return the weighted sum of scores that are not in the plan's totals; None for none.

        PreScore must have been run.
        """
        total: Int64Array | None = None
        sampled = self._observer.sampled
        for name, plugin, weight, at_once in self._weighted_cluster_scores:
            if name in state.skip_score:
                continue
            if at_once and not sampled:
                weighted = plugin.weighted(state, pod, nodes, weight)
                if weighted is not None and not plugin.proven_range:
                    _check_range(plugin, weighted, weight)
            else:
                raw = self._score(plugin, state, pod, nodes)
                weighted = self._weighted(plugin, state, raw, weight)
            if weighted is not None:
                total = weighted if total is None else total + weighted
        for each in plan.raw_scores:
            raw = each.column.current()[nodes.rows]
            weighted = self._weighted(each.plugin, state, raw, each.weight)
            if weighted is not None:
                total = weighted if total is None else total + weighted
        return total

    def _weighted(
        self, plugin: RowScore | Score, state: CycleState, raw: Int64Array | None, weight: int
    ) -> Int64Array | None:
        normalized = None if raw is None else self._normal(plugin, state, raw)
        return None if normalized is None else normalized * weight

    def prepare(
        self, state: CycleState, pod: PodInfo, plan: SignaturePlan, nodes: NodeRows
    ) -> None:
        """Run PreScore; raise AttemptError if a plugin reports an error."""
        if plan.is_scorable:
            skipped: list[str] = []
            for name, plugin in self._asked_pre_scores:
                if _is_skip(name, self._ask(plugin, state, pod, nodes)):
                    skipped.append(name)
            state.skip_score = self._skipped.of(plan.score_skips, skipped)
            return
        state.skip_score = NO_PLUGINS
        for each in self._pre_scores:
            cluster_wide = self._cluster_pre_scores.get(each.name)
            if cluster_wide is None:
                status = plan.pre_score[each.name]
            else:
                status = self._ask(cluster_wide, state, pod, nodes)
            if _is_skip(each.name, status):
                state.skip_score |= {each.name}

    def _ask(self, plugin: PreScore, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Status:
        observer = self._observer
        started = observer.now() if observer.sampled else 0.0
        status = plugin.pre_score(state, pod, nodes)
        if observer.sampled:
            self._pre_score_lap(plugin.name, status.code, started)
        return status

    def _score(
        self, plugin: Score, state: CycleState, pod: PodInfo, nodes: NodeRows
    ) -> Int64Array | None:
        observer = self._observer
        started = observer.now() if observer.sampled else 0.0
        raw = plugin.score(state, pod, nodes)
        if observer.sampled:
            self._score_lap(plugin.name, Code.SUCCESS, started)
        return raw

    def _normal(
        self, plugin: RowScore | Score, state: CycleState, raw: Int64Array
    ) -> Int64Array | None:
        normalizer = self._normalizers.get(plugin.name)
        normalized: Int64Array | None = raw
        if normalizer is not None:
            observer = self._observer
            started = observer.now() if observer.sampled else 0.0
            normalized = normalizer.normalize(state, raw)
            if observer.sampled:
                self._normalize_lap(plugin.name, Code.SUCCESS, started)
        if normalized is not None and not plugin.proven_range:
            _check_range(plugin, normalized)
        return normalized


def _is_skip(plugin: str, status: Status) -> bool:
    """Tell whether a plugin has nothing to score; raise AttemptError if it reports an error."""
    if status.code is Code.SKIP:
        return True
    if not status.ok:
        text = f'running PreScore plugin "{plugin}": {status.message}'
        raise AttemptError(error(text).by(plugin))
    return False


def _check_range(plugin: RowScore | Score, scores: Int64Array, weight: int = 1) -> None:
    if len(scores) and (scores.min() < 0 or scores.max() > MAX_NODE_SCORE * weight):
        wrong = (scores.min() if scores.min() < 0 else scores.max()) // weight
        text = (
            f'applying score defaultWeights on Score plugins: plugin "{plugin.name}" '
            f"returns an invalid score {wrong}, "
            f"it should in the range of [0, {MAX_NODE_SCORE}] after normalizing"
        )
        raise AttemptError(error(text).by(plugin.name))
