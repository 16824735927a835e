"""Telling groups how they stand: the condition PodGroupInitiallyScheduled of PodGroups.

What is written is compared with the group as it is then. A group that was scheduled once stays so,
regardless of the pods that are added later.
"""

from __future__ import annotations

from typing import Final

from kubesched import logs
from kubesched.api.scheduling import GroupCondition, PodGroup
from kubesched.clock import Clock
from kubesched.cluster.pod_groups import GroupKey, GroupKind, PodGroups
from kubesched.errors import ClientError, NotFoundError
from kubesched.scheduler.api_calls import ApiCalls
from kubesched.scheduler.group_results import GroupVerdict
from kubesched.scheduler.tasks import Tasks
from kubesched.scheduler.timestamps import rfc3339

_log = logs.get_logger(__name__)

CONDITION: Final = "PodGroupInitiallyScheduled"
TRUE: Final = "True"


def new_condition(group: PodGroup, verdict: GroupVerdict, now: float) -> GroupCondition | None:
    """Return the condition to write, None if the group has it or was scheduled before."""
    conditions = group.status.conditions
    known = next((each for each in conditions if each.type == CONDITION), None)
    if known is not None and known.status == TRUE and verdict.status != TRUE:
        return None
    is_same = known is not None and known.status == verdict.status
    wanted = GroupCondition(
        type=CONDITION,
        status=verdict.status,
        reason=verdict.reason,
        message=verdict.message,
        observed_generation=group.metadata.generation,
        last_transition_time=known.last_transition_time if known and is_same else rfc3339(now),
    )
    return None if wanted == known else wanted


class GroupReports:
    """Reports that wait to be sent."""

    def __init__(self, api_calls: ApiCalls, groups: PodGroups, clock: Clock) -> None:
        self._api_calls = api_calls
        self._groups = groups
        self._clock = clock
        #: the newest report about each group, oldest first
        self._waiting: dict[GroupKey, tuple[str, GroupVerdict]] = {}
        #: uids of groups that were reported as scheduled, which informers may not show yet
        self._scheduled: dict[GroupKey, str] = {}
        self._tasks = Tasks()
        groups.objects.listeners.append(self._changed)

    def __len__(self) -> int:
        return len(self._waiting) + len(self._tasks)

    def submit(self, key: GroupKey, uid: str, verdict: GroupVerdict) -> None:
        """Report how a group stands, some time soon.

        One of scheduler-plugins has no conditions; `GroupStatuses` writes its status.
        """
        if key.kind is GroupKind.COSCHEDULED:
            return
        if self._scheduled.get(key) == uid:
            return
        if verdict.status == TRUE:
            self._scheduled[key] = uid
        self._waiting[key] = uid, verdict
        if not len(self._tasks):
            self._tasks.start(self._work())

    def _changed(self, name: tuple[str, str]) -> None:
        """Drop a group that was deleted."""
        if self._groups.objects.get(*name) is None:
            self._scheduled.pop(GroupKey(GroupKind.POD_GROUP, *name), None)

    async def drain(self, timeout_s: float) -> None:
        """Wait for what waits to be sent; give up what takes longer."""
        await self._tasks.drain(timeout_s)

    async def _work(self) -> None:
        while self._waiting:
            key = next(iter(self._waiting))
            uid, verdict = self._waiting.pop(key)
            await self._send(key, uid, verdict)

    async def _send(self, key: GroupKey, uid: str, verdict: GroupVerdict) -> None:
        group = self._groups.objects.get(key.namespace, key.name)
        if group is None or group.metadata.uid != uid:
            return
        condition = new_condition(group, verdict, self._clock.time())
        if condition is None:
            return
        try:
            await self._api_calls.report_group(group, condition)
        except NotFoundError:
            _log.v(3, "Pod group is gone", podGroup=key.full_name)
        except ClientError as failed:
            # The next attempt at the group reports again.
            self._scheduled.pop(key, None)
            _log.error("Failed to update PodGroup status", failed, podGroup=key.full_name)
