"""Statuses as small integers, so that one array tells what became of every node."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kubesched.cluster.arrays import Int32Array
from kubesched.framework.status import Code, Status
from kubesched.framework.verdict import Verdict


class StatusBook:
    """All rejections that a profile's filters have given so far; 0 stands for none."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, Status], int] = {}
        #: number → status; the first one is never a rejection
        self.statuses: list[Status] = [Status(Code.SUCCESS)]
        #: number → position of its plugin among the filters
        self._order: list[int] = [-1]
        #: numbers of statuses that are errors and end the attempt
        self.errors: set[int] = set()

    def number(self, order: int, status: Status) -> int:
        """Return the number of a status given by the filter at position `order`."""
        key = (order, status)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.statuses)
            self.statuses.append(status)
            self._order.append(order)
            if not status.rejected:
                self.errors.add(number)
        return number

    def numbers_of(self, verdict: Verdict, *, order: int, plugin: str) -> Int32Array | None:
        """Translate a verdict; None if all rows pass."""
        if verdict.answers is None:
            return None
        numbers = [0, *(self.number(order, status.by(plugin)) for status in verdict.statuses)]
        return np.array(numbers, dtype=np.int32)[verdict.answers]

    def first(self, one: Int32Array, other: Int32Array) -> Int32Array:
        """Combine two columns of numbers: for each row the filter that comes first counts."""
        order: npt.NDArray[np.int64] = np.array(self._order)
        last = len(self._order) + max(self._order) + 1
        rank_one = np.where(one > 0, order[one], last)
        rank_other = np.where(other > 0, order[other], last)
        return np.where(rank_other < rank_one, other, one)
