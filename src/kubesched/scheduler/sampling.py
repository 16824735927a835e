"""Sampling of feasible nodes, as ``percentageOfNodesToScore`` requests it.

kube-scheduler stops filtering once it has found enough feasible nodes, and starts the next search
where the last one ended. Here all nodes are filtered at once; a sample contains the nodes that
filtering one by one from that start would have found.
"""

from __future__ import annotations

import numpy as np

from kubesched.cluster.arrays import IndexArray
from kubesched.cluster.node_table import NodeTable

#: A sample has at least so many nodes, if so many are feasible.
MIN_FEASIBLE_NODES = 100


class NodeSampler:
    """Holds where the next search starts."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._start = 0

    @property
    def start(self) -> int:
        """Where the next search starts; a replay sets it."""
        return self._start

    @start.setter
    def start(self, position: int) -> None:
        self._start = position

    def sample(self, rows: IndexArray, enough: int) -> tuple[IndexArray, int]:
        """Return the first `enough` of the feasible `rows`, and the number of nodes evaluated."""
        total = len(self._table)
        if len(rows) <= enough:
            # All nodes were evaluated, so the next search starts at the same node.
            return rows, total
        steps = (self._table.order.positions()[rows] - self._start) % total
        nearest = np.argsort(steps)[:enough]
        looked_at = int(steps[nearest[-1]]) + 1
        self._start = (self._start + looked_at) % total
        return rows[nearest], looked_at


def enough_nodes(total: int, percentage: int) -> int:
    """Return the size of a sample; a percentage of 0 or 100 means all nodes."""
    if percentage in (0, 100) or total < MIN_FEASIBLE_NODES:
        return total
    return max(total * percentage // 100, MIN_FEASIBLE_NODES)
