"""Looking at some nodes only, where a profile asks for that.

kube-scheduler stops looking once it has found enough feasible nodes, and starts the next search
where the last one ended. Here all nodes are looked at unless ``percentageOfNodesToScore`` says
otherwise; then the outcome is the same as if nodes had been looked at one by one.
"""

from __future__ import annotations

import numpy as np

from kubesched.cluster.arrays import IndexArray
from kubesched.cluster.node_table import NodeTable

#: Fewer feasible nodes than that are never enough.
MIN_FEASIBLE_NODES = 100


class NodeSampler:
    """Remembers where the next search starts."""

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
        """Return the first `enough` of the feasible `rows`, and how many nodes were looked at."""
        total = len(self._table)
        if len(rows) <= enough:
            # All nodes were looked at, so the next search starts at the same place.
            return rows, total
        steps = (self._table.order.positions()[rows] - self._start) % total
        nearest = np.argsort(steps)[:enough]
        looked_at = int(steps[nearest[-1]]) + 1
        self._start = (self._start + looked_at) % total
        return rows[nearest], looked_at


def enough_nodes(total: int, percentage: int) -> int:
    """Return how many feasible nodes are enough; a percentage of 0 or 100 means all nodes."""
    if percentage in (0, 100) or total < MIN_FEASIBLE_NODES:
        return total
    return max(total * percentage // 100, MIN_FEASIBLE_NODES)
