"""The search for victims: the pods to evict from a node so that a pod fits there.

On each node, all pods of lower priority are removed; if the pod then fits, they are reprieved one
by one, the most important first, as long as it still fits. The others are the victims. Pods whose
eviction would violate a disruption budget are reprieved before the others.

Where only row-local filters apply, all nodes are evaluated together: the pods are removed in one
subtraction, and the k-th pod of each node is reprieved in one addition. Where pods on other nodes
matter, each node is evaluated in its own transaction; so are nodes with pods of groups, which may
have to be evicted together with pods on other nodes (`victim_units`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Protocol

import numpy as np

from kubesched.cluster.arrays import IndexArray, Int32Array, Int64Array
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.node_rows import SupposedRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_volumes import NO_VOLUMES
from kubesched.cluster.preemptable import PreemptableRequests
from kubesched.cluster.recent import Recent
from kubesched.cluster.transaction import Transaction
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.evaluation import Evaluator
from kubesched.framework.plan import SignaturePlan
from kubesched.framework.status import error, unresolvable
from kubesched.plugins.verdicts import Candidate, Found, Verdict, Verdicts, importance
from kubesched.plugins.victim_units import VictimUnit, VictimUnits

NO_VICTIMS = unresolvable("No preemption victims found for incoming pod")


class VictimSearch:
    """Searches for victims."""

    def __init__(self, cluster: Cluster, units: VictimUnits | None = None) -> None:
        """`units` are given where pods of groups may have to be evicted together."""
        self._cluster = cluster
        self._units = units
        self._preemptable_below: Recent[int, PreemptableRequests] = Recent(limit=16)
        #: of pods that are alike
        self._verdicts: Recent[Hashable, Verdicts] = Recent(limit=16)

    def search(
        self,
        evaluator: Evaluator,
        state: CycleState,
        pod: PodInfo,
        rows: IndexArray,
        *,
        enough: int,
    ) -> Found:
        """Evaluate `rows` in order, until there are enough candidates, one without violations."""
        search = _Search(self._cluster, evaluator, state, pod, self._preemptable(pod.priority))
        if self._units is not None and self._units.any_grouped:
            search.units = self._units
        is_local = evaluator.is_row_local(state) and not pod.signature.host_ports
        verdicts = self._verdicts_for(pod, by_row=is_local)
        verdicts.look_at = partial(search.look_at, together=is_local)
        verdicts.refresh()
        # Resources reserved by the pod's own nomination are free for it.
        own_row = self._row_reserved_for(pod)
        verdicts.known[own_row] = False
        looked_at = candidates = rows[:0]
        for batch in _batches(rows, enough):
            verdicts.ensure(batch)
            looked_at = rows[: len(looked_at) + len(batch)]
            candidates = verdicts.candidates_among(looked_at)
            if len(candidates) >= enough and verdicts.any_harmless(candidates):
                break
        # Verdicts of rows with pods of groups depend on other nodes.
        verdicts.known[[*own_row, *search.grouped_rows]] = False
        return Found(verdicts, looked_at)

    def _preemptable(self, priority: int) -> PreemptableRequests:
        requests = self._preemptable_below.get(priority)
        if requests is None:
            requests = PreemptableRequests(self._cluster.table, priority)
            self._preemptable_below[priority] = requests
        requests.refresh()
        return requests

    def _verdicts_for(self, pod: PodInfo, *, by_row: bool) -> Verdicts:
        """Return the cached verdicts for pods like this one.

        Where pods on other nodes matter, more must be the same of pods that are alike, and
        verdicts are valid until anything changes: many pods may wait that no room helps.
        """
        if not by_row and (pod.volumes is not NO_VOLUMES or pod.pod.spec.resource_claims):
            return Verdicts(self._cluster, by_row=False)
        key: Hashable = pod.signature.row_signature, pod.priority
        if not by_row:
            owners = pod.pod.metadata.owner_references
            key = pod.signature, pod.labels, pod.terms, owners, pod.priority
        verdicts = self._verdicts.get(key)
        if verdicts is None:
            verdicts = self._verdicts[key] = Verdicts(self._cluster, by_row=by_row)
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

    def look_at(self, rows: IndexArray, *, together: bool) -> Iterator[tuple[int, Verdict]]:
        """Evaluate rows; together only where pods on other rows do not matter."""
        if self.units is not None:
            grouped = [row for row in rows.tolist() if self._has_members(row)]
            self.grouped_rows += grouped
            for row in grouped:
                with self._cluster.transaction() as tx:
                    verdict = self._try_units(row, self.units, tx)
                yield row, verdict
            rows = rows[~np.isin(rows, grouped)]
        has_victims = self._lower.pod_count[rows] > 0
        yield from ((row, NO_VICTIMS) for row in rows[~has_victims].tolist())
        rows = rows[has_victims]
        if together:
            plan = self._evaluator.plans.plan(self._pod.signature.row_signature)
            yield from self._try(rows, SumsTrial(self._cluster, plan, self._pod, rows, self._lower))
            return
        for element, row in enumerate(rows.tolist()):
            with self._cluster.transaction() as tx:
                trial = TransactionTrial(tx, self._table.name_at(row), self._rejection_on(row))
                try:
                    found = list(self._try(rows[element : element + 1], trial))
                except AttemptError as failed:
                    # Other nodes may still be candidates.
                    found = [(row, failed.status)]
            yield from found

    def _rejection_on(self, row: int) -> Callable[[], int]:
        def number() -> int:
            return self._evaluator.number_on(self._state, self._pod, row)

        return number

    def _try(self, rows: IndexArray, trial: Trial) -> Iterator[tuple[int, Verdict]]:
        """Remove all pods of lower priority; where the pod fits, reprieve them in turn."""
        preemptable = [self._lower_pods(row) for row in rows.tolist()]
        rejections = trial.evict(preemptable)
        for row, number in zip(rows.tolist(), rejections.tolist(), strict=True):
            if number:
                yield row, self._evaluator.book.statuses[number]
        fitting = np.flatnonzero(rejections == 0).tolist()
        splits = {each: self._cluster.budgets.split(preemptable[each]) for each in fitting}
        orders = {each: [*overdrawing, *others] for each, (overdrawing, others) in splits.items()}
        lost: dict[int, list[PodInfo]] = {each: [] for each in fitting}
        for turn in range(max(map(len, orders.values()), default=0)):
            back = {each: order[turn] for each, order in orders.items() if turn < len(order)}
            for element in trial.reprieve(back):
                lost[element].append(back[element])
        for element in fitting:
            row = rows.item(element)
            yield row, self._verdict(row, lost[element], splits[element][0])

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
            return self._verdict(row, [], [])
        lost.sort(key=lambda unit: unit.importance)
        victims = tuple(pod for unit in lost for pod in unit.pods)
        disrupted = sum(unit.is_group for unit in lost)
        return Candidate(row, victims, violations, disrupted)

    def _lower_pods(self, row: int) -> list[PodInfo]:
        """Return the pods of lower priority on a row, the most important first."""
        pods = self._table.pods[row].values()
        return sorted((each for each in pods if each.priority < self._pod.priority), key=importance)

    def _verdict(self, row: int, lost: list[PodInfo], overdrawing: list[PodInfo]) -> Verdict:
        if not lost:
            # It fits without evictions, although the filters had rejected the node.
            name = self._table.name_at(row)
            return error(f'expected at least one victim pod on node "{name}"')
        uids = {each.uid for each in overdrawing}
        violations = sum(victim.uid in uids for victim in lost)
        return Candidate(row, tuple(sorted(lost, key=importance)), violations)


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


# --- trials -------------------------------------------------------------------------------------


class Trial(Protocol):
    """Hypothetical rows without some pods; an *element* is the index of a row among them."""

    def evict(self, pods: Sequence[Sequence[PodInfo]]) -> Int32Array:
        """Remove pods from each row; return the number of each row's rejection then, 0 for none."""

    def reprieve(self, pods: Mapping[int, PodInfo]) -> Iterable[int]:
        """Reprieve a pod on each of some rows; return the rows where it stays a victim."""


class SumsTrial:
    """Many rows at once, by sums of requests, where only row-local filters apply."""

    def __init__(
        self,
        cluster: Cluster,
        plan: SignaturePlan,
        pod: PodInfo,
        rows: IndexArray,
        lower: PreemptableRequests,
    ) -> None:
        self._table = table = cluster.table
        self._plan = plan
        self._rows = rows
        # The requests of nominated pods count; a pod that fits beside them fits without them, too.
        requested, pod_count = cluster.nominated_rows.reserved_on(rows, pod)
        #: without the pods of lower priority
        self._requested = requested + table.requested[:, rows] - lower.requested[:, rows]
        self._pod_count = pod_count + table.pod_count[rows] - lower.pod_count[rows]

    def evict(self, pods: Sequence[Sequence[PodInfo]]) -> Int32Array:  # noqa: ARG002 (done)
        """Run the filters on all rows."""
        return self._rejections(np.arange(len(self._rows)), self._requested, self._pod_count)

    def reprieve(self, pods: Mapping[int, PodInfo]) -> Iterable[int]:
        """Add the requests of each pod to its row."""
        elements = np.fromiter(pods, dtype=np.intp, count=len(pods))
        requested, pod_count = self._requested[:, elements], self._pod_count[elements] + 1
        for place, pod in enumerate(pods.values()):
            pod.requests.resolve(self._table.resources)
            requested[pod.requests.numbers, place] += pod.requests.vector
        fits = self._rejections(elements, requested, pod_count) == 0
        self._requested[:, elements[fits]] = requested[:, fits]
        self._pod_count[elements[fits]] = pod_count[fits]
        stay_out: list[int] = elements[~fits].tolist()
        return stay_out

    def _rejections(
        self, elements: IndexArray, requested: Int64Array, pod_count: Int64Array
    ) -> Int32Array:
        rows = self._rows[elements]
        nodes = SupposedRows(self._table, rows, requested=requested, pod_count=pod_count)
        return self._plan.rejections_of(nodes)


class TransactionTrial:
    """One row, in a transaction, where pods on other rows matter."""

    def __init__(self, tx: Transaction, node_name: str, rejection: Callable[[], int]) -> None:
        self._tx = tx
        self._node_name = node_name
        self._rejection = rejection

    def evict(self, pods: Sequence[Sequence[PodInfo]]) -> Int32Array:
        """Remove the pods of the row."""
        for pod in pods[0]:
            self._tx.evict(pod)
        return np.array([self._rejection()], dtype=np.int32)

    def reprieve(self, pods: Mapping[int, PodInfo]) -> Iterable[int]:
        """Put the pod back, and remove it again if it has to stay a victim."""
        for pod in pods.values():
            self._tx.reprieve(pod, self._node_name)
            if self._rejection():
                self._tx.evict(pod)
                return list(pods)
        return []
