"""Filters about pods, as bounds on how many pods of each row are counted.

Topology spread and inter-pod affinity compare counts of pods by domain. As long as nothing changes
on other rows, what they say of a row depends on its own pods alone:

    count of the domain = pods on other rows + pods on the row      ──>      least <= count <= most

So a row with other pods than it has, as preemption and nominated pods suppose, is rejected or not
by arithmetic on its counts, like its requests; and a result for a row stays valid until its bounds
change, although pods on other rows do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import Final

import numpy as np
from msgspec import Struct

from kubesched.cluster.arrays import BoolArray, IndexArray, Int32Array, Int64Array
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.nominated_rows import PodKind
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.row_counter import Countable, RowCounter
from kubesched.framework.status import Status
from kubesched.framework.status_book import StatusBook

#: More pods than there are.
UNLIMITED: Final = 1 << 40


class CountBounds(Struct, frozen=True, eq=False):
    """Rows that pass, by how many of their pods are counted."""

    #: None counts no pod
    counter: RowCounter | None
    #: [element], the highest count of a row that passes; negative: none does
    most: Int64Array
    status: Status
    #: [element], the lowest count of a row that passes; None: 0
    least: Int64Array | None = None
    #: whether no row that passes is rejected when more pods are counted, on whichever rows
    more_is_fine: bool = False


class NumberedBounds(Struct, frozen=True, eq=False):
    """Bounds of one filter, and the number of their status in the book."""

    number: int
    bounds: CountBounds


def numbered(
    book: StatusBook, order: int, plugin: str, bounds: Iterable[CountBounds]
) -> list[NumberedBounds]:
    """Number the statuses of the filter at position `order`."""
    return [NumberedBounds(book.number(order, each.status.by(plugin)), each) for each in bounds]


class BoundedRows:
    """The bounds of all filters on the counts of some rows, in the order of the filters.

    Counts are arrays [bounds, element].
    """

    def __init__(self, cluster: Cluster, rows: IndexArray, found: Sequence[NumberedBounds]) -> None:
        size = cluster.table.size
        self.rows = rows
        self._numbers = [each.number for each in found]
        self._counters = [each.bounds.counter for each in found]
        self._may_have_more = [each.bounds.more_is_fine for each in found]
        shape = len(found), len(rows)
        #: of the rows as they are
        self.counts: Int64Array = np.zeros(shape, dtype=np.int64)
        self._most: Int64Array = np.zeros(shape, dtype=np.int64)
        self._least: Int64Array = np.zeros(shape, dtype=np.int64)
        for place, each in enumerate(found):
            if each.bounds.counter is not None:
                self.counts[place] = each.bounds.counter.counts(size)[rows]
            self._most[place] = each.bounds.most
            if each.bounds.least is not None:
                self._least[place] = each.bounds.least
        self._size = size
        #: (labels, terms) → which bounds count pods that have these
        self._counting: dict[tuple[int, int], list[int]] = {}
        #: of pods nominated to the rows
        self.reserved: Int64Array = np.zeros(shape, dtype=np.int64)

    def among(self, rows: IndexArray) -> BoundedRows:
        """Return the same of some of the rows."""
        elements = np.zeros(self._size, dtype=np.intp)
        elements[self.rows] = np.arange(len(self.rows))
        elements = elements[rows]
        found = copy(self)
        found.rows = rows
        found.counts, found.reserved = self.counts[:, elements], self.reserved[:, elements]
        found._most = self._most[:, elements]  # noqa: SLF001 (its own class)
        found._least = self._least[:, elements]  # noqa: SLF001 (its own class)
        return found

    @property
    def counted(self) -> tuple[object, ...]:
        """What is counted, for each of the bounds."""
        return tuple(None if each is None else each.counted for each in self._counters)

    def counting(self, pod: Countable) -> list[int]:
        """Return which bounds count a pod."""
        key = id(pod.labels), id(pod.terms)
        found = self._counting.get(key)
        if found is None:
            counters = enumerate(self._counters)
            found = [place for place, each in counters if each is not None and each.counts_pod(pod)]
            self._counting[key] = found
        return found

    def may_mind(self, pod: PodInfo) -> bool:
        """Return whether one more pod, on whichever row, may have a row rejected that passes."""
        return not all(self._may_have_more[place] for place in self.counting(pod))

    def reserve(self, nominated: Iterable[tuple[PodKind, Mapping[int, int]]]) -> None:
        """Count pods that are nominated to rows, in addition to those that are there."""
        counting = [(kind, by_row) for kind, by_row in nominated if self.counting(kind)]
        if not counting:
            return
        elements = np.full(self._size, -1, dtype=np.intp)
        elements[self.rows] = np.arange(len(self.rows))
        for kind, by_row in counting:
            found = elements[np.fromiter(by_row, dtype=np.intp, count=len(by_row))]
            pods = np.fromiter(by_row.values(), dtype=np.int64, count=len(by_row))
            for place in self.counting(kind):
                self.reserved[place, found[found >= 0]] += pods[found >= 0]

    def context(self) -> Int64Array:
        """Return all that other rows have to do with each row: [value, element].

        Bounds that are out of reach of the pods on a row, nominated ones included, are cut off.
        """
        reach = self.counts + self.reserved
        return np.concatenate((np.clip(self._least, 0, reach + 1), np.clip(self._most, -1, reach)))

    def never_reject(self) -> BoolArray:
        """Return which rows pass whichever of their pods are removed."""
        found: BoolArray = np.logical_and.reduce(
            (self._least <= 0) & (self.counts + self.reserved <= self._most)
        )
        return found

    def passes(self, counts: Int64Array, elements: IndexArray) -> BoolArray:
        """Tell whether rows pass with such counts, with and without their nominated pods.

        There may be several counts for each bounds and element: [bounds, element, …].
        """
        shape = *counts.shape[:2], *[1] * (counts.ndim - 2)
        least = self._least[:, elements].reshape(shape)
        most = (self._most - self.reserved)[:, elements].reshape(shape)
        found: BoolArray = np.logical_and.reduce((least <= counts) & (counts <= most))
        return found

    def rejections(self, counts: Int64Array) -> Int32Array:
        """Return the number of each row's first rejection with such counts, 0 for none."""
        result = np.zeros(len(self.rows), dtype=np.int32)
        outside = (counts > self._most) | (counts < self._least)
        for number, rejected in zip(reversed(self._numbers), outside[::-1], strict=True):
            result[rejected] = number
        return result
