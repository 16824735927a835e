"""A group whose members are all alike, on placements after the first one that was tried.

    one placement by the decision path ──> AlikeGroup ──> each other placement: SweptPlacement, or
                                                          None where the decision path must decide

The result of the decision path for one member holds for all of them, and on all placements.
So on each of these they are placed in one sweep, and of those that do not fit nothing needs to be
known but that. Decisions are made for the placement that is taken.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from kubesched.cluster.node_table import NodeTable
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.group import (
    AlikeAssignments,
    Assignment,
    Assignments,
    GroupInfo,
    Placement,
    Progress,
)
from kubesched.framework.group_sweep import Draws, GroupSweep, Swept, alike, can_repeat
from kubesched.framework.runtime import Framework
from kubesched.framework.status import Code, Status
from kubesched.scheduler.cycle import SchedulingCycle
from kubesched.scheduler.group_results import GroupResult, MemberResult


class SweptPlacement(Struct, frozen=True, eq=False):
    """The result for equal members on one placement."""

    placement: Placement
    #: whether enough of them fit
    fits: bool
    #: the status of the placement, and its cycle state
    status: Status
    state: CycleState
    swept: Swept


class AlikeGroup:
    """Tries equal members on one placement after the other."""

    def __init__(
        self,
        framework: Framework,
        group: GroupInfo,
        *,
        cycle: SchedulingCycle,
        table: NodeTable,
        state: CycleState,
        sweep: GroupSweep,
        may_place: bool,
        placed_before: int,
    ) -> None:
        self._framework = framework
        self._group = group
        self._cycle = cycle
        self._table = table
        #: as the decision path left it
        self._state = state
        self._sweep = sweep
        #: whether the sweep also returns nodes of members, and not only that none fits
        self.may_place = may_place
        self._before = placed_before
        self._draws: Draws | None = None

    def try_on(self, placement: Placement, state: CycleState) -> SweptPlacement | None:
        """Place all members, as far as they fit; None if only the decision path can tell."""
        rows, count = placement.in_order(self._table.order), len(self._group.pods)
        status = self._judge(state, remaining=count, scheduled=0)
        if status.code not in (Code.SUCCESS, Code.WAIT):
            return None
        if self._draws is None:
            self._draws = Draws(self._cycle.rng)
        mark = self._draws.mark()
        swept = self._sweep.place(rows, count if self.may_place else 0, self._draws)
        if swept is not None and (self.may_place or not swept.left):
            tried, scheduled = len(swept.rows), len(swept.rows)
            while tried < count and status.code in (Code.SUCCESS, Code.WAIT):
                tried += 1
                status = self._judge(state, remaining=count - tried, scheduled=scheduled)
            if scheduled == count:
                status = self._judge(state, remaining=0, scheduled=count)
            fits = status.ok and scheduled == count
            is_told = fits or status.code in (Code.WAIT, Code.UNSCHEDULABLE)
            if is_told and not self._framework.evaluator.book.errors:
                return SweptPlacement(placement, fits, status, state, swept)
        # Only the decision path determines which of them do not fit, and why.
        self._draws.take_back(mark)
        return None

    def drawn_by_others(self) -> None:
        """Start over with draws: the decision path has drawn as well."""
        self._draws = None

    def _judge(self, state: CycleState, *, remaining: int, scheduled: int) -> Status:
        progress = Progress(remaining, self._before + scheduled)
        return self._framework.groups.feasible(state, self._group, progress)

    # --- what was found ---------------------------------------------------------------------

    def assignments(self, found: SweptPlacement) -> Assignments:
        """Return the nodes of the members."""
        pods, rows, names = self._group.pods, found.swept.rows, self._table.name_at

        def assignment(index: int) -> Assignment:
            return Assignment(pods[index], names(rows[index]), self._member_state(found))

        return Assignments(found.placement, AlikeAssignments(pods, assignment), found.state)

    def result(self, found: SweptPlacement) -> GroupResult:
        """Return what became of the group, with a decision for each member."""
        rows, feasible, _ = found.swept
        members = [
            MemberResult(
                pod,
                self._cycle.chosen(
                    self._member_state(found),
                    row,
                    evaluated=found.placement.count,
                    feasible=count,
                ),
            )
            for pod, row, count in zip(self._group.pods, rows, feasible, strict=True)
        ]
        return GroupResult(
            self._group, found.status, members=members, has_scheduled=True, state=found.state
        )

    def _member_state(self, found: SweptPlacement) -> CycleState:
        state = self._state.twin()
        state.placement, state.group = found.placement.rows, found.state.group
        return state


def are_alike(framework: Framework, group: GroupInfo) -> bool:
    """Return whether all members of a group are alike, and told apart by sums of rows alone."""
    first = group.pods[0]
    return (
        framework.ranks_all_nodes
        and can_repeat(first)
        and alike(first, group.pods) == len(group.pods)
    )


def alike_group(
    framework: Framework,
    group: GroupInfo,
    tried: Sequence[MemberResult],
    *,
    cycle: SchedulingCycle,
    table: NodeTable,
    placed_before: int,
) -> AlikeGroup | None:
    """Return how a group that the decision path has tried can be tried elsewhere; None if not so.

    `tried` are the members that it came to, none of them on an error.
    """
    if not tried or not are_alike(framework, group):
        return None
    first, evaluator = tried[0], framework.evaluator
    state, is_placed = first.decision.state, first.decision.status.ok
    if state.unscored or evaluator.book.errors:
        return None
    if is_placed:
        plan = evaluator.deciding_plan(state, first.pod)
    else:
        # Where no row passes row-local filters, no other filter makes one pass.
        is_filtered = first.decision.diagnosis is not None
        plan = evaluator.plans.plan(first.pod.signature.row_signature)
        if not is_filtered or not plan.is_unrestricted or not evaluator.filters.is_row_local(state):
            plan = None
    if plan is None:
        return None
    return AlikeGroup(
        framework,
        group,
        cycle=cycle,
        table=table,
        state=state,
        sweep=GroupSweep(table, plan, first.pod),
        may_place=is_placed,
        placed_before=placed_before,
    )
