"""Rows by topology domain, and counts of pods by domain.

A *domain* is the set of nodes with the same value of a label; domain 0 holds the rows that do not
count. Rows change their domain only when nodes change; counts change with every pod, and are
updated with the per-row counters that they sum up. A node that comes, goes or moves changes the
domain of its row, and the sums of two domains.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from weakref import ref

import numpy as np

from kubesched.cluster.arrays import (
    BoolArray,
    IndexArray,
    Int32Array,
    Int64Array,
    grown,
    read_only,
)
from kubesched.cluster.incremental import Log, View
from kubesched.cluster.recent import Recent
from kubesched.cluster.vocabulary import Vocabulary
from kubesched.errors import InvariantError, require

if TYPE_CHECKING:
    from kubesched.cluster.node_rows import NodeRows
    from kubesched.cluster.node_table import NodeTable
    from kubesched.cluster.row_counter import RowCounter

#: Up to this many domains, all counters have a sum for each, and share masks of rows.
FEW_DOMAINS: Final = 64
#: Masks that are cached for the domains of one label.
MOST_MASKS: Final = 64


class Domains(View):
    """The values of one label, over all rows or the eligible ones."""

    __slots__ = (
        "_by_domain",
        "_eligible",
        "_key",
        "_masks",
        "_row_counts",
        "_starts",
        "_table",
        "_vocabulary",
        "changes",
        "has_one_row_each",
        "ids",
        "leaves_rows_out",
        "number",
        "size",
        "there",
    )

    derived = ("ids", "size", "there", "number", "leaves_rows_out", "has_one_row_each")

    def __init__(
        self, table: NodeTable, key: str, eligible: Callable[[], BoolArray] | None = None
    ) -> None:
        """`eligible` may depend on nodes, not on their pods."""
        super().__init__(table.node_changes)
        self._table = table
        self._key = key
        self._eligible = eligible
        #: rows that have another domain than before; cleared when all were looked up
        self.changes: Log[int] = Log()
        #: the values that domains stand for
        self._vocabulary: Vocabulary[str | None] | None = None
        #: domain → number of rows
        self._row_counts: Int64Array = np.zeros(1, dtype=np.int64)
        #: row → domain, in the dtype that indexes arrays without a conversion; another array when
        #: some change
        self.ids: IndexArray = np.zeros(0, dtype=np.intp)
        #: number of domains ever seen
        self.size = 1
        #: which domains have an eligible row, and how many of them
        self.there: BoolArray = np.zeros(1, dtype=np.bool_)
        self.number = 0
        #: whether some rows are not eligible
        self.leaves_rows_out = False
        #: whether no domain has several rows, as with host names
        self.has_one_row_each = True
        #: some of the domains, as bytes → the rows in them
        self._masks: Recent[bytes, BoolArray] = Recent(MOST_MASKS)
        #: rows sorted by domain, and where each domain begins; computed on demand
        self._by_domain: IndexArray | None = None
        self._starts: IndexArray = np.zeros(0, dtype=np.intp)

    def twin(self) -> Domains:
        """Return a view of the same with its own log: readers of ours would have to rebuild."""
        return Domains(self._table, self._key, self._eligible)

    def rebuild(self) -> None:
        """Look up the label of all rows."""
        column = self._table.label_column(self._key)
        self.ids = column.ids[: self._table.size].astype(np.intp)
        if self._eligible is not None:
            self.ids[~self._eligible()] = 0
        self._vocabulary, self.size = column.vocabulary, len(column.vocabulary)
        self._row_counts = np.bincount(self.ids, minlength=self.size)
        self.changes.clear()
        self._summarize()

    def update(self, rows: list[int]) -> bool:
        """Look up the label of some rows; most changes of nodes leave it as it was."""
        column, size = self._table.label_column(self._key), self._table.size
        if column.vocabulary is not self._vocabulary:
            return False
        changed = np.array(rows, dtype=np.intp)
        before = grown(self.ids, (size,)) if len(self.ids) < size else self.ids
        self._row_counts[0] += size - len(self.ids)
        now = column.ids[changed].astype(np.intp)
        if self._eligible is not None:
            now[~self._eligible()[changed]] = 0
        is_larger = len(column.vocabulary) > self.size or before is not self.ids
        moved = changed if is_larger else changed[before[changed] != now]
        if not len(moved):
            return True
        self.size = len(column.vocabulary)
        self._row_counts = grown(self._row_counts, (self.size,))
        np.subtract.at(self._row_counts, before[changed], 1)
        np.add.at(self._row_counts, now, 1)
        self.ids = before.copy()
        self.ids[changed] = now
        for row in moved.tolist():
            self.changes.record(row)
        self._summarize()
        return True

    def _summarize(self) -> None:
        rows = self._row_counts
        self.there = rows > 0
        self.leaves_rows_out = bool(self.there[0])
        self.there[0] = False
        self.number = int(np.count_nonzero(self.there))
        self.has_one_row_each = int(rows[1:].sum()) == self.number
        self._masks.clear()
        self._by_domain = None

    def with_rows(self, nodes: NodeRows) -> BoolArray:
        """Return a new mask of the domains of some rows, domain 0 included."""
        if len(nodes) < len(self.ids):
            return np.bincount(self.ids[nodes.rows], minlength=self.size) > 0
        there = self.there.copy()
        there[0] = self.leaves_rows_out
        return there

    @property
    def are_few(self) -> bool:
        """Whether there are so few domains that a number for each of them costs next to nothing."""
        return self.size <= FEW_DOMAINS

    def rows_in(self, domains: BoolArray) -> BoolArray:
        """Return which rows are in some of few domains; read-only, shared by all who ask."""
        key = domains.tobytes()
        mask = self._masks.get(key)
        if mask is None:
            mask = self._masks[key] = read_only(domains.take(self.ids))
        return mask

    def rows_beside(self, rows: IndexArray) -> BoolArray:
        """Return which rows share a domain with one of a few rows."""
        with_domain = rows[self.ids[rows] > 0]
        if self.has_one_row_each:
            beside = np.zeros(len(self.ids), dtype=np.bool_)
            beside[with_domain] = True
            return beside
        domains = np.zeros(self.size, dtype=np.bool_)
        domains[self.ids[with_domain]] = True
        return domains.take(self.ids)

    def rows_of(self, domain: int) -> IndexArray:
        """Return the rows of a domain."""
        if self._by_domain is None:
            self._by_domain = np.argsort(self.ids, kind="stable")
            numbers = np.arange(self.size + 1)
            self._starts = np.searchsorted(self.ids, numbers, sorter=self._by_domain)
        return self._by_domain[self._starts.item(domain) : self._starts.item(domain + 1)]


class DomainCounts(View):
    """Sums of a per-row counter by domain: updated by the counter, and when rows move."""

    __slots__ = ("_counter", "_hit", "_ids", "counts", "domains")

    derived = ("counts",)

    def __init__(self, counter: RowCounter, domains: Domains) -> None:
        super().__init__(domains.changes)
        self.domains = domains
        # The counter owns its sums: a strong reference back would be a cycle.
        self._counter = ref(counter)
        #: domain → pods; domain 0 has none
        self.counts: Int64Array
        #: row → domain, by which `counts` are summed: those of the last refresh
        self._ids: IndexArray
        #: row → whether its domain has pods; computed on demand
        #: where domains are not few
        self._hit: BoolArray | None = None

    def refresh(self) -> bool:
        """Refresh the domains, whose log tells what moved, and then the sums."""
        self.domains.refresh()
        return super().refresh()

    def rebuild(self) -> None:
        """Sum all rows."""
        domains = self.domains
        sums = np.bincount(domains.ids, weights=self._by_row(), minlength=domains.size)
        self.counts = sums.astype(np.int64)
        self.counts[0] = 0
        self._ids, self._hit = domains.ids, None

    def update(self, rows: list[int]) -> bool:
        """Move the pods of rows that have another domain now."""
        ids, before, by_row = self.domains.ids, self._ids, self._by_row()
        changed = np.array(rows, dtype=np.intp)
        changed = changed[by_row[changed] > 0]
        self.counts = grown(self.counts, (self.domains.size,))
        known = changed[changed < len(before)]
        np.subtract.at(self.counts, before[known], by_row[known])
        np.add.at(self.counts, ids[changed], by_row[changed])
        self.counts[0] = 0
        self._ids, self._hit = ids, None
        return True

    def _by_row(self) -> Int32Array:
        counter = self._counter()
        if counter is None:
            raise InvariantError("a counter outlives its sums")
        return counter.counts(len(self.domains.ids))

    def add(self, row: int, amount: int) -> None:
        """Apply a change of the counter."""
        # The next refresh counts rows that are new.
        if self._read is None or row >= len(self._ids):
            return
        domain = self._ids.item(row)
        if not domain:
            return
        before = self.counts.item(domain)
        self.counts[domain] = before + amount
        if self._hit is not None and not (before and before + amount):
            if self._ids is self.domains.ids:
                self._hit[self.domains.rows_of(domain)] = not before
            else:
                self._hit = None

    def hit(self) -> BoolArray:
        """Return which rows are in a domain that has pods; the view must be refreshed."""
        if self.domains.are_few:
            return self.domains.rows_in(self.counts > 0)
        if self._hit is None:
            self._hit = (self.counts > 0).take(self.domains.ids)
        return self._hit

    def validate(self) -> None:
        """Compare with sums built from scratch, and the mask of rows with pods in their domain."""
        super().validate()
        hit = (self.counts > 0).take(self.domains.ids)
        require(self._hit is None or np.array_equal(self._hit, hit), "rows with pods nearby")

    @property
    def nbytes(self) -> int:
        """Approximate memory use."""
        counts = self.counts.nbytes if self.is_known else 0
        return counts + (0 if self._hit is None else self._hit.nbytes)
