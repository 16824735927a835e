"""Values interned as small integers, and functions of a value as tables over those integers.

A node property with few distinct values (a label, a set of taints) is stored as a column of ids
into a vocabulary. A predicate on it is evaluated once per distinct value, not per node:
``Lookup(column, predicate)(rows)`` is one gather.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Final, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from kubesched.cluster.arrays import Int32Array, Rows, grown

V = TypeVar("V", bound=Hashable)
D = TypeVar("D", bound=np.generic)

#: So many times more values than rows are remembered.
STALE_VALUES: Final = 4


class Vocabulary(Generic[V]):
    """Distinct values and their ids; an id never changes its meaning."""

    def __init__(self, *first: V) -> None:
        #: id → value
        self.values: list[V] = []
        self._ids: dict[V, int] = {}
        for value in first:
            self.id_of(value)

    def __len__(self) -> int:
        return len(self.values)

    def id_of(self, value: V) -> int:
        """Return the id of `value`, assigning one if it is new."""
        found = self._ids.get(value)
        if found is None:
            found = self._ids[value] = len(self.values)
            self.values.append(value)
        return found

    def find(self, value: V) -> int | None:
        """Return the id of `value`, None if it was never seen."""
        return self._ids.get(value)


class ValueColumn(Generic[V]):
    """A value for each row, as ids into a vocabulary.

    Values of rows that changed since stay in the vocabulary until it is `STALE_VALUES` times as
    long as the column. Then another vocabulary, of the values in use, takes its place.
    """

    def __init__(self, absent: V, capacity: int) -> None:
        """All rows have the value `absent` at first; its id is always 0."""
        self.vocabulary: Vocabulary[V] = Vocabulary(absent)
        self.ids: Int32Array = np.zeros(capacity, dtype=np.int32)

    def put(self, row: int, value: V) -> None:
        """Set the value of a row."""
        self.ids[row] = self.vocabulary.id_of(value)
        if len(self.vocabulary) > STALE_VALUES * len(self.ids):
            self._forget_stale()

    def put_all(self, values: Sequence[V]) -> None:
        """Set the values of the first rows, faster than one by one."""
        self.ids[: len(values)] = list(map(self.vocabulary.id_of, values))

    def at(self, row: int) -> V:
        """Return the value of a row."""
        return self.vocabulary.values[self.ids.item(row)]

    def grow(self, capacity: int) -> None:
        """Make room for more rows."""
        self.ids = grown(self.ids, (capacity,))

    def _forget_stale(self) -> None:
        used, places = np.unique(np.append(self.ids, 0), return_inverse=True)
        values = self.vocabulary.values
        self.vocabulary = Vocabulary(*[values[each] for each in used.tolist()])
        self.ids = places[:-1].astype(np.int32)


class Lookup(Generic[V, D]):
    """A function of a column's values, evaluated once for each value."""

    def __init__(
        self, column: ValueColumn[V], function: Callable[[V], object], dtype: type[D]
    ) -> None:
        self.column = column
        self._vocabulary = column.vocabulary
        self._function = function
        self._table: npt.NDArray[D] = np.zeros(0, dtype=dtype)

    def __call__(self, rows: Rows) -> npt.NDArray[D]:
        """Return the function's values of some rows."""
        vocabulary = self.column.vocabulary
        if vocabulary is not self._vocabulary:
            self._vocabulary, self._table = vocabulary, self._table[:0]
        known = len(self._table)
        if known < len(vocabulary):
            new = [self._function(value) for value in vocabulary.values[known:]]
            self._table = np.concatenate([self._table, np.array(new, dtype=self._table.dtype)])
        return self._table.take(self.column.ids[rows])
