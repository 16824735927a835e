"""Requests of nominated pods by row: reserved, so other pods must not use them.

Nominations are few, but every pod that is evaluated while they last reads these sums.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from kubesched.cluster.affinity_terms import PodTerms
from kubesched.cluster.arrays import BoolArray, IndexArray, Int64Array
from kubesched.cluster.incremental import View
from kubesched.cluster.label_sets import LabelSet
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.nominator import Nominator
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.recent import Recent


class PodKind(NamedTuple):
    """What pods have in common that no counter can tell apart."""

    labels: LabelSet
    terms: PodTerms


def kind_of(pod: PodInfo) -> PodKind:
    """Return the kind of a pod."""
    return PodKind(pod.labels, pod.terms)


class NominatedRows:
    """Sums over the pods that are nominated to each row."""

    def __init__(self, table: NodeTable, nominator: Nominator) -> None:
        self._table = table
        self._nominator = nominator
        self._requests: Recent[int, NominatedRequests] = Recent(limit=16)

    def reserved_on(self, rows: IndexArray, pod: PodInfo) -> tuple[Int64Array, Int64Array]:
        """Return what is reserved for other pods, [resource, element], and for how many pods."""
        sums = self.requests(pod.priority)
        requested, pod_count = sums.requested[:, rows], sums.pod_count[rows]
        own = self.own_row(pod)
        for element in np.flatnonzero(rows == own).tolist() if own is not None else ():
            pod.requests.resolve(self._table.resources)
            requested[pod.requests.numbers, element] -= pod.requests.vector
            pod_count[element] -= 1
        return requested, pod_count

    def kinds_on(self, pod: PodInfo) -> Iterator[tuple[PodKind, Mapping[int, int]]]:
        """Return the kinds of other pods for which room is left, and how many are on which row."""
        found, row = self.requests(pod.priority), self.own_row(pod)
        # As it was nominated: its labels may have changed since.
        here = () if row is None else found.pods.get(row, ())
        own = next((kind_of(each) for each in here if each.uid == pod.uid), None)
        for kind, by_row in found.kinds.items():
            if row is not None and kind == own:
                yield kind, {**by_row, row: by_row[row] - 1}
            else:
                yield kind, by_row

    def reserving(self, pod: PodInfo) -> BoolArray:
        """Return on which rows room is left for other pods."""
        pod_count = self.requests(pod.priority).pod_count
        found: BoolArray = pod_count > 0
        own = self.own_row(pod)
        if own is not None:
            found[own] = pod_count[own] > 1
        return found

    def own_row(self, pod: PodInfo) -> int | None:
        """Return the row whose sums include the pod itself."""
        name = self._nominator.node_of(pod.uid)
        row = None if name is None else self._table.row_of(name)
        return None if row is None or pod.uid in self._table.pods[row] else row

    def requests(self, priority: int) -> NominatedRequests:
        """Return the sums over nominated pods of at least some priority."""
        requests = self._requests.get(priority)
        if requests is None:
            requests = NominatedRequests(self._table, self._nominator, priority)
            self._requests[priority] = requests
        requests.refresh()
        return requests


class NominatedRequests(View):
    """Sums over nominated pods whose priority is at least `priority`."""

    derived = ("kinds", "pod_count", "pods", "requested")

    def __init__(self, table: NodeTable, nominator: Nominator, priority: int) -> None:
        super().__init__(table.row_changes, nominator.changes)
        self._table = table
        self._nominator = nominator
        self._priority = priority
        #: row → its nominated pods
        self.pods: dict[int, list[PodInfo]]
        #: the same by kind → row → number of pods
        self.kinds: dict[PodKind, dict[int, int]]
        #: [row]
        self.pod_count: Int64Array
        #: [resource, row]
        self.requested: Int64Array

    def stamp(self) -> tuple[int, int]:
        """Return the number of resources and the version of the node set: rows may be reused."""
        return len(self._table.resources), self._table.node_changes.position

    def rebuild(self) -> None:
        """Sum all rows."""
        table = self._table
        self.pods, self.kinds = {}, {}
        self.pod_count = np.zeros(table.size, dtype=np.int64)
        self.requested = np.zeros((len(table.resources), table.size), dtype=np.int64)
        for name in self._nominator.node_names():
            self._sum(name)

    def update(self, rows: list[int], names: list[str]) -> bool:
        """Sum the nodes whose nominations or pods changed."""
        nodes = (self._table.nodes[row] for row in rows)
        on_rows = (node.metadata.name for node in nodes if node is not None)
        for name in {*names, *(name for name in on_rows if self._nominator.has_pods_on(name))}:
            self._sum(name)
        return True

    def _sum(self, node_name: str) -> None:
        row = self._table.row_of(node_name)
        if row is None:
            return
        self.pod_count[row] = 0
        self.requested[:, row] = 0
        for pod in self.pods.pop(row, ()):
            self._discard(row, kind_of(pod))
        pods: list[PodInfo] = []
        for pod in self._nominator.pods_on(node_name):
            # A nominated pod that is on its node by now is counted there.
            if pod.priority >= self._priority and pod.uid not in self._table.pods[row]:
                pod.requests.resolve(self._table.resources)
                pods.append(pod)
                by_row = self.kinds.setdefault(kind_of(pod), {})
                by_row[row] = by_row.get(row, 0) + 1
                self.pod_count[row] += 1
                self.requested[pod.requests.numbers, row] += pod.requests.vector
        if pods:
            self.pods[row] = pods

    def _discard(self, row: int, kind: PodKind) -> None:
        by_row = self.kinds[kind]
        by_row[row] -= 1
        if not by_row[row]:
            del by_row[row]
        if not by_row:
            del self.kinds[kind]
