"""Statuses as small integers, so that one array tells what became of every node.

A filter may name pods in its messages, and then there is no end of statuses. So a book that has
become large is cleared; whoever keeps numbers must ask again then, but may keep `statuses` along
with them: the list of before stays as it was.
"""

from __future__ import annotations

import numpy as np

from kubesched.cluster.arrays import BoolArray, Int32Array, grown
from kubesched.framework.status import Code, Status
from kubesched.framework.verdict import Verdict

#: A book has room for so many statuses, and so many more a row: filters may also name nodes, and
#: what they say of these comes again with each pod.
STATUSES = 4096
STATUSES_PER_ROW = 4

#: The position of a filter that comes after all others.
LAST = np.iinfo(np.int32).max


class StatusBook:
    """All rejections that a profile's filters have given so far; 0 stands for none."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Start anew; numbers given so far mean nothing any more."""
        self._numbers: dict[tuple[int, Status], int] = {}
        #: number → status; the first one is never a rejection
        self.statuses: list[Status] = [Status(Code.SUCCESS)]
        #: number → position of its plugin among the filters, LAST if it is no rejection
        self._order: Int32Array = np.full(64, LAST, dtype=np.int32)
        #: number → whether it is in `errors`
        self._is_error: BoolArray = np.zeros(64, dtype=np.bool_)
        #: numbers of statuses that are errors and end the attempt
        self.errors: set[int] = set()

    def is_full(self, rows: int) -> bool:
        """Tell whether there are more statuses than a cluster of so many rows should need."""
        return len(self.statuses) > STATUSES + STATUSES_PER_ROW * rows

    def number(self, order: int, status: Status) -> int:
        """Return the number of a status given by the filter at position `order`."""
        key = (order, status)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.statuses)
            self.statuses.append(status)
            if number == len(self._order):
                self._order = grown(self._order, (2 * number,), fill=LAST)
                self._is_error = grown(self._is_error, (2 * number,), fill=False)
            self._order[number] = order
            if not status.rejected:
                self._is_error[number] = True
                self.errors.add(number)
        return number

    def numbers_of(self, verdict: Verdict, *, order: int, plugin: str) -> Int32Array | None:
        """Translate a verdict; None if all rows pass."""
        if verdict.answers is None:
            return None
        numbers = [0, *(self.number(order, status.by(plugin)) for status in verdict.statuses)]
        return np.array(numbers, dtype=np.int32)[verdict.answers]

    def earlier(self, one: int, other: int) -> int:
        """Return which of two numbers is of the filter that comes first; 0 is none."""
        if not one or not other:
            return one or other
        return other if self._order.item(other) < self._order.item(one) else one

    def first(self, one: Int32Array, other: Int32Array) -> Int32Array:
        """Combine two columns of numbers: for each row the filter that comes first counts."""
        order = self._order
        return np.where(order[other] < order[one], other, one)

    def any_error(self, *columns: Int32Array | list[int]) -> bool:
        """Tell whether the number of an error is in one of some columns."""
        return any(self._is_error[column].any() for column in columns)
