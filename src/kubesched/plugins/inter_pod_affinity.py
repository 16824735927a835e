"""InterPodAffinity: near to some pods, away from others.

Three rules filter, in this order: the pod's own affinity (some pod that matches *all* terms in each
term's domain), its own anti-affinity, and the anti-affinity of pods that are there already. The
first pod of a group that wants to be near itself is let in anywhere.

The raw score of a node sums, over all terms about pods in the node's domains, the weights of the
pod's own preferences, of the preferences of others about it, and a fixed weight for the required
affinity of others to it.

When to try again is told by `inter_pod_affinity_hints`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct

from kubesched.api.labels import Selector
from kubesched.cluster.affinity_terms import AffinityTerm, Role
from kubesched.cluster.arrays import BoolArray, Int32Array, Int64Array
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_counters import PodCounter, Selection
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.recent import Recent
from kubesched.cluster.row_counter import RowCounter
from kubesched.cluster.term_counters import TermCounter
from kubesched.config.args import InterPodAffinityArgs
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import (
    MAX_NODE_SCORE,
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
from kubesched.plugins.inter_pod_affinity_hints import AffinityHints
from kubesched.queue.hints import Registrations

NOT_NEAR = unresolvable("node(s) didn't match pod affinity rules")
NOT_AWAY = unschedulable("node(s) didn't match pod anti-affinity rules")
KEPT_AWAY = unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")


class RawScores(Struct, frozen=True):
    """The raw score of each feasible node."""

    scores: Int64Array
    #: the raw score of each domain, and the domain of each node, where one label decides
    by_domain: tuple[Int64Array, Int32Array] | None = None


class InterPodAffinity(PreFilter, Filter, PreScore, Score, Normalize):
    """Compares pods with pods, by domain."""

    name = "InterPodAffinity"
    proven_range = True

    def __init__(self, args: InterPodAffinityArgs, cluster: Cluster) -> None:
        self._hard_weight = args.hard_pod_affinity_weight
        self._ignore_others = args.ignore_preferred_terms_of_existing_pods
        self._table = cluster.table
        #: with the epoch of namespaces that they are true for
        self._selections: Recent[tuple[AffinityTerm, ...], tuple[int, Selection]] = Recent()
        self._hints = AffinityHints(cluster.table.term_counters.namespaces_of)

    @classmethod
    def create(cls, context: PluginContext) -> InterPodAffinity:
        """Make the plugin."""
        return cls(context.profile.args(cls.name, InterPodAffinityArgs), context.cluster)

    def events_to_register(self) -> Registrations:
        """Pods that come, go or change labels; nodes that come or change labels."""
        return self._hints.registrations()

    # --- filter -----------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> PreFilterResult:  # noqa: ARG002
        """Skip pods that no required term concerns."""
        if pod.terms.error:
            return PreFilterResult(unresolvable(f"parsing pod: {pod.terms.error}"))
        if pod.terms.required or pod.terms.required_anti:
            return PreFilterResult()
        concerned = any(
            np.count_nonzero(self._near(each, each.carried.term.topology_key))
            for each in self._anti_terms_about(pod)
        )
        return PreFilterResult() if concerned else NOTHING_TO_FILTER

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Verdict:  # noqa: ARG002
        """Apply the three rules."""
        return first_of(*self.rules(pod, nodes))

    def rules(self, pod: PodInfo, nodes: NodeRows) -> list[Verdict]:
        """Return what each rule says by itself, for those who want to know more than the first."""
        verdicts = []
        if pod.terms.required:
            verdicts.append(reject(~self._has_company(pod, nodes), NOT_NEAR))
        own = [
            self._near(self._counter((term,)), term.topology_key)[nodes.rows]
            for term in pod.terms.required_anti
        ]
        if own:
            verdicts.append(reject(_any_of(own), NOT_AWAY))
        others = [
            self._near(counter, counter.carried.term.topology_key)[nodes.rows]
            for counter in self._anti_terms_about(pod)
        ]
        if others:
            verdicts.append(reject(_any_of(others), KEPT_AWAY))
        return verdicts

    def _has_company(self, pod: PodInfo, nodes: NodeRows) -> BoolArray:
        """Return which rows have, in each term's domain, a pod that all terms are about."""
        counter = self._counter(pod.terms.required)
        keys = [term.topology_key for term in pod.terms.required]
        near = [self._near(counter, key) for key in keys]
        if counter.selection.matches(pod.labels) and not any(map(np.count_nonzero, near)):
            # The first of a group that wants to be near itself; it needs the labels all the same.
            return np.logical_and.reduce([self._ids(key, nodes) > 0 for key in keys])
        return _all_of([each[nodes.rows] for each in near])

    def _anti_terms_about(self, pod: PodInfo) -> list[TermCounter]:
        about = self._table.term_counters.about(pod.labels)
        return [each for each in about if each.carried.role is Role.REQUIRED_ANTI]

    # --- score ------------------------------------------------------------------------------

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Status:
        """Sum up all weights by domain; skip pods that no term concerns."""
        if pod.terms.error:
            return error(f"failed to parse pod: {pod.terms.error}")
        if self._ignore_others and not pod.terms.preferred:
            return SKIP
        #: topology key → weight of each domain
        weights: dict[str, Int64Array] = {}
        for key, of_domains in self._weighted_domains(pod):
            if of_domains[1:].any():
                weights[key] = weights[key] + of_domains if key in weights else of_domains
        if not weights:
            return SKIP
        for of_domains in weights.values():
            of_domains[0] = 0
        ids = [self._ids(key, nodes) for key in weights]
        scores = [each.take(of_nodes) for each, of_nodes in zip(weights.values(), ids, strict=True)]
        if len(weights) == 1:
            (of_domains,) = weights.values()
            state.write(self.name, RawScores(scores[0], (of_domains, ids[0])))
        else:
            state.write(self.name, RawScores(np.sum(scores, axis=0, dtype=np.int64)))
        return SUCCESS

    def _weighted_domains(self, pod: PodInfo) -> Iterable[tuple[str, Int64Array]]:
        """Return, for each term that matters, its key and its weight in each domain."""
        table = self._table
        for each in pod.terms.preferred:
            key = each.term.topology_key
            yield key, self._counter((each.term,)).by_domain(table.domains(key)) * each.weight
        for counter in table.term_counters.about(pod.labels):
            carried = counter.carried
            if carried.role is Role.REQUIRED_ANTI:
                continue
            weight = carried.weight if carried.role is Role.PREFERRED else self._hard_weight
            if weight:
                key = carried.term.topology_key
                yield key, counter.by_domain(table.domains(key)) * weight

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Int64Array:  # noqa: ARG002
        """Return what PreScore found out."""
        found = state.read(self.name)
        return found.scores if isinstance(found, RawScores) else np.zeros(len(nodes), np.int64)

    def normalize(self, state: CycleState, scores: Int64Array) -> Int64Array:
        """Stretch the scores over the whole range."""
        least, most = int(scores.min()), int(scores.max())
        if most == least:
            return np.zeros(len(scores), dtype=np.int64)
        found = state.read(self.name)
        if isinstance(found, RawScores) and found.by_domain is not None:
            # There are far fewer domains than nodes, as a rule.
            of_domains, domains = found.by_domain
            return _stretched(of_domains, least, most).take(domains)
        return _stretched(scores, least, most)

    # --- both -------------------------------------------------------------------------------

    def _counter(self, terms: tuple[AffinityTerm, ...]) -> PodCounter:
        """Return the counter of existing pods that all of the pod's own terms are about."""
        epoch = self._table.term_counters.epoch
        known = self._selections.get(terms)
        if known is None or known[0] != epoch:
            known = self._selections[terms] = epoch, self._selection_of_all(terms)
        return self._table.pod_counter(known[1])

    def _selection_of_all(self, terms: Sequence[AffinityTerm]) -> Selection:
        if any(each.selector.nothing for each in terms):
            return Selection(Selector(nothing=True), None, with_terminating=True)
        selector = Selector.of(
            requirement for each in terms for requirement in each.selector.requirements
        )
        namespaces = map(self._table.term_counters.namespaces_of, terms)
        limited = [each for each in namespaces if each is not None]
        common = frozenset.intersection(*limited) if limited else None
        return Selection(selector, common, with_terminating=True)

    def _near(self, counter: RowCounter, key: str) -> BoolArray:
        """Return which rows of the table are in a domain that has a counted pod."""
        return counter.hit(self._table.domains(key))

    def _ids(self, key: str, nodes: NodeRows) -> Int32Array:
        """Return the domain of each row, 0 for none."""
        return self._table.label_column(key).ids[nodes.rows]


def _stretched(scores: Int64Array, least: int, most: int) -> Int64Array:
    return (MAX_NODE_SCORE * ((scores - least) / (most - least))).astype(np.int64)


def _any_of(masks: Sequence[BoolArray]) -> BoolArray:
    """Return a mask of its own: those given follow the pods."""
    return masks[0].copy() if len(masks) == 1 else np.logical_or.reduce(masks)


def _all_of(masks: Sequence[BoolArray]) -> BoolArray:
    return masks[0] if len(masks) == 1 else np.logical_and.reduce(masks)
