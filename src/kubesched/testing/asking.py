"""Calls one plugin about a pod and some rows, uncached.

    PreFilter ──> Filter ──> why each node is rejected  ─┐
    PreScore ──> Score ──> Normalize ──> scores         ─┴──> PluginAnswer

Row-local plugins get the pod's signature, cluster-wide ones the pod: only this module distinguishes
the two forms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
from msgspec import Struct

from kubesched.cluster.arrays import IndexArray, Int64Array
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_signature import PodSignature
from kubesched.cluster.pod_volumes import NO_VOLUMES
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.detail import Detail
from kubesched.framework.domain_scores import DomainScores
from kubesched.framework.plugin import (
    Filter,
    Normalize,
    Plugin,
    PreFilter,
    PreFilterResult,
    PreScore,
    RowFilter,
    RowScore,
    Score,
    SignaturePreFilter,
    SignaturePreScore,
)
from kubesched.framework.scoring import Scores
from kubesched.framework.status import Code, Status

T = TypeVar("T")


class PluginAnswer(Struct, frozen=True, kw_only=True):
    """The answers of a plugin about a pod and some nodes, by node name."""

    pre_filter: PreFilterResult | None = None
    #: why a node rejects the pod, None if it does not; empty if the plugin does not filter
    rejections: Mapping[str, Status | None] = {}
    pre_score: Status | None = None
    #: before normalization; empty if the plugin does not score
    scores: Mapping[str, int] = {}
    normalized: Mapping[str, int] = {}


def rows_in_use(table: NodeTable) -> IndexArray:
    """Return the rows that have a node, in row order."""
    return np.flatnonzero(table.valid[: table.size])


class Asker:
    """Calls one plugin about pods."""

    def __init__(self, plugin: Plugin, table: NodeTable) -> None:
        self._plugin = plugin
        self._table = table

    def ask(self, pod: PodInfo, nodes: NodeRows | None = None) -> PluginAnswer:
        """Return the plugin's answers, about all nodes unless the caller passes rows."""
        nodes = NodeRows(self._table, rows_in_use(self._table)) if nodes is None else nodes
        state = CycleState()
        pre_filter, rejections = self._filter(state, pod, nodes)
        pre_score, scores = self._score(state, pod, nodes)
        normalized = scores
        if scores is not None and isinstance(self._plugin, Normalize):
            normalized = _normalized(self._plugin, scores)
        return PluginAnswer(
            pre_filter=pre_filter,
            rejections=self.named(nodes, rejections),
            pre_score=pre_score,
            scores=self.named(nodes, _listed(scores)),
            normalized=self.named(nodes, _listed(normalized)),
        )

    def details(self, pod: PodInfo) -> tuple[dict[int, Status], list[Detail]]:
        """Return the rejected rows, each with the reason, and the plugin's details of them."""
        state, nodes = CycleState(), NodeRows(self._table, rows_in_use(self._table))
        _, said = self._filter(state, pod, nodes)
        rejected = {
            row: status
            for row, status in zip(nodes.row_numbers().tolist(), said or (), strict=False)
            if status is not None and status.rejected
        }
        if not rejected:
            return {}, []
        rows = NodeRows(self._table, np.array([*rejected], dtype=np.intp))
        return rejected, list(self._plugin.details(state, pod, rows))

    def raw_scores(self, pod: PodInfo, nodes: NodeRows) -> Scores:
        """Return the plugin's raw scores; None if it has none."""
        return self._score(CycleState(), pod, nodes)[1]

    def is_asked_about(self, pod: PodInfo) -> bool:
        """Tell whether the runtime calls the plugin for a pod at all."""
        return not (self._plugin.only_with_volumes and pod.volumes is NO_VOLUMES)

    def signature_of(self, pod: PodInfo) -> PodSignature:
        """Return the signature that a row-local plugin gets for a pod."""
        return pod.signature.row_signature

    def named(self, nodes: NodeRows, values: Sequence[T] | None) -> dict[str, T]:
        """Return values of nodes by node name."""
        if values is None:
            return {}
        names = map(self._table.name_at, nodes.row_numbers().tolist())
        return dict(zip(names, values, strict=True))

    def _filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeRows
    ) -> tuple[PreFilterResult | None, list[Status | None] | None]:
        plugin, result = self._plugin, None
        if not self.is_asked_about(pod):
            return None, None
        if isinstance(plugin, SignaturePreFilter):
            result = plugin.pre_filter(self.signature_of(pod))
        elif isinstance(plugin, PreFilter):
            result = plugin.pre_filter(state, pod, NodeRows.all_of(self._table))
        if result is not None and not result.status.ok:
            return result, None
        if isinstance(plugin, RowFilter):
            verdict = plugin.filter(self.signature_of(pod), nodes)
        elif isinstance(plugin, Filter):
            verdict = plugin.filter(state, pod, nodes)
        else:
            return result, None
        return result, [verdict.status_of(element) for element in range(len(nodes))]

    def _score(
        self, state: CycleState, pod: PodInfo, nodes: NodeRows
    ) -> tuple[Status | None, Scores]:
        plugin, status = self._plugin, None
        if not self.is_asked_about(pod):
            return None, None
        if isinstance(plugin, SignaturePreScore):
            status = plugin.pre_score(self.signature_of(pod))
        elif isinstance(plugin, PreScore):
            status = plugin.pre_score(state, pod, nodes)
        if status is not None and status.code is not Code.SUCCESS:
            return status, None
        if isinstance(plugin, RowScore):
            return status, plugin.score(self.signature_of(pod), nodes)
        if isinstance(plugin, Score):
            return status, plugin.score(state, pod, nodes)
        return status, None


def _normalized(plugin: Normalize, scores: Int64Array | DomainScores) -> Scores:
    if isinstance(scores, DomainScores):
        return scores.normalized(plugin.normalize)
    return plugin.normalize(scores.copy())


def _listed(scores: Scores) -> list[int] | None:
    of_nodes = scores.of_nodes() if isinstance(scores, DomainScores) else scores
    return None if of_nodes is None else of_nodes.tolist()
