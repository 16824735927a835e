"""Requests of pods, as interned vectors over the resource columns.

Resources are numbered in the order in which nodes first offer them; cpu, memory and ephemeral
storage always come first. A resource that no node offers has no number and no column, so pods that
request arbitrary names cannot make the table grow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from kubesched.api import names
from kubesched.cluster.arrays import IndexArray, Int64Array

CPU: Final = 0
MEMORY: Final = 1
EPHEMERAL_STORAGE: Final = 2


class ResourceIndex:
    """Numbers of the resources that nodes offer."""

    def __init__(self) -> None:
        self.names: list[str] = [names.CPU, names.MEMORY, names.EPHEMERAL_STORAGE]
        self._numbers = {name: number for number, name in enumerate(self.names)}
        #: returns the number of a resource, or None if no node ever offered it
        self.find: Callable[[str], int | None] = self._numbers.get

    def __len__(self) -> int:
        return len(self.names)

    def add(self, name: str) -> int:
        """Number a resource that a node has for the first time."""
        number = self._numbers[name] = len(self.names)
        self.names.append(name)
        return number


class Requests:
    """Requests of a pod; shared by all pods that request the same."""

    __slots__ = (
        "__weakref__",
        "_resolved_for",
        "amounts",
        "non_zero",
        "numbers",
        "pairs",
        "vector",
    )

    def __init__(self, amounts: Mapping[str, int], non_zero: tuple[int, int]) -> None:
        #: resource → amount, in milli for cpu
        self.amounts = dict(amounts)
        #: cpu and memory as scoring counts them: with a default for containers that request none
        self.non_zero = non_zero
        #: numbers and amounts of the requested resources; see `resolve`
        self.numbers: IndexArray = np.zeros(0, dtype=np.intp)
        self.vector: Int64Array = np.zeros(0, dtype=np.int64)
        #: the same as plain integers: faster than arrays for a single row
        self.pairs: tuple[tuple[int, int], ...] = ()
        self._resolved_for = -1

    def resolve(self, index: ResourceIndex) -> None:
        """Update the numbers to the resources that nodes offer now."""
        if self._resolved_for == len(index.names):
            return
        self.pairs = tuple(
            (number, amount)
            for name, amount in self.amounts.items()
            if amount and (number := index.find(name)) is not None
        )
        self.numbers = np.array([number for number, _ in self.pairs], dtype=np.intp)
        self.vector = np.array([amount for _, amount in self.pairs], dtype=np.int64)
        self._resolved_for = len(index.names)
