"""Groups of scheduler-plugins from the queue to their nodes, with the gate GenericWorkload off."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kubesched.client import resources
from kubesched.cluster.pod_groups import POD_GROUP_LABEL
from kubesched.config import loading
from kubesched.config.features import FeatureGates
from kubesched.errors import ConfigError
from tests.support.embedded_scheduler import Harness, Json, scheduler
from tests.support.waiting import eventually

PROFILE: Json = {
    "schedulerName": "default-scheduler",
    "plugins": {
        "multiPoint": {"enabled": [{"name": "Coscheduling"}]},
        "queueSort": {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]},
    },
    "pluginConfig": [{"name": "Coscheduling", "args": {"permitWaitingTimeSeconds": 10}}],
}


def run(test: Callable[[Harness], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        async with scheduler(profiles=[PROFILE], **options) as harness:
            await test(harness)
            harness.app.cluster.validate()

    asyncio.run(main())


def create_group(harness: Harness, members: int, name: str = "g", **spec: Any) -> None:
    harness.cluster.create(
        {
            "apiVersion": "scheduling.x-k8s.io/v1alpha1",
            "kind": "PodGroup",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"minMember": members, **spec},
        }
    )


def create_members(harness: Harness, *names: str, group: str = "g", cpu: str = "1") -> None:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    for name in names:
        labels = {POD_GROUP_LABEL: group}
        meta = {"name": name, "namespace": "default", "labels": labels}
        spec = {"containers": [container]}
        harness.cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})


def status(harness: Harness, name: str = "g") -> tuple[str, int]:
    group = harness.app.cluster.groups.coscheduled.get("default", name)
    return (group.status.phase, group.status.scheduled) if group else ("", 0)


def test_a_gang_waits_until_it_is_complete_and_is_bound_as_a_whole() -> None:
    async def test(harness: Harness) -> None:
        create_members(harness, "a", "b")
        harness.create_pod("single")
        await eventually(lambda: harness.node_of("single"))
        create_group(harness, 3)
        await eventually(lambda: harness.app.queue.gated_count == 2)
        assert status(harness)[0] in ("", "Pending")
        create_members(harness, "c")
        await eventually(lambda: all(harness.node_of(name) for name in "abc"))
        await eventually(lambda: status(harness) in (("Scheduling", 3), ("Running", 3)))

    run(test)


def test_of_a_gang_without_room_no_pod_is_bound_and_each_is_told() -> None:
    async def test(harness: Harness) -> None:
        create_group(harness, 2)
        create_members(harness, "a")
        create_members(harness, "huge", cpu="9999")
        await eventually(lambda: "Insufficient cpu" in harness.message("huge"))
        await eventually(
            lambda: harness.message("a").startswith(
                "pod group is unschedulable, minMember (2) cannot be satisfied: 1 scheduled"
            )
        )
        assert not harness.node_of("a")

    run(test)


def test_a_pod_leaves_its_group_when_its_label_says_so() -> None:
    async def test(harness: Harness) -> None:
        create_group(harness, 3)
        create_members(harness, "a", "b")
        await eventually(lambda: harness.app.queue.gated_count == 2)
        path = resources.PODS.item("a", namespace="default")
        await harness.app.client.patch(path, {"metadata": {"labels": {POD_GROUP_LABEL: None}}})
        await eventually(lambda: harness.node_of("a"))
        assert not harness.node_of("b")
        harness.app.queue.validate()

    run(test)


def test_switching_it_off_needs_a_restart() -> None:
    async def test(harness: Harness) -> None:
        document = '{"apiVersion": "kubescheduler.config.k8s.io/v1"'
        document += ', "kind": "KubeSchedulerConfiguration"}'
        other = loading.decode(document, "test", gates=FeatureGates.of())
        with pytest.raises(ConfigError, match="Coscheduling can be switched on or off only by"):
            harness.app.reconfigure(other)

    run(test)
