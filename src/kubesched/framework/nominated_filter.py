"""The filters with nominated pods in place: a node must pass beside them, too.

    only filters about the node and its sums    BesideNominated, a view of the plan
             + filters that bound counts        with the pods on these rows counted
    any other filter, or host ports             each row in a transaction of its own

A row must pass both with and without its nominated pods, as they may never be placed.
"""

from __future__ import annotations

import numpy as np

from kubesched.cluster.arrays import BoolArray, Int32Array
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plan import SignaturePlan
from kubesched.framework.profile_filters import ProfileFilters
from kubesched.framework.status_book import StatusBook


class NominatedFilter:
    """The filters of one profile, on rows with the pods that are nominated to them."""

    def __init__(self, filters: ProfileFilters, cluster: Cluster, book: StatusBook) -> None:
        self._filters = filters
        self._cluster = cluster
        self._book = book

    def rejections(
        self,
        state: CycleState,
        pod: PodInfo,
        plan: SignaturePlan,
        nodes: NodeRows,
        mask: BoolArray | None = None,
    ) -> Int32Array:
        """Return the number of each row's rejection beside its nominated pods, 0 for none.

        `mask` limits the rows that matter.
        """
        if pod.signature.host_ports or not self._filters.is_arithmetic(state):
            return self._one_by_one(state, pod, nodes, mask)
        beside = plan.beside_nominated(self._cluster, pod.priority).rejections(pod)[nodes.rows]
        if self._filters.is_row_local(state):
            return beside
        return self._bounded(state, pod, nodes, beside, mask)

    def _bounded(
        self,
        state: CycleState,
        pod: PodInfo,
        nodes: NodeRows,
        beside: Int32Array,
        mask: BoolArray | None,
    ) -> Int32Array:
        """Complete the rejections of row-local filters by those of the others."""
        reserving = self._cluster.nominated_rows.reserving(pod)[nodes.rows]
        elements = np.flatnonzero(reserving if mask is None else reserving & mask)
        if not len(elements):
            return beside
        bounded = self._filters.bounded(state, pod, nodes.row_numbers()[elements])
        rejections = bounded.rejections(bounded.counts + bounded.reserved)
        beside = beside.copy()
        beside[elements] = self._book.first(beside[elements], rejections)
        return beside

    def _one_by_one(
        self, state: CycleState, pod: PodInfo, nodes: NodeRows, mask: BoolArray | None
    ) -> Int32Array:
        """Place the nominated pods of each row that matters, and run all filters on it."""
        table = self._cluster.table
        numbers = np.zeros(table.size, dtype=np.int32)
        matters = np.zeros(table.size, dtype=np.bool_)
        matters[nodes.rows] = True if mask is None else mask
        for node_name, others in self._cluster.nominator.nodes_to_leave_room_on(pod).items():
            row = table.row_of(node_name)
            if row is None or not matters[row]:
                continue
            with self._cluster.transaction() as tx:
                for other in others:
                    if other.uid not in table.pods[row]:
                        tx.remove(other.uid)
                        tx.place(other, node_name)
                numbers[row] = self._filters.evaluate(state, pod, NodeRows.one(table, row))[0]
        return numbers[nodes.rows]
