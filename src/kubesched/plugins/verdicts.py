"""What evicting pods would do on each node: one verdict a row, with its cost as columns.

A verdict is a candidate, or the reason why evicting pods there does not help. Which of hundreds of
candidates is the cheapest is then a question to a few arrays.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TypeAlias

import numpy as np

from kubesched.cluster.arrays import BoolArray, IndexArray, Int64Array, grown
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.status import Status

#: Later than any time that a pod may have started at.
NOT_STARTED = "~"
NEVER_STARTED = 2**62
#: How many numbers say what a candidate costs.
COSTS = 5


def importance(pod: PodInfo) -> tuple[int, str]:
    """Order pods by priority, then by how long they have been running."""
    return -pod.priority, pod.pod.status.start_time or NOT_STARTED


class Candidate:
    """A node that a pod would fit on without its victims."""

    __slots__ = ("cost", "row", "victims", "violations")

    def __init__(self, row: int, victims: tuple[PodInfo, ...], violations: int) -> None:
        """`victims` begin with the most important; evicting `violations` overdraws budgets."""
        self.row = row
        self.victims = victims
        self.violations = violations
        highest = victims[0].priority
        #: what evicting them costs, the gravest first; in the end, whoever has been running for
        #: long is dearer than whoever has just started
        self.cost = (
            violations,
            highest,
            sum(each.priority + 2**31 for each in victims),
            len(victims),
            -min(_start(each) for each in victims if each.priority == highest),
        )


def _start(pod: PodInfo) -> int:
    """Return when a pod started, in microseconds; later than all others if it has not."""
    text = pod.pod.status.start_time
    if not text:
        return NEVER_STARTED
    try:
        started = datetime.fromisoformat(text)
    except ValueError:
        return NEVER_STARTED
    return int(started.timestamp() * 1e6)


Verdict: TypeAlias = Candidate | Status


class Verdicts:
    """The verdicts on the rows of a table."""

    def __init__(self) -> None:
        self._verdicts: list[Verdict | None] = []
        self._is_candidate: BoolArray = np.zeros(0, dtype=np.bool_)
        #: [criterion, row]
        self._costs: Int64Array = np.zeros((COSTS, 0), dtype=np.int64)

    def make_room(self, size: int) -> None:
        """Let there be so many rows."""
        missing = size - len(self._verdicts)
        if missing > 0:
            self._verdicts.extend([None] * missing)
            self._is_candidate = grown(self._is_candidate, (size,), fill=False)
            self._costs = grown(self._costs, (COSTS, size))

    def put(self, verdicts: Iterable[tuple[int, Verdict]]) -> None:
        """Take verdicts over, by row."""
        for row, verdict in verdicts:
            self._verdicts[row] = verdict
            self._is_candidate[row] = isinstance(verdict, Candidate)
            if isinstance(verdict, Candidate):
                self._costs[:, row] = verdict.cost

    def candidates_among(self, rows: IndexArray) -> IndexArray:
        """Return those of `rows` that are candidates."""
        return rows[self._is_candidate[rows]]

    def any_harmless(self, rows: IndexArray) -> bool:
        """Tell whether a candidate among `rows` overdraws no budget."""
        return bool(np.count_nonzero(self._costs[0].take(rows)) < len(rows))

    def cheapest(self, rows: IndexArray) -> IndexArray:
        """Return the best of some candidates, more than one if nothing tells them apart."""
        for costs in self._costs:
            if len(rows) == 1:
                break
            of_rows = costs.take(rows)
            rows = rows[of_rows == np.minimum.reduce(of_rows)]
        return rows

    def candidates(self, rows: IndexArray) -> list[Candidate]:
        """Return the candidates among `rows`."""
        verdicts = self._verdicts
        found = [verdicts[row] for row in rows.tolist()]
        return [each for each in found if isinstance(each, Candidate)]

    def refusals(self, rows: IndexArray) -> dict[int, Status]:
        """Return why rows are not candidates, for those that are not."""
        verdicts = self._verdicts
        found = [(row, verdicts[row]) for row in rows.tolist()]
        return {row: verdict for row, verdict in found if isinstance(verdict, Status)}


class Found:
    """What a search came to; to be looked at before anything changes."""

    def __init__(self, verdicts: Verdicts, looked_at: IndexArray) -> None:
        self._verdicts = verdicts
        self._looked_at = looked_at
        self._rows = verdicts.candidates_among(looked_at)

    def __bool__(self) -> bool:
        """Whether there is any candidate."""
        return len(self._rows) > 0

    @property
    def candidates(self) -> list[Candidate]:
        """All candidates, in the order in which they were looked at."""
        return self._verdicts.candidates(self._rows)

    @property
    def refusals(self) -> dict[int, Status]:
        """Row → why evicting pods there does not help."""
        return self._verdicts.refusals(self._looked_at)

    def best_rows(self) -> IndexArray:
        """Return the best candidates, which there must be; several if nothing tells them apart."""
        return self._verdicts.cheapest(self._rows)

    def candidate(self, row: int) -> Candidate:
        """Return the candidate at a row."""
        (found,) = self._verdicts.candidates(np.array([row], dtype=np.intp))
        return found


def choose(candidates: list[Candidate]) -> list[Candidate]:
    """Return the best of several candidates, more than one if nothing tells them apart."""
    least = min(each.cost for each in candidates)
    return [each for each in candidates if each.cost == least]
