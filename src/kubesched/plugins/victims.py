"""Whom to evict from which node so that a pod fits there.

On each node, all pods of lower priority are taken away; if the pod then fits, they come back one by
one, the most important first, as long as it still fits. Those that cannot come back are the
victims. Pods whose eviction would overdraw a disruption budget come back before the others.

Where only row-local filters have a say, all nodes are looked at together: everything is taken away
from all of them in one subtraction, and the k-th pod comes back to all of them in one addition.
Where pods on other nodes matter too, each node is tried out by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from msgspec import Struct

from kubesched.cluster.arrays import IndexArray, Int64Array
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.lower_priority import LowerPriority
from kubesched.cluster.node_rows import SupposedRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.recent import Recent
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.evaluation import Evaluator
from kubesched.framework.status import Status, error, unresolvable

NO_VICTIMS = unresolvable("No preemption victims found for incoming pod")

#: Later than any time that a pod may have started at.
NOT_STARTED = "~"


class Candidate(Struct, frozen=True):
    """A node that a pod would fit on without its victims."""

    row: int
    #: the most important first
    victims: tuple[PodInfo, ...]
    #: victims whose eviction overdraws a disruption budget
    violations: int


class Found(Struct):
    """What a search came to."""

    candidates: list[Candidate]
    #: row → why evicting pods there does not help
    refusals: dict[int, Status]


class VictimSearch:
    """Searches for victims."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._table = cluster.table
        self._lower: Recent[int, LowerPriority] = Recent(limit=16)

    def search(
        self,
        evaluator: Evaluator,
        state: CycleState,
        pod: PodInfo,
        rows: IndexArray,
        *,
        enough: int,
    ) -> Found:
        """Look at `rows` in order, until there are enough candidates, one of them harmless."""
        lower = self._lower.get(pod.priority)
        if lower is None:
            lower = self._lower[pod.priority] = LowerPriority(self._table, pod.priority)
        lower.update()
        has_victims = lower.pod_count[rows] > 0
        refusals = dict.fromkeys(rows[~has_victims].tolist(), NO_VICTIMS)
        found = Found([], refusals)
        search = _Search(self._cluster, evaluator, state, pod, lower)
        for batch in _batches(rows[has_victims], enough):
            search.look_at(batch, found)
            harmless = any(not candidate.violations for candidate in found.candidates)
            if harmless and len(found.candidates) >= enough:
                break
        return found


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
        lower: LowerPriority,
    ) -> None:
        self._table = cluster.table
        self._budgets = cluster.budgets
        self._evaluator = evaluator
        self._state = state
        self._pod = pod
        self._lower = lower
        self._nominated = cluster.nominated_rows

    def look_at(self, rows: IndexArray, found: Found) -> None:
        """Add what becomes of some rows to what was found."""
        if self._evaluator.is_row_local(self._state) and not self._pod.shape.host_ports:
            self._try_together(rows, found)
            return
        for row in rows.tolist():
            self._try_out(row, found)

    # --- one row by itself ------------------------------------------------------------------

    def _try_out(self, row: int, found: Found) -> None:
        with self._table.trial(row):
            victims = self._lower_pods(row)
            for victim in victims:
                self._take_off(row, victim)
            refusal = self._evaluator.status_on(self._state, self._pod, row)
            if refusal is not None:
                found.refusals[row] = refusal
                return
            overdrawing, others = self._budgets.split(victims)
            lost = []
            for victim in (*overdrawing, *others):
                self._put_back(row, victim)
                if self._evaluator.status_on(self._state, self._pod, row) is not None:
                    self._take_off(row, victim)
                    lost.append(victim)
        self._conclude(row, lost, overdrawing, found)

    def _take_off(self, row: int, victim: PodInfo) -> None:
        self._table.remove_pod(row, victim)
        self._table.ports.suppose_free(row, victim.shape.host_ports)

    def _put_back(self, row: int, victim: PodInfo) -> None:
        self._table.add_pod(row, victim)
        self._table.ports.suppose_taken(row, victim.shape.host_ports)

    # --- many rows together -----------------------------------------------------------------

    def _try_together(self, rows: IndexArray, found: Found) -> None:
        # Room that is promised to others must be left to them; whoever fits beside them fits
        # without them, too.
        requested, pod_count = self._nominated.taken_on(rows, self._pod)
        requested += self._table.requested[:, rows] - self._lower.requested[:, rows]
        pod_count += self._table.pod_count[rows] - self._lower.pod_count[rows]
        refused = self._refused(rows, requested, pod_count)
        for element in np.flatnonzero(refused).tolist():
            found.refusals[int(rows[element])] = self._evaluator.book.statuses[refused[element]]
        fitting = refused == 0
        rows, requested, pod_count = rows[fitting], requested[:, fitting], pod_count[fitting]
        if not len(rows):
            return
        splits = [self._budgets.split(self._lower_pods(row)) for row in rows.tolist()]
        orders = [[*overdrawing, *others] for overdrawing, others in splits]
        lost: list[list[PodInfo]] = [[] for _ in orders]
        for turn in range(max(map(len, orders))):
            back = [order[turn] if turn < len(order) else None for order in orders]
            added = self._requests_of(back)
            with_them = requested + added
            counts = pod_count + np.array([each is not None for each in back])
            stays_out = self._refused(rows, with_them, counts) > 0
            requested = np.where(stays_out, requested, with_them)
            pod_count = np.where(stays_out, pod_count, counts)
            for element in np.flatnonzero(stays_out).tolist():
                victim = back[element]
                if victim is not None:
                    lost[element].append(victim)
        for row, victims, (overdrawing, _) in zip(rows.tolist(), lost, splits, strict=True):
            self._conclude(row, victims, overdrawing, found)

    def _refused(
        self, rows: IndexArray, requested: Int64Array, pod_count: Int64Array
    ) -> IndexArray:
        nodes = SupposedRows(self._table, rows, requested=requested, pod_count=pod_count)
        numbers = self._evaluator.row_local_rejections(self._state, self._pod, nodes)
        return numbers.astype(np.intp)

    def _requests_of(self, pods: Iterable[PodInfo | None]) -> Int64Array:
        pods = list(pods)
        result = np.zeros((len(self._table.resources), len(pods)), dtype=np.int64)
        for element, pod in enumerate(pods):
            if pod is not None:
                pod.requests.resolve(self._table.resources)
                result[pod.requests.numbers, element] = pod.requests.vector
        return result

    # --- both -------------------------------------------------------------------------------

    def _lower_pods(self, row: int) -> list[PodInfo]:
        """Return the pods of lower priority on a row, the most important first."""
        pods = self._table.pods[row].values()
        return sorted((each for each in pods if each.priority < self._pod.priority), key=importance)

    def _conclude(
        self, row: int, lost: list[PodInfo], overdrawing: list[PodInfo], found: Found
    ) -> None:
        if not lost:
            # It fits as things are, although the filters had said that it does not.
            name = self._table.name_at(row)
            found.refusals[row] = error(f'expected at least one victim pod on node "{name}"')
            return
        uids = {each.uid for each in overdrawing}
        violations = sum(victim.uid in uids for victim in lost)
        found.candidates.append(Candidate(row, tuple(sorted(lost, key=importance)), violations))


def importance(pod: PodInfo) -> tuple[int, str]:
    """Order pods by priority, then by how long they have been running."""
    return -pod.priority, pod.pod.status.start_time or NOT_STARTED


def choose(candidates: list[Candidate]) -> list[Candidate]:
    """Return the best of several candidates, more than one if nothing tells them apart."""
    for criterion in (
        lambda each: each.violations,
        lambda each: each.victims[0].priority,
        lambda each: sum(victim.priority + 2**31 for victim in each.victims),
        lambda each: len(each.victims),
    ):
        least = min(criterion(each) for each in candidates)
        candidates = [each for each in candidates if criterion(each) == least]
    latest = max(_earliest_start(each) for each in candidates)
    return [each for each in candidates if _earliest_start(each) == latest]


def _earliest_start(candidate: Candidate) -> str:
    """Return when the first of the most important victims started."""
    highest = candidate.victims[0].priority
    return min(importance(each)[1] for each in candidate.victims if each.priority == highest)
