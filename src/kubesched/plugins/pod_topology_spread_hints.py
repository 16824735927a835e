"""When it is worth trying a pod again that hard topology spread constraints turned away.

Counts change when a pod of the kind comes, goes or changes its labels; domains change when nodes
do. Whether the pod fits then is for the filter to find out.

What a hint needs to know of a pod's own constraints is the same for all pods of its signature,
except where ``matchLabelKeys`` makes the pod's labels a part of its constraints. Default
constraints are about the services and the owner of each pod.
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
    Constraint,
    compile_constraints,
)
from kubesched.queue.events import Action, ClusterEvent, Resource
from kubesched.queue.hints import Change, Registration

#: Compiled hard constraints; None if they are malformed.
Constraints = tuple[Constraint, ...] | None


class PodChange:
    """A change of a pod, and whether it makes a difference to constraints."""

    def __init__(self, change: Change[Pod]) -> None:
        self._old, self._new = change.old, change.new
        versions = [each for each in (change.old, change.new) if each is not None]
        #: the pods to which it may make a difference; None if it has no place on a node
        self.namespace = (
            versions[-1].metadata.namespace if versions and all(map(has_place, versions)) else None
        )
        #: answers for pods of which no more than the signature matters
        self.by_signature: dict[PodSignature, bool] = {}

    def counts_for(self, constraints: Constraints) -> bool:
        """Tell whether the pod counts and came or went, or began or ceased to count."""
        return constraints is None or any(map(self._matters_to, constraints))

    def is_itself_helped(self, constraints: Constraints) -> bool:
        """Tell the same for the pod's own constraints: taints that it tolerates may matter, too."""
        if self.counts_for(constraints):
            return True
        if self._old is None or self._new is None:
            return False
        tolerates_others = self._old.spec.tolerations != self._new.spec.tolerations
        return tolerates_others and any(each.honor_taints for each in constraints or ())

    def _matters_to(self, constraint: Constraint) -> bool:
        counted = self._old is not None and _selects(constraint, self._old)
        counts = self._new is not None and _selects(constraint, self._new)
        return counted != counts


class SpreadHints:
    """The hints of PodTopologySpread."""

    def __init__(
        self,
        hard_constraints_of: Callable[[PodInfo], tuple[Constraint, ...]],
        *,
        match_label_keys: bool,
        hard_defaults: bool,
    ) -> None:
        #: raises SelectorError if they are malformed
        self._of_pod = hard_constraints_of
        self._match_label_keys = match_label_keys
        self._hard_defaults = hard_defaults
        #: in a tuple, as what is malformed is known to be None
        self._by_signature: WeakKeyDictionary[PodSignature, tuple[Constraints]] = (
            WeakKeyDictionary()
        )
        self._prepared = Prepared(PodChange)

    def registrations(self) -> list[Registration]:
        """Return what PodTopologySpread wants to hear of."""
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
        """Ask whether a pod that counts came, went, or counts differently now."""
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
        """Ask whether the pod counts differently now, or tolerates taints that matter."""
        return PodChange(change).is_itself_helped(self._constraints_of(pod))

    def after_node_change(self, pod: PodInfo, change: Change[Node]) -> bool:
        """Ask whether a node in the domains of all constraints came, went, or changed."""
        return _after_node_change(self._constraints_of(pod), change)

    def after_node_change_for_signature(
        self, signature: PodSignature, change: Change[Node]
    ) -> bool:
        """Ask the same where no constraint depends on more of a pod than its signature."""
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
        """Return a signature's own constraints, without what the labels of a pod add to them."""
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
            # Neither is asked for: who is involved is found out first, and who counts from labels.
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


def _selects(constraint: Constraint, pod: Pod) -> bool:
    """Tell whether a pod is of the kind that a constraint is about."""
    if constraint.selection is None:
        # A selector without requirements matches all pods or none, the waiting one as any other.
        return constraint.counts_itself
    return constraint.selection.selector.matches(pod.metadata.labels or {})


def _in_domains(node: Node, constraints: Iterable[Constraint]) -> bool:
    """Tell whether a node is in a domain of every constraint."""
    labels = node.metadata.labels or {}
    return all(each.topology_key in labels for each in constraints)


def _domain(node: Node, constraint: Constraint) -> str | None:
    return (node.metadata.labels or {}).get(constraint.topology_key)
