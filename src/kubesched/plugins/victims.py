"""The search for victims: the pods to evict from a node so that a pod fits there.

On each node, all pods of lower priority are removed; if the pod then fits, they are reprieved one
by one, the most important first, as long as it still fits. The others are the victims. Pods whose
eviction would violate a disruption budget are reprieved before the others.

Where filters are row-local or bound counts (`framework/count_bounds.py`), as topology spread and
inter-pod affinity do, that is arithmetic for all nodes at once: pods are requests, and counts. They
are removed in one subtraction, and reprieved in a few additions (`reprieve`). Of a pod with bounds,
those matter only on nodes where some set of pods would be outside of them; all others have the
victims of a pod without bounds.

Where other filters apply, as those of volumes and devices, each node is evaluated in its own
transaction; so are nodes with pods of groups, which may have to be evicted together with pods on
other nodes (`victim_units`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from typing import Final, TypeAlias, TypeVar

import numpy as np

from kubesched.cluster.arrays import IndexArray
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_volumes import NO_VOLUMES
from kubesched.cluster.recent import Recent
from kubesched.cluster.transaction import Transaction
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.count_bounds import BoundedRows
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.evaluation import Evaluator
from kubesched.framework.status import error, unresolvable
from kubesched.plugins.lost_pods import harm_of, judged
from kubesched.plugins.lower_pods import LowerPods
from kubesched.plugins.verdicts import (
    BoundedVerdicts,
    CachedVerdicts,
    Candidate,
    Found,
    Judged,
    Verdict,
    Verdicts,
)
from kubesched.plugins.victim_trials import SumsTrial, TransactionTrial, Trial
from kubesched.plugins.victim_units import VictimUnit, VictimUnits

#: Verdicts, of some rows at a time.
Evaluated: TypeAlias = Iterator[Judged]

Cached = TypeVar("Cached", bound=CachedVerdicts)

NO_VICTIMS = unresolvable("No preemption victims found for incoming pod")
#: How many rows are evaluated together at most: then their arrays fit into the processor's caches,
#: and the search may be paused.
TOGETHER: Final = 256
#: How many verdicts are cached, each up to 200 bytes; but those for as many kinds of pods at least,
#: and at most: each kind keeps one of its pods, with all that is cached about its signature.
MOST_VERDICTS: Final = 1 << 18
FEWEST_ALIKE: Final = 16
MOST_ALIKE: Final = 64


class VictimSearch:
    """Searches for victims."""

    def __init__(self, cluster: Cluster, units: VictimUnits | None = None) -> None:
        """`units` are given where pods of groups may have to be evicted together."""
        self._cluster = cluster
        self._units = units
        #: by priority
        self._lower_pods: Recent[int, LowerPods] = Recent(limit=16)
        #: of pods that are alike
        self._verdicts: Recent[Hashable, CachedVerdicts] = Recent()

    def search(
        self,
        evaluator: Evaluator,
        state: CycleState,
        pod: PodInfo,
        rows: IndexArray,
        *,
        enough: int,
        pause: Callable[[], None] = lambda: None,
    ) -> Found:
        """Evaluate `rows` in order, until there are enough candidates, one without violations.

        Where what was found so far stays cached, `pause` is called now and then, and may raise.
        """
        search = _Search(self._cluster, evaluator, state, pod, self._lower(pod.priority))
        if self._units is not None and self._units.any_grouped:
            search.units = self._units
        else:
            # Rows with pods of groups are evaluated again in each search.
            search.pause = pause
        # Resources reserved by the pod's own nomination are free for it.
        own_row = self._row_reserved_for(pod)
        verdicts, by_requests = self._verdicts_for(pod, search, own_row)
        looked_at = candidates = rows[:0]
        try:
            for batch in _batches(rows, enough):
                verdicts.ensure(batch)
                looked_at = rows[: len(looked_at) + len(batch)]
                candidates = verdicts.candidates_among(looked_at)
                if len(candidates) >= enough and verdicts.any_harmless(candidates):
                    break
        finally:
            # Verdicts of rows with pods of groups depend on other nodes.
            for each in verdicts, by_requests:
                each.known[[*own_row, *search.grouped_rows]] = False
        return Found(verdicts, looked_at)

    def _lower(self, priority: int) -> LowerPods:
        lower = self._lower_pods.get(priority)
        if lower is None:
            lower = self._lower_pods[priority] = LowerPods(self._cluster.table, priority)
        lower.refresh()
        return lower

    def _verdicts_for(
        self, pod: PodInfo, search: _Search, own_row: list[int]
    ) -> tuple[CachedVerdicts, Verdicts]:
        """Return the cached verdicts for pods like this one, and those by requests alone.

        Where pods on other nodes matter, more must be the same of pods that are alike. Unless it is
        known how they matter, verdicts are valid until anything changes: many pods may wait that no
        room helps.
        """
        by_requests = self._cached(
            (pod.signature.row_signature, pod.priority), Verdicts, by_row=True
        )
        verdicts: CachedVerdicts = by_requests
        if not search.is_row_local:
            owners = pod.pod.metadata.owner_references
            key = pod.signature, pod.labels, pod.terms, owners, pod.priority
            if search.is_arithmetic:
                verdicts = self._cached(key, BoundedVerdicts, by_row=True)
            elif pod.volumes is not NO_VOLUMES or pod.pod.spec.resource_claims:
                verdicts = Verdicts(self._cluster, by_row=False)
            else:
                verdicts = self._cached(key, Verdicts, by_row=False)
        if isinstance(verdicts, BoundedVerdicts):
            verdicts.within(search.bounds, by_requests, search.without_members)
        by_requests.begin(search.by_requests, own_row)
        if verdicts is not by_requests:
            look_at = search.within_bounds if search.is_arithmetic else search.one_by_one
            verdicts.begin(look_at, own_row)
        return verdicts, by_requests

    def _cached(self, of: Hashable, made_of: type[Cached], *, by_row: bool) -> Cached:
        key = of, made_of, by_row
        verdicts = self._verdicts.get(key)
        if not isinstance(verdicts, made_of):
            rows = max(self._cluster.table.size, 1)
            self._verdicts.limit = min(max(MOST_VERDICTS // rows, FEWEST_ALIKE), MOST_ALIKE)
            verdicts = self._verdicts[key] = made_of(self._cluster, by_row=by_row)
        return verdicts

    def _row_reserved_for(self, pod: PodInfo) -> list[int]:
        name = self._cluster.nominator.node_of(pod.uid)
        row = None if name is None else self._cluster.table.row_of(name)
        return [] if row is None else [row]


def _batches(rows: IndexArray, size: int) -> Iterator[IndexArray]:
    for first in range(0, len(rows), max(size, 1)):
        yield rows[first : first + max(size, 1)]


class _Search:
    """One search for one pod."""

    def __init__(
        self,
        cluster: Cluster,
        evaluator: Evaluator,
        state: CycleState,
        pod: PodInfo,
        lower: LowerPods,
    ) -> None:
        self._cluster = cluster
        self._table = cluster.table
        self._evaluator = evaluator
        self._state = state
        self._pod = pod
        self._lower = lower
        #: set if there are pods of groups on nodes
        self.units: VictimUnits | None = None
        #: the evaluated rows with such pods
        self.grouped_rows: list[int] = []
        #: called between rows that are evaluated together
        self.pause: Callable[[], None] = lambda: None
        #: of the rows that were asked about last
        self._bounded: BoundedRows

    @property
    def is_arithmetic(self) -> bool:
        """Whether filters depend on requests and counts alone."""
        return not self._pod.signature.host_ports and self._evaluator.filters.is_arithmetic(
            self._state
        )

    @property
    def is_row_local(self) -> bool:
        """Whether filters depend on requests alone."""
        return self.is_arithmetic and self._evaluator.filters.is_row_local(self._state)

    def bounds(self, rows: IndexArray) -> BoundedRows:
        """Return the bounds on the counts of some rows, of which `within_bounds` evaluates some."""
        self._bounded = self._evaluator.filters.bounded(self._state, self._pod, rows)
        return self._bounded

    def without_members(self, rows: IndexArray) -> IndexArray:
        """Return those of `rows` that have no pods of groups."""
        if self.units is None:
            return rows
        return rows[[not self._has_members(row) for row in rows.tolist()]]

    def by_requests(self, rows: IndexArray) -> Evaluated:
        """Evaluate rows together, by row-local filters."""
        for part in self._parts(rows):
            left = yield from self._without_victims(part)
            yield from self._try_together(BoundedRows(self._cluster, left, ()))

    def within_bounds(self, rows: IndexArray) -> Evaluated:
        """Evaluate rows together, by row-local filters and bounds on counts."""
        for part in self._parts(rows):
            left = yield from self._without_victims(part)
            yield from self._try_together(self._bounded.among(left))

    def _parts(self, rows: IndexArray) -> Iterator[IndexArray]:
        for number, part in enumerate(_batches(rows, TOGETHER)):
            if number:
                self.pause()
            yield part

    def one_by_one(self, rows: IndexArray) -> Evaluated:
        """Evaluate each row in a transaction of its own."""
        rows = yield from self._without_victims(rows)
        for element, row in enumerate(rows.tolist()):
            with self._cluster.transaction() as tx:
                trial = TransactionTrial(tx, self._table.name_at(row), self._rejection_on(row))
                try:
                    found = list(self._try(rows[element : element + 1], trial))
                except AttemptError as failed:
                    # Other nodes may still be candidates.
                    found = [Judged.one(row, failed.status)]
            yield from found

    def _without_victims(self, rows: IndexArray) -> Generator[Judged, None, IndexArray]:
        """Evaluate rows with pods of groups, and without pods of lower priority; return others."""
        if self.units is not None:
            grouped = [row for row in rows.tolist() if self._has_members(row)]
            self.grouped_rows += grouped
            for row in grouped:
                with self._cluster.transaction() as tx:
                    verdict = self._try_units(row, self.units, tx)
                yield Judged.one(row, verdict)
            rows = rows[~np.isin(rows, grouped)]
        has_victims = self._lower.are_on(rows)
        yield Judged.refused(rows[~has_victims], NO_VICTIMS)
        return rows[has_victims]

    def _try_together(self, bounded: BoundedRows) -> Evaluated:
        plan = self._evaluator.plans.plan(self._pod.signature.row_signature)
        trial = SumsTrial(
            self._cluster,
            plan,
            self._pod,
            bounded,
            kinds=self._lower.kinds,
            book=self._evaluator.book,
        )
        if len(bounded.rows):
            yield from self._try(bounded.rows, trial)

    def _rejection_on(self, row: int) -> Callable[[], int]:
        def number() -> int:
            return self._evaluator.number_on(self._state, self._pod, row)

        return number

    def _try(self, rows: IndexArray, trial: Trial) -> Evaluated:
        """Remove all pods of lower priority; where the pod fits, reprieve them in turn."""
        pods = self._lower.of(rows)
        numbers = trial.evict(pods)
        for number in np.unique(numbers[numbers > 0]).tolist():
            yield Judged.refused(rows[numbers == number], self._evaluator.book.statuses[number])
        fitting = np.flatnonzero(numbers == 0)
        if not len(fitting):
            return
        rows, pods = rows[fitting], pods.among(fitting)
        harm = harm_of(self._cluster.budgets, pods)
        lost = trial.reprieve(fitting, None if harm is None else harm.turns)
        yield judged(rows, pods, lost, harm)
        for row in rows[~lost.any(axis=1)].tolist():
            yield Judged.one(row, self._without_loss(row))

    # --- pods of groups -----------------------------------------------------------------------

    def _has_members(self, row: int) -> bool:
        pods = self._table.pods[row].values()
        return any(each.pod.spec.scheduling_group is not None for each in pods)

    def _try_units(self, row: int, units: VictimUnits, tx: Transaction) -> Verdict:
        """Remove all units of lower priority; if the pod fits, reprieve them in turn."""
        lower = [
            each
            for each in units.of(self._table.pods[row].values())
            if each.priority < self._pod.priority
        ]
        if not lower:
            return NO_VICTIMS
        rejection, places = self._rejection_on(row), UnitPlaces(self._cluster, tx)
        for each in lower:
            places.evict(each)
        number = rejection()
        if number:
            return self._evaluator.book.statuses[number]
        lost: list[VictimUnit] = []
        violations = 0
        for each, overdrawing in by_harm(self._cluster, lower):
            places.reprieve(each)
            if rejection():
                places.evict(each)
                lost.append(each)
                violations += overdrawing
        if not lost:
            return self._without_loss(row)
        lost.sort(key=lambda unit: unit.importance)
        victims = tuple(pod for unit in lost for pod in unit.pods)
        return Candidate(row, victims, violations)

    def _without_loss(self, row: int) -> Verdict:
        """Return the verdict of a row where the pod fits although the filters had rejected it."""
        name = self._table.name_at(row)
        return error(f'expected at least one victim pod on node "{name}"')


# --- units --------------------------------------------------------------------------------------


class UnitPlaces:
    """Evicts units in a transaction, and reprieves them on their nodes."""

    def __init__(self, cluster: Cluster, tx: Transaction) -> None:
        self._cluster = cluster
        self._tx = tx
        #: uid → the pod's node
        self._nodes: dict[str, str] = {}

    def evict(self, unit: VictimUnit) -> None:
        """Remove all pods of a unit from their nodes, if they are on one."""
        for pod in unit.pods:
            node_name = self._cluster.node_of(pod.uid)
            if node_name is not None and self._cluster.table.row_of(node_name) is not None:
                self._nodes[pod.uid] = node_name
                self._tx.evict(pod)

    def reprieve(self, unit: VictimUnit) -> None:
        """Put the pods of a unit back on their nodes."""
        for pod in unit.pods:
            node_name = self._nodes.get(pod.uid)
            if node_name is not None:
                self._tx.reprieve(pod, node_name)

    def rows_of(self, unit: VictimUnit) -> frozenset[int]:
        """Return the rows that a unit is on, or was."""
        names = (self._nodes.get(pod.uid) for pod in unit.pods)
        rows = (None if name is None else self._cluster.table.row_of(name) for name in names)
        return frozenset(row for row in rows if row is not None)


def by_harm(cluster: Cluster, units: Sequence[VictimUnit]) -> list[tuple[VictimUnit, int]]:
    """Return units in the order of reprieve, each with its number of PDB violations.

    Units that violate a budget come first, each part by descending importance.
    """
    ordered = sorted(units, key=lambda unit: unit.importance)
    violations = cluster.budgets.violations(unit.pods for unit in ordered)
    pairs = list(zip(ordered, violations, strict=True))
    return sorted(pairs, key=lambda pair: pair[1] == 0)
