"""A queued group: its members in the order of the attempt, and its history."""

from __future__ import annotations

import pytest

from kubesched.queue.queued_group import QueuedGroup
from tests.support.group_objects import GroupLab, key, pod_group
from tests.support.queueing import queued


@pytest.fixture
def group() -> QueuedGroup:
    return QueuedGroup(key("g"), GroupLab(pod_group("g", priority=5)).forest, queued_at=1.0)


def test_members_are_ordered_by_priority_then_attempts_then_age(group: QueuedGroup) -> None:
    late, early = queued("late", at=2.0), queued("early", at=1.0)
    tried, high = queued("tried", at=3.0), queued("high", priority=9, at=4.0)
    tried.attempts = 1
    for each in (late, early, tried, high):
        group.add(each)

    assert [each.info.pod.metadata.name for each in group.pods()] == [
        "high",
        "tried",
        "early",
        "late",
    ]
    assert group.size == 4


def test_the_priority_of_members_does_not_count(group: QueuedGroup) -> None:
    group.add(queued("a", priority=100))

    assert group.priority == 5


def test_a_gated_member_is_the_gatekeeper(group: QueuedGroup) -> None:
    free, gated = queued("free"), queued("gated")
    gated.gated_by = "SchedulingGates"
    group.add(free)
    assert group.gatekeeper is free

    group.add(gated)
    assert group.gatekeeper is gated

    group.remove(gated.info.uid)
    assert group.gatekeeper is free


def test_a_renewed_group_has_the_history_and_no_members(group: QueuedGroup) -> None:
    group.add(queued("a"))
    group.attempts, group.unschedulable_count, group.initial_attempt_at = 3, 2, 9.0

    renewed = group.renewed()

    assert renewed.key == group.key
    assert renewed.size == 0
    assert (renewed.attempts, renewed.unschedulable_count) == (3, 2)
    assert renewed.initial_attempt_at == 9.0
