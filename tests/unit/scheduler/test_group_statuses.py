"""The status that PodGroups of scheduler-plugins get."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.api.meta import OwnerReference
from kubesched.api.scheduling import CoscheduledGroup, CoscheduledGroupStatus
from kubesched.clock import VirtualClock
from kubesched.cluster.cluster import Cluster
from kubesched.scheduler.group_statuses import GroupStatuses, next_status
from tests.support.group_objects import coscheduled, labelled
from tests.support.waiting import eventually


def in_phase(name: str, phase: str) -> Pod:
    made = labelled(name, node="" if phase == "Pending" else "n1")
    return replace(made, status=replace(made.status, phase=phase))


def phase_after(before: str, *phases: str, needed: int = 2) -> str:
    group = replace(coscheduled(members=needed), status=CoscheduledGroupStatus(phase=before))
    pods = [in_phase(f"p{number}", phase) for number, phase in enumerate(phases)]
    return next_status(group, pods, 0.0).phase


@pytest.mark.parametrize(
    ("before", "phases", "after"),
    [
        ("", [], "Pending"),
        ("", ["Pending"], "Pending"),
        ("Pending", ["Pending", "Pending"], "Scheduling"),
        ("Scheduling", ["Running", "Pending"], "Scheduling"),
        ("Scheduling", ["Running", "Running"], "Running"),
        ("Running", ["Running", "Succeeded"], "Running"),
        ("Running", ["Running", "Pending"], "Scheduling"),
        ("Running", ["Running"], "Pending"),
        ("Running", ["Running", "Failed"], "Failed"),
        ("Scheduling", ["Pending", "Failed"], "Scheduling"),
        ("Running", ["Succeeded", "Succeeded", "Failed"], "Finished"),
        ("Finished", ["Running"], "Finished"),
        ("Failed", ["Running", "Running"], "Failed"),
    ],
)
def test_phases_follow_the_pods(before: str, phases: Sequence[str], after: str) -> None:
    assert phase_after(before, *phases) == after


def test_pods_are_counted_and_the_owner_is_named() -> None:
    first = in_phase("a", "Running")
    owners = (OwnerReference(name="job-2"), OwnerReference(name="job-1"))
    first = replace(first, metadata=replace(first.metadata, owner_references=owners))
    pods = [first, in_phase("b", "Pending"), in_phase("c", "Succeeded")]
    status = next_status(coscheduled(members=3), pods, 0.0)
    assert (status.scheduled, status.running, status.succeeded, status.failed) == (2, 1, 1, 0)
    assert status.occupied_by == "default/job-1,default/job-2"
    assert status.schedule_start_time == "1970-01-01T00:00:00Z"


class Server:
    """An API server that has pods and takes statuses, and knows no field `scheduled`."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.pods: dict[str, Pod] = {}
        self.written: list[CoscheduledGroupStatus] = []
        self.listed = 0

    async def report_group_status(
        self, group: CoscheduledGroup, status: CoscheduledGroupStatus
    ) -> None:
        self.written.append(status)
        self.cluster.groups.coscheduled.put(replace(group, status=replace(status, scheduled=0)))

    async def pods_of_group(self, group: CoscheduledGroup) -> list[Pod]:
        assert group.metadata.name == "g"
        self.listed += 1
        return list(self.pods.values())

    def put(self, *pods: Pod) -> None:
        for each in pods:
            self.pods[each.metadata.uid] = each
            if each.status.phase in ("Succeeded", "Failed"):
                self.cluster.remove_pod(each.metadata.uid)
            else:
                self.cluster.put_pod(each)


def test_the_status_is_written_until_the_group_is_finished() -> None:
    async def run() -> None:
        cluster = Cluster()
        cluster.group_by_label("default-scheduler")
        server = Server(cluster)
        api_calls: Any = server
        statuses = GroupStatuses(api_calls, cluster.groups, VirtualClock())
        cluster.groups.coscheduled.put(coscheduled(members=2))
        await asyncio.sleep(0)
        assert server.written == []  # it is not our turn

        statuses.begin()
        await eventually(lambda: [each.phase for each in server.written] == ["Pending"])
        server.put(in_phase("a", "Running"), in_phase("b", "Running"))
        await eventually(lambda: server.written[-1].phase == "Running")
        assert server.listed == 0

        server.put(in_phase("a", "Succeeded"))
        await eventually(lambda: server.written[-1].succeeded == 1)
        server.put(in_phase("b", "Succeeded"))
        await eventually(lambda: server.written[-1].phase == "Finished")

        await statuses.drain(5.0)
        assert len(statuses) == 0
        assert len(server.written) == 4  # what the server dropped was not written again

    asyncio.run(run())
