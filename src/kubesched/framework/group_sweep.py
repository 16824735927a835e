"""Equal members, placed in one sweep over the cached totals.

The first of them takes the decision path. Where only row-local filters and scores apply to
it, the same goes for those that follow: PreFilter and PreScore need not run again, and a placement
changes nothing but the sums of its row. So each of the others takes one of the best rows, whose
total is then the one with one more pod on it, which is cached (`framework/stacked_totals.py`). The
cluster stays as it is. The random generator is used as on the decision path: members come to the
nodes that they would get one by one.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from random import Random
from typing import Final, NamedTuple

import numpy as np

from kubesched.cluster.arrays import IndexArray, Int64Array
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_volumes import NO_VOLUMES
from kubesched.framework.plan import SignaturePlan
from kubesched.framework.stacked_totals import OUT_OF_RANGE
from kubesched.framework.totals import INFEASIBLE


def can_repeat(pod: PodInfo) -> bool:
    """Return whether pods like this one are told apart by the sums of their rows alone."""
    return (
        pod.volumes is NO_VOLUMES
        and not pod.terms.any
        and not pod.signature.host_ports
        and not pod.pod.spec.resource_claims
    )


def alike(first: PodInfo, pods: Sequence[PodInfo]) -> int:
    """Return how many of `pods`, from the beginning, differ from a pod in their name alone."""
    meta = first.pod.metadata
    for number, pod in enumerate(pods):
        if (
            pod.signature is not first.signature
            or pod.labels is not first.labels
            or pod.terms is not first.terms
            or pod.requests is not first.requests
            or pod.volumes is not NO_VOLUMES
            or pod.priority != first.priority
            or pod.pod.status.nominated_node_name
            or pod.pod.spec.resource_claims
            or pod.pod.metadata.owner_references != meta.owner_references
        ):
            return number
    return len(pods)


#: Up to this many places are a list, which is faster to read than an array, and slower to make.
MOST_LISTED: Final = 64


class Swept(NamedTuple):
    """Where members were placed, in order: fewer than requested if the others do not fit."""

    rows: list[int]
    #: the number of feasible nodes that each of them had
    feasible: list[int]
    #: the number of nodes that are feasible after that
    left: int


class Draws:
    """Draws that can be taken back, at the cost of a list of what was drawn.

    The state of a random generator is large: it is saved once, and what was drawn since is drawn
    again if it is needed. Nothing else may draw meanwhile.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._saved = random.getstate()
        #: the number of choices of each draw since
        self._choices: list[int] = []

    def one_of(self, choices: int) -> int:
        """Return one of the numbers below `choices`."""
        self._choices.append(choices)
        return self._random.randrange(choices)

    def mark(self) -> int:
        """Return where the next draw is, for `take_back`."""
        return len(self._choices)

    def take_back(self, mark: int) -> None:
        """Return to a mark."""
        self._random.setstate(self._saved)
        del self._choices[mark:]
        for choices in self._choices:
            self._random.randrange(choices)


class GroupSweep:
    """Places pods that equal one that took the decision path."""

    def __init__(self, table: NodeTable, plan: SignaturePlan, first: PodInfo) -> None:
        self._table = table
        self._plan = plan
        self._stacked = plan.stacked(first.requests)
        #: the state of the table that all of the following is of
        self._position = -1
        #: totals of all rows; without normalized scores, if these tell rows apart
        self._totals: Int64Array
        self._is_normalized = False
        #: whether all scores are in range
        self._in_range = True

    def place(
        self, rows: IndexArray, count: int, draws: Draws, *, after: int | None = None
    ) -> Swept | None:
        """Return where some pods come to among rows, which are in node order; changes nothing.

        `after` is the row that the pod before them got, if it is not counted there. None if a
        score is out of range: only the decision path can decide then.
        """
        self._refresh()
        if not self._in_range:
            return None
        standing, total_with = _Standing(self._plan, rows, self._totals), self._stacked.total
        if self._is_normalized and not standing.normalize():
            return None
        placed: list[int] = []
        feasible: list[int] = []
        taken: dict[int, int] = {}
        if after is not None:
            taken[after], place = 1, int((rows == after).nonzero()[0].item())
            if not standing.change_any(place, total_with(after, 1)):
                return None
        while standing.feasible and len(placed) < count:
            best = standing.best
            at = best.nth(draws.one_of(best.count) if standing.feasible > 1 else 0)
            place = best.places[at]
            row = rows.item(place)
            placed.append(row)
            feasible.append(standing.feasible)
            taken[row] = more = taken.get(row, 0) + 1
            if not standing.change(at, place, total_with(row, more)):
                return None
        return Swept(placed, feasible, standing.feasible)

    def _refresh(self) -> None:
        plan, position = self._plan, self._table.row_changes.position
        if position == self._position:
            return
        plan.passing.refresh()
        totals = plan.totals
        totals.refresh()
        self._stacked.refresh()
        self._in_range, self._totals = totals.in_range, totals.totals
        self._is_normalized = any(each.makes_a_difference for each in totals.normalized)
        if self._in_range and self._is_normalized:
            self._totals = self._stacked.as_it_is()
            self._in_range = not np.count_nonzero(self._totals == OUT_OF_RANGE)
        self._position = position


class _Standing:
    """How rows compare while pods are placed on them."""

    __slots__ = ("_added", "_below", "_below_at", "_plan", "_rows", "_totals", "best", "feasible")

    def __init__(self, plan: SignaturePlan, rows: IndexArray, totals: Int64Array) -> None:
        self._plan = plan
        self._rows = rows
        #: of each row, without normalized scores; INFEASIBLE where no more pods fit
        self._totals = totals[rows]
        #: normalized scores, None if they are all the same
        self._added: Int64Array | None = None
        self.feasible = len(rows) - int(np.count_nonzero(self._totals == INFEASIBLE))
        #: where the best of the rows are
        self.best = _best_places(self._totals)
        #: the best of the others if one row has risen above them; and its number among these
        self._below: _BestPlaces | None = None
        self._below_at = 0

    def change(self, at: int, place: int, total: int) -> bool:
        """Give the row that was taken its new total; False if a score is out of range.

        `at` is its number among the best, `place` among all rows.
        """
        self._totals[place] = total
        if total < 0:
            if total == OUT_OF_RANGE:
                return False
            self.feasible -= 1
            if self._added is not None:
                return self.normalize()
        elif self._added is not None:
            total += self._added.item(place)
        best = self.best
        if total > best.total:
            if best.remove(at):
                self._below, self._below_at = best, at
            self.best = _BestPlaces(total, [place])
        elif total < best.total and not best.remove(at):
            self._fall_back(place, total)
        return True

    def change_any(self, place: int, total: int) -> bool:
        """Give some row a new total; False if a score is out of range."""
        self._totals[place] = total
        self.feasible -= total == INFEASIBLE
        if self._added is not None:
            return self.normalize()
        self._compare()
        return total != OUT_OF_RANGE

    def _fall_back(self, place: int, total: int) -> None:
        """Find the best rows after the only one of them has got a lower total."""
        below = self._below
        if below is None:
            self._compare()
        elif total > below.total:
            self.best = _BestPlaces(total, [place])
        else:
            if total == below.total:
                below.restore(self._below_at)
            self.best, self._below = below, None

    def normalize(self) -> bool:
        """Normalize scores among the rows that are feasible now; False if one is out of range."""
        mask = self._totals != INFEASIBLE
        self._added = np.zeros(len(self._rows), dtype=np.int64)
        for each in self._plan.totals.normalized:
            extremes = each.extremes_at(self._rows, mask)
            if extremes[0] != extremes[1]:
                added = each.added(self._rows, extremes)
                if added is None:
                    return False
                self._added += added
        self._compare()
        return True

    def _compare(self) -> None:
        totals = self._totals
        if self._added is not None:
            totals = np.where(totals == INFEASIBLE, INFEASIBLE, totals + self._added)
        self.best, self._below = _best_places(totals), None


class _BestPlaces:
    """The rows with the highest total, by their places in a list of rows."""

    __slots__ = ("_removed", "count", "places", "total")

    def __init__(self, total: int, places: Sequence[int] | IndexArray) -> None:
        self.total = total
        #: in order; those that were removed are skipped
        self.places = places
        self.count = len(places)
        #: indexes of removed places, ascending
        self._removed: list[int] = []

    def nth(self, number: int) -> int:
        """Return the index of the place with a number."""
        for removed in self._removed:
            if removed > number:
                break
            number += 1
        return number

    def remove(self, at: int) -> bool:
        """Remove the place with an index; False if it is the only one."""
        self.count -= 1
        insort(self._removed, at)
        return self.count > 0

    def restore(self, at: int) -> None:
        """Undo the last removal."""
        self.count += 1
        self._removed.remove(at)


def _best_places(totals: Int64Array) -> _BestPlaces:
    if not len(totals):
        return _BestPlaces(INFEASIBLE, ())
    most = int(np.maximum.reduce(totals))
    places = (totals == most).nonzero()[0]
    return _BestPlaces(most, places.tolist() if len(places) <= MOST_LISTED else places)
