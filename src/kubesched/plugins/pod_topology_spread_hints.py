"""Queueing hints of PodTopologySpread, for hard constraints.

Counts change when a matching pod is added, deleted or relabelled; domains change with nodes. The
filter then decides whether the pod fits.

A pod's own constraints are part of its signature, except where ``matchLabelKeys`` adds the pod's
labels to them. Default constraints depend on the services and the owner of each pod.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from weakref import WeakKeyDictionary

from kubesched.api.core import Node, Pod
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_signature import PodSignature
from kubesched.errors import SelectorError
from kubesched.plugins.changes import Prepared, has_place
from kubesched.plugins.spread_constraints import (
    DO_NOT_SCHEDULE,
    SpreadConstraint,
    compile_constraints,
)
from kubesched.queue.events import Action, ClusterEvent, Resource
from kubesched.queue.hints import Change, Registration

#: Compiled hard constraints; None if they are malformed.
Constraints = tuple[SpreadConstraint, ...] | None


class SpreadPodChange:
    """A change of a pod, and whether it affects constraints."""

    def __init__(self, change: Change[Pod]) -> None:
        self._old, self._new = change.old, change.new
        versions = [each for each in (change.old, change.new) if each is not None]
        #: the pods that it may affect; None if it is neither on a node nor nominated
        self.namespace = (
            versions[-1].metadata.namespace if versions and all(map(has_place, versions)) else None
        )
        #: cached results for pods whose constraints depend only on the signature
        self.by_signature: dict[PodSignature, bool] = {}

    def counts_for(self, constraints: Constraints) -> bool:
        """Return whether the pod matches and was added or deleted, or its match changed."""
        return constraints is None or any(map(self._matters_to, constraints))

    def is_itself_helped(self, constraints: Constraints) -> bool:
        """Return the same for the pod's own constraints, where its tolerations may matter, too."""
        if self.counts_for(constraints):
            return True
        if self._old is None or self._new is None:
            return False
        tolerates_others = self._old.spec.tolerations != self._new.spec.tolerations
        return tolerates_others and any(each.honor_taints for each in constraints or ())

    def _matters_to(self, constraint: SpreadConstraint) -> bool:
        counted = self._old is not None and _selects(constraint, self._old)
        counts = self._new is not None and _selects(constraint, self._new)
        return counted != counts


class SpreadHints:
    """The hints of PodTopologySpread."""

    def __init__(
        self,
        hard_constraints_of: Callable[[PodInfo], tuple[SpreadConstraint, ...]],
        *,
        match_label_keys: bool,
        hard_defaults: bool,
    ) -> None:
        #: compiles a pod's hard constraints; raises SelectorError if they are malformed
        self._of_pod = hard_constraints_of
        self._match_label_keys = match_label_keys
        self._hard_defaults = hard_defaults
        #: in a tuple, because None stands for malformed constraints
        self._by_signature: WeakKeyDictionary[PodSignature, tuple[Constraints]] = (
            WeakKeyDictionary()
        )
        self._prepared = Prepared(SpreadPodChange)

    def registrations(self) -> list[Registration]:
        """Return the registrations."""
        others = ClusterEvent(
            Resource.ASSIGNED_POD, Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE
        )
        own = ClusterEvent(
            Resource.TARGET_POD, Action.UPDATE_POD_TOLERATION | Action.UPDATE_POD_LABEL
        )
        nodes = ClusterEvent(
            Resource.NODE,
            Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT,
        )
        of_nodes = Registration(nodes, signature_hint=self.after_node_change_for_signature)
        if self._hard_defaults:
            of_nodes = Registration(nodes, hint=self.after_node_change)
        return [
            Registration(others, hint=self.after_pod_change),
            Registration(own, hint=self.after_own_change),
            of_nodes,
        ]

    def after_pod_change(self, pod: PodInfo, change: Change[Pod]) -> bool:
        """Return whether a matching pod was added or deleted, or its match changed."""
        other = self._prepared(change)
        if other.namespace != pod.labels.namespace:
            return False
        known = other.by_signature.get(pod.signature)
        if known is None:
            known = other.counts_for(self._constraints_of(pod))
            if not self._depends_on_pod(pod.signature):
                other.by_signature[pod.signature] = known
        return known

    def after_own_change(self, pod: PodInfo, change: Change[Pod]) -> bool:
        """Return whether the pod's own match changed, or its tolerations."""
        return SpreadPodChange(change).is_itself_helped(self._constraints_of(pod))

    def after_node_change(self, pod: PodInfo, change: Change[Node]) -> bool:
        """Return whether a node in domains of all constraints was added, deleted or updated."""
        return _after_node_change(self._constraints_of(pod), change)

    def after_node_change_for_signature(
        self, signature: PodSignature, change: Change[Node]
    ) -> bool:
        """Return the same for pods whose constraints depend only on the signature."""
        return _after_node_change(self._constraints_of_signature(signature), change)

    def _constraints_of(self, pod: PodInfo) -> Constraints:
        if not self._depends_on_pod(pod.signature):
            return self._constraints_of_signature(pod.signature)
        try:
            return self._of_pod(pod)
        except SelectorError:
            return None

    def _depends_on_pod(self, signature: PodSignature) -> bool:
        own = signature.spec.topology_spread_constraints
        if not own:
            return self._hard_defaults
        return self._match_label_keys and any(each.match_label_keys for each in own)

    def _constraints_of_signature(self, signature: PodSignature) -> Constraints:
        """Return a signature's constraints, without those that a pod's labels add."""
        if not signature.spec.topology_spread_constraints:
            return ()
        known = self._by_signature.get(signature)
        if known is None:
            known = self._by_signature[signature] = (_compiled(signature),)
        return known[0]


def _compiled(signature: PodSignature) -> Constraints:
    try:
        return compile_constraints(
            signature.spec.topology_spread_constraints,
            when_unsatisfiable=DO_NOT_SCHEDULE,
            # Neither is read: which pods and nodes match is decided from their labels.
            namespace="",
            pod_labels={},
            match_label_keys=False,
        )
    except SelectorError:
        return None


def _after_node_change(constraints: Constraints, change: Change[Node]) -> bool:
    if constraints is None:
        return True
    old, new = change.old, change.new
    if old is None or new is None:
        one = new or old
        return one is not None and _in_domains(one, constraints)
    if _in_domains(old, constraints) != _in_domains(new, constraints):
        return True
    return _in_domains(new, constraints) and (
        old.spec.taints != new.spec.taints
        or any(_domain(old, each) != _domain(new, each) for each in constraints)
    )


def _selects(constraint: SpreadConstraint, pod: Pod) -> bool:
    """Return whether a pod matches the selector of a constraint."""
    if constraint.selection is None:
        # A selector without requirements matches all pods or none.
        return constraint.counts_itself
    return constraint.selection.selector.matches(pod.metadata.labels or {})


def _in_domains(node: Node, constraints: Iterable[SpreadConstraint]) -> bool:
    """Return whether a node is in a domain of every constraint."""
    labels = node.metadata.labels or {}
    return all(each.topology_key in labels for each in constraints)


def _domain(node: Node, constraint: SpreadConstraint) -> str | None:
    return (node.metadata.labels or {}).get(constraint.topology_key)
