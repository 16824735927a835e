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

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from kubesched import logs
from kubesched.cluster.arrays import BoolArray, IndexArray, Int32Array, Int64Array
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.incremental import SPARSE
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.feasible_nodes import FeasibleNodes, Scored, feasible_nodes, spread
from kubesched.framework.nominated_filter import NominatedFilter
from kubesched.framework.observing import NullObserver
from kubesched.framework.plan import Plans, SignaturePlan
from kubesched.framework.plugin import Plugin
from kubesched.framework.pre_filtering import (
    UNRESTRICTED,
    PreFiltering,
    Restriction,
    left_out,
)
from kubesched.framework.profile import ProfilePlugins
from kubesched.framework.profile_filters import ProfileFilters
from kubesched.framework.scoring import PluginScores, Scoring
from kubesched.framework.status import Code, Status, error
from kubesched.framework.status_book import StatusBook
from kubesched.framework.verdict import Verdict

_log = logs.get_logger(__name__)

#: Verdicts of cluster-wide filters, each with its position and plugin.
Rejections: TypeAlias = list[tuple[int, str, Verdict]]


class Evaluator:
    """Filters and scores nodes for pods of one profile."""

    def __init__(
        self, plugins: ProfilePlugins, cluster: Cluster, observer: NullObserver | None = None
    ) -> None:
        self._observer = observer or NullObserver()
        self._cluster = cluster
        self._table = cluster.table
        self._pre_filtered = self._observer.stopwatch("PreFilter")
        self._filtered = self._observer.stopwatch("Filter")
        self._pre_scored = self._observer.stopwatch("PreScore")
        self._scored = self._observer.stopwatch("Score")
        self._filter_lap = self._observer.lap("Filter")
        self._all_rows = NodeRows.all_of(cluster.table)
        self.book = StatusBook()
        self.plans = Plans(plugins, cluster.table, self.book, observer=self._observer)
        self._pre_filtering = PreFiltering(plugins, cluster.table, self._observer)
        self.filters = ProfileFilters(plugins.filter, cluster, self.book)
        self._nominated = NominatedFilter(self.filters, cluster, self.book)
        self._scoring = Scoring(plugins, cluster.table, self._observer)
        cluster_wide: list[Plugin] = [plugin for _, plugin in self.filters.cluster_wide]
        cluster_wide += [*self._pre_filtering.cluster_wide.values(), *self._scoring.cluster_wide]
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
            restriction = self._pre_filtering.run(state, pod, plan, self._everywhere())
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
        restriction = self._pre_filtering.run(state, pod, plan, self._everywhere())
        if isinstance(restriction, Diagnosis):
            return restriction
        return self._filter(state, pod, plan, restriction)

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
        absent = left_out(restricting)
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
        for order, plugin in self.filters.cluster_wide:
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
        beside = None
        if len(self._cluster.nominator):
            beside = self._nominated.rejections(state, pod, plan, nodes, mask)
            if np.count_nonzero(beside):
                mask = np.greater(mask, beside > 0)
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
            beside = self._nominated.rejections(state, pod, plan, nodes)
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
                diagnosis.blame(statuses[number])
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
            absent = left_out(restriction.plugins)
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

    # --- one row ----------------------------------------------------------------------------

    def status_on(self, state: CycleState, pod: PodInfo, row: int) -> Status | None:
        """Return why a row rejects the pod in the current state, None if it does not.

        Raises AttemptError if a plugin reports an error.
        """
        number = self.number_on(state, pod, row)
        return self.book.statuses[number] if number else None

    def number_on(self, state: CycleState, pod: PodInfo, row: int) -> int:
        """Return the number of a row's first rejection in the current state, 0 for none.

        Uncached. Raises AttemptError if a plugin reports an error.
        """
        nodes = NodeRows.one(self._table, row)
        result = self.filters.evaluate(state, pod, nodes)
        if len(self._cluster.nominator):
            plan = self.plans.plan(pod.signature.row_signature)
            beside = self._nominated.rejections(state, pod, plan, nodes)
            np.copyto(result, beside, where=beside > 0)
        self._raise_error(result, nodes)
        return int(result[0])

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

    def row_local_status_on(self, pod: PodInfo, row: int) -> Status | None:
        """Return why row-local filters reject the pod on a row now, None if they do not."""
        number = self.plans.plan(pod.signature.row_signature).rejection_of(row)
        return self.book.statuses[number] if number else None

    # --- which plugins decide ---------------------------------------------------------------

    def is_row_local_for(self, pod: PodInfo) -> bool:
        """Tell whether only row-local filters would apply in an attempt at a pod."""
        if not self.filters.cluster_wide:
            return True
        state, plan = CycleState(), self.plans.plan(pod.signature.row_signature)
        try:
            rejected = self._pre_filtering.run(state, pod, plan, self._everywhere())
        except AttemptError:
            return False
        return not isinstance(rejected, Diagnosis) and self.filters.is_row_local(state)

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
            or not self.filters.is_row_local(state)
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
            scored = Scored(found, spread(totals, nodes), None)
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
            return None if totals is None else spread(totals, nodes)
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
