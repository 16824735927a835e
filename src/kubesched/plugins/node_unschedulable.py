"""NodeUnschedulable: keeps pods off cordoned nodes, unless they tolerate the cordon's taint."""

from __future__ import annotations

from kubesched.api.core import Node, Pod
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_signature import UNSCHEDULABLE_TAINT, PodSignature, any_tolerates
from kubesched.config.features import FeatureGates
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
    """Keeps pods off cordoned nodes."""

    name = "NodeUnschedulable"
    reads = NODE
    skips_resizes = True

    def __init__(self, gates: FeatureGates) -> None:
        self._comparisons = gates.enabled("TaintTolerationComparisonOperators")

    @classmethod
    def create(cls, context: PluginContext) -> NodeUnschedulable:
        """Make the plugin."""
        return cls(context.gates)

    def events_to_register(self) -> Registrations:
        """A node that comes or is uncordoned, or a toleration of our own."""
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

    def pre_filter(self, signature: PodSignature) -> PreFilterResult:  # noqa: ARG002 (any pod may be kept off)
        """Filter every pod."""
        return NOTHING_AGAINST

    def filter(self, signature: PodSignature, nodes: NodeRows) -> Verdict:
        """Reject cordoned nodes."""
        if signature.tolerates(UNSCHEDULABLE_TAINT, comparisons=self._comparisons):
            return ALL_PASS
        return reject(nodes.unschedulable, UNSCHEDULABLE)

    def _after_toleration(self, pod: PodInfo, change: Change[Pod]) -> bool:  # noqa: ARG002 (as above)
        """Ask whether the pod tolerates cordons now: it did not, or nobody had turned it away."""
        return change.new is not None and any_tolerates(
            change.new.spec.tolerations, UNSCHEDULABLE_TAINT, comparisons=self._comparisons
        )


def _after_node_change(signature: PodSignature, change: Change[Node]) -> bool:  # noqa: ARG001 (for any pod)
    """Ask whether a node came uncordoned, or was uncordoned."""
    if change.new is None or change.new.spec.unschedulable:
        return False
    return change.old is None or change.old.spec.unschedulable
