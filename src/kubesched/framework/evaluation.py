"""Finding a node for a pod: PreFilter, Filter, PreScore, Score over all nodes at once.

    pod ─> plan of its shape ─> feasible rows ─> total scores ─> Decision
                                     └─ none ─> Diagnosis

Row-local plugins answer from the plan's cached columns; cluster-wide ones are asked for the rows
that are still in the race. Nothing here changes the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from kubesched import logs
from kubesched.cluster.arrays import BoolArray, IndexArray, Int32Array, Int64Array
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.node_rows import NodeRows, SupposedRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_volumes import NO_VOLUMES
from kubesched.framework.answers import RejectRow
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.cycle_state import NOBODY, CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.observing import Unobserved
from kubesched.framework.plan import Plans, ShapePlan
from kubesched.framework.plugin import (
    NOTHING_TO_FILTER,
    Filter,
    PreFilter,
    PreFilterResult,
    RowFilter,
)
from kubesched.framework.profile import ProfilePlugins, of_kind
from kubesched.framework.ranker import Ranker
from kubesched.framework.scoring import PluginScores, Scoring
from kubesched.framework.status import Code, Status, error, unresolvable
from kubesched.framework.status_book import StatusBook

_log = logs.get_logger(__name__)


class Evaluator:
    """The vectorised part of a profile's framework."""

    def __init__(
        self, plugins: ProfilePlugins, cluster: Cluster, observer: Unobserved | None = None
    ) -> None:
        self._plugins = plugins
        self._observer = observer or Unobserved()
        self._cluster = cluster
        self._table = cluster.table
        # Which kind a plugin is, is asked once: the cycle has better things to do.
        self._cluster_pre_filters = of_kind(plugins.pre_filter, PreFilter)
        #: with the position of each, which decides whose rejection counts
        self._filters = list(enumerate(plugins.filter))
        #: those that are row-local and look at the pods of a row
        self._pod_filters = [
            (order, plugin)
            for order, plugin in self._filters
            if isinstance(plugin, RowFilter) and plugin.reads_pods
        ]
        self._cluster_filters = [
            (order, plugin) for order, plugin in self._filters if isinstance(plugin, Filter)
        ]
        self._pre_filtered = self._observer.stopwatch("PreFilter")
        self._filtered = self._observer.stopwatch("Filter")
        self._pre_filter_lap = self._observer.lap("PreFilter")
        self._filter_lap = self._observer.lap("Filter")
        self.book = StatusBook()
        self.plans = Plans(plugins, cluster.table, self.book, observer=self._observer)
        self._scoring = Scoring(plugins, cluster.table, self._observer)
        #: the short way, where it can be gone
        self.ranker = Ranker(
            plugins,
            cluster,
            plans=self.plans,
            scoring=self._scoring,
            observer=self._observer,
            crowded=self._crowded,
        )

    # --- feasibility ------------------------------------------------------------------------

    def find_feasible(self, state: CycleState, pod: PodInfo) -> IndexArray | Diagnosis:
        """Return the rows that the pod fits on, in node order, or why there are none.

        Raises AttemptError if a plugin reports an error.
        """
        self.plans.shed()
        observer = self._observer
        started = observer.begin()
        through, code = self._pre_filtered, Code.ERROR
        try:
            plan = self.plans.plan(pod.shape.row_shape)
            restricted = self._pre_filter(state, pod, plan)
            if isinstance(restricted, Diagnosis):
                rejection = restricted.pre_filter
                code = Code.UNSCHEDULABLE if rejection is None else rejection.code
                return restricted
            observer.asked("PreFilter", state.skip_filter)
            started = through(Code.SUCCESS, started)
            through = self._filtered
            found = self._filter(state, pod, plan, *restricted)
            observer.asked("Filter", state.skip_filter, len(self._table))
            # That no node is left is no failure of the filters: they did their work.
            code = Code.SUCCESS
            return found
        finally:
            through(code, started)

    def look_for_feasible(self, state: CycleState, pod: PodInfo) -> IndexArray | Diagnosis:
        """Find the same as `find_feasible`, when it is no attempt and does not count as one."""
        plan = self.plans.plan(pod.shape.row_shape)
        restricted = self._pre_filter(state, pod, plan)
        if isinstance(restricted, Diagnosis):
            return restricted
        return self._filter(state, pod, plan, *restricted)

    def _filter(
        self,
        state: CycleState,
        pod: PodInfo,
        plan: ShapePlan,
        node_names: frozenset[str] | None,
        restricting: set[str],
    ) -> IndexArray | Diagnosis:
        nominated = self._nominated_row(pod)
        refused: dict[int, int] = {}
        if nominated is not None:
            number = self._rejection_on(state, pod, nominated)
            if number == 0:
                return np.array([nominated], dtype=np.intp)
            if number is not None:
                refused[nominated] = number
        if node_names is not None:
            return self._filter_named(state, pod, node_names, restricting, refused)
        return self._filter_all(state, pod, plan)

    # --- feasibility, step by step ----------------------------------------------------------

    def _nominated_row(self, pod: PodInfo) -> int | None:
        name = pod.pod.status.nominated_node_name
        return self._table.row_of(name) if name else None

    def _rejection_on(self, state: CycleState, pod: PodInfo, row: int) -> int | None:
        """Return the number of a row's first rejection, 0 for none; None if a plugin failed.

        A failure does not end the attempt: it is met again if the row is looked at with the others.
        """
        try:
            return int(self._rejections_at(state, pod, NodeRows.one(self._table, row))[0])
        except AttemptError as failed:
            _log.error(
                "Evaluation failed on nominated node",
                failed.status.message,
                pod=pod.full_name,
                node=self._table.name_at(row),
            )
            return None

    def _pre_filter(
        self, state: CycleState, pod: PodInfo, plan: ShapePlan
    ) -> tuple[frozenset[str] | None, set[str]] | Diagnosis:
        """Run PreFilter; return the nodes to look at, None for all, and who restricted them."""
        node_names: frozenset[str] | None = None
        restricting: list[str] = []
        rejection: Status | None = None
        state.skip_filter = NOBODY
        idle = self._plugins.only_with_volumes if pod.volumes is NO_VOLUMES else NOBODY
        for plugin in self._plugins.pre_filter:
            cluster_wide = self._cluster_pre_filters.get(plugin.name)
            if plugin.name in idle:
                result = NOTHING_TO_FILTER
            elif cluster_wide is None:
                result = plan.pre_filter[plugin.name]
            else:
                result = state.pre_filtered.get(plugin.name) or self._ask(cluster_wide, state, pod)
            status = result.status
            if status.code is Code.SKIP:
                state.skip_filter |= {plugin.name}
                continue
            if status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                return self._turned_away(status.by(plugin.name), [])
            if status.code is Code.UNSCHEDULABLE:
                rejection = status.by(plugin.name)
                continue
            if not status.ok:
                text = f'running PreFilter plugin "{plugin.name}": {status.message}'
                raise AttemptError(error(text).by(plugin.name))
            if result.node_names is not None:
                restricting.append(plugin.name)
                known = result.node_names
                node_names = known if node_names is None else node_names & known
                if not node_names:
                    return self._turned_away(_no_node_in_common(restricting), restricting)
        if rejection is not None:
            return self._turned_away(rejection, restricting)
        return node_names, set(restricting)

    def _ask(self, plugin: PreFilter, state: CycleState, pod: PodInfo) -> PreFilterResult:
        started = self._observer.now() if self._observer.sampled else 0.0
        result = plugin.pre_filter(state, pod, NodeRows.all_of(self._table))
        if self._observer.sampled:
            self._pre_filter_lap(plugin.name, result.status.code, started)
        return result

    def _turned_away(self, status: Status, restricting: list[str]) -> Diagnosis:
        diagnosis = Diagnosis(self._table, pre_filter=status)
        diagnosis.unschedulable_plugins.update(restricting)
        _blame(diagnosis, status)
        return diagnosis

    def _filter_all(
        self, state: CycleState, pod: PodInfo, plan: ShapePlan
    ) -> IndexArray | Diagnosis:
        table = self._table
        passing = plan.feasible()
        global_rejections = self._cluster_wide(state, pod, NodeRows.all_of(table))
        for numbers in global_rejections:
            passing &= numbers == 0
        crowded = self._leaving_room(state, pod, passing)
        if crowded is not None:
            passing &= crowded == 0
        if self.book.errors and self.book.any_error(
            plan.rejections(), *global_rejections, *_if_any(crowded)
        ):
            self._raise_error(self._merged(plan.rejections(), global_rejections, crowded))
        if np.count_nonzero(passing):
            order = table.order.rows()
            return order[passing[order]]
        if not self._leaves_room_by_rows(state, pod):
            # What a full node would say with nominated pods on it matters only to the message.
            crowded = self._leaving_room(state, pod)
        rejections = self._merged(plan.rejections(), global_rejections, crowded)
        return self._diagnose(rejections, absent=None)

    def _filter_named(
        self,
        state: CycleState,
        pod: PodInfo,
        node_names: frozenset[str],
        restricting: set[str],
        refused: Mapping[int, int],
    ) -> IndexArray | Diagnosis:
        """Look at a few nodes only: cheaper without the plan, which would cover all of them.

        `refused` is the nominated row with the number of its rejection, if it was rejected. It has
        its own reason even if it is none of the nodes, and the plugin that gave it joins those that
        restricted them: kube-scheduler's message says so.
        """
        table = self._table
        wanted = [row for name in node_names if (row := table.row_of(name)) is not None]
        wanted.sort(key=table.order.positions().item)
        rows = np.array(wanted, dtype=np.intp)
        rejections = self._rejections_at(state, pod, NodeRows(table, rows))
        feasible = rows[rejections == 0]
        if len(feasible):
            return feasible
        numbers = np.zeros(table.size, dtype=np.int32)
        for row, number in refused.items():
            numbers[row] = number
            restricting |= {self.book.statuses[number].plugin}
        numbers[rows] = rejections
        plugins = " ".join(sorted(restricting))
        absent = unresolvable(f"node(s) didn't satisfy plugin(s) [{plugins}]")
        diagnosis = self._diagnose(numbers, absent=absent)
        diagnosis.unschedulable_plugins.update(restricting)
        return diagnosis

    def _leaving_room(
        self, state: CycleState, pod: PodInfo, among: BoolArray | None = None
    ) -> Int32Array | None:
        """Return why rows are out of the question once pods nominated to them are there.

        A row must pass both with and without those pods: they may come, or may not. The number of
        the status that each row gets then, 0 for none; None if no pod is nominated. `among` are the
        rows that matter.
        """
        nominator, table = self._cluster.nominator, self._table
        if not len(nominator):
            return None
        if self._leaves_room_by_rows(state, pod):
            crowded = self.plans.plan(pod.shape.row_shape).crowded(self._cluster, pod.priority)
            return crowded.current(pod, lambda nodes: self.row_local_rejections(state, pod, nodes))
        numbers = np.zeros(table.size, dtype=np.int32)
        for node_name, others in nominator.nodes_to_leave_room_on(pod).items():
            row = table.row_of(node_name)
            if row is None or (among is not None and not among[row]):
                continue
            with table.trial(row):
                for other in others:
                    if other.uid not in table.pods[row]:
                        table.add_pod(row, other)
                numbers[row] = self._all_filters(state, pod, NodeRows.one(table, row))[0]
        return numbers

    def _crowded(self, state: CycleState, pod: PodInfo, among: BoolArray) -> BoolArray | None:
        """Return which rows are out of the question for that reason; None if a plugin fails."""
        numbers = self._leaving_room(state, pod, among)
        if numbers is None:
            return np.zeros(self._table.size, dtype=np.bool_)
        if self.book.errors and self.book.any_error(numbers):
            return None
        return numbers > 0

    def _leaves_room_by_rows(self, state: CycleState, pod: PodInfo) -> bool:
        """Tell whether each row by itself has room beside nominated pods, or has not."""
        return not pod.shape.host_ports and self.is_row_local(state)

    def _rejections_at(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Int32Array:
        """Run every filter on some rows, without the plan; raise AttemptError on an error."""
        result = self._all_filters(state, pod, nodes)
        if len(self._cluster.nominator):
            rows = nodes.row_numbers()
            among = np.zeros(self._table.size, dtype=np.bool_)
            among[rows] = True
            crowded = self._leaving_room(state, pod, among)
            if crowded is not None:
                np.copyto(result, crowded[rows], where=crowded[rows] > 0)
        self._raise_error(result)
        return result

    def _all_filters(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Int32Array:
        return self._first_rejections(state, pod, nodes, self._filters)

    def _first_rejections(
        self,
        state: CycleState,
        pod: PodInfo,
        nodes: NodeRows,
        filters: Sequence[tuple[int, RowFilter | Filter]],
    ) -> Int32Array:
        """Return the number of each row's first rejection, 0 for none."""
        result = np.zeros(len(nodes), dtype=np.int32)
        # Backwards, so that of several rejections the first one stays.
        for order, plugin in reversed(filters):
            if plugin.name in state.skip_filter:
                continue
            numbers = self._run_filter(order, plugin, state, pod, nodes)
            if numbers is not None:
                np.copyto(result, numbers, where=numbers > 0)
        return result

    def _run_filter(
        self,
        order: int,
        plugin: RowFilter | Filter,
        state: CycleState,
        pod: PodInfo,
        nodes: NodeRows,
    ) -> Int32Array | None:
        if isinstance(plugin, RowFilter):
            verdict = plugin.filter(pod.shape, nodes)
        else:
            verdict = plugin.filter(state, pod, nodes)
        return self.book.numbers_of(verdict, order=order, plugin=plugin.name)

    def _cluster_wide(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> list[Int32Array]:
        results = []
        observer = self._observer
        for order, plugin in self._cluster_filters:
            if plugin.name not in state.skip_filter:
                started = observer.now() if observer.sampled else 0.0
                numbers = self._run_filter(order, plugin, state, pod, nodes)
                if observer.sampled:
                    self._filter_lap(plugin.name, Code.SUCCESS, started)
                if numbers is not None:
                    results.append(numbers)
        return results

    def _merged(
        self, local: Int32Array, others: list[Int32Array], crowded: Int32Array | None
    ) -> Int32Array:
        result = local.copy()  # the plan's column goes on changing
        for numbers in others:
            result = self.book.first(result, numbers)
        if crowded is not None:
            np.copyto(result, crowded, where=crowded > 0)
        if len(self._table) < self._table.size:
            # Rows without a node are evaluated along with the others; that is noise.
            result[~self._table.valid[: self._table.size]] = 0
        return result

    def _raise_error(self, numbers: Int32Array) -> None:
        for number in np.unique(numbers).tolist() if self.book.errors else ():
            if number in self.book.errors:
                status = self.book.statuses[number]
                text = f'running "{status.plugin}" filter plugin: {status.message}'
                raise AttemptError(error(text).by(status.plugin))

    def _diagnose(
        self,
        numbers: Int32Array,
        *,
        absent: Status | None,
        statuses: list[Status] | None = None,
    ) -> Diagnosis:
        statuses = statuses or self.book.statuses
        diagnosis = Diagnosis(self._table, numbers=numbers, statuses=statuses, absent=absent)
        for number in diagnosis.counts():
            if number:
                _blame(diagnosis, statuses[number])
        return diagnosis

    def status_on(self, state: CycleState, pod: PodInfo, row: int) -> Status | None:
        """Return why a row cannot take the pod as things are, None if it can.

        Raises AttemptError if a plugin reports an error.
        """
        number = int(self._rejections_at(state, pod, NodeRows.one(self._table, row))[0])
        return self.book.statuses[number] if number else None

    def is_row_local(self, state: CycleState) -> bool:
        """Tell whether only row-local filters have a say in this attempt."""
        return all(plugin.name in state.skip_filter for _, plugin in self._cluster_filters)

    def is_row_local_for(self, pod: PodInfo) -> bool:
        """Tell whether only row-local filters would have a say in an attempt at a pod."""
        if not self._cluster_filters:
            return True
        state = CycleState()
        try:
            rejected = self._pre_filter(state, pod, self.plans.plan(pod.shape.row_shape))
        except AttemptError:
            return False
        return not isinstance(rejected, Diagnosis) and self.is_row_local(state)

    def row_local_rejections(
        self, state: CycleState, pod: PodInfo, nodes: SupposedRows
    ) -> Int32Array:
        """Return the number of each row's first row-local rejection, with other pods on it."""
        if len(nodes) == 1:
            # Arrays of one element cost as much as those of many.
            with nodes.supposed() as row:
                return np.array([self.rejecting_one(pod)(row)], dtype=np.int32)
        on_pods = self._first_rejections(state, pod, nodes, self._pod_filters)
        # What is said of the node itself does not depend on its pods, and is known.
        on_node = self.plans.plan(pod.shape.row_shape).node_rejections()[nodes.rows]
        return self.book.first(on_node, on_pods) if on_node.any() else on_pods

    def rejecting_one(self, pod: PodInfo) -> RejectRow:
        """Return what gives the number of a row's first row-local rejection, as the row is now."""
        return self.plans.plan(pod.shape.row_shape).rejection_of

    def diagnose(self, state: CycleState, pod: PodInfo, refused: Mapping[int, Status]) -> Diagnosis:
        """Return why a pod fits nowhere, if rows that filters let pass were refused later."""
        plan = self.plans.plan(pod.shape.row_shape)
        others = self._cluster_wide(state, pod, NodeRows.all_of(self._table))
        numbers = self._merged(plan.rejections(), others, self._leaving_room(state, pod))
        # What was said later is in anybody's words, and not for the book.
        statuses = [*self.book.statuses, *refused.values()]
        for number, row in enumerate(refused, start=len(self.book.statuses)):
            numbers[row] = number
        return self._diagnose(numbers, absent=None, statuses=statuses)

    # --- scores -----------------------------------------------------------------------------

    def total_scores(self, state: CycleState, pod: PodInfo, rows: IndexArray) -> Int64Array:
        """Return the weighted sum of all scores for each of `rows`, which are feasible."""
        return self._scoring.total(state, pod, self.plans.plan(pod.shape.row_shape), rows)

    def plugin_scores(
        self, state: CycleState, pod: PodInfo, rows: IndexArray
    ) -> list[PluginScores]:
        """Return each plugin's scores for each of `rows`; plugins that skip are left out."""
        return self._scoring.by_plugin(state, pod, self.plans.plan(pod.shape.row_shape), rows)


def _if_any(column: Int32Array | None) -> tuple[Int32Array, ...]:
    return () if column is None else (column,)


def _no_node_in_common(plugins: list[str]) -> Status:
    if len(plugins) == 1:
        return unresolvable(f"node(s) didn't satisfy plugin {plugins[0]}")
    listed = " ".join(sorted(plugins))
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{listed}] simultaneously")


def _blame(diagnosis: Diagnosis, status: Status) -> None:
    if not status.plugin:
        return
    diagnosis.unschedulable_plugins.add(status.plugin)
    if status.code is Code.PENDING:
        diagnosis.pending_plugins.add(status.plugin)
