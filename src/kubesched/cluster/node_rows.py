"""The rows that an expression is evaluated for: the whole table, or the changed rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from kubesched.cluster.arrays import BoolArray, IndexArray, Int64Array, Rows

if TYPE_CHECKING:
    from kubesched.cluster.node_table import NodeTable

D = TypeVar("D", bound=np.generic)


class ShownColumns(NamedTuple):
    """Columns of the node table, read-only and sharing its memory."""

    allocatable: Int64Array
    requested: Int64Array
    non_zero_requested: Int64Array
    allowed_pods: Int64Array
    pod_count: Int64Array
    unschedulable: BoolArray


class NodeRows:
    """A view of the node table; every property is an array with one element per row.

    Arrays that share the table's memory are read-only.
    """

    __slots__ = ("count", "rows", "table")

    def __init__(self, table: NodeTable, rows: Rows) -> None:
        self.table = table
        self.rows = rows
        self.count = rows.stop - rows.start if isinstance(rows, slice) else len(rows)

    @classmethod
    def all_of(cls, table: NodeTable) -> NodeRows:
        """Return all rows, free ones included."""
        return cls(table, slice(0, table.size))

    @classmethod
    def one(cls, table: NodeTable, row: int) -> NodeRows:
        """Return a single row."""
        return cls(table, slice(row, row + 1))

    @classmethod
    def where(cls, table: NodeTable, chosen: BoolArray) -> NodeRows:
        """Return the rows of a mask."""
        return ChosenRows(table, chosen)

    def __len__(self) -> int:
        return self.count

    def row_numbers(self) -> IndexArray:
        """Return the row number of each element."""
        if isinstance(self.rows, slice):
            return np.arange(self.rows.start, self.rows.stop, dtype=np.intp)
        return self.rows

    @property
    def are_real(self) -> bool:
        """Whether rows are as in the table, and not hypothetical."""
        return True

    def none(self) -> BoolArray:
        """Return a mask that is False for every row, for the caller to fill."""
        return np.zeros(self.count, dtype=np.bool_)

    @property
    def unschedulable(self) -> BoolArray:
        """Whether the node is cordoned."""
        return self.table.shown.unschedulable[self.rows]

    @property
    def allowed_pods(self) -> Int64Array:
        """How many pods the node allows."""
        return self.table.shown.allowed_pods[self.rows]

    @property
    def pod_count(self) -> Int64Array:
        """How many pods the node has."""
        return self.table.shown.pod_count[self.rows]

    def allocatable(self, resource: int) -> Int64Array:
        """How much of a resource, given by its number, the node has."""
        return self.table.shown.allocatable[resource, self.rows]

    def requested(self, resource: int) -> Int64Array:
        """How much of a resource the node's pods request."""
        return self.table.shown.requested[resource, self.rows]

    def non_zero_requested(self, resource: int) -> Int64Array:
        """The same for cpu and memory, with a default for pods that request none."""
        return self.table.shown.non_zero_requested[resource, self.rows]

    def among(self, rows: IndexArray | set[int]) -> BoolArray:
        """Whether the row is one of `rows`."""
        if isinstance(rows, set):
            rows = np.fromiter(rows, dtype=np.intp, count=len(rows))
        marked = np.zeros(self.table.size, dtype=np.bool_)
        marked[rows] = True
        return marked[self.rows]


class ChosenRows(NodeRows):
    """Some rows of the table, given as a mask; row numbers are computed on demand."""

    __slots__ = ("_chosen",)

    def __init__(self, table: NodeTable, chosen: BoolArray) -> None:
        self.table = table
        self.count = int(np.count_nonzero(chosen))
        self._chosen = chosen

    def __getattr__(self, name: str) -> Rows:
        """Compute `rows`, the only attribute that is not set in advance."""
        if name != "rows":
            raise AttributeError(name)
        everything = self.count == self.table.size
        self.rows = slice(0, self.table.size) if everything else self._chosen.nonzero()[0]
        return self.rows


class SupposedRows(NodeRows):
    """Rows as they would be with other pods on them."""

    __slots__ = ("_non_zero_requested", "_pod_count", "_requested")

    def __init__(
        self,
        table: NodeTable,
        rows: IndexArray,
        *,
        requested: Int64Array,
        pod_count: Int64Array,
        non_zero_requested: Int64Array | None = None,
    ) -> None:
        """`non_zero_requested` may be left out for filters, which do not read it."""
        super().__init__(table, rows)
        #: [resource, element]
        self._requested = requested
        self._pod_count = pod_count
        self._non_zero_requested = non_zero_requested

    @property
    def are_real(self) -> bool:
        """False: these rows are hypothetical."""
        return False

    @property
    def pod_count(self) -> Int64Array:
        """How many pods the node would have."""
        return self._pod_count

    def requested(self, resource: int) -> Int64Array:
        """How much of a resource the node's pods would request."""
        return self._requested[resource]

    def non_zero_requested(self, resource: int) -> Int64Array:
        """The same for cpu and memory, with a default for pods that request none."""
        if self._non_zero_requested is None:
            return super().non_zero_requested(resource)
        return self._non_zero_requested[resource]

    @contextmanager
    def supposed(self) -> Iterator[int]:
        """Make the table's own sums of a single row hypothetical for a while; yield the row."""
        row, table = self.row_numbers().item(), self.table
        with table.supposing(row):
            table.requested[:, row] = self._requested[:, 0]
            table.pod_count[row] = self._pod_count.item()
            yield row
