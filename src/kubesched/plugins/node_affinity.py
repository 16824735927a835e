"""NodeAffinity: node selectors, required and preferred node affinity.

The raw score of a node is the sum of the weights of the preferred terms that match it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from weakref import WeakKeyDictionary

import numpy as np

from kubesched.api import labels, names
from kubesched.api.core import (
    Node,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
)
from kubesched.cluster.arrays import Int64Array
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.node_selector import SelectorMatch, TermMatch
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_signature import PodSignature
from kubesched.config.args import NodeAffinityArgs
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.detail import Detail
from kubesched.framework.plugin import (
    NODE,
    NOTHING_AGAINST,
    NOTHING_TO_FILTER,
    Normalize,
    PreFilterResult,
    RowFilter,
    RowScore,
    SignaturePreFilter,
    SignaturePreScore,
    depends_on_min_max,
)
from kubesched.framework.registry import PluginContext
from kubesched.framework.status import SKIP, SUCCESS, Status, error, unresolvable
from kubesched.framework.verdict import Verdict, first_of, reject
from kubesched.plugins.node_affinity_details import mismatches
from kubesched.plugins.normalize import scale_to_best
from kubesched.queue.events import Action, ClusterEvent, Resource
from kubesched.queue.hints import Change, Registration, Registrations

NO_MATCH = unresolvable("node(s) didn't match Pod's node affinity/selector")
NO_MATCH_ENFORCED = unresolvable("node(s) didn't match scheduler-enforced node affinity")
CONFLICT = unresolvable("pod affinity terms conflict")


class PreferredTerms:
    """Preferred terms, compiled."""

    def __init__(self, terms: Iterable[PreferredSchedulingTerm]) -> None:
        self._terms: list[tuple[int, TermMatch]] = []
        #: errors of malformed terms, with Kubernetes' messages
        self.errors: list[str] = []
        for index, each in enumerate(terms):
            if each.weight == 0 or _is_empty(each.preference):
                continue
            term = labels.node_term(each.preference, path=f"[{index}]")
            self.errors += term.errors
            self._terms.append((each.weight, TermMatch(term)))

    def __call__(self, nodes: NodeRows) -> Int64Array:
        """Return the sum of the weights of the terms that match each row."""
        result = np.zeros(len(nodes), dtype=np.int64)
        for weight, term in self._terms:
            result += weight * term(nodes)
        return result


class ObjectMatch:
    """Like a `SelectorMatch`, for node objects that need not be in the table."""

    def __init__(
        self, match_labels: Mapping[str, str] | None, selector: NodeSelector | None
    ) -> None:
        self._labels = labels.from_match_labels(match_labels)
        self._terms = None if selector is None else labels.node_selector_terms(selector)
        self._malformed = any(term.errors for term in self._terms or ())

    def __call__(self, node: Node) -> bool:
        """Return whether the node matches."""
        return self._has_labels(node) and self._meets_a_term(node)

    def may_match(self, node: Node) -> bool:
        """Return whether the node matches, counting malformed terms as matching."""
        return self._has_labels(node) and (self._malformed or self._meets_a_term(node))

    def _has_labels(self, node: Node) -> bool:
        return self._labels.matches(node.metadata.labels or {})

    def _meets_a_term(self, node: Node) -> bool:
        if self._terms is None:
            return True
        node_labels, name = node.metadata.labels or {}, node.metadata.name
        fields = {names.FIELD_NODE_NAME: name} if name else {}
        return any(term.matches(node_labels, fields) for term in self._terms)


class NodeAffinityPlugin(SignaturePreFilter, RowFilter, SignaturePreScore, RowScore, Normalize):
    """Matches nodes with the affinity of the pod, and the added affinity of the profile."""

    name = "NodeAffinity"
    reads = NODE
    proven_range = True
    skips_resizes = True

    def __init__(self, args: NodeAffinityArgs) -> None:
        added = args.added_affinity or NodeAffinity()
        required = added.required_during_scheduling_ignored_during_execution
        preferred = added.preferred_during_scheduling_ignored_during_execution
        self._added_required = required
        self._added = SelectorMatch(None, required) if required is not None else None
        self._added_to_object = ObjectMatch(None, required)
        self._added_preferred = PreferredTerms(preferred) if preferred else None
        self._preferred: WeakKeyDictionary[PodSignature, PreferredTerms] = WeakKeyDictionary()
        self._required: WeakKeyDictionary[PodSignature, ObjectMatch] = WeakKeyDictionary()

    @classmethod
    def create(cls, context: PluginContext) -> NodeAffinityPlugin:
        """Create the plugin."""
        return cls(context.profile.args(cls.name, NodeAffinityArgs))

    def events_to_register(self) -> Registrations:
        """An added or relabelled node."""
        changed = ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)
        return [Registration(changed, signature_hint=self._after_node_change)]

    def pre_filter(self, signature: PodSignature) -> PreFilterResult:
        """Skip pods without node affinity; restrict pods that name their nodes."""
        affinity = _node_affinity(signature)
        required = affinity.required_during_scheduling_ignored_during_execution
        if required is None and self._added is None and signature.spec.node_selector is None:
            return NOTHING_TO_FILTER
        if required is None or not required.node_selector_terms:
            return NOTHING_AGAINST
        named: frozenset[str] = frozenset()
        for term in required.node_selector_terms:
            of_term = _named_nodes(term)
            if of_term is None:
                return NOTHING_AGAINST
            named |= of_term
        return PreFilterResult(node_names=named) if named else PreFilterResult(CONFLICT)

    def filter(self, signature: PodSignature, nodes: NodeRows) -> Verdict:
        """Reject nodes that do not match."""
        own = reject(~signature.node_selector(nodes), NO_MATCH)
        if self._added is None:
            return own
        return first_of(reject(~self._added(nodes), NO_MATCH_ENFORCED), own)

    def details(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Iterable[Detail]:  # noqa: ARG002
        """Name the requirements that nodes do not meet, and what they have instead."""
        found: list[Detail] = []
        if self._added is not None:
            passing = self._added(nodes)
            rejected = NodeRows(nodes.table, nodes.row_numbers()[~passing])
            text = NO_MATCH_ENFORCED.message
            found += mismatches(None, self._added_required, rejected, text)
            nodes = NodeRows(nodes.table, nodes.row_numbers()[passing])
        signature = pod.signature
        required = _node_affinity(signature).required_during_scheduling_ignored_during_execution
        selector = signature.spec.node_selector
        return [*found, *mismatches(selector, required, nodes, NO_MATCH.message)]

    def pre_score(self, signature: PodSignature) -> Status:
        """Skip pods without preferences."""
        preferred = _node_affinity(signature).preferred_during_scheduling_ignored_during_execution
        if preferred is None:
            return SUCCESS if self._added_preferred is not None else SKIP
        errors = self._terms(signature).errors
        if errors:
            return error(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
        return SUCCESS

    def score(self, signature: PodSignature, nodes: NodeRows) -> Int64Array:
        """Sum the weights of matching terms."""
        scores = self._terms(signature)(nodes)
        if self._added_preferred is not None:
            scores += self._added_preferred(nodes)
        return scores

    @depends_on_min_max
    def normalize(self, scores: Int64Array) -> Int64Array:
        """More is better."""
        return scale_to_best(scores)

    def _after_node_change(self, signature: PodSignature, change: Change[Node]) -> bool:
        """Return whether a node that did not exist, or not match the pod's own terms, matches now.

        As in kube-scheduler, a change that only concerns the profile's added affinity does not
        help.
        """
        if change.new is None or not self._added_to_object(change.new):
            return False
        required = self._required_of(signature)
        if not required.may_match(change.new):
            return False
        return change.old is None or not required(change.old) or not required(change.new)

    def _required_of(self, signature: PodSignature) -> ObjectMatch:
        match = self._required.get(signature)
        if match is None:
            required = _node_affinity(signature).required_during_scheduling_ignored_during_execution
            match = self._required[signature] = ObjectMatch(signature.spec.node_selector, required)
        return match

    def _terms(self, signature: PodSignature) -> PreferredTerms:
        terms = self._preferred.get(signature)
        if terms is None:
            preferred = _node_affinity(
                signature
            ).preferred_during_scheduling_ignored_during_execution
            terms = self._preferred[signature] = PreferredTerms(preferred or ())
        return terms


def _node_affinity(signature: PodSignature) -> NodeAffinity:
    affinity = signature.spec.affinity
    return (affinity and affinity.node_affinity) or NodeAffinity()


def _is_empty(term: NodeSelectorTerm) -> bool:
    return not term.match_expressions and not term.match_fields


def _named_nodes(term: NodeSelectorTerm) -> frozenset[str] | None:
    """Return the only nodes that a term can match, by their names; None if it names none."""
    named: frozenset[str] | None = None
    for each in term.match_fields:
        if each.key == names.FIELD_NODE_NAME and each.operator == labels.IN:
            values = frozenset(each.values)
            named = values if named is None else named & values
    return named
