"""The pods of each row below a priority, the most important first.

    row's pods ──sort──> PodsInOrder, cached by row ──several rows──> PodsByRow: columns [row, turn]

All preemptors of a priority share them. Pods that request the same, with the same labels and terms,
are of one *kind*: filters by requests and counts cannot tell them apart.
"""

from __future__ import annotations

from copy import copy
from datetime import datetime
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from kubesched.cluster.affinity_terms import PodTerms
from kubesched.cluster.arrays import BoolArray, IndexArray, Int64Array
from kubesched.cluster.incremental import LazyRows
from kubesched.cluster.label_sets import LabelSet
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.resources import Requests

#: Later than every start time of a pod.
NOT_STARTED: Final = "~"
NEVER_STARTED: Final = 2**62
#: Up to this many kinds, those of pods that are gone are not dropped. Each keeps one of its pods,
#: with all that is cached about its signature: some 20 KB.
MOST_KINDS: Final = 256

Kind = tuple[Requests, LabelSet, PodTerms]

_kind_of = attrgetter("requests", "labels", "terms")
_priority_of = attrgetter("priority")


def importance(pod: PodInfo) -> tuple[int, str]:
    """Return the sort key of pods: priority, then running time."""
    return -pod.priority, pod.pod.status.start_time or NOT_STARTED


@lru_cache(maxsize=65536)
def start_of(text: str | None) -> int:
    """Return a start time in microseconds; later than all others if there is none."""
    if not text:
        return NEVER_STARTED
    try:
        started = datetime.fromisoformat(text)
    except ValueError:
        return NEVER_STARTED
    return int(started.timestamp() * 1e6)


class PodsInOrder(Struct, frozen=True, eq=False):
    """Pods of a row, the most important first."""

    pods: list[PodInfo]
    #: [kind, priority and start, pod]
    columns: Int64Array

    def __eq__(self, other: object) -> bool:
        """Return whether the same pods are in the same order."""
        return (
            isinstance(other, PodsInOrder)
            and self.pods == other.pods
            and np.array_equal(self.columns, other.columns)
        )

    __hash__ = None  # type: ignore[assignment]  # has arrays, which have none


class PodsByRow:
    """Pods of several rows, the most important first, as columns [row, turn]."""

    def __init__(self, rows: list[PodsInOrder]) -> None:
        self.pods = [each.pods for each in rows]
        lengths = np.array([len(each) for each in self.pods], dtype=np.intp)
        width = int(lengths.max(initial=0))
        #: where there is a pod
        self.there: BoolArray = np.arange(width) < lengths[:, np.newaxis]
        columns = np.zeros((3, *self.there.shape), dtype=np.int64)
        # After the last pod of a row there are pods of no kind.
        columns[0] = -1
        if rows:
            columns[:, self.there] = np.concatenate([each.columns for each in rows], axis=1)
        self.kinds, self.priorities, self.starts = columns

    def __len__(self) -> int:
        return len(self.pods)

    def among(self, elements: IndexArray) -> PodsByRow:
        """Return those of some of the rows."""
        if len(elements) == len(self):
            return self
        found = copy(self)
        found.pods = [self.pods[element] for element in elements.tolist()]
        found.there, found.kinds = self.there[elements], self.kinds[elements]
        found.priorities, found.starts = self.priorities[elements], self.starts[elements]
        return found


class LowerPods(LazyRows):
    """The pods of each row whose priority is below `priority`."""

    def __init__(self, table: NodeTable, priority: int) -> None:
        super().__init__(table, table.row_changes, table.version_changes)
        self._priority = priority
        #: kind → a pod of it
        self.kinds: list[PodInfo] = []
        self._numbers: dict[Kind, int] = {}
        #: above this number of kinds, those of pods that are gone are dropped
        self._tidy_at = MOST_KINDS

    def empty(self, size: int) -> npt.NDArray[Any]:
        """Return unknown pods of so many rows."""
        return np.full(size, None, dtype=np.object_)

    def rebuild(self) -> None:
        """Invalidate all rows."""
        if len(self.kinds) > self._tidy_at:
            # Every pod may be of its own kind. Doubling keeps the cost constant per new kind.
            self._tidy_at = max(MOST_KINDS, 2 * self._kinds_in_use())
            self.kinds, self._numbers = [], {}
        super().rebuild()

    def update(self, *changes: list[Any]) -> bool:
        """Invalidate some rows."""
        return len(self.kinds) <= self._tidy_at and super().update(*changes)

    def _kinds_in_use(self) -> int:
        known: list[PodsInOrder] = self.values[self.known].tolist()
        return len(np.unique(np.concatenate([each.columns[0] for each in known]))) if known else 0

    def are_on(self, rows: IndexArray) -> BoolArray:
        """Return which of some rows have such pods; the view must be refreshed."""
        self.ensure(rows)
        return np.array([bool(each.pods) for each in self.values[rows].tolist()], dtype=np.bool_)

    def of(self, rows: IndexArray) -> PodsByRow:
        """Return the pods of some rows; the view must be refreshed."""
        self.ensure(rows)
        return PodsByRow(self.values[rows].tolist())

    def compute(self, rows: IndexArray) -> None:
        """Sort the pods of some rows."""
        by_row = [self._sorted(row) for row in rows.tolist()]
        pods = [pod for pods in by_row for pod in pods]
        # Converted once for all rows, and copied: a view would keep the columns of the others.
        columns = np.array(
            [
                [self._number_of(pod) for pod in pods],
                list(map(_priority_of, pods)),
                [start_of(pod.pod.status.start_time) for pod in pods],
            ],
            dtype=np.int64,
        )
        first = 0
        for row, of_row in zip(rows.tolist(), by_row, strict=True):
            after = first + len(of_row)
            self.values[row] = PodsInOrder(of_row, columns[:, first:after].copy())
            first = after

    def _sorted(self, row: int) -> list[PodInfo]:
        priority = self._priority
        pods = [each for each in self._table.pods[row].values() if each.priority < priority]
        pods.sort(key=importance)
        return pods

    def _number_of(self, pod: PodInfo) -> int:
        kind = _kind_of(pod)
        number = self._numbers.get(kind)
        if number is None:
            number = self._numbers[kind] = len(self.kinds)
            self.kinds.append(pod)
        return number
