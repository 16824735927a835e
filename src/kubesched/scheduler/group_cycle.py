"""The scheduling cycle of a group: its members one after the other, on one placement at a time.

    placements ──> for each: members in turn, enough of them? ──> the best that fits
                   └─ a composite group: its groups in turn, each within its placement

A placement is a mask over rows. Members are placed in a transaction, so each of them sees those
before it, and all of it is undone in the end: what is left is the node of each member.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import NamedTuple

from kubesched.cluster.arrays import BoolArray
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.transaction import Transaction
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import refused_by_chosen_node
from kubesched.framework.group import Assignment, Assignments, GroupInfo, Placement, Progress
from kubesched.framework.group_runtime import PlacementScores
from kubesched.framework.group_sweep import Draws, GroupSweep, alike, can_repeat
from kubesched.framework.runtime import Framework
from kubesched.framework.status import Code, Status, error, unschedulable
from kubesched.metrics.recorder import Metrics
from kubesched.scheduler.alike_group import AlikeGroup, SweptPlacement, alike_group
from kubesched.scheduler.cycle import Decision, SchedulingCycle
from kubesched.scheduler.group_results import (
    UNSCHEDULABLE,
    GroupResult,
    GroupResults,
    MemberResult,
    TriedPlacement,
    short_text,
)

#: Chooses a node for a member, within the placement of its state.
DecideMember = Callable[[Framework, CycleState, PodInfo], Decision]
#: Tries a group on one placement: (its state, the placement, where results go).
Attempt = Callable[[CycleState, Placement, Transaction, GroupResults], GroupResult]


class GroupCycle:
    """Finds nodes for groups."""

    def __init__(
        self,
        cluster: Cluster,
        cycle: SchedulingCycle,
        *,
        with_placements: bool = False,
        with_composites: bool = False,
        metrics: Metrics | None = None,
    ) -> None:
        self._cluster = cluster
        self._cycle = cycle
        #: whether groups have placements, as the gate TopologyAwareWorkloadScheduling decides
        self._with_placements = with_placements
        #: whether groups may be part of others, as the gate CompositePodGroup decides
        self._with_composites = with_composites
        self._metrics = metrics
        #: chooses a node for a member
        self._decide: DecideMember = cycle.schedule_member
        #: whether equal members are placed at once; off in tests that compare
        self.sweeps = True

    @property
    def members(self) -> SchedulingCycle:
        """Decides about members without extenders."""
        return self._cycle

    def deciding_by(self, decide: DecideMember) -> GroupCycle:
        """Return the same, with another one to decide about each member."""
        other = copy(self)
        other._decide, other.sweeps = decide, False  # noqa: SLF001 (its own class)
        return other

    def run(self, framework: Framework, root: GroupInfo, state: CycleState) -> GroupResults:
        """Find nodes for the members of a tree; changes nothing."""
        results: GroupResults = {}
        with self._cluster.transaction() as tx:
            withdraw(root, tx)
            everywhere = Placement("", self._cluster.table.valid[: self._cluster.table.size].copy())
            run = _Run(framework, results, is_tree=root.is_composite)
            self._schedule(run, root, state, everywhere, tx)
        result = results[root.key]
        if result.status.ok and not result.has_scheduled:
            result.status = unschedulable(UNSCHEDULABLE)
        return results

    def _schedule(
        self, run: _Run, group: GroupInfo, state: CycleState, within: Placement, tx: Transaction
    ) -> GroupResult:
        def attempt(
            placement_state: CycleState, placement: Placement, part: Transaction, into: GroupResults
        ) -> GroupResult:
            here = _Run(run.framework, into, is_tree=run.is_tree)
            if group.is_composite:
                return self._children(here, group, placement_state, placement, part)
            is_all = placement.count == len(self._cluster.table)
            mask = None if is_all else placement.rows
            return self._members(here, group, placement_state, mask, part)

        if self._with_placements:
            result = self._on_best(run, group, state, within=within, tx=tx, attempt=attempt)
        else:
            result = attempt(_within(state), within, tx, run.results)
        run.results[group.key] = result
        return result

    # --- placements -------------------------------------------------------------------------

    def _on_best(
        self,
        run: _Run,
        group: GroupInfo,
        state: CycleState,
        *,
        within: Placement,
        tx: Transaction,
        attempt: Attempt,
    ) -> GroupResult:
        """Try a group on each placement, and take the best on which it fits."""
        # Placements are few: their plugins are always timed.
        state.is_timed = True
        placements, status = run.framework.groups.generate(state, group, within)
        if not status.ok:
            return GroupResult(group, status)
        self._count_placements(run, group, placements)
        fitting: list[_Fit] = []
        first: GroupResults | None = None
        tried: list[TriedPlacement] = []
        alike: AlikeGroup | None = None
        for placement in placements:
            started = run.framework.now()
            swept = None if alike is None else alike.try_on(placement, _within(state))
            if alike is not None and swept is not None:
                fits = swept.fits
                if fits:
                    fitting.append(_swept_fit(group, alike, swept))
            else:
                found: GroupResults = {}
                with tx.part() as part:
                    found[group.key] = attempt(_within(state), placement, part, found)
                result = found[group.key]
                if result.status.code is Code.ERROR:
                    return result
                first, fits = first or found, result.status.ok
                if fits:
                    fitting.append(_fit(group, placement, found))
                if len(placements) > 1:
                    alike = self._alike(run, result, alike)
            tried.append(TriedPlacement(placement, fits))
            self._count_evaluation(run, group, started, feasible=fits)
        if not fitting:
            return self._none_fits(run, group, first or {}, tried)
        return self._best(run, group, state, fitting=fitting, tried=tried, tx=tx)

    def _alike(
        self, run: _Run, result: GroupResult, before: AlikeGroup | None
    ) -> AlikeGroup | None:
        """Return what tries the group on other placements at less cost; None if nothing does.

        `before` is what did so until the decision path had to be taken.
        """
        if before is not None and before.may_place:
            before.drawn_by_others()
            return before
        if not self.sweeps or result.info.is_composite:
            return None
        return alike_group(
            run.framework,
            result.info,
            result.members,
            cycle=self._cycle,
            table=self._cluster.table,
            placed_before=self._cluster.groups.members(result.info.key).placed_count,
        )

    def _none_fits(
        self, run: _Run, group: GroupInfo, first: GroupResults, tried: list[TriedPlacement]
    ) -> GroupResult:
        result = first[group.key]
        text = (
            f"0/{len(tried)} placements are available, "
            f"first placement status: {short_text(result.status)}"
        )
        result.status = unschedulable(UNSCHEDULABLE, text)
        result.tried = tried
        run.results.update(first)
        return result

    def _best(
        self,
        run: _Run,
        group: GroupInfo,
        state: CycleState,
        *,
        fitting: Sequence[_Fit],
        tried: list[TriedPlacement],
        tx: Transaction,
    ) -> GroupResult:
        taken = fitting[0]
        scores: list[PlacementScores] = []
        if len(fitting) > 1:
            placed = [each.assignments for each in fitting]
            scores, status = run.framework.groups.score(state, group, placed)
            if not status.ok:
                return GroupResult(group, status)
            best = self.pick_placement(scores)
            taken = next(each for each in fitting if each.assignments.placement is best)
        placement, found = taken.assignments.placement, taken.results()
        result = found[group.key]
        result.tried, result.scores, result.placement = tried, scores, placement
        if self._with_composites:
            # Groups that are tried after this one must see where its pods are.
            problem = self._place_again(run, _assigned(group, found), tx)
            if problem is not None:
                text = f"failed to assume the subtree: {problem.message}"
                return GroupResult(group, error(text))
        run.results.update(found)
        return result

    def pick_placement(self, scores: Sequence[PlacementScores]) -> Placement:
        """Return one of the best placements."""
        most = max(each.total for each in scores)
        best = [each.placement for each in scores if each.total == most]
        return best[self._cycle.rng.randrange(len(best))]

    def _count_placements(
        self, run: _Run, group: GroupInfo, placements: Sequence[Placement]
    ) -> None:
        if self._metrics is not None and not group.is_composite:
            profile = run.framework.scheduler_name
            self._metrics.generated_placements.labels(profile).inc(len(placements))

    def _count_evaluation(
        self, run: _Run, group: GroupInfo, started: float, *, feasible: bool
    ) -> None:
        if self._metrics is not None and not group.is_composite:
            labels = "feasible" if feasible else "infeasible", run.framework.scheduler_name
            seconds = run.framework.now() - started
            self._metrics.placement_evaluations.labels(*labels).inc()
            self._metrics.placement_evaluation_duration.labels(*labels).observe(seconds)

    # --- the groups of a composite group ----------------------------------------------------

    def _children(
        self, run: _Run, group: GroupInfo, state: CycleState, within: Placement, tx: Transaction
    ) -> GroupResult:
        """Try the groups of a composite group one after the other, as long as enough may fit."""
        points, part = run.framework.groups, tx.part()
        remaining, scheduled, has_scheduled = len(group.children), 0, False
        status = points.feasible(state, group, Progress(remaining, scheduled))
        for child in group.children:
            if status.code in (Code.UNSCHEDULABLE, Code.ERROR):
                break
            result = self._schedule(run, child, _of_parent(state), within, part)
            if result.status.code is Code.ERROR:
                text = "composite pod group evaluation failed due to child error"
                status = error(f"{text}: {result.status.message}")
                break
            has_scheduled |= result.has_scheduled
            remaining, scheduled = remaining - 1, scheduled + result.status.ok
            status = points.feasible(state, group, Progress(remaining, scheduled))
        if status.code is Code.WAIT:
            status = unschedulable(UNSCHEDULABLE, *status.reasons)
        return _ended(GroupResult(group, status, has_scheduled=has_scheduled, state=state), part)

    # --- the members of a PodGroup ----------------------------------------------------------

    def _members(
        self,
        run: _Run,
        group: GroupInfo,
        state: CycleState,
        mask: BoolArray | None,
        tx: Transaction,
    ) -> GroupResult:
        """Try the members of a PodGroup one after the other, as long as enough may fit."""
        points, part = run.framework.groups, tx.part()
        before = self._cluster.groups.members(group.key).placed_count
        result = GroupResult(group, unschedulable(UNSCHEDULABLE), members=[], state=state)
        status = points.feasible(state, group, Progress(len(group.pods), before))
        if status.code is Code.UNSCHEDULABLE:
            result.status = unschedulable(UNSCHEDULABLE, *status.reasons).by(status.plugin)
            return result
        while status.code in (Code.SUCCESS, Code.WAIT) and len(result.members) < len(group.pods):
            pod = group.pods[len(result.members)]
            decision, more = self._member(run, state, group.pods[len(result.members) :], mask, part)
            result.members.append(MemberResult(pod, decision))
            if decision.status.code is Code.ERROR:
                text = "failed to schedule other pod from a pod group"
                result.status = error(f"{text}: {decision.status.message}")
                return _ended(result, part)
            result.members += more
            tried = len(result.members)
            scheduled = before + sum(each.decision.status.ok for each in result.members)
            status = points.feasible(state, group, Progress(len(group.pods) - tried, scheduled))
            result.has_scheduled |= decision.status.ok and status.code is not Code.UNSCHEDULABLE
        if status.code is Code.ERROR:
            text = f"failed to evaluate placement feasibility: {status.message}"
            status = error(text).by(status.plugin)
        elif status.code is Code.WAIT:
            status = unschedulable(UNSCHEDULABLE, *status.reasons).by(status.plugin)
        result.status = status
        return _ended(result, part)

    def _member(
        self,
        run: _Run,
        placement_state: CycleState,
        pods: Sequence[PodInfo],
        mask: BoolArray | None,
        tx: Transaction,
    ) -> tuple[Decision, list[MemberResult]]:
        """Find a node for the first of some members, and place it there.

        Those that follow and are like it are placed along with it, as far as they fit.
        """
        framework, pod, state = run.framework, pods[0], CycleState()
        state.placement, state.group = mask, placement_state.group
        state.unscored = placement_state.unscored
        decision = self._decide(framework, state, pod)
        if not decision.node_name:
            return decision, []
        draws = Draws(self._cycle.rng)
        more = self._sweep(framework, decision, pods, draws) if self.sweeps else []
        rejection = place_member(framework, Assignment(pod, decision.node_name, state), tx)
        if rejection is not None:
            draws.take_back(0)
            return Decision(rejection, state, nominated_node=""), []
        if run.is_tree or len(more) + 1 < len(pods):
            # Members that are tried after these must see them.
            for each in more:
                place_member(framework, _assignment(each), tx)
        return decision, more

    def _sweep(
        self, framework: Framework, first: Decision, pods: Sequence[PodInfo], draws: Draws
    ) -> list[MemberResult]:
        """Find nodes for the members that are like the first of some, all at once."""
        if not framework.ranks_all_nodes or not can_repeat(pods[0]):
            return []
        plan = framework.evaluator.deciding_plan(first.state, pods[0])
        count = alike(pods[0], pods[1:])
        if plan is None or not count:
            return []
        table, mask = self._cluster.table, first.state.placement
        rows = table.order.rows()
        swept = GroupSweep(table, plan, pods[0]).place(
            rows if mask is None else rows[mask[rows]],
            count,
            draws,
            after=table.row_of(first.node_name),
        )
        if swept is None or framework.evaluator.book.errors:
            draws.take_back(0)
            return []
        results, evaluated = [], first.evaluated_nodes
        for pod, row, feasible in zip(pods[1:], swept.rows, swept.feasible, strict=False):
            state = first.state.twin()
            made = self._cycle.chosen(state, row, evaluated=evaluated, feasible=feasible)
            results.append(MemberResult(pod, made))
        return results

    def _place_again(
        self, run: _Run, assigned: Sequence[Assignment], tx: Transaction
    ) -> Status | None:
        """Place members where they were; return what went wrong, None if nothing did."""
        part = tx.part()
        for each in assigned:
            problem = place_member(run.framework, each, part)
            if problem is not None:
                part.undo()
                return problem
        part.keep()
        return None


class _Run:
    """One run of the cycle: who decides, and where results go."""

    __slots__ = ("framework", "is_tree", "results")

    def __init__(self, framework: Framework, results: GroupResults, *, is_tree: bool) -> None:
        self.framework = framework
        self.results = results
        #: whether several groups are tried, each of which must see those before it
        self.is_tree = is_tree


class _Fit(NamedTuple):
    """A placement that a group fits into."""

    assignments: Assignments
    #: makes the results of all groups of the tree
    results: Callable[[], GroupResults]


def _fit(group: GroupInfo, placement: Placement, found: GroupResults) -> _Fit:
    state = found[group.key].state or CycleState()
    return _Fit(Assignments(placement, _assigned(group, found), state), lambda: found)


def _swept_fit(group: GroupInfo, alike: AlikeGroup, swept: SweptPlacement) -> _Fit:
    return _Fit(alike.assignments(swept), lambda: {group.key: alike.result(swept)})


def _within(group_state: CycleState) -> CycleState:
    """Return a state for one placement of an attempt at a group."""
    state = CycleState()
    state.group, state.is_timed = group_state, group_state.is_timed
    state.unscored = group_state.unscored
    return state


def _of_parent(placement_state: CycleState) -> CycleState:
    """Return a state for the attempt at a group of a composite group."""
    state = CycleState()
    state.is_timed, state.unscored = placement_state.is_timed, placement_state.unscored
    return state


def withdraw(root: GroupInfo, tx: Transaction) -> None:
    """Withdraw the nominations of members: all of them are being placed."""
    for pod in root.pods:
        tx.withdraw(pod)


def place_member(framework: Framework, assigned: Assignment, tx: Transaction) -> Status | None:
    """Count a member on its node, and reserve what it needs; return what went wrong."""
    part, (pod, node_name, state) = tx.part(), (assigned.pod, assigned.node_name, assigned.state)
    part.place(state.on_node(pod, node_name), node_name)
    part.on_undo(lambda: framework.unreserve(state, pod, node_name))
    status = framework.reserve(state, pod, node_name)
    if status.ok:
        part.keep()
        return None
    part.undo()
    return refused_by_chosen_node(status) if status.rejected else status


def _ended(result: GroupResult, part: Transaction) -> GroupResult:
    """Keep the pods of a group that succeeded where they are; take away those of another."""
    if result.status.ok:
        part.keep()
    else:
        part.undo()
        result.has_scheduled = False
    return result


def _assignment(member: MemberResult) -> Assignment:
    return Assignment(member.pod, member.decision.node_name, member.decision.state)


def _assigned(group: GroupInfo, results: GroupResults) -> list[Assignment]:
    """Return the members with a node of a tree, of groups that succeeded with all above them."""
    result = results.get(group.key)
    if result is None or not result.status.ok:
        return []
    below = [each for child in group.children for each in _assigned(child, results)]
    return [*below, *result.assigned()]
