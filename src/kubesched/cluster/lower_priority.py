"""What pods below a certain priority take from each row: what preemption could free.

Asked for by every pod that fits nowhere, and by all of one priority for the same sums, so these are
kept, and only rows whose pods changed are summed up again.
"""

from __future__ import annotations

import numpy as np

from kubesched.cluster.arrays import IndexArray, Int64Array, grown
from kubesched.cluster.node_table import NodeTable


class LowerPriority:
    """Sums over the pods of each row whose priority is below `priority`."""

    def __init__(self, table: NodeTable, priority: int) -> None:
        self._table = table
        self._priority = priority
        self._position = -1
        #: [row]
        self.pod_count: Int64Array = np.zeros(0, dtype=np.int64)
        #: [resource, row]
        self.requested: Int64Array = np.zeros((0, 0), dtype=np.int64)

    def update(self) -> None:
        """Bring the sums up to date."""
        table = self._table
        changed = table.row_changes.rows_since(self._position) if self._position >= 0 else None
        if changed is None or self.requested.shape[0] != len(table.resources):
            changed = np.arange(table.size, dtype=np.intp)
        self._position = table.row_changes.position
        if len(self.pod_count) < table.size or self.requested.shape[0] != len(table.resources):
            self.pod_count = grown(self.pod_count, (table.size,))
            self.requested = grown(self.requested, (len(table.resources), table.size))
        self._sum(changed)

    def _sum(self, rows: IndexArray) -> None:
        # Plain numbers: there are few of them a row, and at first many rows.
        resources, priority = self._table.resources, self._priority
        counts: list[int] = []
        sums: list[list[int]] = []
        for row in rows.tolist():
            count, taken = 0, [0] * len(resources)
            for pod in self._table.pods[row].values():
                if pod.priority < priority:
                    count += 1
                    pod.requests.resolve(resources)
                    for number, amount in pod.requests.pairs:
                        taken[number] += amount
            counts.append(count)
            sums.append(taken)
        if counts:
            self.pod_count[rows] = counts
            self.requested[:, rows] = np.array(sums, dtype=np.int64).T
