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
from functools import partial

import numpy as np

from kubesched.cluster.arrays import IndexArray, Int64Array
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.node_rows import SupposedRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.preemptable import PreemptableRequests
from kubesched.cluster.recent import Recent
from kubesched.cluster.shape import Shape
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.evaluation import Evaluator
from kubesched.framework.status import error, unresolvable
from kubesched.plugins.verdicts import Candidate, Found, Verdict, Verdicts, importance

#: Up to so many rows are tried one after the other.
FEW = 2
NO_VICTIMS = unresolvable("No preemption victims found for incoming pod")


class VictimSearch:
    """Searches for victims."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._preemptable_below: Recent[int, PreemptableRequests] = Recent(limit=16)
        #: of pods of one signature and priority
        self._verdicts: Recent[tuple[Shape, int], Verdicts] = Recent(limit=16)

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
        search = _Search(self._cluster, evaluator, state, pod, self._preemptable(pod.priority))
        is_local = evaluator.is_row_local(state) and not pod.shape.host_ports
        # Where pods on other nodes matter, a verdict is good for this attempt only.
        verdicts = self._verdicts_for(pod) if is_local else Verdicts(self._cluster)
        verdicts.look_at = partial(search.look_at, together=is_local)
        verdicts.refresh()
        # What is reserved for this very pod is taken to all others, and free to itself.
        own_row = self._row_reserved_for(pod)
        verdicts.known[own_row] = False
        looked_at = candidates = rows[:0]
        for batch in _batches(rows, enough):
            verdicts.ensure(batch)
            looked_at = rows[: len(looked_at) + len(batch)]
            candidates = verdicts.candidates_among(looked_at)
            if len(candidates) >= enough and verdicts.any_harmless(candidates):
                break
        verdicts.known[own_row] = False
        return Found(verdicts, looked_at)

    def _preemptable(self, priority: int) -> PreemptableRequests:
        requests = self._preemptable_below.get(priority)
        if requests is None:
            requests = PreemptableRequests(self._cluster.table, priority)
            self._preemptable_below[priority] = requests
        requests.refresh()
        return requests

    def _verdicts_for(self, pod: PodInfo) -> Verdicts:
        """Return what was found for pods like this one: pods elsewhere make no difference."""
        key = pod.shape.row_shape, pod.priority
        verdicts = self._verdicts.get(key)
        if verdicts is None:
            verdicts = self._verdicts[key] = Verdicts(self._cluster)
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
        lower: PreemptableRequests,
    ) -> None:
        self._table = cluster.table
        self._budgets = cluster.budgets
        self._evaluator = evaluator
        self._state = state
        self._pod = pod
        self._lower = lower
        self._nominated = cluster.nominated_rows
        self._plan = evaluator.plans.plan(pod.shape.row_shape)

    def look_at(self, rows: IndexArray, *, together: bool) -> Iterator[tuple[int, Verdict]]:
        """Find out about rows; together only where pods on other rows make no difference."""
        has_victims = self._lower.pod_count[rows] > 0
        yield from ((row, NO_VICTIMS) for row in rows[~has_victims].tolist())
        rows = rows[has_victims]
        if together:
            yield from self._try_together(rows)
        else:
            yield from ((row, self._try_out(row)) for row in rows.tolist())

    # --- one row by itself ------------------------------------------------------------------

    def _try_out(self, row: int) -> Verdict:
        with self._table.trial(row):
            victims = self._lower_pods(row)
            for victim in victims:
                self._take_off(row, victim)
            refusal = self._evaluator.status_on(self._state, self._pod, row)
            if refusal is not None:
                return refusal
            overdrawing, others = self._budgets.split(victims)
            lost = []
            for victim in (*overdrawing, *others):
                self._put_back(row, victim)
                if self._evaluator.status_on(self._state, self._pod, row) is not None:
                    self._take_off(row, victim)
                    lost.append(victim)
        return self._verdict(row, lost, overdrawing)

    def _take_off(self, row: int, victim: PodInfo) -> None:
        self._table.remove_pod(row, victim)
        self._table.ports.suppose_free(row, victim.shape.host_ports)

    def _put_back(self, row: int, victim: PodInfo) -> None:
        self._table.add_pod(row, victim)
        self._table.ports.suppose_taken(row, victim.shape.host_ports)

    # --- many rows together -----------------------------------------------------------------

    def _try_together(self, rows: IndexArray) -> Iterator[tuple[int, Verdict]]:
        if len(rows) <= FEW:
            yield from ((row, self._try_in_numbers(row)) for row in rows.tolist())
            return
        # Room that is promised to others must be left to them; whoever fits beside them fits
        # without them, too.
        requested, pod_count = self._nominated.reserved_on(rows, self._pod)
        requested += self._table.requested[:, rows] - self._lower.requested[:, rows]
        pod_count += self._table.pod_count[rows] - self._lower.pod_count[rows]
        refused = self._refused(rows, requested, pod_count)
        for element in np.flatnonzero(refused).tolist():
            yield int(rows[element]), self._evaluator.book.statuses[refused[element]]
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
            yield row, self._verdict(row, victims, overdrawing)

    def _try_in_numbers(self, row: int) -> Verdict:
        """Find the same for one row: to it arrays of one element would cost as much as to many."""
        table, lower, only = self._table, self._lower, np.array([row], dtype=np.intp)
        requested, pod_count = self._nominated.reserved_on(only, self._pod)
        reject = self._plan.rejection_of
        with table.supposing(row):
            table.requested[:, row] += requested[:, 0] - lower.requested[:, row]
            table.pod_count[row] += pod_count[0] - lower.pod_count[row]
            refused = reject(row)
            if refused:
                return self._evaluator.book.statuses[refused]
            overdrawing, others = self._budgets.split(self._lower_pods(row))
            lost = []
            for victim in (*overdrawing, *others):
                table.suppose_more(row, victim.requests, 1)
                if reject(row):
                    table.suppose_more(row, victim.requests, -1)
                    lost.append(victim)
        return self._verdict(row, lost, overdrawing)

    def _refused(
        self, rows: IndexArray, requested: Int64Array, pod_count: Int64Array
    ) -> IndexArray:
        nodes = SupposedRows(self._table, rows, requested=requested, pod_count=pod_count)
        return self._plan.rejections_of(nodes).astype(np.intp)

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

    def _verdict(self, row: int, lost: list[PodInfo], overdrawing: list[PodInfo]) -> Verdict:
        if not lost:
            # It fits as things are, although the filters had said that it does not.
            name = self._table.name_at(row)
            return error(f'expected at least one victim pod on node "{name}"')
        uids = {each.uid for each in overdrawing}
        violations = sum(victim.uid in uids for victim in lost)
        return Candidate(row, tuple(sorted(lost, key=importance)), violations)
