"""What became of an attempt at a group: of each group of the tree, and of each member.

GroupCycle ──> GroupResult of each group ──> complete ──> after PodGroupPostFilter
                                                             └──> MemberOutcome, condition
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kubesched.api import names
from kubesched.cluster.pod_groups import GroupKey
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.group import (
    Assignment,
    GroupInfo,
    Placement,
    PodGroupPostFilterResult,
)
from kubesched.framework.group_runtime import PlacementScores
from kubesched.framework.status import SUCCESS, Code, Status, unschedulable
from kubesched.scheduler.cycle import Decision

UNSCHEDULABLE: Final = "pod group is unschedulable"


class MemberResult(Struct, frozen=True, eq=False):
    """What became of one member."""

    pod: PodInfo
    decision: Decision


class TriedPlacement(Struct, frozen=True, eq=False):
    """A placement that a group was tried on, and whether it fits."""

    placement: Placement
    feasible: bool


class GroupResult(Struct, eq=False):
    """What became of one group of the tree."""

    info: GroupInfo
    status: Status
    #: of the members that were tried, in this order; all members once the result is complete
    members: list[MemberResult] = []
    #: whether some pod of the group got a node in this attempt
    has_scheduled: bool = False
    #: whether pods are being evicted for the group
    awaits_victims: bool = False
    #: the cycle state of the placement
    state: CycleState | None = None
    #: the placements that were tried; their scores if several fit, and the one that was taken
    tried: list[TriedPlacement] = []
    scores: list[PlacementScores] = []
    placement: Placement | None = None

    def assigned(self) -> list[Assignment]:
        """Return the members that got a node."""
        return [
            Assignment(each.pod, each.decision.node_name, each.decision.state)
            for each in self.members
            if each.decision.node_name and each.decision.status.ok
        ]


#: By group, parents before children.
GroupResults = dict[GroupKey, GroupResult]


def short_text(status: Status) -> str:
    """Return the text of a status within another one's: its cause, if it names that."""
    return UNSCHEDULABLE if status.reasons[:1] == (UNSCHEDULABLE,) else status.message


# --- all members --------------------------------------------------------------------------------


def complete(root: GroupInfo, results: GroupResults) -> GroupResults:
    """Return a result for each group of the tree and each member.

    Where a composite group failed, so did the groups below; a member that was not tried, because
    its group could no longer succeed, has the group's status.
    """
    completed: GroupResults = {}
    _complete(root, results, None, completed)
    return completed


def _complete(
    info: GroupInfo,
    results: Mapping[GroupKey, GroupResult],
    parent: GroupResult | None,
    completed: GroupResults,
) -> None:
    result = results.get(info.key)
    if parent is not None and (result is None or (result.status.ok and not parent.status.ok)):
        result = GroupResult(info, parent.status)
    if result is None:
        raise LookupError(f"there is no result for {info.key}")
    if not info.is_composite:
        untried = info.pods[len(result.members) :]
        status = replace(result.status, plugin="")
        more = [MemberResult(pod, Decision(status, CycleState())) for pod in untried]
        result.members = [*result.members, *more]
    completed[info.key] = result
    for child in info.children:
        _complete(child, results, result, completed)


# --- after PodGroupPostFilter -------------------------------------------------------------------


def add_post_filter(results: GroupResults, post: PodGroupPostFilterResult) -> None:
    """Take over what PodGroupPostFilter came to, in each group of the tree."""
    for result in results.values():
        if post.status.code is Code.ERROR:
            result.status = post.status
            continue
        reasons = (*result.status.reasons, post.status.message)
        result.status = replace(result.status, reasons=reasons)
        if post.status.ok:
            result.awaits_victims = True
            result.members = [_nominated(each, post.nominations) for each in result.members]


def _nominated(member: MemberResult, nominations: Mapping[str, str]) -> MemberResult:
    node_name = nominations.get(member.pod.uid)
    if node_name is None:
        return member
    return MemberResult(member.pod, replace(member.decision, nominated_node=node_name))


# --- what follows for each member ---------------------------------------------------------------


class MemberOutcome(Struct, frozen=True, eq=False):
    """What is to be done about a member: bind it, or report why it has no node."""

    pod: PodInfo
    decision: Decision
    binds: bool
    status: Status = SUCCESS
    diagnosis: Diagnosis | None = None
    #: node to nominate, "" to take a nomination back, None to leave it
    nominated_node: str | None = None


def outcomes(result: GroupResult) -> Iterable[MemberOutcome]:
    """Return what is to be done about each member of a PodGroup, in order."""
    return [_outcome(result, each.pod, each.decision) for each in result.members]


def all_outcomes(results: GroupResults) -> list[MemberOutcome]:
    """Return what is to be done about each member of a tree, group by group."""
    return [
        each
        for result in results.values()
        if not result.info.is_composite
        for each in outcomes(result)
    ]


def _outcome(result: GroupResult, pod: PodInfo, decision: Decision) -> MemberOutcome:
    group, own = result.status, decision.status
    if not group.ok and not group.rejected:
        status = own if own.code is Code.ERROR else group
        return _failure(pod, decision, status, nominated_node="")
    if not own.ok:
        return _failure(pod, decision, own, nominated_node=decision.nominated_node)
    if group.ok:
        return MemberOutcome(pod, decision, binds=True)
    if result.awaits_victims:
        return _failure(pod, decision, group, nominated_node=decision.nominated_node)
    status = unschedulable(UNSCHEDULABLE, group.message)
    return _failure(pod, decision, status, nominated_node="")


def _failure(
    pod: PodInfo, decision: Decision, status: Status, *, nominated_node: str | None
) -> MemberOutcome:
    # That the group lacks members does not determine which event may help one of them.
    is_own = status is decision.status and decision.diagnosis is not None
    return MemberOutcome(
        pod,
        decision,
        binds=False,
        status=status if is_own else replace(status, plugin=""),
        diagnosis=decision.diagnosis if is_own else None,
        nominated_node=nominated_node,
    )


class GroupVerdict(Struct, frozen=True):
    """The condition of a PodGroup."""

    status: str
    reason: str
    message: str


def verdict(status: Status) -> GroupVerdict:
    """Return the condition of a group."""
    if status.ok:
        return GroupVerdict("True", "Scheduled", status.message)
    if status.rejected:
        return GroupVerdict("False", names.POD_REASON_UNSCHEDULABLE, status.message)
    return GroupVerdict("False", names.POD_REASON_SCHEDULER_ERROR, status.message)
