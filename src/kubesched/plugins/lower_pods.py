"""The pods of each row below a priority, the most important first.

All preemptors of a priority share them. Pods that request the same, with the same labels and terms,
are of one *kind*: filters by requests and counts cannot tell them apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from kubesched.cluster.arrays import IndexArray
from kubesched.cluster.incremental import LazyRows
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.pod_info import PodInfo

#: Later than every start time of a pod.
NOT_STARTED: Final = "~"
#: Above this number of kinds, those of pods that are gone are dropped.
MOST_KINDS: Final = 4096


def importance(pod: PodInfo) -> tuple[int, str]:
    """Return the sort key of pods: priority, then running time."""
    return -pod.priority, pod.pod.status.start_time or NOT_STARTED


class PodsInOrder(Struct, frozen=True):
    """Pods of a row, and the number of the kind of each."""

    pods: list[PodInfo]
    kinds: list[int]

    def rearranged(self, pods: Iterable[PodInfo]) -> PodsInOrder:
        """Return the same pods in another order."""
        places = {pod.uid: place for place, pod in enumerate(self.pods)}
        order = [places[pod.uid] for pod in pods]
        return PodsInOrder(
            [self.pods[place] for place in order], [self.kinds[place] for place in order]
        )


class LowerPods(LazyRows):
    """The pods of each row whose priority is below `priority`."""

    def __init__(self, table: NodeTable, priority: int) -> None:
        super().__init__(table, table.row_changes, table.version_changes)
        self._priority = priority
        #: kind → a pod of it
        self.kinds: list[PodInfo] = []
        #: requests, labels and terms → kind; the pods above keep them alive
        self._numbers: dict[tuple[int, int, int], int] = {}

    def empty(self, size: int) -> npt.NDArray[Any]:
        """Return unknown pods of so many rows."""
        return np.full(size, None, dtype=np.object_)

    def rebuild(self) -> None:
        """Invalidate all rows."""
        super().rebuild()
        if len(self.kinds) > MOST_KINDS:
            self.kinds, self._numbers = [], {}

    def update(self, *changes: list[Any]) -> bool:
        """Invalidate some rows."""
        return len(self.kinds) <= MOST_KINDS and super().update(*changes)

    def of(self, rows: IndexArray) -> list[PodsInOrder]:
        """Return the pods of some rows; the view must be refreshed."""
        self.ensure(rows)
        found: list[PodsInOrder] = self.values[rows].tolist()
        return found

    def compute(self, rows: IndexArray) -> None:
        """Sort the pods of some rows."""
        for row in rows.tolist():
            pods = self._table.pods[row].values()
            lower = sorted(
                (each for each in pods if each.priority < self._priority), key=importance
            )
            self.values[row] = PodsInOrder(lower, [self._kind_of(each) for each in lower])

    def _kind_of(self, pod: PodInfo) -> int:
        key = id(pod.requests), id(pod.labels), id(pod.terms)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.kinds)
            self.kinds.append(pod)
        return number
