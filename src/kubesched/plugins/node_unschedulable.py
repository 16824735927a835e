"""NodeUnschedulable: rejects cordoned nodes, unless the pod tolerates the cordon's taint."""

from __future__ import annotations

from collections.abc import Iterator

from kubesched.api.core import Node, Pod
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_signature import UNSCHEDULABLE_TAINT, PodSignature, any_tolerates
from kubesched.config.features import FeatureGates
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.detail import Detail
from kubesched.framework.plugin import (
    NODE,
    NOTHING_AGAINST,
    PreFilterResult,
    RowFilter,
    SignaturePreFilter,
)
from kubesched.framework.registry import PluginContext
from kubesched.framework.status import unresolvable
from kubesched.framework.verdict import ALL_PASS, Verdict, reject
from kubesched.queue.events import Action, ClusterEvent, Resource
from kubesched.queue.hints import Change, Registration, Registrations

UNSCHEDULABLE = unresolvable("node(s) were unschedulable")


class NodeUnschedulable(SignaturePreFilter, RowFilter):
    """Rejects cordoned nodes."""

    name = "NodeUnschedulable"
    reads = NODE
    skips_resizes = True

    def __init__(self, gates: FeatureGates) -> None:
        self._comparisons = gates.enabled("TaintTolerationComparisonOperators")

    @classmethod
    def create(cls, context: PluginContext) -> NodeUnschedulable:
        """Create the plugin."""
        return cls(context.gates)

    def events_to_register(self) -> Registrations:
        """An added or uncordoned node, or a new toleration of the pod."""
        return [
            Registration(
                ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT),
                signature_hint=_after_node_change,
            ),
            Registration(
                ClusterEvent(Resource.TARGET_POD, Action.UPDATE_POD_TOLERATION),
                hint=self._after_toleration,
            ),
        ]

    def pre_filter(self, signature: PodSignature) -> PreFilterResult:  # noqa: ARG002 (applies to every pod)
        """Filter every pod."""
        return NOTHING_AGAINST

    def filter(self, signature: PodSignature, nodes: NodeRows) -> Verdict:
        """Reject cordoned nodes."""
        if signature.tolerates(UNSCHEDULABLE_TAINT, comparisons=self._comparisons):
            return ALL_PASS
        return reject(nodes.unschedulable, UNSCHEDULABLE)

    def details(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Iterator[Detail]:  # noqa: ARG002
        """Tell what it means, and how it ends."""
        yield Detail("cordoned, until kubectl uncordon", {"unschedulable": True})

    def _after_toleration(self, pod: PodInfo, change: Change[Pod]) -> bool:  # noqa: ARG002 (as above)
        """Return whether the pod tolerates cordons now; it did not when it was rejected."""
        return change.new is not None and any_tolerates(
            change.new.spec.tolerations, UNSCHEDULABLE_TAINT, comparisons=self._comparisons
        )


def _after_node_change(signature: PodSignature, change: Change[Node]) -> bool:  # noqa: ARG001 (for any pod)
    """Return whether an uncordoned node was added, or a node was uncordoned."""
    if change.new is None or change.new.spec.unschedulable:
        return False
    return change.old is None or change.old.spec.unschedulable
