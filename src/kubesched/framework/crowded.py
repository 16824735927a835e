"""Rows that could take a pod, were it not for pods that are nominated to them.

Many pods wait while others are evicted, and each of them has to leave room to those who were
promised it. What that means for a row is the same for all pods of one shape and priority, so it is
kept, and found out again only where the row or its nominations changed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kubesched.cluster.arrays import IndexArray, Int32Array, Int64Array, grown
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.known_rows import KnownRows
from kubesched.cluster.node_rows import SupposedRows
from kubesched.cluster.pod_info import PodInfo

#: Returns the number of each row's first row-local rejection, 0 for none.
Reject = Callable[[SupposedRows], Int32Array]


class CrowdedRows:
    """For pods of one shape and priority: the rejection of each row with nominated pods on it."""

    def __init__(self, cluster: Cluster, priority: int) -> None:
        self._table = cluster.table
        self._nominated = cluster.nominated_rows
        self._priority = priority
        self._known = KnownRows(cluster)
        self._numbers: Int32Array = np.zeros(0, dtype=np.int32)

    def current(self, pod: PodInfo, reject: Reject) -> Int32Array:
        """Return the number of each row's rejection, 0 where nobody is nominated or both fit."""
        if len(self._numbers) < self._table.size:
            self._numbers = grown(self._numbers, (self._table.size,))
        known = self._known.current()
        stale = np.flatnonzero(~known)
        if len(stale):
            self._numbers[stale] = 0
            sums = self._nominated.sums(self._priority)
            rows = stale[sums.pod_count[stale] > 0]
            if len(rows):
                nodes = self._with(rows, sums.requested[:, rows], sums.pod_count[rows])
                self._numbers[rows] = reject(nodes)
            known[stale] = True
        own = self._nominated.own_row(pod)
        if own is None:
            return self._numbers
        # Where the pod itself is promised a place, only the others count.
        numbers, row = self._numbers.copy(), np.array([own], dtype=np.intp)
        requested, pod_count = self._nominated.taken_on(row, pod)
        numbers[own] = reject(self._with(row, requested, pod_count))[0] if pod_count[0] else 0
        return numbers

    def _with(
        self,
        rows: IndexArray,
        requested: Int64Array,
        pod_count: Int64Array,
    ) -> SupposedRows:
        table = self._table
        return SupposedRows(
            table,
            rows,
            requested=requested + table.requested[:, rows],
            pod_count=pod_count + table.pod_count[rows],
        )
