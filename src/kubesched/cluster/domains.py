"""Rows by domain, and counts of pods by domain that follow every pod.

A *domain* is the set of nodes with the same value of a label; domain 0 stands for rows that do not
count. Which rows are in which domain changes when nodes do, which is seldom; the counts change with
every pod, and are kept up to date by the counters of rows that they are sums of.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from kubesched.cluster.arrays import BoolArray, IndexArray, Int32Array, Int64Array

if TYPE_CHECKING:
    from kubesched.cluster.node_rows import NodeRows
    from kubesched.cluster.node_table import NodeTable


class Domains:
    """The values of one label, on all rows or on those that are eligible."""

    __slots__ = (
        "_by_domain",
        "_eligible",
        "_key",
        "_position",
        "_starts",
        "_table",
        "ids",
        "leaves_rows_out",
        "number",
        "size",
        "there",
    )

    def __init__(
        self, table: NodeTable, key: str, eligible: Callable[[], BoolArray] | None = None
    ) -> None:
        """`eligible` may depend on nodes, not on their pods."""
        self._table = table
        self._key = key
        self._eligible = eligible
        #: how far the log of nodes was read; counts of another position are not about these rows
        self._position = -1
        #: row → domain, as numbers that arrays can be indexed by without converting them first
        self.ids: IndexArray = np.zeros(0, dtype=np.intp)
        #: how many domains the label has ever had
        self.size = 1
        #: which of them have a row that counts, and how many these are
        self.there: BoolArray = np.zeros(1, dtype=np.bool_)
        self.number = 0
        #: whether there are rows that do not count
        self.leaves_rows_out = False
        #: rows sorted by domain, and where each domain begins; None until somebody asks
        self._by_domain: IndexArray | None = None
        self._starts: IndexArray = np.zeros(0, dtype=np.intp)

    def refresh(self) -> int:
        """Look at nodes again if they changed; return up to where they were looked at."""
        position = self._table.node_changes.position
        if position != self._position:
            self._position = position
            column = self._table.label_column(self._key)
            self.ids = column.ids[: self._table.size].astype(np.intp)
            if self._eligible is not None:
                self.ids[~self._eligible()] = 0
            self.size = len(column.vocabulary)
            self.there = np.bincount(self.ids, minlength=self.size) > 0
            self.leaves_rows_out = bool(self.there[0])
            self.there[0] = False
            self.number = int(np.count_nonzero(self.there))
            self._by_domain = None
        return position

    def with_rows(self, nodes: NodeRows) -> BoolArray:
        """Return which domains some rows are in, domain 0 included; to be changed as one likes."""
        if len(nodes) < len(self.ids):
            return np.bincount(self.ids[nodes.rows], minlength=self.size) > 0
        there = self.there.copy()
        there[0] = self.leaves_rows_out
        return there

    def rows_of(self, domain: int) -> IndexArray:
        """Return the rows of a domain."""
        if self._by_domain is None:
            self._by_domain = np.argsort(self.ids, kind="stable")
            numbers = np.arange(self.size + 1)
            self._starts = np.searchsorted(self.ids, numbers, sorter=self._by_domain)
        return self._by_domain[self._starts.item(domain) : self._starts.item(domain + 1)]


class DomainCounts:
    """Sums of one counter's rows by domain."""

    __slots__ = ("_hit", "_ids", "_position", "counts", "domains")

    def __init__(self, domains: Domains) -> None:
        self.domains = domains
        self._position = -1
        self._ids: IndexArray = domains.ids
        #: domain → pods; what domain 0 has means nothing
        self.counts: Int64Array = np.zeros(0, dtype=np.int64)
        #: row → whether its domain has pods; None until somebody asks
        self._hit: BoolArray | None = None

    def add(self, row: int, amount: int) -> None:
        """Follow the counter of rows."""
        # A row that is not known yet came with a node, after which all is summed up again.
        if row >= len(self._ids):
            return
        domain = self._ids.item(row)
        before = self.counts.item(domain)
        self.counts[domain] = before + amount
        if self._hit is None or not domain or (before and before + amount):
            return
        if self.domains.ids is self._ids:
            self._hit[self.domains.rows_of(domain)] = not before
        else:
            self._hit = None

    def current(self, count_rows: Callable[[int], Int32Array]) -> Int64Array:
        """Return the sums; `count_rows` gives the counts of so many rows if they are needed."""
        position = self.domains.refresh()
        if position != self._position:
            self._position, self._ids = position, self.domains.ids
            rows = count_rows(len(self._ids))
            sums = np.bincount(self._ids, weights=rows, minlength=self.domains.size)
            self.counts = sums.astype(np.int64)
            self._hit = None
        return self.counts

    def hit(self, count_rows: Callable[[int], Int32Array]) -> BoolArray:
        """Return which rows are in a domain that has pods; domain 0 never has."""
        counts = self.current(count_rows)
        if self._hit is None:
            has_pods = counts > 0
            has_pods[0] = False
            self._hit = has_pods.take(self._ids)
        return self._hit

    @property
    def nbytes(self) -> int:
        """About how much memory it takes."""
        return self.counts.nbytes + (0 if self._hit is None else self._hit.nbytes)
