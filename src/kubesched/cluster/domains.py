"""Rows by topology domain, and counts of pods by domain.

A *domain* is the set of nodes with the same value of a label; domain 0 holds the rows that do not
count. Rows change their domain only when nodes change; counts change with every pod, and are
updated with the per-row counters that they sum up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from weakref import ref

import numpy as np

from kubesched.cluster.arrays import BoolArray, IndexArray, Int64Array, read_only
from kubesched.cluster.incremental import View
from kubesched.cluster.recent import Recent
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
        "_starts",
        "_table",
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
        #: row → domain, in the dtype that indexes arrays without a conversion
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

    def rebuild(self) -> None:
        """Look up the label of all rows."""
        column = self._table.label_column(self._key)
        self.ids = column.ids[: self._table.size].astype(np.intp)
        if self._eligible is not None:
            self.ids[~self._eligible()] = 0
        self.size = len(column.vocabulary)
        rows = np.bincount(self.ids, minlength=self.size)
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
    """Sums of a per-row counter by domain: rebuilt with the domains, updated by the counter."""

    __slots__ = ("_counter", "_hit", "counts", "domains")

    derived = ("counts",)

    def __init__(self, counter: RowCounter, domains: Domains) -> None:
        super().__init__()
        self.domains = domains
        # The counter owns its sums: a strong reference back would be a cycle.
        self._counter = ref(counter)
        #: domain → pods; domain 0 has none
        self.counts: Int64Array
        #: row → whether its domain has pods; computed on demand
        #: where domains are not few
        self._hit: BoolArray | None = None

    def stamp(self) -> int:
        """Return the version of the domains."""
        self.domains.refresh()
        return self.domains.version

    def rebuild(self) -> None:
        """Sum all rows."""
        domains, counter = self.domains, self._counter()
        if counter is None:
            raise InvariantError("a counter outlives its sums")
        rows = counter.counts(len(domains.ids))
        sums = np.bincount(domains.ids, weights=rows, minlength=domains.size)
        self.counts = sums.astype(np.int64)
        self.counts[0] = 0
        self._hit = None

    def add(self, row: int, amount: int) -> None:
        """Apply a change of the counter."""
        domains = self.domains
        # Otherwise the domains changed and the next refresh sums all rows.
        if self._read is None or self._stamp != domains.version or row >= len(domains.ids):
            return
        domain = domains.ids.item(row)
        if not domain:
            return
        before = self.counts.item(domain)
        self.counts[domain] = before + amount
        if self._hit is not None and not (before and before + amount):
            self._hit[domains.rows_of(domain)] = not before

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
