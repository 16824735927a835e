"""The status of PodGroups of scheduler-plugins, written back as their controller does it.

    members, objects change ──> worker: what the pods are now ──> next_status ──> patch

Phases: Pending until there are ``minMember`` pods, then Scheduling, then Running; Finished or
Failed in the end, and final. Pods that are over have left the scheduler's watch, so they are listed
where fewer are left than there were.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from kubesched import logs
from kubesched.api.core import Pod
from kubesched.api.scheduling import CoscheduledGroup, CoscheduledGroupStatus
from kubesched.clock import Clock
from kubesched.cluster.pod_groups import GroupKey, GroupKind, PodGroups
from kubesched.errors import ClientError, NotFoundError
from kubesched.scheduler.api_calls import ApiCalls
from kubesched.scheduler.tasks import Tasks
from kubesched.scheduler.timestamps import rfc3339

_log = logs.get_logger(__name__)

PENDING: Final = "Pending"
SCHEDULING: Final = "Scheduling"
RUNNING: Final = "Running"
FINISHED: Final = "Finished"
FAILED: Final = "Failed"
FINAL: Final = frozenset({FINISHED, FAILED})

#: Pods of a group come, are bound and start together: wait for more before writing.
GATHERING_S = 0.1


def next_status(group: CoscheduledGroup, pods: Sequence[Pod], now: float) -> CoscheduledGroupStatus:
    """Return what a group's status is to be, given all its pods."""
    status, needed = group.status, group.spec.min_member
    if status.phase in FINAL:
        return status
    phase = status.phase or PENDING
    if phase == PENDING and len(pods) < needed:
        return replace(status, phase=PENDING)
    if phase == PENDING:
        status = replace(
            status,
            occupied_by=_owners(pods) or status.occupied_by,
            schedule_start_time=status.schedule_start_time or rfc3339(now),
        )
    phases = [pod.status.phase for pod in pods]
    running, succeeded, failed = (phases.count(each) for each in ("Running", "Succeeded", "Failed"))
    phase = RUNNING if succeeded + running >= needed else SCHEDULING
    if len(pods) < needed:
        phase = PENDING
    elif succeeded >= needed:
        phase = FINISHED
    elif failed and failed + running + succeeded >= needed:
        phase = FAILED
    return replace(
        status,
        phase=phase,
        scheduled=sum(bool(pod.spec.node_name) for pod in pods),
        running=running,
        succeeded=succeeded,
        failed=failed,
    )


def _owners(pods: Sequence[Pod]) -> str:
    """Return the owners of the first pod, as the status names them."""
    first = pods[0].metadata
    return ",".join(sorted(f"{first.namespace}/{each.name}" for each in first.owner_references))


class GroupStatuses:
    """Updates the status of groups, in the background."""

    def __init__(self, api_calls: ApiCalls, groups: PodGroups, clock: Clock) -> None:
        self._api_calls = api_calls
        self._groups = groups
        self._clock = clock
        self._is_our_turn = False
        #: groups to check, the oldest first
        self._waiting: dict[GroupKey, None] = {}
        #: group → how many pods it had at most
        self._most: dict[GroupKey, int] = {}
        #: group → what was written last: an API server may drop fields that it does not know
        self._written: dict[GroupKey, tuple[str, CoscheduledGroupStatus]] = {}
        self._tasks = Tasks()
        groups.listeners.append(self._note)
        groups.coscheduled.listeners.append(
            lambda name: self._note(GroupKey(GroupKind.COSCHEDULED, *name))
        )

    def __len__(self) -> int:
        return len(self._waiting) + len(self._tasks)

    def begin(self) -> None:
        """Note that it is our turn to schedule: now we are the ones to write."""
        self._is_our_turn = True
        self._start()

    async def drain(self, timeout_s: float) -> None:
        """Wait for what waits to be written; give up what takes longer."""
        await self._tasks.drain(timeout_s)

    def _note(self, key: GroupKey) -> None:
        if key.kind is GroupKind.COSCHEDULED:
            self._waiting[key] = None
            if self._is_our_turn:
                self._start()

    def _start(self) -> None:
        if self._waiting and not len(self._tasks):
            self._tasks.start(self._work())

    async def _work(self) -> None:
        while self._waiting:
            await asyncio.sleep(GATHERING_S)
            keys, self._waiting = self._waiting, {}
            for key in keys:
                await self._update(key)

    async def _update(self, key: GroupKey) -> None:
        group = self._groups.coscheduled.get(key.namespace, key.name)
        if group is None:
            self._most.pop(key, None)
            self._written.pop(key, None)
            return
        if group.status.phase in FINAL:
            return
        try:
            wanted = next_status(group, await self._pods_of(key, group), self._clock.time())
            if wanted == group.status or (group.metadata.uid, wanted) == self._written.get(key):
                return
            await self._api_calls.report_group_status(group, wanted)
            self._written[key] = group.metadata.uid, wanted
        except NotFoundError:
            _log.v(3, "Pod group is gone", podGroup=key.full_name)
        except ClientError as failed:
            _log.error("Failed to update PodGroup status", failed, podGroup=key.full_name)

    async def _pods_of(self, key: GroupKey, group: CoscheduledGroup) -> Sequence[Pod]:
        """Return the pods of a group, with those that are over if there may be any."""
        members, status = self._groups.members(key), group.status
        seen = {uid: info.pod for uid, info in (*members.pending.items(), *members.placed.items())}
        most = max(
            self._most.get(key, 0), len(seen), status.running + status.succeeded + status.failed
        )
        self._most[key] = most
        if len(seen) == most:
            return list(seen.values())
        return await self._api_calls.pods_of_group(group)
