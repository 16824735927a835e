"""The condition of a PodGroup: written when it changes, and never taken back."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec.structs import replace

from kubesched.api.scheduling import GroupCondition, GroupStatus, PodGroup
from kubesched.clock import VirtualClock
from kubesched.cluster.pod_groups import PodGroups
from kubesched.errors import ConnectionFailedError
from kubesched.scheduler.group_reports import GroupReports, new_condition
from kubesched.scheduler.group_results import GroupVerdict
from tests.support.group_objects import key, pod_group

SCHEDULED = GroupVerdict("True", "Scheduled", "")
NO_ROOM = GroupVerdict("False", "Unschedulable", "no room")


def with_condition(condition: GroupCondition | None) -> PodGroup:
    conditions = () if condition is None else (condition,)
    return replace(pod_group(), status=GroupStatus(conditions=conditions))


def test_the_first_condition_is_written_with_its_time() -> None:
    condition = new_condition(pod_group(), NO_ROOM, 0.0)
    assert condition is not None
    assert condition.type == "PodGroupInitiallyScheduled"
    assert (condition.status, condition.reason, condition.message) == (
        "False",
        "Unschedulable",
        "no room",
    )
    assert condition.last_transition_time == "1970-01-01T00:00:00Z"


def test_what_a_group_says_already_is_not_written_again() -> None:
    known = new_condition(pod_group(), NO_ROOM, 0.0)
    assert new_condition(with_condition(known), NO_ROOM, 100.0) is None


def test_another_reason_is_written_with_the_old_time() -> None:
    known = new_condition(pod_group(), NO_ROOM, 0.0)
    other = new_condition(with_condition(known), GroupVerdict("False", "SchedulerError", "x"), 99.0)
    assert other is not None
    assert other.last_transition_time == "1970-01-01T00:00:00Z"


def test_a_group_that_was_scheduled_stays_so() -> None:
    known = new_condition(pod_group(), SCHEDULED, 0.0)
    assert new_condition(with_condition(known), NO_ROOM, 1.0) is None


class Written:
    """An API server that takes conditions, but for the first `failures` requests."""

    def __init__(self, *, failures: int = 0) -> None:
        self.conditions: list[tuple[str, str]] = []
        self.failures = failures

    async def report_group(self, group: PodGroup, condition: GroupCondition) -> None:
        await asyncio.sleep(0)
        if self.failures:
            self.failures -= 1
            raise ConnectionFailedError("no route")
        self.conditions.append((group.metadata.name, condition.status))


def sent(*verdicts: GroupVerdict, gone: bool = False) -> list[tuple[str, str]]:
    """Report one thing after the other, while the informer still shows none of it."""
    groups, written = PodGroups(), Written()
    groups.objects.put(pod_group())
    api_calls: Any = written

    async def run() -> None:
        reports = GroupReports(api_calls, groups, VirtualClock())
        for verdict in verdicts:
            reports.submit(key(), "uid-g", verdict)
            await asyncio.sleep(0)
        if gone:
            groups.objects.remove(pod_group())
        await reports.drain(5.0)
        assert len(reports) == 0

    asyncio.run(run())
    return written.conditions


def test_reports_are_sent() -> None:
    assert sent(NO_ROOM) == [("g", "False")]


def test_a_failure_is_not_reported_after_a_success_that_is_not_seen_yet() -> None:
    assert sent(SCHEDULED, NO_ROOM) == [("g", "True")]


def test_a_group_that_is_gone_is_not_written_to() -> None:
    assert sent(gone=True) == []


def test_a_success_that_could_not_be_written_is_reported_by_the_next_attempt() -> None:
    groups, written = PodGroups(), Written(failures=1)
    groups.objects.put(pod_group())
    api_calls: Any = written

    async def run() -> None:
        reports = GroupReports(api_calls, groups, VirtualClock())
        for _ in range(3):
            reports.submit(key(), "uid-g", SCHEDULED)
            await reports.drain(5.0)

    asyncio.run(run())
    assert written.conditions == [("g", "True")]
