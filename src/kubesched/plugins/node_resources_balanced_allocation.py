"""NodeResourcesBalancedAllocation: prefers nodes whose resources a pod makes more evenly used.

    score = 50 + (50 + balance(with the pod) - balance(without it)) / 2

About 75 means that the pod changes nothing. How even a row is without the pod is the same for all
pods that request the same resources, so it is cached.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np

from kubesched.cluster.arrays import Int64Array
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.extended_resources import may_be_devices
from kubesched.cluster.incremental import Column
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.pod_signature import PodSignature
from kubesched.cluster.recent import Recent
from kubesched.config.args import NodeResourcesBalancedAllocationArgs
from kubesched.framework.plugin import MAX_NODE_SCORE, RowScore, SignaturePreScore
from kubesched.framework.registry import PluginContext
from kubesched.framework.status import SKIP, SUCCESS, Status
from kubesched.plugins.device_counts import CountedDevices
from kubesched.plugins.device_selectors import compile_selector
from kubesched.plugins.resource_scoring import ScoredResource, balance, usages, wanted_resources
from kubesched.plugins.row_scoring import HALF, balance_change_row, balance_row


class NodeResourcesBalancedAllocation(SignaturePreScore, RowScore):
    """Scores the change in balance."""

    name = "NodeResourcesBalancedAllocation"
    proven_range = True

    def __init__(self, args: NodeResourcesBalancedAllocationArgs) -> None:
        self._resources = args.resources
        #: numbers of resources → how evenly each row uses them as it is
        self._even: Recent[tuple[int, ...], Column[np.int64]] = Recent(limit=16)

    @classmethod
    def create(cls, context: PluginContext) -> NodeResourcesBalancedAllocation:
        """Make the plugin."""
        args = context.profile.args(cls.name, NodeResourcesBalancedAllocationArgs)
        if any(may_be_devices(each.name) for each in args.resources):
            return BalancedAllocationByDevices(args, context.cluster)
        return cls(args)

    def pre_score(self, signature: PodSignature) -> Status:
        """Skip pods that request none of the resources: they would all go to the same node."""
        amounts = signature.requests.amounts
        requested = any(amounts.get(each.name, 0) for each in self._resources)
        return SUCCESS if requested else SKIP

    def row_scorer(
        self, signature: PodSignature, table: NodeTable
    ) -> Callable[[int], int | None] | None:
        """Score one row, if by two resources."""
        return balance_change_row(self._resources, signature.requests.amounts, table)

    def score(self, signature: PodSignature, nodes: NodeRows) -> Int64Array:
        """Score the change in balance."""
        wanted = self._wanted(signature, nodes.table)
        score = balance(usages(wanted, nodes, non_zero=False), len(nodes))
        score -= self._balance_without(wanted, nodes)
        score += HALF + MAX_NODE_SCORE  # of which a half is added after halving
        score >>= 1  # half of it, rounded down
        return score

    def _wanted(self, signature: PodSignature, table: NodeTable) -> list[ScoredResource]:
        return wanted_resources(self._resources, signature.requests.amounts, table)

    def _balance_without(self, wanted: Sequence[ScoredResource], nodes: NodeRows) -> Int64Array:
        """Return how even rows are without the pod."""
        numbers = tuple(each.number for each in wanted)

        def evaluate(rows: NodeRows) -> Int64Array:
            nothing = [ScoredResource(number, 0, 1) for number in numbers]
            return balance(usages(nothing, rows, non_zero=False), len(rows))

        if not nodes.are_real:
            return evaluate(nodes)
        column = self._even.get(numbers)
        if column is None:
            table = nodes.table
            column = self._even[numbers] = Column(
                table,
                table.row_changes,
                evaluate,
                evaluate_row=balance_row(numbers, table),
            )
        return column.current()[nodes.rows]


class BalancedAllocationByDevices(NodeResourcesBalancedAllocation):
    """The same, if devices may have to be counted: scores change as they are allocated."""

    def __init__(self, args: NodeResourcesBalancedAllocationArgs, cluster: Cluster) -> None:
        super().__init__(args)
        self._devices = CountedDevices(cluster.table, cluster.devices, compile_selector)

    def epoch(self, signature: PodSignature, table: NodeTable) -> Hashable:  # noqa: ARG002
        """Return the state of devices, if the pod requests some by another name."""
        requests = signature.requests.amounts
        return self._devices.epoch(
            [each.name for each in self._resources if requests.get(each.name)]
        )

    def row_scorer(self, signature: PodSignature, table: NodeTable) -> None:  # noqa: ARG002
        """Leave it to arrays."""
        return

    def _wanted(self, signature: PodSignature, table: NodeTable) -> list[ScoredResource]:
        requests = signature.requests.amounts
        return wanted_resources(self._resources, requests, table, self._devices.of)

    def _balance_without(self, wanted: Sequence[ScoredResource], nodes: NodeRows) -> Int64Array:
        nothing = [each._replace(request=0, weight=1) for each in wanted]
        return balance(usages(nothing, nodes, non_zero=False), len(nodes))
