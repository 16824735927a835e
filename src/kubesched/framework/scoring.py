"""Scores of nodes for a pod: PreScore, Score and Normalize of a profile, for many rows at once.

Row-local scores come from the plan's cached columns; cluster-wide plugins are called for the
feasible rows.
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
from kubesched.framework.domain_scores import DomainScores
from kubesched.framework.observing import NullObserver
from kubesched.framework.plan import SignaturePlan
from kubesched.framework.plugin import (
    MAX_NODE_SCORE,
    Normalize,
    Plugin,
    PreScore,
    RowScore,
    Score,
)
from kubesched.framework.profile import ProfilePlugins, of_kind
from kubesched.framework.skipped import SkippedPlugins
from kubesched.framework.status import SUCCESS, Code, Status, error

#: A plugin's scores of some nodes; None is 0 for all of them.
Scores = Int64Array | DomainScores | None


class PluginScores(Struct, frozen=True):
    """One plugin's scores of the feasible nodes."""

    plugin: str
    weight: int
    raw: Int64Array
    normalized: Int64Array


class Scoring:
    """The scores of one profile."""

    def __init__(self, plugins: ProfilePlugins, table: NodeTable, observer: NullObserver) -> None:
        self._table = table
        self._observer = observer
        self._pre_score_lap, self._score_lap = observer.lap("PreScore"), observer.lap("Score")
        self._normalize_lap = observer.lap("ScoreExtensionNormalize")
        self._skipped = SkippedPlugins()
        self._plugins = plugins.score
        self._pre_scores = plugins.pre_score
        # The types are checked once, not in every attempt.
        self._cluster_pre_scores = of_kind(plugins.pre_score, PreScore)
        self._asked_pre_scores = list(self._cluster_pre_scores.items())
        self._cluster_scores = of_kind((plugin for plugin, _ in plugins.score), Score)
        self._weighted_cluster_scores = [
            (plugin, weight) for plugin, weight in plugins.score if isinstance(plugin, Score)
        ]
        self._normalizers = of_kind((plugin for plugin, _ in plugins.score), Normalize)

    @property
    def cluster_wide(self) -> list[Plugin]:
        """The plugins whose PreScore and Score may read everything."""
        return [*self._cluster_pre_scores.values(), *self._cluster_scores.values()]

    def is_row_local(self, state: CycleState) -> bool:
        """Return whether only row-local scores count for a pod without volumes; after `prepare`."""
        return all(
            plugin.only_with_volumes
            or name in state.skip_score
            # Without PreScore, a plugin that has nothing to filter has nothing to score.
            or (name in state.skip_filter and name not in self._cluster_pre_scores)
            for name, plugin in self._cluster_scores.items()
        )

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
        """Return each plugin's scores, without plugins that skip; after `prepare`."""
        nothing = np.zeros(len(nodes), dtype=np.int64)
        found = []
        for plugin, weight in self._plugins:
            if plugin.name in state.skip_score:
                continue
            cluster_wide = self._cluster_scores.get(plugin.name)
            raw: Scores
            if cluster_wide is not None:
                raw = self._score(cluster_wide, state, pod, nodes)
            else:
                raw = plan.scores[plugin.name].column.current()[nodes.rows]
            normalized = self._normalized(plugin, raw)
            of_nodes = (
                nothing
                if each is None
                else each.of_nodes()
                if isinstance(each, DomainScores)
                else each
                for each in (raw, normalized)
            )
            found.append(PluginScores(plugin.name, weight, *of_nodes))
        return found

    def others(
        self, state: CycleState, pod: PodInfo, plan: SignaturePlan, nodes: NodeRows
    ) -> Int64Array | None:
        """Return the weighted sum of the scores outside of the plan's totals; None for 0.

        PreScore must have run.
        """
        total: Int64Array | None = None
        for plugin, weight in self._weighted_cluster_scores:
            if plugin.name not in state.skip_score:
                raw = self._score(plugin, state, pod, nodes)
                if raw is not None:
                    total = _added(total, self._normalized(plugin, raw), weight)
        for each in plan.raw_scores:
            raw = each.column.current()[nodes.rows]
            total = _added(total, self._normalized(each.plugin, raw), each.weight)
        return total

    def prepare(
        self, state: CycleState, pod: PodInfo, plan: SignaturePlan, nodes: NodeRows
    ) -> None:
        """Run PreScore; raise AttemptError if a plugin reports an error."""
        if plan.is_scorable:
            skipped: list[str] = []
            sampled = self._observer.sampled
            for name, plugin in self._asked_pre_scores:
                if sampled:
                    status = self._ask(plugin, state, pod, nodes)
                else:
                    status = plugin.pre_score(state, pod, nodes)
                if status is not SUCCESS and _is_skip(name, status):
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
        if not self._observer.sampled:
            return plugin.pre_score(state, pod, nodes)
        started = self._observer.now()
        status = plugin.pre_score(state, pod, nodes)
        self._pre_score_lap(plugin.name, status.code, started)
        return status

    def _score(self, plugin: Score, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Scores:
        observer = self._observer
        started = observer.now() if observer.sampled else 0.0
        raw = plugin.score(state, pod, nodes)
        if observer.sampled:
            self._score_lap(plugin.name, Code.SUCCESS, started)
        return raw

    def _normalized(self, plugin: RowScore | Score, raw: Scores) -> Scores:
        """Return scores to be weighted; raise AttemptError if one is out of range."""
        normalizer, normalized = self._normalizers.get(plugin.name), raw
        if normalizer is not None and raw is not None:
            observer, normalize = self._observer, normalizer.normalize
            started = observer.now() if observer.sampled else 0.0
            if isinstance(raw, DomainScores):
                normalized = raw.normalized(normalize)
            else:
                normalized = normalize(raw)
            if observer.sampled:
                self._normalize_lap(plugin.name, Code.SUCCESS, started)
        if normalized is not None and not plugin.proven_range:
            _check_range(plugin, _values(normalized))
        return normalized


def _is_skip(plugin: str, status: Status) -> bool:
    """Return whether a plugin has nothing to score; raise AttemptError if it reports an error."""
    if status.code is Code.SKIP:
        return True
    if not status.ok:
        text = f'running PreScore plugin "{plugin}": {status.message}'
        raise AttemptError(error(text).by(plugin))
    return False


def _values(scores: Int64Array | DomainScores) -> Int64Array:
    return scores.values if isinstance(scores, DomainScores) else scores


def _added(total: Int64Array | None, scores: Scores, weight: int) -> Int64Array | None:
    """Return a total with the weighted scores of one more plugin."""
    if scores is None:
        return total
    # By domain, there are fewer numbers to multiply.
    weighted = _values(scores) * weight
    if isinstance(scores, DomainScores) and scores.domains is not None:
        weighted = weighted.take(scores.domains)
    return weighted if total is None else total + weighted


def _check_range(plugin: RowScore | Score, scores: Int64Array) -> None:
    if len(scores) and (scores.min() < 0 or scores.max() > MAX_NODE_SCORE):
        wrong = scores.min() if scores.min() < 0 else scores.max()
        text = (
            f'applying score defaultWeights on Score plugins: plugin "{plugin.name}" '
            f"returns an invalid score {wrong}, "
            f"it should in the range of [0, {MAX_NODE_SCORE}] after normalizing"
        )
        raise AttemptError(error(text).by(plugin.name))
