"""Requests of the pods below a priority, by row: what preemption could free.

All unschedulable pods of a priority share the sums.
"""

from __future__ import annotations

import numpy as np

from kubesched.cluster.arrays import IndexArray, Int64Array, grown
from kubesched.cluster.incremental import RowView
from kubesched.cluster.node_table import NodeTable


class PreemptableRequests(RowView):
    """Sums over the pods of each row whose priority is below `priority`."""

    derived = ("pod_count", "requested")

    def __init__(self, table: NodeTable, priority: int) -> None:
        super().__init__(table, table.row_changes)
        self._priority = priority
        #: [row]
        self.pod_count: Int64Array
        #: [resource, row]
        self.requested: Int64Array

    def stamp(self) -> int:
        """Return the number of resources."""
        return len(self._table.resources)

    def rebuild(self) -> None:
        """Sum all rows."""
        table = self._table
        self.pod_count = np.zeros(table.size, dtype=np.int64)
        self.requested = np.zeros((len(table.resources), table.size), dtype=np.int64)
        self._sum(np.arange(table.size, dtype=np.intp))

    def update(self, rows: list[int]) -> bool:
        """Sum some rows."""
        size = self._table.size
        if len(self.pod_count) < size:
            self.pod_count = grown(self.pod_count, (size,))
            self.requested = grown(self.requested, (len(self.requested), size))
        self._sum(np.array(rows, dtype=np.intp))
        return True

    def _sum(self, rows: IndexArray) -> None:
        # Plain integers: few per row, and initially many rows.
        resources, priority = self._table.resources, self._priority
        counts: list[int] = []
        sums: list[list[int]] = []
        for row in rows.tolist():
            count, requested = 0, [0] * len(resources)
            for pod in self._table.pods[row].values():
                if pod.priority < priority:
                    count += 1
                    pod.requests.resolve(resources)
                    for number, amount in pod.requests.pairs:
                        requested[number] += amount
            counts.append(count)
            sums.append(requested)
        if counts:
            self.pod_count[rows] = counts
            self.requested[:, rows] = np.array(sums, dtype=np.int64).T
