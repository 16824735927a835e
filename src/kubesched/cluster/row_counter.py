"""A count per row, stored sparsely while few rows have any, and its sums by domain.

Of a label with many values, such as the host name, the sums of few rows are not stored: with
thousands of counters they would take more memory than all else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import TYPE_CHECKING, Protocol

import numpy as np

from kubesched.cluster.arrays import BoolArray, Int32Array, Int64Array, grown
from kubesched.cluster.domains import DomainCounts, Domains

if TYPE_CHECKING:
    from kubesched.cluster.affinity_terms import PodTerms
    from kubesched.cluster.label_sets import LabelSet

#: Above this number of rows, an array is faster and worth its memory.
SPARSE_ROWS = 64
#: Sums are cached for this many sets of domains.
MAX_SUMS = 8


class Countable(Protocol):
    """What counters see of a pod."""

    @property
    def labels(self) -> LabelSet:
        """Its namespace and labels."""

    @property
    def terms(self) -> PodTerms:
        """Its affinity terms."""


class RowCounter(ABC):
    """Counts by row: a dict while few rows have any, then an array."""

    __slots__ = ("__weakref__", "_dense", "_sparse", "_sums", "total")

    def __init__(self) -> None:
        self._sparse: dict[int, int] = {}
        self._dense: Int32Array | None = None
        #: in order of creation
        self._sums: list[DomainCounts] = []
        self.total = 0

    @property
    @abstractmethod
    def counted(self) -> Hashable:
        """What is counted; counters of the same count the same pods."""

    @abstractmethod
    def counts_pod(self, pod: Countable) -> bool:
        """Tell whether a pod would be counted."""

    def add(self, row: int, amount: int) -> None:
        """Change the count of a row."""
        self.total += amount
        for sums in self._sums:
            sums.add(row, amount)
        if self._dense is not None:
            if row >= len(self._dense):
                self._dense = grown(self._dense, (max(2 * len(self._dense), row + 1),))
            self._dense[row] += amount
            return
        count = self._sparse.get(row, 0) + amount
        if count:
            self._sparse[row] = count
        else:
            del self._sparse[row]
        if len(self._sparse) > SPARSE_ROWS:
            self._dense = self.counts(max(self._sparse) + 1)
            self._sparse = {}

    def counts(self, size: int) -> Int32Array:
        """Return the counts of the first `size` rows; read-only."""
        if self._dense is not None:
            if len(self._dense) < size:
                self._dense = grown(self._dense, (size,))
            return self._dense[:size]
        result = np.zeros(size, dtype=np.int32)
        for row, count in self._sparse.items():
            result[row] = count
        return result

    def by_domain(self, domains: Domains) -> Int64Array:
        """Return the sums by domain, 0 for domain 0; read-only."""
        if not self._stores_sums(domains):
            sums = np.zeros(domains.size, dtype=np.int64)
            for row, count in self._sparse.items():
                sums[domains.ids.item(row)] += count
            sums[0] = 0
            return sums
        return self._sums_by(domains).counts

    def hit(self, domains: Domains) -> BoolArray:
        """Return which rows are in a domain with a positive sum; read-only."""
        if not self._stores_sums(domains):
            rows = np.fromiter(self._sparse, dtype=np.intp, count=len(self._sparse))
            return domains.rows_beside(rows)
        return self._sums_by(domains).hit()

    def _stores_sums(self, domains: Domains) -> bool:
        domains.refresh()
        return self._dense is not None or domains.are_few

    def _sums_by(self, domains: Domains) -> DomainCounts:
        for sums in self._sums:
            if sums.domains is domains:
                break
        else:
            sums = DomainCounts(self, domains)
            self._sums = [*self._sums[-MAX_SUMS + 1 :], sums]
        sums.refresh()
        return sums

    def validate(self) -> None:
        """Check all sums by domain."""
        for sums in self._sums:
            sums.validate()

    @property
    def nbytes(self) -> int:
        """Approximate memory use of the counts."""
        rows = 4096 if self._dense is None else self._dense.nbytes
        return rows + sum(each.nbytes for each in self._sums)
