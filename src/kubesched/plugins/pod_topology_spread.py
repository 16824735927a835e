"""PodTopologySpread: spreads matching pods over the domains of a label, such as zones or hosts.

A *domain* is the set of nodes with the same value of the constraint's label. For a hard constraint,
with the counts of the domains that are eligible for the pod:

    count of the node's domain + 1 if the pod itself matches - smallest count  <=  maxSkew

For soft constraints, fewer pods in the node's domain are better; a constraint with many domains
weighs more, because one pod makes more of a difference there:

    raw = Σ count · ln(domains + 2) + maxSkew - 1,  score = 100 · (max + min - raw) / max

`pod_topology_spread_hints` has the queueing hints, `pod_topology_spread_details` the counts that
explanations give.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from kubesched.api import names
from kubesched.api.core import TopologySpreadConstraint
from kubesched.api.labels import Selector
from kubesched.cluster.arrays import BoolArray, IndexArray, Int32Array, Int64Array
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.domains import Domains
from kubesched.cluster.label_sets import LabelSet
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_counters import PodCounter
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_signature import PodSignature
from kubesched.cluster.recent import Recent
from kubesched.config.args import SYSTEM_CONSTRAINTS, SYSTEM_DEFAULTING, PodTopologySpreadArgs
from kubesched.errors import SelectorError
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
from kubesched.plugins.eligibility import Eligibility
from kubesched.plugins.pod_topology_spread_details import uneven_domains, unlabelled
from kubesched.plugins.pod_topology_spread_hints import SpreadHints
from kubesched.plugins.spread_constraints import (
    DO_NOT_SCHEDULE,
    SCHEDULE_ANYWAY,
    SpreadConstraint,
    compile_constraints,
    keys_read,
)
from kubesched.queue.hints import Registrations

TOO_UNEVEN = unschedulable("node(s) didn't match pod topology spread constraints")
NO_DOMAIN = unresolvable(
    "node(s) didn't match pod topology spread constraints (missing required label)"
)

#: Compiled constraints that are cached: of one signature, by labels, and defaults, by selector.
MOST_LABELS: Final = 64
MOST_DEFAULTS: Final = 4096


class PodConstraints(Struct, frozen=True):
    """The compiled constraints of a pod."""

    hard: tuple[SpreadConstraint, ...]
    soft: tuple[SpreadConstraint, ...]
    #: whether nodes that lack one of the labels are not eligible
    need_all_labels: bool


class ConstraintsByLabels:
    """The compiled constraints of a signature, which depend on few of its pods' labels."""

    def __init__(self, constraints: Iterable[TopologySpreadConstraint]) -> None:
        self._keys = keys_read(constraints)
        self._compiled: Recent[Hashable, PodConstraints] = Recent(MOST_LABELS)

    def of(self, labels: LabelSet, compiled: Callable[[], PodConstraints]) -> PodConstraints:
        """Return the constraints of pods with some labels, compiled on first use."""
        key = (labels.namespace, *map(labels.labels.get, self._keys))
        found = self._compiled.get(key)
        if found is None:
            found = self._compiled[key] = compiled()
        return found


class HardDomains(Struct, frozen=True):
    """The domains of a hard constraint, and their counts."""

    constraint: SpreadConstraint
    #: of all nodes
    everywhere: Domains
    #: of the eligible nodes
    usable: Domains
    #: matching pods, by domain
    counts: Int64Array
    #: counts matching pods; None if none do
    counter: PodCounter | None

    def smallest(self, counts: Int64Array) -> int:
        """Return the smallest count, given these counts of domains."""
        usable = self.usable
        if not usable.number or usable.number < self.constraint.min_domains:
            return 0
        return int(counts[usable.there].min())

    def too_full(self) -> BoolArray:
        """Return the domains in which the pod would exceed maxSkew."""
        constraint, counts = self.constraint, self.counts
        return counts + constraint.counts_itself - self.smallest(counts) > constraint.max_skew

    def bounds(self, nodes: NodeRows) -> Iterator[CountBounds]:
        """Return the same as bounds on the matching pods of each row."""
        of_nodes = self.everywhere.ids[nodes.rows]
        if self.everywhere.leaves_rows_out:
            yield CountBounds(None, np.where(of_nodes > 0, UNLIMITED, -1), NO_DOMAIN)
        slack = self.constraint.max_skew - self.constraint.counts_itself
        highest, there = (
            self._smallest_elsewhere().take(of_nodes) + slack,
            self.counts.take(of_nodes),
        )
        # The pods of a row that is not eligible do not count.
        most = np.where(there <= highest, UNLIMITED, -1)
        if self.counter is not None:
            own = self.counter.counts(len(self.everywhere.ids))[nodes.rows]
            most = np.where(self.usable.ids[nodes.rows] > 0, highest - there + own, most)
        if slack < 0:
            most = np.full(len(nodes), -1)
        yield CountBounds(self.counter, most, TOO_UNEVEN)

    def _smallest_elsewhere(self) -> Int64Array:
        """Return, for each domain, the smallest count of the other domains."""
        usable, counts = self.usable, self.counts
        if not usable.number or usable.number < self.constraint.min_domains:
            return np.zeros(len(counts), dtype=np.int64)
        eligible = np.where(usable.there, counts, UNLIMITED)
        least = int(eligible.argmin())
        smallest = np.full(len(counts), eligible[least])
        eligible[least] = UNLIMITED
        smallest[least] = eligible.min()
        return smallest


class NodeClasses(NamedTuple):
    """Classes of nodes with the same score: most have no matching pod, and there are few zones."""

    #: level by class, for each constraint
    levels: Sequence[IndexArray]
    #: node → class; None if each node is a class by itself
    of_nodes: IndexArray | None
    #: class → number of nodes
    node_counts: Int64Array

    @classmethod
    def of(cls, levels: Sequence[IndexArray]) -> NodeClasses:
        """Classify nodes by their levels, if that makes fewer classes than there are nodes."""
        nodes = len(levels[0])
        sizes = [int(each.max(initial=0)) + 1 for each in levels]
        number = math.prod(sizes)
        if number > nodes:
            return cls(levels, None, np.ones(nodes, dtype=np.int64))
        of_nodes = levels[0]
        for level, size in zip(levels[1:], sizes[1:], strict=True):
            of_nodes = of_nodes * size + level
        node_counts = np.bincount(of_nodes, minlength=number)
        return cls(np.unravel_index(np.arange(number), sizes), of_nodes, node_counts)


class PodTopologySpread(PreFilter, Filter, PreScore, Score, Normalize):
    """Counts matching pods by domain."""

    name = "PodTopologySpread"
    bounds_counts = True
    repeats_skip = True
    proven_range = True
    skips_resizes = True

    def __init__(
        self,
        args: PodTopologySpreadArgs,
        cluster: Cluster,
        *,
        match_label_keys: bool,
        comparisons: bool,
    ) -> None:
        self._system_defaults = args.defaulting_type == SYSTEM_DEFAULTING
        self._defaults = SYSTEM_CONSTRAINTS if self._system_defaults else args.default_constraints
        self._match_label_keys = match_label_keys
        self._cluster = cluster
        self._table = cluster.table
        self._eligibility = Eligibility(cluster.table, comparisons=comparisons)
        #: cached while there are pods with this signature
        self._constraints: WeakKeyDictionary[PodSignature, ConstraintsByLabels]
        self._constraints = WeakKeyDictionary()
        self._domains: Recent[Hashable, Domains] = Recent(limit=256)
        #: namespace, selector, and whether it matches the pod itself → default constraints
        self._default_for: Recent[tuple[str, Selector, bool], PodConstraints]
        self._default_for = Recent(MOST_DEFAULTS)
        self._hints = SpreadHints(
            lambda pod: self._constraints_of(pod).hard,
            match_label_keys=match_label_keys,
            hard_defaults=any(
                each.when_unsatisfiable == DO_NOT_SCHEDULE for each in self._defaults
            ),
        )

    @classmethod
    def create(cls, context: PluginContext) -> PodTopologySpread:
        """Create the plugin."""
        gates = context.gates
        return cls(
            context.profile.args(cls.name, PodTopologySpreadArgs),
            context.cluster,
            match_label_keys=gates.enabled("MatchLabelKeysInPodTopologySpread"),
            comparisons=gates.enabled("TaintTolerationComparisonOperators"),
        )

    def events_to_register(self) -> Registrations:
        """Added, deleted or relabelled pods; added, deleted, relabelled or tainted nodes."""
        return self._hints.registrations()

    # --- hard constraints -------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> PreFilterResult:  # noqa: ARG002
        """Skip pods without hard constraints."""
        try:
            constraints = self._constraints_in(state, pod)
        except SelectorError as malformed:
            text = f"obtaining pod's hard topology spread constraints: {malformed}"
            return PreFilterResult(error(f"get constraints from pod: {text}"))
        return NOTHING_AGAINST if constraints.hard else NOTHING_TO_FILTER

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Verdict:
        """Reject nodes whose domain would exceed maxSkew, or that lack the label."""
        verdicts = []
        for domains in self.hard_domains(state, pod):
            of_nodes = domains.everywhere.ids[nodes.rows]
            if domains.everywhere.leaves_rows_out:
                verdicts.append(reject(of_nodes == 0, NO_DOMAIN))
            too_full = domains.too_full()
            if np.count_nonzero(too_full):
                verdicts.append(reject(too_full.take(of_nodes), TOO_UNEVEN))
        return first_of(*verdicts)

    def count_bounds(
        self, state: CycleState, pod: PodInfo, nodes: NodeRows
    ) -> Sequence[CountBounds]:
        """Return the same as bounds."""
        found = self.hard_domains(state, pod)
        return [bounds for domains in found for bounds in domains.bounds(nodes)]

    def details(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Iterator[Detail]:
        """Return the counts of domains that would exceed maxSkew."""
        for domains in self.hard_domains(state, pod):
            yield from uneven_domains(domains, nodes, TOO_UNEVEN.message)
            yield from unlabelled(domains, nodes, NO_DOMAIN.message)

    def hard_domains(self, state: CycleState, pod: PodInfo) -> Iterator[HardDomains]:
        """Return the domains of each hard constraint of a pod."""
        constraints = self._constraints_in(state, pod).hard
        for constraint in constraints:
            usable = self._domains_for(pod.signature, constraint, _keys(constraints))
            everywhere = self._table.domains(constraint.topology_key)
            counts = self._domain_counts(constraint, usable)
            yield HardDomains(constraint, everywhere, usable, counts, self._counter(constraint))

    # --- soft constraints -------------------------------------------------------------------

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Status:
        """Count pods by domain; skip pods without soft constraints."""
        constraints = self._constraints_in(state, pod)
        if not constraints.soft:
            return SKIP
        if len(constraints.soft) == 1 and constraints.soft[0].topology_key != names.LABEL_HOSTNAME:
            found = self._scores_of_domains(pod, constraints, nodes)
        else:
            found = self._scores_of_nodes(pod, constraints, nodes)
        state.write(self.name, found)
        return SUCCESS

    def _scores_of_domains(
        self, pod: PodInfo, constraints: PodConstraints, nodes: NodeRows
    ) -> DomainScores:
        """Return the scores of the domains of a single constraint."""
        (constraint,) = constraints.soft
        of_nodes = self._ids(constraint, nodes)
        keys = _keys(constraints.soft) if constraints.need_all_labels else ()
        domains = self._domains_for(pod.signature, constraint, keys)
        counts = self._domain_counts(constraint, domains)
        there = self._table.domains(constraint.topology_key).with_rows(nodes)
        if constraints.need_all_labels:
            there[0] = False
        weight = math.log(int(np.count_nonzero(there)) + 2)
        raw = counts * weight + (constraint.max_skew - 1)
        raw[0] = 0.0
        return DomainScores(_rounded(raw), of_nodes, there)

    def _scores_of_nodes(
        self, pod: PodInfo, constraints: PodConstraints, nodes: NodeRows
    ) -> DomainScores:
        """Return the scores of nodes by all of their domains, for classes of equal nodes."""
        levels = [self._levels(constraint, nodes) for constraint in constraints.soft]
        classes = NodeClasses.of(levels)
        ignored = classes.node_counts == 0
        if constraints.need_all_labels:
            for level in classes.levels:
                ignored |= level == 0
        total = np.zeros(len(ignored))
        keys = _keys(constraints.soft) if constraints.need_all_labels else ()
        for constraint, level in zip(constraints.soft, classes.levels, strict=True):
            if constraint.topology_key == names.LABEL_HOSTNAME:
                number = int(classes.node_counts[~ignored].sum())
                count = level - 1
            else:
                number = int(np.count_nonzero(np.bincount(level[~ignored])))
                domains = self._domains_for(pod.signature, constraint, keys)
                count = self._domain_counts(constraint, domains).take(level)
            weight = math.log(number + 2)
            total += np.where(level > 0, count * weight + (constraint.max_skew - 1), 0.0)
        return DomainScores(np.where(ignored, 0, _rounded(total)), classes.of_nodes, ~ignored)

    def _levels(self, constraint: SpreadConstraint, nodes: NodeRows) -> IndexArray:
        """Return what the score of each node depends on: 0 for nodes without the label.

        Else it is the node's domain, or one more than the matching pods of a host.
        """
        of_nodes = self._ids(constraint, nodes)
        if constraint.topology_key != names.LABEL_HOSTNAME:
            return of_nodes
        pods = self._counts(constraint)[nodes.rows].astype(np.intp) + 1
        if self._table.domains(constraint.topology_key).leaves_rows_out:
            pods[of_nodes == 0] = 0
        return pods

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> DomainScores:  # noqa: ARG002
        """Return the scores of PreScore."""
        found: DomainScores = state.read(self.name)
        return found

    def normalize(self, scores: Int64Array) -> Int64Array:
        """Reverse the scores, so that the lowest is the best, and scale them."""
        most, least = scores.max(initial=0), scores.min() if len(scores) else 0
        if most == 0:
            return np.full(len(scores), MAX_NODE_SCORE, dtype=np.int64)
        return MAX_NODE_SCORE * (most + least - scores) // most

    # --- both -------------------------------------------------------------------------------

    def _constraints_in(self, state: CycleState, pod: PodInfo) -> PodConstraints:
        """Return a pod's constraints, cached in the attempt."""
        found = state.get(PodConstraints)
        if not isinstance(found, PodConstraints):
            found = self._constraints_of(pod)
            state.write(PodConstraints, found)
        return found

    def _constraints_of(self, pod: PodInfo) -> PodConstraints:
        own = pod.signature.spec.topology_spread_constraints
        if not own:
            return self._default_constraints(pod)
        by_labels = self._constraints.get(pod.signature)
        if by_labels is None:
            by_labels = self._constraints[pod.signature] = ConstraintsByLabels(own)
        return by_labels.of(pod.labels, lambda: self._compile(pod))

    def _compile(self, pod: PodInfo) -> PodConstraints:
        own = pod.signature.spec.topology_spread_constraints
        hard, soft = (
            compile_constraints(
                own,
                when_unsatisfiable=kind,
                namespace=pod.labels.namespace,
                pod_labels=pod.labels.labels,
                match_label_keys=self._match_label_keys,
            )
            for kind in (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY)
        )
        return PodConstraints(hard, soft, need_all_labels=True)

    def _default_constraints(self, pod: PodInfo) -> PodConstraints:
        if not self._defaults:
            return NO_CONSTRAINTS
        labels, owners = pod.labels, pod.pod.metadata.owner_references
        selector = self._cluster.workloads.selector_of(labels, owners)
        if not selector.requirements:
            return NO_CONSTRAINTS
        key = labels.namespace, selector, selector.matches(labels.labels)
        found = self._default_for.get(key)
        if found is None:
            found = self._default_for[key] = self._compile_defaults(labels, selector)
        return found

    def _compile_defaults(self, labels: LabelSet, selector: Selector) -> PodConstraints:
        hard, soft = (
            compile_constraints(
                self._defaults,
                when_unsatisfiable=kind,
                namespace=labels.namespace,
                pod_labels=labels.labels,
                match_label_keys=False,
                selector=selector,
            )
            for kind in (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY)
        )
        return PodConstraints(hard, soft, need_all_labels=not self._system_defaults)

    def _ids(self, constraint: SpreadConstraint, nodes: NodeRows) -> IndexArray:
        """Return the domain of each row, 0 for none."""
        return self._table.domains(constraint.topology_key).ids[nodes.rows]

    def _domains_for(
        self, signature: PodSignature, constraint: SpreadConstraint, keys: tuple[str, ...]
    ) -> Domains:
        """Return the domains of rows that count: those that have labels with these keys, and that
        the pod could use, as far as it is asked to care.
        """
        row_signature = signature.row_signature
        cares = constraint.honor_taints or (
            constraint.honor_affinity and self._eligibility.restricts(row_signature)
        )
        key = constraint.topology_key, keys, cares and (row_signature, constraint.honors)
        domains = self._domains.get(key)
        if domains is None:
            domains = self._domains[key] = Domains(
                self._table,
                constraint.topology_key,
                lambda: self._eligible(row_signature, constraint, keys),
            )
        domains.refresh()
        return domains

    def _eligible(
        self, signature: PodSignature, constraint: SpreadConstraint, keys: tuple[str, ...]
    ) -> BoolArray:
        table = self._table
        eligible = table.valid[: table.size].copy()
        for key in keys:
            eligible &= table.label_column(key).ids[: table.size] > 0
        if constraint.honor_affinity:
            matching = self._eligibility.matches_affinity(signature)
            eligible = eligible if matching is None else eligible & matching
        if constraint.honor_taints:
            eligible &= self._eligibility.tolerated(signature)
        return eligible

    def _counts(self, constraint: SpreadConstraint) -> Int32Array:
        """Return the number of matching pods on each row."""
        counter, size = self._counter(constraint), self._table.size
        return np.zeros(size, dtype=np.int32) if counter is None else counter.counts(size)

    def _domain_counts(self, constraint: SpreadConstraint, domains: Domains) -> Int64Array:
        """Return the number of matching pods in each domain."""
        counter = self._counter(constraint)
        return np.zeros(domains.size, np.int64) if counter is None else counter.by_domain(domains)

    def _counter(self, constraint: SpreadConstraint) -> PodCounter | None:
        """Return what counts matching pods; None if no pod matches."""
        selection = constraint.selection
        return None if selection is None else self._table.pod_counter(selection)


NO_CONSTRAINTS = PodConstraints((), (), need_all_labels=False)


def _keys(constraints: Sequence[SpreadConstraint]) -> tuple[str, ...]:
    return tuple(each.topology_key for each in constraints)


def _rounded(values: npt.NDArray[np.floating]) -> Int64Array:
    """Round half up.

    Adding a half goes wrong only just below a half. Sums are never there: they are whole where no
    pod is counted, and at least ln 2 where one is.
    """
    return (values + 0.5).astype(np.int64)
