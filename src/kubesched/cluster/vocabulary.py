"""Values interned as small integers, and functions of a value as tables over those integers.

A node property with few distinct values (a label, a set of taints) is stored as a column of ids
into a vocabulary. A predicate on it is evaluated once per distinct value, not per node:
``Lookup(vocabulary, predicate)(ids)`` is one gather.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from kubesched.cluster.arrays import Int32Array

V = TypeVar("V", bound=Hashable)
D = TypeVar("D", bound=np.generic)


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


class Lookup(Generic[V, D]):
    """A function of a vocabulary's values, tabulated, and extended as the vocabulary grows."""

    def __init__(
        self, vocabulary: Vocabulary[V], function: Callable[[V], object], dtype: type[D]
    ) -> None:
        self.vocabulary = vocabulary
        self._function = function
        self._table: npt.NDArray[D] = np.zeros(0, dtype=dtype)

    def __call__(self, ids: Int32Array) -> npt.NDArray[D]:
        """Return the function's values at `ids`."""
        known = len(self._table)
        if known < len(self.vocabulary):
            new = [self._function(value) for value in self.vocabulary.values[known:]]
            self._table = np.concatenate([self._table, np.array(new, dtype=self._table.dtype)])
        return self._table.take(ids)
