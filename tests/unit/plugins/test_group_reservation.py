"""A gang is not starved by a stream of small pods, if its profile says so."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kubesched.client import resources
from kubesched.clock import VirtualClock
from kubesched.config.profiles import PluginConfig, Profile
from kubesched.errors import ConfigError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.group import GroupInfo, PodGroupPostFilterResult
from kubesched.framework.registry import EvaluatorReference
from kubesched.plugins.group_reservation import (
    GroupReservation,
    GroupReservationArgs,
    _arguments,
)
from tests.support.embedded_scheduler import Harness, Json, scheduler
from tests.support.group_objects import GroupLab, key, member, pod_group
from tests.support.objects import node, pod
from tests.support.waiting import eventually


class Lab(GroupLab):
    """A laboratory with the plugin."""

    def __init__(self, *objects: Any, after_s: int = 10) -> None:
        super().__init__(*objects)
        self.clock, evaluator = VirtualClock(), EvaluatorReference()
        evaluator.set(self.framework.evaluator)
        args = GroupReservationArgs(after_seconds=after_s)
        self.plugin = GroupReservation(args, self.cluster, evaluator=evaluator, clock=self.clock)

    def fail(self, info: GroupInfo) -> PodGroupPostFilterResult:
        """Let an attempt at the group fail."""
        result = self.plugin.pod_group_post_filter(CycleState(), info, self.trial(info))
        self.cluster.validate()
        return result

    def nominate(self, info: GroupInfo, nominations: dict[str, str]) -> None:
        for each in info.pods:
            self.cluster.nominator.nominate(each, nominations[each.uid])


def full_lab(**options: Any) -> tuple[Lab, GroupInfo]:
    """Two nodes with small pods, and a gang that needs both."""
    nodes = [node(f"n{number}", cpu="4") for number in range(2)]
    small = [pod(f"p{number}", node=f"n{number % 2}", cpu="1") for number in range(6)]
    lab = Lab(*nodes, *small, pod_group(gang=2), **options)
    info = lab.info(key(), lab.pending(member("a", cpu="3"), member("b", cpu="3")))
    return lab, info


def test_room_is_reserved_after_some_time() -> None:
    lab, info = full_lab(after_s=10)
    assert not lab.fail(info).status.ok
    lab.clock.advance(9.0)
    assert not lab.fail(info).status.ok
    lab.clock.advance(1.0)

    result = lab.fail(info)

    assert result.status.message == (
        "room is reserved for the group on 2 node(s), until it is free"
    )
    assert sorted(result.nominations.values()) == ["n0", "n1"]


def test_what_is_reserved_stays_so_as_long_as_it_would_do() -> None:
    lab, info = full_lab(after_s=0)
    first = dict(lab.fail(info).nominations)
    lab.nominate(info, first)
    assert all(lab.fail(info).nominations == first for _ in range(5))

    lab.cluster.put_node(node(first["a"], cpu="1"))

    assert lab.fail(info).nominations == {}  # one of two nodes is not enough
    lab.cluster.put_node(node("n2", cpu="4"))
    assert set(lab.fail(info).nominations.values()) == {first["b"], "n2"}


def test_pods_of_higher_priority_are_left_where_they_are() -> None:
    lab, info = full_lab(after_s=0)
    lab.cluster.put_pod(pod("important", node="n0", cpu="1", priority=100))
    assert lab.fail(info).status.ok
    lab.cluster.put_pod(pod("more", node="n1", cpu="2", priority=100))
    assert lab.fail(info).status.message == (
        "does not fit without pods of its priority and below: "
        "minCount (2) cannot be satisfied: 1 scheduled, 0 remaining"
    )


def test_nodes_with_free_room_are_preferred() -> None:
    lab = Lab(
        *(node(f"n{number}", cpu="4") for number in range(8)),
        *(pod(f"p{number}", node=f"n{number}", cpu="4") for number in range(8) if number != 5),
        pod("small", node="n5", cpu="2"),
        pod_group(gang=1),
        after_s=0,
    )
    info = lab.info(key(), lab.pending(member("a", cpu="3")))
    assert lab.fail(info).nominations == {"a": "n5"}


def test_a_group_that_had_succeeded_meanwhile_begins_anew() -> None:
    lab, info = full_lab(after_s=10)
    lab.fail(info)
    lab.clock.advance(1000.0)
    assert not lab.fail(info).status.ok


def test_arguments() -> None:
    def arguments(**given: Any) -> GroupReservationArgs:
        config = PluginConfig(name="GroupReservation", args=given)
        return _arguments(Profile(scheduler_name="s", plugin_config=(config,)))

    assert arguments().after_seconds == 60
    assert arguments(afterSeconds=5).after_seconds == 5
    for wrong in ({"afterSeconds": -1}, {"after": 1}):
        with pytest.raises(ConfigError, match="args: "):
            arguments(**wrong)


# --- with a scheduler -----------------------------------------------------------------------------


PROFILE: Json = {
    "schedulerName": "default-scheduler",
    "plugins": {"multiPoint": {"enabled": [{"name": "GroupReservation"}]}},
    "pluginConfig": [{"name": "GroupReservation", "args": {"afterSeconds": 0}}],
}


def create(harness: Harness, *names: str, **spec: Any) -> None:
    """Create pods of half a node each."""
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "4"}}}
    for name in names:
        harness.create_pod(name, containers=[container], **spec)


async def delete(harness: Harness, name: str) -> None:
    path = resources.PODS.item(name, namespace="default")
    await harness.app.client.request("DELETE", path, params={"gracePeriodSeconds": 0})


async def two_small_pods_and_a_gang(harness: Harness) -> None:
    """Fill the only node, and let a gang and one more pod wait."""
    create(harness, "small-0", "small-1")
    await eventually(lambda: harness.node_of("small-0") and harness.node_of("small-1"))
    group = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
    }
    harness.cluster.create(group)
    create(harness, "a", "b", schedulingGroup={"podGroupName": "g"})
    await eventually(lambda: harness.message("a") and harness.message("b"))
    create(harness, "small-2")
    await eventually(lambda: harness.message("small-2"))


def said(harness: Harness) -> str:
    """Return the message of the gang's condition."""
    group = harness.app.cluster.groups.objects.get("default", "g")
    return " ".join(each.message for each in group.status.conditions) if group else ""


def run(test: Any, *profiles: Json) -> None:
    async def main() -> None:
        gates = {"GenericWorkload": True}
        async with scheduler(nodes=1, profiles=profiles, gates=gates) as harness:
            await test(harness)

    asyncio.run(main())


def test_a_small_pod_leaves_the_room_to_a_gang_that_waits_for_it() -> None:
    async def test(harness: Harness) -> None:
        await two_small_pods_and_a_gang(harness)
        await eventually(lambda: "room is reserved for the group on 1 node(s)" in said(harness))
        assert len(harness.app.cluster.nominator) == 2
        await delete(harness, "small-0")
        await eventually(lambda: harness.app.cluster.pod_count == 1)
        await delete(harness, "small-1")
        await eventually(lambda: harness.node_of("a") and harness.node_of("b"))
        assert not harness.node_of("small-2")

    run(test, PROFILE)


def test_without_it_the_small_pod_takes_the_room() -> None:
    async def test(harness: Harness) -> None:
        await two_small_pods_and_a_gang(harness)
        await delete(harness, "small-0")
        await eventually(lambda: harness.node_of("small-2"))
        assert not harness.node_of("a")

    run(test)
