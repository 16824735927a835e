"""NodeUnschedulable: keeps pods off cordoned nodes, unless they tolerate the cordon's taint."""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.shape import UNSCHEDULABLE_TAINT, Shape
from kubesched.config.features import FeatureGates
from kubesched.framework.plugin import RowFilter
from kubesched.framework.registry import PluginContext
from kubesched.framework.status import unresolvable
from kubesched.framework.verdict import ALL_PASS, Verdict, reject
from kubesched.queue.events import Action, ClusterEvent, Resource

UNSCHEDULABLE = unresolvable("node(s) were unschedulable")


class NodeUnschedulable(RowFilter):
    """Keeps pods off cordoned nodes."""

    name = "NodeUnschedulable"
    reads_pods = False

    def __init__(self, gates: FeatureGates) -> None:
        self._comparisons = gates.enabled("TaintTolerationComparisonOperators")

    @classmethod
    def create(cls, context: PluginContext) -> NodeUnschedulable:
        """Make the plugin."""
        return cls(context.gates)

    def events_to_register(self) -> Sequence[ClusterEvent]:
        """A node that comes or is uncordoned, or a toleration of our own."""
        return [
            ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT),
            ClusterEvent(Resource.POD, Action.UPDATE_POD_TOLERATION),
        ]

    def filter(self, shape: Shape, nodes: NodeRows) -> Verdict:
        """Turn cordoned nodes away."""
        if shape.tolerates(UNSCHEDULABLE_TAINT, comparisons=self._comparisons):
            return ALL_PASS
        return reject(nodes.unschedulable, UNSCHEDULABLE)
