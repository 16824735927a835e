"""The decision path: from a pod to its feasible nodes and their scores.

    mask   = rows that pass the signature's row-local filters            PassingRows, cached
             ∧ ¬ rejected by a cluster-wide filter                       Filter, evaluated now
             ∧ ¬ rejected beside nominated pods                          BesideNominated, cached
             ∧ the nodes that PreFilter, sampling, extenders or a group's placement leave
    none   = Diagnosis: the first rejection of each node, in plugin order
    total  = the signature's row-local totals                            Totals, cached
             + scores of cluster-wide plugins                            Score, evaluated now

Every attempt takes this path. It never changes the cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from kubesched import logs
from kubesched.cluster.arrays import BoolArray, IndexArray, Int32Array, Int64Array
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.incremental import SPARSE
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_volumes import NO_VOLUMES
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.count_bounds import BoundedRows, NumberedBounds, numbered
from kubesched.framework.cycle_state import NO_PLUGINS, CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.observing import NullObserver
from kubesched.framework.plan import Plans, SignaturePlan
from kubesched.framework.plugin import Filter, Plugin, PreFilter, PreFilterResult, RowFilter
from kubesched.framework.profile import ProfilePlugins, of_kind
from kubesched.framework.scoring import PluginScores, Scoring
from kubesched.framework.skipped import SkippedPlugins
from kubesched.framework.status import Code, Status, error, unresolvable
from kubesched.framework.status_book import StatusBook
from kubesched.framework.totals import INFEASIBLE, BestRows, best_of
from kubesched.framework.verdict import Verdict

_log = logs.get_logger(__name__)


class Restriction(NamedTuple):
    """The nodes that PreFilter plugins leave to be evaluated."""

    #: None means all
    node_names: frozenset[str] | None
    plugins: frozenset[str]


UNRESTRICTED: Final = Restriction(None, frozenset())


#: Verdicts of cluster-wide filters, each with its position and plugin.
Rejections: TypeAlias = list[tuple[int, str, Verdict]]


class FeasibleNodes:
    """The feasible nodes of a pod, at least one."""

    __slots__ = ("count", "is_nominated", "mask", "nodes", "plan", "restriction")

    def __init__(self, plan: SignaturePlan, nodes: NodeRows, mask: BoolArray | None) -> None:
        self.plan = plan
        self.nodes = nodes
        self.count = nodes.count
        #: which rows of the table these are; None if they are all that pass row-local filters
        self.mask = mask
        #: the nodes that PreFilter plugins had left
        self.restriction = UNRESTRICTED
        #: whether it is the pod's nominated node, and others were not evaluated
        self.is_nominated = False

    def __len__(self) -> int:
        return self.count

    def rows(self) -> IndexArray:
        """Return the rows in node order."""
        mask = self.plan.passing.mask if self.mask is None else self.mask
        order = self.nodes.table.order.rows()
        return order[mask[order]]

    def narrowed(self, rows: IndexArray) -> FeasibleNodes:
        """Return some of the nodes."""
        return feasible_nodes(self.plan, NodeRows(self.nodes.table, rows))


def feasible_nodes(plan: SignaturePlan, nodes: NodeRows) -> FeasibleNodes:
    """Make some nodes the feasible ones of a pod."""
    mask = np.zeros(nodes.table.size, dtype=np.bool_)
    mask[nodes.rows] = True
    return FeasibleNodes(plan, nodes, mask)


class Scored:
    """The scores of feasible nodes."""

    __slots__ = ("_added", "_found", "_row_local")

    def __init__(
        self, found: FeasibleNodes, row_local: Int64Array, added: Int64Array | None
    ) -> None:
        self._found = found
        #: row-local totals of all rows
        self._row_local = row_local
        #: scores of cluster-wide plugins for each feasible node; None for 0
        self._added = added

    def rows(self) -> IndexArray:
        """Return the row of each feasible node, in the order of `FeasibleNodes.nodes`."""
        return self._found.nodes.row_numbers()

    def totals(self) -> Int64Array:
        """Return the total of each feasible node, in the order of `FeasibleNodes.nodes`."""
        totals = self._row_local[self._found.nodes.rows]
        return totals if self._added is None else totals + self._added

    def pick(self, random: Random) -> int:
        """Return one of the best rows; ties are broken at random, in node order."""
        return self.one_of(self.best(), random)

    def one_of(self, best: BestRows, random: Random) -> int:
        """Return one of the best rows, chosen at random in node order."""
        return best.nth(random.randrange(len(best)), self._found.nodes.table.order)

    def best(self) -> BestRows:
        """Return the rows with the highest total."""
        found, view = self._found, self._found.plan.totals
        if self._added is None and self._row_local is view.totals:
            best = view.best()
            if found.mask is None:
                return best
            among = best.among(found.mask)
            return among or best_of(np.where(found.mask, view.totals, INFEASIBLE))
        totals, size = self.totals(), found.nodes.table.size
        return best_of(totals if len(totals) == size else _spread(totals, found.nodes))


def _spread(totals: Int64Array, nodes: NodeRows) -> Int64Array:
    """Expand the totals of some rows to all rows."""
    everywhere = np.full(nodes.table.size, INFEASIBLE, dtype=np.int64)
    everywhere[nodes.rows] = totals
    return everywhere


class Evaluator:
    """Filters and scores nodes for pods of one profile."""

    def __init__(
        self, plugins: ProfilePlugins, cluster: Cluster, observer: NullObserver | None = None
    ) -> None:
        self._plugins = plugins
        self._observer = observer or NullObserver()
        self._cluster = cluster
        self._table = cluster.table
        # The types are checked once, not in every attempt.
        self._cluster_pre_filters = of_kind(plugins.pre_filter, PreFilter)
        #: each with its position: the first rejection in this order counts
        self._filters = list(enumerate(plugins.filter))
        self._cluster_filters = [
            (order, plugin) for order, plugin in self._filters if isinstance(plugin, Filter)
        ]
        self._pre_filtered = self._observer.stopwatch("PreFilter")
        self._filtered = self._observer.stopwatch("Filter")
        self._pre_scored = self._observer.stopwatch("PreScore")
        self._scored = self._observer.stopwatch("Score")
        self._pre_filter_lap = self._observer.lap("PreFilter")
        self._filter_lap = self._observer.lap("Filter")
        self._skipped = SkippedPlugins()
        self._all_rows = NodeRows.all_of(cluster.table)
        self.book = StatusBook()
        self.plans = Plans(plugins, cluster.table, self.book, observer=self._observer)
        self._scoring = Scoring(plugins, cluster.table, self._observer)
        cluster_wide: list[Plugin] = [plugin for _, plugin in self._cluster_filters]
        cluster_wide += [*self._cluster_pre_filters.values(), *self._scoring.cluster_wide]
        #: whether each plugin that skips a pod skips the next one like it as well
        self._repeats_skips = all(
            plugin.repeats_skip for plugin in (*cluster_wide, *plugins.reserve)
        )

    # --- PreFilter and Filter ---------------------------------------------------------------

    def filter(self, state: CycleState, pod: PodInfo) -> FeasibleNodes | Diagnosis:
        """Return the feasible nodes of a pod, or why there are none: the first half of an attempt.

        Raises AttemptError if a plugin reports an error.
        """
        self.plans.shed()
        observer = self._observer
        started = observer.begin()
        through, code = self._pre_filtered, Code.ERROR
        try:
            plan = self.plans.for_attempt(pod.signature.row_signature)
            restriction = self._pre_filter(state, pod, plan)
            if isinstance(restriction, Diagnosis):
                restriction.placement = state.placement
                rejection = restriction.pre_filter
                code = Code.UNSCHEDULABLE if rejection is None else rejection.code
                return restriction
            observer.asked("PreFilter", state.skip_filter)
            started = through(Code.SUCCESS, started)
            through = self._filtered
            found = self._filter(state, pod, plan, restriction)
            observer.asked("Filter", state.skip_filter, len(self._table))
            # No feasible node is a result of the filters, not a failure.
            code = Code.SUCCESS
            return found
        finally:
            through(code, started)

    def look(self, state: CycleState, pod: PodInfo) -> FeasibleNodes | Diagnosis:
        """The same as `filter`, outside of an attempt: metrics do not count it."""
        plan = self.plans.plan(pod.signature.row_signature)
        restriction = self._pre_filter(state, pod, plan)
        if isinstance(restriction, Diagnosis):
            return restriction
        return self._filter(state, pod, plan, restriction)

    def _pre_filter(
        self, state: CycleState, pod: PodInfo, plan: SignaturePlan
    ) -> Restriction | Diagnosis:
        """Run PreFilter; each plugin runs once per attempt."""
        restriction, everywhere = UNRESTRICTED, self._everywhere()
        sampled = self._observer.sampled
        rejection: Status | None = None
        idle = self._idle(pod)
        skipped: list[str] = []
        for name, plugin in self._steps_of(plan):
            if name in idle:
                skipped.append(name)
                continue
            if plugin is None:
                result = plan.pre_filter[name]
            elif sampled:
                result = self._timed_pre_filter(plugin, state, pod, everywhere)
            else:
                result = plugin.pre_filter(state, pod, everywhere)
            status = result.status
            if status.code is Code.SKIP:
                skipped.append(name)
            elif status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                return self._rejected(status.by(name))
            elif status.code is Code.UNSCHEDULABLE:
                rejection = status.by(name)
            elif not status.ok:
                text = f'running PreFilter plugin "{name}": {status.message}'
                raise AttemptError(error(text).by(name))
            elif result.node_names is not None:
                restriction = _restricted(restriction, name, result.node_names)
                if not restriction.node_names:
                    status = _no_node_in_common(restriction.plugins)
                    return self._rejected(status, restriction.plugins)
        if rejection is not None:
            return self._rejected(rejection, restriction.plugins)
        state.skip_filter = self._skipped.of(plan.filter_skips, skipped)
        return restriction

    def _idle(self, pod: PodInfo) -> frozenset[str]:
        """Return the plugins that have nothing to do with a pod."""
        idle = self._plugins.only_with_volumes if pod.volumes is NO_VOLUMES else NO_PLUGINS
        return idle | self._plugins.skip_resizes if pod.signature.is_resize else idle

    def _steps_of(self, plan: SignaturePlan) -> Iterable[tuple[str, PreFilter | None]]:
        """Return the PreFilter plugins that apply, in order; None for row-local plugins."""
        if plan.is_unrestricted:
            return self._cluster_pre_filters.items()
        pre_filters = self._plugins.pre_filter
        return [(each.name, self._cluster_pre_filters.get(each.name)) for each in pre_filters]

    def _timed_pre_filter(
        self, plugin: PreFilter, state: CycleState, pod: PodInfo, nodes: NodeRows
    ) -> PreFilterResult:
        started = self._observer.now()
        result = plugin.pre_filter(state, pod, nodes)
        self._pre_filter_lap(plugin.name, result.status.code, started)
        return result

    def _rejected(self, status: Status, restricting: Iterable[str] = ()) -> Diagnosis:
        diagnosis = Diagnosis(self._table, pre_filter=status)
        diagnosis.unschedulable_plugins.update(restricting)
        _blame(diagnosis, status)
        return diagnosis

    def _filter(
        self, state: CycleState, pod: PodInfo, plan: SignaturePlan, restriction: Restriction
    ) -> FeasibleNodes | Diagnosis:
        # A node that the pod is nominated to is looked at first, and by itself.
        name, placement = pod.pod.status.nominated_node_name, state.placement
        nominated = self._table.row_of(name) if name else None
        rejected: dict[int, int] = {}
        if nominated is not None and (placement is None or placement[nominated]):
            number = self._rejection_on(state, pod, nominated)
            if number == 0:
                found = feasible_nodes(plan, NodeRows.one(self._table, nominated))
                found.restriction, found.is_nominated = restriction, True
                return found
            if number is not None:
                rejected[nominated] = number
        return self._filter_others(state, pod, plan, restriction, rejected)

    def beyond_nominated(
        self, state: CycleState, pod: PodInfo, nominated: FeasibleNodes
    ) -> FeasibleNodes | Diagnosis:
        """Return the feasible nodes of a pod whose nominated node extenders rejected, or why none.

        It goes on with the attempt: PreFilter is not run again.
        """
        return self._filter_others(state, pod, nominated.plan, nominated.restriction, {})

    def _filter_others(
        self,
        state: CycleState,
        pod: PodInfo,
        plan: SignaturePlan,
        restriction: Restriction,
        rejected: Mapping[int, int],
    ) -> FeasibleNodes | Diagnosis:
        if restriction.node_names is None:
            return self._filter_all(state, pod, plan)
        return self._filter_named(state, pod, plan, restriction, rejected)

    def _filter_all(
        self, state: CycleState, pod: PodInfo, plan: SignaturePlan
    ) -> FeasibleNodes | Diagnosis:
        plan.passing.refresh()
        passing, nodes = plan.passing.mask, self._everywhere()
        if state.placement is not None:
            passing = passing & state.placement
        mask, others = self._evaluate(state, pod, plan, nodes, passing)
        if mask is plan.passing.mask:
            found = FeasibleNodes(plan, plan.passing.nodes, None)
        else:
            found = FeasibleNodes(plan, NodeRows.where(self._table, mask), mask)
        if found.count:
            return found
        numbers = self._first_rejections(state, pod, plan, nodes, others)
        return self._diagnose(numbers, absent=None, placement=state.placement)

    def _filter_named(
        self,
        state: CycleState,
        pod: PodInfo,
        plan: SignaturePlan,
        restriction: Restriction,
        rejected: Mapping[int, int],
    ) -> FeasibleNodes | Diagnosis:
        """Evaluate only the nodes that PreFilter left.

        `rejected` is the nominated row with the number of its rejection, if it was rejected. Its
        reason is reported even if it is not one of the nodes, and its plugin is listed with those
        that restricted them, as in kube-scheduler's message.
        """
        table, rows = self._table, self._named_rows(state, restriction)
        nodes = NodeRows(table, rows)
        mask, others = self._evaluate(state, pod, plan, nodes, plan.passing.at(rows))
        feasible = rows[mask]
        if len(feasible):
            found = feasible_nodes(plan, NodeRows(table, feasible))
            found.restriction = restriction
            return found
        numbers, restricting = np.zeros(table.size, dtype=np.int32), set(restriction.plugins)
        for row, number in rejected.items():
            numbers[row] = number
            restricting.add(self.book.statuses[number].plugin)
        numbers[rows] = self._first_rejections(state, pod, plan, nodes, others)
        absent = _left_out(restricting)
        diagnosis = self._diagnose(numbers, absent=absent, placement=state.placement)
        diagnosis.unschedulable_plugins.update(restricting)
        return diagnosis

    def _named_rows(self, state: CycleState, restriction: Restriction) -> IndexArray:
        """Return the rows that PreFilter left, in node order."""
        table, names = self._table, restriction.node_names or ()
        wanted = [row for name in names if (row := table.row_of(name)) is not None]
        if state.placement is not None:
            wanted = [row for row in wanted if state.placement[row]]
        wanted.sort(key=table.order.positions().item)
        return np.array(wanted, dtype=np.intp)

    def _evaluate(
        self, state: CycleState, pod: PodInfo, plan: SignaturePlan, nodes: NodeRows, mask: BoolArray
    ) -> tuple[BoolArray, Rejections]:
        """Run cluster-wide filters on the rows of a mask; return the rows left and the verdicts."""
        observer, has_errors = self._observer, bool(self.book.errors)
        others: Rejections = []
        for order, plugin in self._cluster_filters:
            if plugin.name in state.skip_filter:
                continue
            started = observer.now() if observer.sampled else 0.0
            verdict = plugin.filter(state, pod, nodes)
            if observer.sampled:
                self._filter_lap(plugin.name, Code.SUCCESS, started)
            if verdict.statuses:
                others.append((order, plugin.name, verdict))
                has_errors = has_errors or not all(each.rejected for each in verdict.statuses)
                for rejected in verdict.masks():
                    # Greater: it passed so far, and is not rejected.
                    mask = np.greater(mask, rejected)
        if len(self._cluster.nominator):
            beside = self._beside_nominated(state, pod, plan, nodes, mask)
            if np.count_nonzero(beside):
                mask = np.greater(mask, beside > 0)
        else:
            beside = None
        if has_errors or self.book.errors:
            columns = self._columns(plan, nodes, others)
            if self.book.any_error(*columns, *(() if beside is None else (beside,))):
                first = self._first(nodes, columns, beside)
                if state.placement is not None:
                    first[~state.placement[nodes.rows]] = 0
                self._raise_error(first, nodes)
        return mask, others

    def _everywhere(self) -> NodeRows:
        if self._all_rows.count != self._table.size:
            self._all_rows = NodeRows.all_of(self._table)
        return self._all_rows

    # --- nominated pods ---------------------------------------------------------------------

    def _rejection_on(self, state: CycleState, pod: PodInfo, row: int) -> int | None:
        """Return the number of a row's first rejection, 0 for none; None if a plugin failed.

        A failure does not end the attempt: it recurs if the row is evaluated with the others.
        """
        try:
            return self.number_on(state, pod, row)
        except AttemptError as failed:
            _log.error(
                "Evaluation failed on nominated node",
                failed.status.message,
                pod=pod.full_name,
                node=self._table.name_at(row),
            )
            return None

    def _beside_nominated(
        self,
        state: CycleState,
        pod: PodInfo,
        plan: SignaturePlan,
        nodes: NodeRows,
        mask: BoolArray | None = None,
    ) -> Int32Array:
        """Return the number of each row's rejection with its nominated pods placed.

        A row must pass both with and without those pods, as they may never be placed. `mask` limits
        the rows that matter.
        """
        table = self._table
        if not pod.signature.host_ports and self.is_arithmetic(state):
            beside = plan.beside_nominated(self._cluster, pod.priority).rejections(pod)[nodes.rows]
            return (
                beside
                if self.is_row_local(state)
                else self._bounded_beside(state, pod, nodes, beside, mask)
            )
        numbers = np.zeros(table.size, dtype=np.int32)
        matters = np.ones(table.size, dtype=np.bool_)
        if mask is not None:
            matters[:] = False
            matters[nodes.rows] = mask
        for node_name, others in self._cluster.nominator.nodes_to_leave_room_on(pod).items():
            row = table.row_of(node_name)
            if row is None or not matters[row]:
                continue
            with self._cluster.transaction() as tx:
                for other in others:
                    if other.uid not in table.pods[row]:
                        tx.remove(other.uid)
                        tx.place(other, node_name)
                numbers[row] = self._evaluate_fully(state, pod, NodeRows.one(table, row))[0]
        return numbers[nodes.rows]

    def _bounded_beside(
        self,
        state: CycleState,
        pod: PodInfo,
        nodes: NodeRows,
        beside: Int32Array,
        mask: BoolArray | None,
    ) -> Int32Array:
        """Complete the rejections of row-local filters beside nominated pods by the others'."""
        reserving = self._cluster.nominated_rows.reserving(pod)[nodes.rows]
        elements = np.flatnonzero(reserving if mask is None else reserving & mask)
        if not len(elements):
            return beside
        bounded = self.bounded(state, pod, nodes.row_numbers()[elements])
        rejections = bounded.rejections(bounded.counts + bounded.reserved)
        beside = beside.copy()
        beside[elements] = self.book.first(beside[elements], rejections)
        return beside

    # --- reasons ----------------------------------------------------------------------------

    def _first_rejections(
        self,
        state: CycleState,
        pod: PodInfo,
        plan: SignaturePlan,
        nodes: NodeRows,
        others: Rejections,
    ) -> Int32Array:
        """Return the number of each row's first rejection, for a pod without feasible nodes."""
        beside = None
        if len(self._cluster.nominator):
            # A node that is full anyway needs its nominated pods only for the message.
            beside = self._beside_nominated(state, pod, plan, nodes)
        return self._first(nodes, self._columns(plan, nodes, others), beside)

    def _columns(
        self, plan: SignaturePlan, nodes: NodeRows, others: Rejections
    ) -> list[Int32Array]:
        """Return the numbers of rejections: of row-local filters, and of each cluster-wide one."""
        is_all = nodes is self._all_rows
        columns = [plan.rejections() if is_all else plan.rejections_of(nodes)]
        for order, name, verdict in others:
            numbers = self.book.numbers_of(verdict, order=order, plugin=name)
            if numbers is not None:
                columns.append(numbers)
        return columns

    def _first(
        self, nodes: NodeRows, columns: list[Int32Array], beside: Int32Array | None
    ) -> Int32Array:
        """Return the number of each row's first rejection."""
        # A copy, because the plan's column keeps changing.
        result = columns[0].copy()
        for numbers in columns[1:]:
            result = self.book.first(result, numbers)
        if beside is not None:
            np.copyto(result, beside, where=beside > 0)
        if len(self._table) < self._table.size:
            # Rows without a node are evaluated along with the others; their result is ignored.
            result[~self._table.valid[nodes.rows]] = 0
        return result

    def _evaluate_fully(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Int32Array:
        """Run every filter on some rows, uncached; return the numbers of first rejections."""
        result = np.zeros(len(nodes), dtype=np.int32)
        # In reverse order, so that the first rejection overwrites later ones.
        for order, plugin in reversed(self._filters):
            if plugin.name in state.skip_filter:
                continue
            if isinstance(plugin, RowFilter):
                verdict = plugin.filter(pod.signature, nodes)
            else:
                verdict = plugin.filter(state, pod, nodes)
            numbers = self.book.numbers_of(verdict, order=order, plugin=plugin.name)
            if numbers is not None:
                np.copyto(result, numbers, where=numbers > 0)
        return result

    def number_on(self, state: CycleState, pod: PodInfo, row: int) -> int:
        """Return the number of a row's first rejection in the current state, 0 for none.

        Uncached. Raises AttemptError if a plugin reports an error.
        """
        nodes = NodeRows.one(self._table, row)
        result = self._evaluate_fully(state, pod, nodes)
        if len(self._cluster.nominator):
            plan = self.plans.plan(pod.signature.row_signature)
            beside = self._beside_nominated(state, pod, plan, nodes, np.ones(1, dtype=np.bool_))
            np.copyto(result, beside, where=beside > 0)
        self._raise_error(result, nodes)
        return int(result[0])

    def _raise_error(self, numbers: Int32Array, nodes: NodeRows) -> None:
        """Raise AttemptError if the first rejection of some row is an error and no rejection.

        Of several errors, that of the first node counts.
        """
        found = self.book.errors and self.book.errors.intersection(numbers.tolist())
        if found:
            failing = np.flatnonzero(np.isin(numbers, list(found)))
            places = self._table.order.positions()[nodes.row_numbers()[failing]]
            status = self.book.statuses[int(numbers[failing[places.argmin()]])]
            text = f'running "{status.plugin}" filter plugin: {status.message}'
            raise AttemptError(error(text).by(status.plugin))

    def _diagnose(
        self,
        numbers: Int32Array,
        *,
        absent: Status | None,
        statuses: list[Status] | None = None,
        placement: BoolArray | None = None,
    ) -> Diagnosis:
        statuses = statuses or self.book.statuses
        diagnosis = Diagnosis(self._table, numbers=numbers, statuses=statuses, absent=absent)
        diagnosis.placement = placement
        for number in diagnosis.counts():
            if number:
                _blame(diagnosis, statuses[number])
        return diagnosis

    def diagnose(
        self,
        state: CycleState,
        pod: PodInfo,
        rejected: Mapping[int, Status],
        restriction: Restriction = UNRESTRICTED,
    ) -> Diagnosis:
        """Return why a pod is unschedulable, if extenders rejected the rows that filters passed."""
        plan, nodes = self.plans.plan(pod.signature.row_signature), self._everywhere()
        absent: Status | None = None
        if restriction.node_names is not None:
            nodes = NodeRows(self._table, self._named_rows(state, restriction))
            absent = _left_out(restriction.plugins)
        plan.passing.refresh()
        _, others = self._evaluate(state, pod, plan, nodes, plan.passing.mask[nodes.rows])
        numbers = np.zeros(self._table.size, dtype=np.int32)
        numbers[nodes.rows] = self._first_rejections(state, pod, plan, nodes, others)
        # Extenders word these reasons: an unbounded set, so they are not numbered in the book.
        statuses = [*self.book.statuses, *rejected.values()]
        for number, row in enumerate(rejected, start=len(self.book.statuses)):
            numbers[row] = number
        diagnosis = self._diagnose(numbers, absent=absent, statuses=statuses)
        diagnosis.unschedulable_plugins.update(restriction.plugins)
        return diagnosis

    # --- questions of plugins ---------------------------------------------------------------

    def status_on(self, state: CycleState, pod: PodInfo, row: int) -> Status | None:
        """Return why a row rejects the pod in the current state, None if it does not.

        Raises AttemptError if a plugin reports an error.
        """
        number = self.number_on(state, pod, row)
        return self.book.statuses[number] if number else None

    def row_local_status_on(self, pod: PodInfo, row: int) -> Status | None:
        """Return why row-local filters reject the pod on a row now, None if they do not."""
        number = self.plans.plan(pod.signature.row_signature).rejection_of(row)
        return self.book.statuses[number] if number else None

    def is_row_local(self, state: CycleState) -> bool:
        """Tell whether only row-local filters apply in this attempt."""
        return all(plugin.name in state.skip_filter for _, plugin in self._cluster_filters)

    def is_arithmetic(self, state: CycleState) -> bool:
        """Tell whether all filters that apply in this attempt are row-local or bound counts."""
        return all(
            plugin.bounds_counts or plugin.name in state.skip_filter
            for _, plugin in self._cluster_filters
        )

    def bounded(self, state: CycleState, pod: PodInfo, rows: IndexArray) -> BoundedRows:
        """Return what cluster-wide filters say of some rows, if all of those bound counts."""
        nodes = NodeRows(self._table, rows)
        found: list[NumberedBounds] = []
        for order, plugin in self._cluster_filters:
            if plugin.name not in state.skip_filter:
                bounds = plugin.count_bounds(state, pod, nodes)
                found += numbered(self.book, order, plugin.name, bounds)
        bounded = BoundedRows(self._cluster, rows, found)
        bounded.reserve(self._cluster.nominated_rows.pods_on(pod))
        return bounded

    def is_row_local_for(self, pod: PodInfo) -> bool:
        """Tell whether only row-local filters would apply in an attempt at a pod."""
        if not self._cluster_filters:
            return True
        state = CycleState()
        try:
            rejected = self._pre_filter(state, pod, self.plans.plan(pod.signature.row_signature))
        except AttemptError:
            return False
        return not isinstance(rejected, Diagnosis) and self.is_row_local(state)

    def deciding_plan(self, state: CycleState, pod: PodInfo) -> SignaturePlan | None:
        """Return the plan of a pod's signature if it alone decides, also about pods alike.

        `state` is that of an attempt in which nodes were scored. None if a cluster-wide plugin has
        a say, or might have one after another pod like this was placed.
        """
        if (
            not self._repeats_skips
            or state.unscored
            or len(self._cluster.nominator)
            or self.book.errors
            or not self.is_row_local(state)
            or not self._scoring.is_row_local(state)
        ):
            return None
        plan = self.plans.plan(pod.signature.row_signature)
        return plan if plan.is_unrestricted and not plan.raw_scores else None

    # --- PreScore and Score -----------------------------------------------------------------

    def score(self, state: CycleState, pod: PodInfo, found: FeasibleNodes) -> Scored:
        """Return the scores of feasible nodes: the second half of an attempt.

        Raises AttemptError if a plugin reports an error, or a score that is out of range.
        """
        observer, plan, nodes = self._observer, found.plan, found.nodes
        started = observer.now()
        self._scoring.prepare(state, pod, plan, nodes)
        observer.asked("PreScore", state.skip_score)
        started = self._pre_scored(Code.SUCCESS, started)
        if state.unscored:
            state.skip_score |= state.unscored
            row_local = None
        else:
            row_local = self._row_local_totals(found)
        if row_local is None:
            # A score does not count, or may be out of range: scoring plugin by plugin tells.
            totals = self._scoring.total(state, pod, plan, nodes)
            scored = Scored(found, _spread(totals, nodes), None)
        else:
            scored = Scored(found, row_local, self._scoring.others(state, pod, plan, nodes))
        observer.asked("Score", state.skip_score, found.count)
        self._scored(Code.SUCCESS, started)
        return scored

    def _row_local_totals(self, found: FeasibleNodes) -> Int64Array | None:
        """Return the row-local totals of all rows that matter; None if a score is out of range."""
        view, nodes = found.plan.totals, found.nodes
        view.uses += 1
        if view.uses == 1 and len(found) * SPARSE < self._table.size:
            # A pod that fits few nodes may be the only one of its signature, as with DaemonSets.
            # Totals are cached from the second pod on.
            totals = view.at(nodes.rows, np.ones(len(found), dtype=np.bool_))
            return None if totals is None else _spread(totals, nodes)
        view.refresh()
        if not view.in_range:
            return None
        return view.totals if found.mask is None else view.adjusted(found.mask)

    def plugin_scores(
        self, state: CycleState, pod: PodInfo, rows: IndexArray
    ) -> list[PluginScores]:
        """Return each plugin's scores for each of `rows`; plugins that skip are left out."""
        plan, nodes = self.plans.plan(pod.signature.row_signature), NodeRows(self._table, rows)
        self._scoring.prepare(state, pod, plan, nodes)
        return self._scoring.by_plugin(state, pod, plan, nodes)

    def totals_again(self, state: CycleState, pod: PodInfo, rows: IndexArray) -> Int64Array:
        """Return the total of each of `rows` in full, outside of an attempt.

        Metrics do not count it. Those of an attempt leave out scores that all nodes share.
        """
        observer, totals = self._observer, np.zeros(len(rows), dtype=np.int64)
        timed, observer.sampled = observer.sampled, False
        try:
            for each in self.plugin_scores(state, pod, rows):
                totals += each.normalized * each.weight
        finally:
            observer.sampled = timed
        return totals


def _restricted(before: Restriction, plugin: str, node_names: frozenset[str]) -> Restriction:
    both = node_names if before.node_names is None else before.node_names & node_names
    return Restriction(both, before.plugins | {plugin})


def _left_out(plugins: Iterable[str]) -> Status:
    """Return the status of nodes that PreFilter plugins left out."""
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(plugins))}]")


def _no_node_in_common(plugins: frozenset[str]) -> Status:
    if len(plugins) == 1:
        return unresolvable(f"node(s) didn't satisfy plugin {next(iter(plugins))}")
    listed = " ".join(sorted(plugins))
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{listed}] simultaneously")


def _blame(diagnosis: Diagnosis, status: Status) -> None:
    if not status.plugin:
        return
    diagnosis.unschedulable_plugins.add(status.plugin)
    if status.code is Code.PENDING:
        diagnosis.pending_plugins.add(status.plugin)
