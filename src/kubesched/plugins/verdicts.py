"""Preemption verdicts: for each row a candidate with its cost, or why preemption does not help.

Costs are columns, so the cheapest of hundreds of candidates is found with a few array operations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from kubesched.cluster.arrays import BoolArray, IndexArray, Int64Array, grown
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.incremental import LazyRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.count_bounds import BoundedRows
from kubesched.framework.status import Status
from kubesched.plugins.lower_pods import start_of

#: Number of cost criteria.
COSTS = 5


class Candidate(Struct, frozen=True, eq=True):
    """A node on which a pod would fit without the victims."""

    row: int
    #: the most important first
    victims: tuple[PodInfo, ...]
    #: number of victims that violate a disruption budget
    violations: int

    @property
    def cost(self) -> tuple[int, ...]:
        """The cost of evicting the victims, by descending weight of the criterion.

        The last criterion prefers victims that started recently.
        """
        victims, highest = self.victims, self.victims[0].priority
        return (
            self.violations,
            highest,
            sum(each.priority + 2**31 for each in victims),
            len(victims),
            -min(
                start_of(each.pod.status.start_time) for each in victims if each.priority == highest
            ),
        )


Verdict: TypeAlias = Candidate | Status


class Judged(Struct, frozen=True, eq=False):
    """Verdicts of some rows: all of them candidates, or none."""

    rows: IndexArray
    verdicts: Sequence[Verdict]
    #: of candidates: [criterion, element]
    costs: Int64Array | None = None

    @classmethod
    def refused(cls, rows: IndexArray, status: Status) -> Judged:
        """Return that no row is a candidate, for the same reason."""
        return cls(rows, [status] * len(rows))

    @classmethod
    def one(cls, row: int, verdict: Verdict) -> Judged:
        """Return the verdict of one row."""
        rows = np.array([row], dtype=np.intp)
        if isinstance(verdict, Status):
            return cls.refused(rows, verdict)
        return cls(rows, [verdict], np.array([verdict.cost], dtype=np.int64).T)


#: Computes the verdicts of some rows, a few at a time.
LookAt: TypeAlias = Callable[[IndexArray], Iterable[Judged]]


class CachedVerdicts(LazyRows):
    """The cached verdicts of all rows, for pods that are alike."""

    def __init__(self, cluster: Cluster, *, by_row: bool) -> None:
        """`by_row`: a verdict depends on its row alone; otherwise any change may change it."""
        table, self._budgets = cluster.table, cluster.budgets
        self._cluster = None if by_row else cluster
        super().__init__(table, table.row_changes, table.version_changes, cluster.nominator.changes)
        #: computes verdicts; set by each search
        self.look_at: LookAt
        #: [criterion, row], where the verdict is a candidate
        self._costs: Int64Array
        self._is_candidate: BoolArray

    def stamp(self) -> tuple[int, ...]:
        """Return the state of the disruption budgets, and of all that filters may read."""
        everything = () if self._cluster is None else self._cluster.version
        return self._budgets.changes.position, *everything

    def empty(self, size: int) -> npt.NDArray[Any]:
        """Return unknown verdicts for so many rows."""
        return np.full(size, None, dtype=np.object_)

    def begin(self, look_at: LookAt, afresh: list[int]) -> None:
        """Begin a search that computes missing verdicts, and those of some rows `afresh`."""
        self.look_at = look_at
        self.refresh()
        self.known[afresh] = False

    def rebuild(self) -> None:
        """Invalidate all verdicts."""
        super().rebuild()
        self._costs = np.zeros((COSTS, self._table.size), dtype=np.int64)
        self._is_candidate = np.zeros(self._table.size, dtype=np.bool_)

    def update(self, *changes: list[Any]) -> bool:
        """Invalidate some verdicts."""
        super().update(*changes)
        if len(self._is_candidate) < self._table.size:
            self._costs = grown(self._costs, (COSTS, self._table.size))
            self._is_candidate = grown(self._is_candidate, (self._table.size,), fill=False)
        return True

    def compute(self, rows: IndexArray) -> None:
        """Search for victims on some rows."""
        for judged in self.look_at(rows):
            # Faster than a list, of which each element is asked whether it is an array.
            verdicts = np.fromiter(judged.verdicts, dtype=np.object_, count=len(judged.rows))
            self.values[judged.rows] = verdicts
            self._is_candidate[judged.rows] = judged.costs is not None
            if judged.costs is not None:
                self._costs[:, judged.rows] = judged.costs
            # The search may be paused after any of them.
            self.known[judged.rows] = True

    def candidates_among(self, rows: IndexArray) -> IndexArray:
        """Return those of `rows` that are candidates."""
        return rows[self._is_candidate[rows]]

    def any_harmless(self, rows: IndexArray) -> bool:
        """Tell whether a candidate among `rows` violates no budget."""
        return bool(np.count_nonzero(self._costs[0].take(rows)) < len(rows))

    def cheapest(self, rows: IndexArray) -> IndexArray:
        """Return the cheapest of some candidates, all of them if several have equal cost."""
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


class Verdicts(CachedVerdicts):
    """Verdicts that depend on each row alone, or are valid until anything changes."""


class BoundedVerdicts(CachedVerdicts):
    """Verdicts that also depend on the bounds on the counts of each row.

    Those depend on other rows. Verdicts are valid as long as the bounds are what they were.
    """

    #: set by each search
    _bounds: Callable[[IndexArray], BoundedRows]
    _by_requests: Verdicts
    _may_adopt: Callable[[IndexArray], IndexArray]

    def rebuild(self) -> None:
        """Invalidate all verdicts."""
        super().rebuild()
        #: what is counted
        self._counted: tuple[object, ...] = ()
        #: [value, row]
        self._context: Int64Array = np.zeros((0, self._table.size), dtype=np.int64)

    def within(
        self,
        bounds: Callable[[IndexArray], BoundedRows],
        by_requests: Verdicts,
        may_adopt: Callable[[IndexArray], IndexArray],
    ) -> None:
        """Begin a search with these bounds.

        Rows that no bounds can reject have the verdict by requests, if `may_adopt` leaves them.
        """
        self._bounds, self._by_requests, self._may_adopt = bounds, by_requests, may_adopt

    def ensure(self, rows: IndexArray) -> None:
        """Compute the rows that are missing, or whose bounds have changed."""
        bounded = self._bounds(rows)
        self._expect(bounded)
        free = self._may_adopt(rows[bounded.never_reject() & ~self.known[rows]])
        if len(free):
            self._by_requests.ensure(free)
            self._adopt(self._by_requests, free)
        super().ensure(rows)

    def validate(self) -> None:
        """Compare with verdicts for the bounds as they are, none of which is adopted."""
        self.refresh()
        self._expect(self._bounds(np.flatnonzero(self.known)))
        adopting, self._may_adopt = self._may_adopt, lambda rows: rows[:0]
        super().validate()
        self._may_adopt = adopting

    def _expect(self, bounded: BoundedRows) -> None:
        """Invalidate the verdicts of rows whose bounds have changed."""
        rows, counted, context = bounded.rows, bounded.counted, bounded.context()
        shape = len(context), self._table.size
        if counted != self._counted:
            self._counted, self._context = counted, np.zeros(shape, dtype=np.int64)
            self.known[:] = False
        elif self._context.shape != shape:
            self._context = grown(self._context, shape)
        self.known[rows] &= np.logical_and.reduce(self._context[:, rows] == context)
        self._context[:, rows] = context

    def _adopt(self, others: CachedVerdicts, rows: IndexArray) -> None:
        """Take over the verdicts of some rows."""
        self.values[rows] = others.values[rows]
        self._costs[:, rows] = others._costs[:, rows]  # noqa: SLF001 (its own class)
        self._is_candidate[rows] = others._is_candidate[rows]  # noqa: SLF001 (its own class)
        self.known[rows] = True


class Found:
    """The result of a search; valid until the cluster changes."""

    def __init__(self, verdicts: CachedVerdicts, looked_at: IndexArray) -> None:
        self._verdicts = verdicts
        self._looked_at = looked_at
        self._rows = verdicts.candidates_among(looked_at)

    def __bool__(self) -> bool:
        """Whether there is any candidate."""
        return len(self._rows) > 0

    @property
    def candidates(self) -> list[Candidate]:
        """All candidates, in the order of the search."""
        return self._verdicts.candidates(self._rows)

    @property
    def refusals(self) -> dict[int, Status]:
        """Row → why preemption does not help there."""
        return self._verdicts.refusals(self._looked_at)

    def best_rows(self) -> IndexArray:
        """Return the cheapest candidates, of which there must be one; several of equal cost."""
        return self._verdicts.cheapest(self._rows)

    def candidate(self, row: int) -> Candidate:
        """Return the candidate at a row."""
        (found,) = self._verdicts.candidates(np.array([row], dtype=np.intp))
        return found


def choose(candidates: list[Candidate]) -> list[Candidate]:
    """Return the cheapest of several candidates, all of them if several have equal cost."""
    least = min(each.cost for each in candidates)
    return [each for each in candidates if each.cost == least]
