"""NodePorts: two pods cannot have the same host port of one node."""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.shape import Shape
from kubesched.framework.plugin import PreFilterResult, RowFilter, ShapePreFilter
from kubesched.framework.status import SKIP, unschedulable
from kubesched.framework.verdict import ALL_PASS, Verdict, reject
from kubesched.queue.events import Action, ClusterEvent, Resource

PORT_TAKEN = unschedulable("node(s) didn't have free ports for the requested pod ports")


class NodePorts(ShapePreFilter, RowFilter):
    """Checks that the host ports which a pod wants are free."""

    name = "NodePorts"
    reads_pods = True

    def events_to_register(self) -> Sequence[ClusterEvent]:
        """A pod that goes, or a node that comes."""
        return [
            ClusterEvent(Resource.POD, Action.DELETE),
            ClusterEvent(Resource.NODE, Action.ADD),
        ]

    def pre_filter(self, shape: Shape) -> PreFilterResult:
        """Skip pods without host ports."""
        return PreFilterResult() if shape.host_ports else PreFilterResult(SKIP)

    def filter(self, shape: Shape, nodes: NodeRows) -> Verdict:
        """Turn nodes away where a port is taken."""
        taken = nodes.table.ports.rows_in_conflict(shape.host_ports)
        if not taken:
            return ALL_PASS
        return reject(nodes.among(taken), PORT_TAKEN)
