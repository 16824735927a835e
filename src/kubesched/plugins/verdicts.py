"""What evicting pods would do on each node: one verdict a row, with its cost as columns.

A verdict is a candidate, or the reason why evicting pods there does not help. Which of hundreds of
candidates is the cheapest is then a question to a few arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from kubesched.cluster.arrays import BoolArray, IndexArray, Int64Array, grown
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.incremental import LazyRows
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


class Candidate(Struct, frozen=True, eq=True):
    """A node that a pod would fit on without its victims."""

    row: int
    #: the most important first
    victims: tuple[PodInfo, ...]
    #: how many of them overdraw a disruption budget
    violations: int
    #: how many groups they belong to, or pods of groups that go one by one
    disrupted_groups: int = 0

    @property
    def cost(self) -> tuple[int, ...]:
        """What evicting the victims costs, the gravest first.

        In the end, a pod that has been running for long is dearer than one that has just started.
        """
        victims, highest = self.victims, self.victims[0].priority
        return (
            self.violations,
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


class Verdicts(LazyRows):
    """The verdicts on the rows of a table, for pods of one signature and priority."""

    def __init__(self, cluster: Cluster) -> None:
        table, self._budgets = cluster.table, cluster.budgets
        super().__init__(table, table.row_changes, table.version_changes, cluster.nominator.changes)
        #: finds verdicts; set by each search
        self.look_at: Callable[[IndexArray], Iterable[tuple[int, Verdict]]]
        #: [criterion, row], where the verdict is a candidate
        self._costs: Int64Array
        self._is_candidate: BoolArray

    def stamp(self) -> int:
        """Return the state of the disruption budgets."""
        return self._budgets.changes.position

    def empty(self, size: int) -> npt.NDArray[Any]:
        """Return verdicts on so many rows."""
        return np.full(size, None, dtype=np.object_)

    def rebuild(self) -> None:
        """Forget all verdicts."""
        super().rebuild()
        self._costs = np.zeros((COSTS, self._table.size), dtype=np.int64)
        self._is_candidate = np.zeros(self._table.size, dtype=np.bool_)

    def update(self, *changes: list[Any]) -> bool:
        """Forget some verdicts."""
        super().update(*changes)
        if len(self._is_candidate) < self._table.size:
            self._costs = grown(self._costs, (COSTS, self._table.size))
            self._is_candidate = grown(self._is_candidate, (self._table.size,), fill=False)
        return True

    def compute(self, rows: IndexArray) -> None:
        """Search for victims on some rows."""
        for row, verdict in self.look_at(rows):
            self.values[row] = verdict
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
        found = self.values[rows].tolist()
        return [each for each in found if isinstance(each, Candidate)]

    def refusals(self, rows: IndexArray) -> dict[int, Status]:
        """Return why rows are not candidates, for those that are not."""
        found = zip(rows.tolist(), self.values[rows].tolist(), strict=True)
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
