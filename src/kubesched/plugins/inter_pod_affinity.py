"""InterPodAffinity: affinity and anti-affinity between pods, by topology domain.

Three rules filter, in this order: the pod's own affinity (a pod that matches *all* terms in each
term's domain), its own anti-affinity, and the anti-affinity of existing pods. The first pod of a
set with affinity to itself may be placed anywhere.

The raw score of a node sums, over all terms that select pods in the node's domains, the weights of
the pod's own preferences, of other pods' preferences that select it, and a fixed weight for other
pods' required affinity that selects it.

`inter_pod_affinity_hints` has the queueing hints, `inter_pod_affinity_details` the pods that
explanations name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from kubesched.cluster.arrays import BoolArray, Int64Array
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.domains import Domains
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.config.args import InterPodAffinityArgs
from kubesched.framework.count_bounds import UNLIMITED, CountBounds
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.detail import Detail
from kubesched.framework.domain_scores import DomainScores
from kubesched.framework.plugin import (
    MAX_NODE_SCORE,
    NOTHING_AGAINST,
    NOTHING_TO_FILTER,
    Filter,
    Normalize,
    PreFilter,
    PreFilterResult,
    PreScore,
    Score,
)
from kubesched.framework.registry import PluginContext
from kubesched.framework.status import SKIP, SUCCESS, Status, error, unresolvable, unschedulable
from kubesched.framework.verdict import Verdict, first_of, reject
from kubesched.plugins.inter_pod_affinity_details import AffinityDetails, AffinityReasons
from kubesched.plugins.inter_pod_affinity_hints import AffinityHints
from kubesched.plugins.pod_relations import Neighbours, PodRelations, Relations
from kubesched.queue.hints import Registrations

NOT_NEAR = unresolvable("node(s) didn't match pod affinity rules")
NOT_AWAY = unschedulable("node(s) didn't match pod anti-affinity rules")
KEPT_AWAY = unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")
_REASONS = AffinityReasons(
    near=NOT_NEAR.message, away=NOT_AWAY.message, kept_away=KEPT_AWAY.message
)


class Weights(NamedTuple):
    """Weights by the domains of a label."""

    domains: Domains
    #: of each domain
    weights: Int64Array

    def of(self, nodes: NodeRows) -> Int64Array:
        """Return the weight of each node."""
        return self.weights.take(self.domains.ids[nodes.rows])


class InterPodAffinity(PreFilter, Filter, PreScore, Score, Normalize):
    """Compares pods with pods, by domain."""

    name = "InterPodAffinity"
    bounds_counts = True
    repeats_skip = True
    proven_range = True
    skips_resizes = True

    def __init__(self, args: InterPodAffinityArgs, cluster: Cluster) -> None:
        self._ignore_others = args.ignore_preferred_terms_of_existing_pods
        self._relations = PodRelations(cluster.table, hard_weight=args.hard_pod_affinity_weight)
        self._nominator = cluster.nominator
        self._hints = AffinityHints(cluster.table.term_counters.namespaces_of)

    @classmethod
    def create(cls, context: PluginContext) -> InterPodAffinity:
        """Create the plugin."""
        return cls(context.profile.args(cls.name, InterPodAffinityArgs), context.cluster)

    def events_to_register(self) -> Registrations:
        """Added, deleted or relabelled pods; added or relabelled nodes."""
        return self._hints.registrations()

    # --- filter -----------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> PreFilterResult:  # noqa: ARG002
        """Skip pods that no required term concerns."""
        if pod.terms.error:
            return PreFilterResult(unresolvable(f"parsing pod: {pod.terms.error}"))
        if pod.terms.required or pod.terms.required_anti:
            return NOTHING_AGAINST
        avoiding = self._relations.in_attempt(state, pod).avoiding
        concerned = any(np.count_nonzero(each.near()) for each in avoiding)
        return NOTHING_AGAINST if concerned else NOTHING_TO_FILTER

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Verdict:
        """Apply the three rules."""
        return first_of(*_rules(self._relations.in_attempt(state, pod), pod, nodes))

    def count_bounds(
        self, state: CycleState, pod: PodInfo, nodes: NodeRows
    ) -> Sequence[CountBounds]:
        """Return the three rules as bounds, and the third one for pods that are nominated."""
        relations, table = self._relations.in_attempt(state, pod), nodes.table
        found = []
        if relations.company:
            found.append(_enough_company(relations, pod, nodes))
        found += [_none_near(each, nodes, NOT_AWAY) for each in relations.avoided]
        found += [_none_near(each, nodes, KEPT_AWAY) for each in relations.avoiding]
        nominated = table.term_counters.of_nominated(pod.labels, self._nominator.anti_terms())
        for each in nominated:
            domains = table.domains(each.carried.term.topology_key)
            found.append(_none_near(Neighbours(each, domains), nodes, KEPT_AWAY))
        return found

    def rules(self, pod: PodInfo, nodes: NodeRows) -> list[Verdict]:
        """Return the result of each rule, for explanations."""
        return _rules(self._relations.of(pod), pod, nodes)

    def details(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Iterable[Detail]:
        """Name the pods behind each of the rules."""
        if pod.terms.error:
            return ()
        return AffinityDetails(pod, self._relations.in_attempt(state, pod), nodes, _REASONS)

    # --- score ------------------------------------------------------------------------------

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Status:  # noqa: ARG002
        """Sum all weights by domain; skip pods that no term concerns."""
        if pod.terms.error:
            return error(f"failed to parse pod: {pod.terms.error}")
        if self._ignore_others and not pod.terms.preferred:
            return SKIP
        found = [
            Weights(attraction.domains, weights)
            for attraction in self._relations.in_attempt(state, pod).attractions
            if (weights := attraction.by_domain()) is not None
        ]
        if not found:
            return SKIP
        state.write(self.name, found)
        return SUCCESS

    def score(
        self,
        state: CycleState,
        pod: PodInfo,  # noqa: ARG002
        nodes: NodeRows,
    ) -> Int64Array | DomainScores:
        """Return the sums of PreScore."""
        found: list[Weights] = state.read(self.name)
        if len(found) == 1:
            [(domains, weights)] = found
            return DomainScores(weights, domains.ids[nodes.rows], domains.with_rows(nodes))
        scores: Int64Array = np.sum([each.of(nodes) for each in found], axis=0, dtype=np.int64)
        return scores

    def normalize(self, scores: Int64Array) -> Int64Array | None:
        """Scale the scores to the whole range."""
        least, most = int(np.minimum.reduce(scores)), int(np.maximum.reduce(scores))
        if most == least:
            return None
        stretched: Int64Array = (MAX_NODE_SCORE * ((scores - least) / (most - least))).astype(
            np.int64
        )
        return stretched


def _rules(relations: Relations, pod: PodInfo, nodes: NodeRows) -> list[Verdict]:
    """Return the result of each of the three rules, in their order."""
    verdicts = []
    if relations.company:
        verdicts.append(reject(_lack_company(relations, pod)[nodes.rows], NOT_NEAR))
    if relations.avoided:
        verdicts.append(reject(_near_any(relations.avoided, nodes), NOT_AWAY))
    if relations.avoiding:
        verdicts.append(reject(_near_any(relations.avoiding, nodes), KEPT_AWAY))
    return verdicts


def _lack_company(relations: Relations, pod: PodInfo) -> BoolArray:
    """Return which rows lack, in some term's domain, a pod that matches all terms."""
    near = [each.near() for each in relations.company]
    if not any(map(np.count_nonzero, near)) and relations.are_own_company(pod.labels):
        # The first pod of a set with affinity to itself; its node still needs the labels.
        near = [each.domains.ids > 0 for each in relations.company]
    return ~(near[0] if len(near) == 1 else np.logical_and.reduce(near))


def _enough_company(relations: Relations, pod: PodInfo, nodes: NodeRows) -> CountBounds:
    """Return how many pods that match all terms each row needs itself."""
    # Which pods match is the same for all terms; in which domain they count is not.
    counter = relations.company[0].counter
    own = counter.counts(nodes.table.size)[nodes.rows]
    lacks_label, lacks_pods, is_first = nodes.none(), nodes.none(), ~nodes.none()
    for _, domains in relations.company:
        counts = counter.by_domain(domains)
        of_nodes = domains.ids[nodes.rows]
        lacks_label |= of_nodes == 0
        lacks_pods |= counts.take(of_nodes) == own
        is_first &= int(counts.sum()) == own
    may_be_first = relations.are_own_company(pod.labels)
    if may_be_first:
        lacks_pods &= ~is_first
    least = np.where(lacks_label, UNLIMITED, lacks_pods)
    most = np.full(len(nodes), UNLIMITED)
    # A pod that is the first of its kind goes anywhere; the second one has to be near it.
    return CountBounds(counter, most, NOT_NEAR, least, more_is_fine=not may_be_first)


def _none_near(neighbours: Neighbours, nodes: NodeRows, status: Status) -> CountBounds:
    """Return that each row, and no other in its domain, may have none of some pods."""
    counter, domains = neighbours
    of_nodes = domains.ids[nodes.rows]
    counts = counter.by_domain(domains).take(of_nodes)
    elsewhere = counts > counter.counts(nodes.table.size)[nodes.rows]
    most = np.where(of_nodes == 0, UNLIMITED, np.where(elsewhere, -1, 0))
    return CountBounds(counter, most, status)


def _near_any(neighbours: Sequence[Neighbours], nodes: NodeRows) -> BoolArray:
    """Return which rows have any of some pods in their domain, as a copy."""
    if len(neighbours) == 1:
        return neighbours[0].near()[nodes.rows].copy()
    return np.logical_or.reduce([each.near()[nodes.rows] for each in neighbours])
