"""Statuses numbered as small integers, so that one array holds the status of every node.

Filters may name pods in their messages, so the number of statuses is unbounded. A book that has
become large is cleared: numbers become invalid, but a holder of numbers may keep the old `statuses`
list along with them.
"""

from __future__ import annotations

import numpy as np

from kubesched.cluster.arrays import BoolArray, Int32Array, grown
from kubesched.framework.status import Code, Status
from kubesched.framework.verdict import Verdict

#: Capacity of a book, plus some per row: filters may also name nodes, and those statuses recur with
#: each pod.
STATUSES = 4096
STATUSES_PER_ROW = 4

#: The position after all filters.
LAST = np.iinfo(np.int32).max


class StatusBook:
    """All rejections by a profile's filters ; 0 means none."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Start over; all numbers become invalid."""
        self._numbers: dict[tuple[int, Status], int] = {}
        #: number → status; number 0 is no rejection
        self.statuses: list[Status] = [Status(Code.SUCCESS)]
        #: number → position of its plugin among the filters, LAST if it is no rejection
        self._order: Int32Array = np.full(64, LAST, dtype=np.int32)
        #: number → whether it is in `errors`
        self._is_error: BoolArray = np.zeros(64, dtype=np.bool_)
        #: numbers of statuses that are errors and end the attempt
        self.errors: set[int] = set()

    def is_full(self, rows: int) -> bool:
        """Return whether there are more statuses than a cluster of `rows` rows should need."""
        return len(self.statuses) > STATUSES + STATUSES_PER_ROW * rows

    def number(self, order: int, status: Status) -> int:
        """Return the number of a status by the filter at position `order`."""
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
        """Convert a verdict to numbers; None if all rows pass."""
        if verdict.answers is None:
            return None
        numbers = [0, *(self.number(order, status.by(plugin)) for status in verdict.statuses)]
        return np.array(numbers, dtype=np.int32)[verdict.answers]

    def earlier(self, one: int, other: int) -> int:
        """Return the number whose filter comes first; 0 is none."""
        if not one or not other:
            return one or other
        return other if self._order.item(other) < self._order.item(one) else one

    def first(self, one: Int32Array, other: Int32Array) -> Int32Array:
        """Combine two columns of numbers: for each row the first filter counts."""
        order = self._order
        return np.where(order[other] < order[one], other, one)

    def any_error(self, *columns: Int32Array | list[int]) -> bool:
        """Return whether one of the columns contains an error."""
        return any(self._is_error[column].any() for column in columns)
