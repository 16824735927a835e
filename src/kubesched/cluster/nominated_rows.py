"""What nominated pods would take from each row: the room that others have to leave to them.

Nominations are few, but many pods are asked about while they last: all that wait behind them. So
the sums over the pods of at least some priority are kept, and follow the nominator's journal.
"""

from __future__ import annotations

import numpy as np

from kubesched.cluster.arrays import IndexArray, Int64Array
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.nominator import Nominator
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.recent import Recent


class NominatedRows:
    """Sums over the pods that are nominated to each row."""

    def __init__(self, table: NodeTable, nominator: Nominator) -> None:
        self._table = table
        self._nominator = nominator
        self._sums: Recent[int, NominatedSums] = Recent(limit=16)

    def taken_on(self, rows: IndexArray, pod: PodInfo) -> tuple[Int64Array, Int64Array]:
        """Return what others would take from rows, [resource, element], and how many they are."""
        sums = self.sums(pod.priority)
        requested, pod_count = sums.requested[:, rows], sums.pod_count[rows]
        own = self.own_row(pod)
        for element in np.flatnonzero(rows == own).tolist() if own is not None else ():
            pod.requests.resolve(self._table.resources)
            requested[pod.requests.numbers, element] -= pod.requests.vector
            pod_count[element] -= 1
        return requested, pod_count

    def own_row(self, pod: PodInfo) -> int | None:
        """Return the row whose sums the pod itself is part of."""
        name = self._nominator.node_of(pod.uid)
        row = None if name is None else self._table.row_of(name)
        return None if row is None or pod.uid in self._table.pods[row] else row

    def sums(self, priority: int) -> NominatedSums:
        """Return the sums over the pods of at least some priority."""
        sums = self._sums.get(priority)
        if sums is None:
            sums = self._sums[priority] = NominatedSums(self._table, self._nominator, priority)
        sums.update()
        return sums


class NominatedSums:
    """Sums over nominated pods whose priority is at least `priority`."""

    def __init__(self, table: NodeTable, nominator: Nominator, priority: int) -> None:
        self._table = table
        self._nominator = nominator
        self._priority = priority
        #: up to where the journals were read: of nominations, of nodes, of the pods on them
        self._version, self._nodes_at, self._pods_at = -1, -1, -1
        #: [row]
        self.pod_count: Int64Array = np.zeros(0, dtype=np.int64)
        #: [resource, row]
        self.requested: Int64Array = np.zeros((0, 0), dtype=np.int64)

    def update(self) -> None:
        """Bring the sums up to date."""
        table, nominator = self._table, self._nominator
        names = self._changed_names()
        if names is None:
            self.pod_count = np.zeros(table.size, dtype=np.int64)
            self.requested = np.zeros((len(table.resources), table.size), dtype=np.int64)
            names = set(nominator.node_names())
        self._version = nominator.version
        self._nodes_at, self._pods_at = table.node_changes.position, table.row_changes.position
        for name in names:
            row = table.row_of(name)
            if row is not None:
                self._sum(row, name)

    def _changed_names(self) -> set[str] | None:
        """Return the nodes whose sums may be wrong; None means all."""
        table = self._table
        if self.requested.shape != (len(table.resources), table.size):
            return None
        # When nodes come, go or change, rows may be others' than before.
        if self._nodes_at != table.node_changes.position:
            return None
        names = self._nominator.changed_since(self._version)
        rows = table.row_changes.rows_since(self._pods_at)
        if names is None or rows is None:
            return None
        # A nominated pod that is on its node by now is counted there.
        on_rows = (table.name_at(row) for row in rows.tolist())
        return names.union(name for name in on_rows if self._nominator.has_pods_on(name))

    def _sum(self, row: int, node_name: str) -> None:
        self.pod_count[row] = 0
        self.requested[:, row] = 0
        for pod in self._nominator.pods_on(node_name):
            if pod.priority >= self._priority and pod.uid not in self._table.pods[row]:
                pod.requests.resolve(self._table.resources)
                self.pod_count[row] += 1
                self.requested[pod.requests.numbers, row] += pod.requests.vector
