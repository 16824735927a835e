"""NodeResourcesBalancedAllocation: prefers nodes whose resources a pod makes more evenly used.

    score = 50 + (50 + balance(with the pod) - balance(without it)) / 2

About 75 means that the pod changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from kubesched.cluster.arrays import Int64Array
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.shape import Shape
from kubesched.config.args import NodeResourcesBalancedAllocationArgs
from kubesched.framework.plugin import RowScore, ShapePreScore
from kubesched.framework.registry import PluginContext
from kubesched.framework.status import SKIP, SUCCESS, Status
from kubesched.plugins.resource_scoring import balance_change, usages
from kubesched.plugins.row_scoring import HALF, balance_change_row


class NodeResourcesBalancedAllocation(ShapePreScore, RowScore):
    """Scores the change in balance."""

    name = "NodeResourcesBalancedAllocation"
    reads_pods = True
    proven_range = True

    def __init__(self, args: NodeResourcesBalancedAllocationArgs) -> None:
        self._resources = args.resources

    @classmethod
    def create(cls, context: PluginContext) -> NodeResourcesBalancedAllocation:
        """Make the plugin."""
        return cls(context.profile.args(cls.name, NodeResourcesBalancedAllocationArgs))

    def pre_score(self, shape: Shape) -> Status:
        """Skip pods that request none of the resources: they would all go to the same node."""
        amounts = shape.requests.amounts
        requested = any(amounts.get(each.name, 0) for each in self._resources)
        return SUCCESS if requested else SKIP

    def row_scorer(self, shape: Shape, table: NodeTable) -> Callable[[int], int | None] | None:
        """Score one row, if by two resources."""
        return balance_change_row(self._resources, shape.requests.amounts, table)

    def score(self, shape: Shape, nodes: NodeRows) -> Int64Array:
        """Score the change in balance."""
        used = usages(self._resources, shape.requests.amounts, nodes, non_zero=False)
        score = balance_change(used, len(nodes))
        score += HALF
        score >>= 1  # half of it, rounded down
        score += HALF
        return score
