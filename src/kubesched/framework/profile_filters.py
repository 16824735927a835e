"""The filters of a profile, asked in full: which apply in an attempt, and what they say of rows.

Nothing is cached here: what row-local filters answered before is in `SignaturePlan`.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kubesched.cluster.arrays import IndexArray, Int32Array
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.count_bounds import BoundedRows, NumberedBounds, numbered
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import Filter, RowFilter
from kubesched.framework.status_book import StatusBook


class ProfileFilters:
    """The filters of one profile; rejections are numbers of its book."""

    def __init__(
        self, filters: Iterable[RowFilter | Filter], cluster: Cluster, book: StatusBook
    ) -> None:
        self._cluster = cluster
        self._book = book
        #: each with its position: the first rejection in this order counts
        self._in_order = list(enumerate(filters))
        #: those that may read everything, with their positions
        self.cluster_wide = [
            (order, plugin) for order, plugin in self._in_order if isinstance(plugin, Filter)
        ]

    def is_row_local(self, state: CycleState) -> bool:
        """Tell whether only row-local filters apply in this attempt."""
        return all(plugin.name in state.skip_filter for _, plugin in self.cluster_wide)

    def is_arithmetic(self, state: CycleState) -> bool:
        """Tell whether all filters that apply in this attempt are row-local or bound counts."""
        return all(
            plugin.bounds_counts or plugin.name in state.skip_filter
            for _, plugin in self.cluster_wide
        )

    def evaluate(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Int32Array:
        """Run every filter on some rows; return the numbers of first rejections, 0 for none."""
        result = np.zeros(len(nodes), dtype=np.int32)
        # In reverse order, so that the first rejection overwrites later ones.
        for order, plugin in reversed(self._in_order):
            if plugin.name in state.skip_filter:
                continue
            if isinstance(plugin, RowFilter):
                verdict = plugin.filter(pod.signature, nodes)
            else:
                verdict = plugin.filter(state, pod, nodes)
            numbers = self._book.numbers_of(verdict, order=order, plugin=plugin.name)
            if numbers is not None:
                np.copyto(result, numbers, where=numbers > 0)
        return result

    def bounded(self, state: CycleState, pod: PodInfo, rows: IndexArray) -> BoundedRows:
        """Return what cluster-wide filters say of some rows, if all of those bound counts."""
        nodes = NodeRows(self._cluster.table, rows)
        found: list[NumberedBounds] = []
        for order, plugin in self.cluster_wide:
            if plugin.name not in state.skip_filter:
                bounds = plugin.count_bounds(state, pod, nodes)
                found += numbered(self._book, order, plugin.name, bounds)
        bounded = BoundedRows(self._cluster, rows, found)
        bounded.reserve(self._cluster.nominated_rows.kinds_on(pod))
        return bounded
