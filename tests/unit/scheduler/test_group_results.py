"""What follows from an attempt at a group for each of its members."""

from __future__ import annotations

import pytest

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.group import PodGroupPostFilterResult
from kubesched.framework.status import (
    SUCCESS,
    Code,
    Status,
    error,
    unresolvable,
    unschedulable,
)
from kubesched.scheduler.cycle import Decision
from kubesched.scheduler.group_results import (
    GroupResult,
    MemberResult,
    add_post_filter,
    complete,
    outcomes,
    short_text,
    verdict,
)
from tests.support.group_objects import GroupLab, key, member, pod_group

NO_ROOM = unschedulable("no room")
TOO_FEW = unschedulable("too few")


def result_of(group: Status, *members: Status) -> GroupResult:
    lab = GroupLab(pod_group())
    pods = lab.pending(*(member(f"p{n}") for n in range(3)))
    tried = [
        MemberResult(pod, Decision(status, CycleState(), node_name="n1" if status.ok else ""))
        for pod, status in zip(pods, members, strict=False)
    ]
    return GroupResult(lab.info(key(), pods), group, members=tried)


def completed(group: Status, *members: Status) -> GroupResult:
    result = result_of(group, *members)
    return complete(result.info, {key(): result})[key()]


def test_members_that_were_not_tried_have_the_group_s_status() -> None:
    result = completed(TOO_FEW, SUCCESS)
    assert [each.decision.status for each in result.members] == [SUCCESS, TOO_FEW, TOO_FEW]


def test_of_a_group_that_succeeded_members_with_a_node_are_bound() -> None:
    first, second, _ = outcomes(completed(SUCCESS, SUCCESS, NO_ROOM, NO_ROOM))
    assert first.binds
    assert (second.binds, second.status, second.nominated_node) == (False, NO_ROOM, None)


def test_of_a_group_that_failed_members_with_a_node_lose_it() -> None:
    first, second, third = outcomes(completed(TOO_FEW, SUCCESS, NO_ROOM))
    assert first.status.message == "pod group is unschedulable, too few"
    assert first.nominated_node == ""
    assert second.status == NO_ROOM
    assert third.status == TOO_FEW


def test_an_error_is_an_error_for_all_but_keeps_its_own_text() -> None:
    first, second, third = outcomes(completed(error("group"), SUCCESS, error("own")))
    assert [each.status.message for each in (first, second, third)] == ["group", "own", "group"]
    assert {each.nominated_node for each in (first, second, third)} == {""}


def test_preemption_nominates_members_and_is_told_to_the_group() -> None:
    result = completed(TOO_FEW, SUCCESS, NO_ROOM)
    made_room = PodGroupPostFilterResult(Status(Code.SUCCESS, ("room",)), {"p0": "n1", "p1": "n2"})
    add_post_filter({key(): result}, made_room)
    first, second, third = outcomes(result)
    assert (first.status.message, first.nominated_node) == ("too few, room", "n1")
    assert (second.status, second.nominated_node) == (NO_ROOM, "n2")
    assert (third.status, third.nominated_node) == (TOO_FEW, None), "without what was done later"


def test_preemption_that_does_not_help_is_told_too() -> None:
    result = completed(TOO_FEW, SUCCESS)
    add_post_filter({key(): result}, PodGroupPostFilterResult(unresolvable("no victims")))
    assert result.status.message == "too few, no victims"
    assert result.status.code is Code.UNSCHEDULABLE
    assert next(iter(outcomes(result))).status.message == (
        "pod group is unschedulable, too few, no victims"
    )


def test_a_failure_of_preemption_takes_the_place_of_the_reason() -> None:
    result = completed(TOO_FEW, SUCCESS)
    add_post_filter({key(): result}, PodGroupPostFilterResult(error("broken")))
    assert verdict(result.status).reason == "SchedulerError"
    assert verdict(result.status).message == "broken"


@pytest.mark.parametrize(
    ("status", "want"),
    [
        (SUCCESS, ("True", "Scheduled", "")),
        (TOO_FEW, ("False", "Unschedulable", "too few")),
        (error("broken"), ("False", "SchedulerError", "broken")),
    ],
)
def test_the_condition_says_what_became_of_the_group(
    status: Status, want: tuple[str, str, str]
) -> None:
    found = verdict(status)
    assert (found.status, found.reason, found.message) == want


def test_in_another_status_a_cause_stands_for_the_whole() -> None:
    assert short_text(TOO_FEW) == "too few"
    assert short_text(unschedulable("pod group is unschedulable", "x")) == (
        "pod group is unschedulable"
    )
