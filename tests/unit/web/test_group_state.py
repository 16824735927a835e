"""Groups as the page tells of them."""

from __future__ import annotations

from typing import Any

from kubesched.api.core import Pod
from kubesched.api.decoding import convert
from kubesched.api.scheduling import PodGroup
from kubesched.config.features import FeatureGates
from kubesched.web.group_state import group, group_of_pod, groups
from kubesched.web.world_state import WorldState
from tests.support.objects import node
from tests.support.worlds import world_of

GATES = FeatureGates.of({"GenericWorkload": True})


def a_group(name: str, *conditions: dict[str, str], gang: int | None = 2, **spec: Any) -> PodGroup:
    policy: dict[str, Any] = {"basic": {}} if gang is None else {"gang": {"minCount": gang}}
    return convert(
        {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"schedulingPolicy": policy, **spec},
            "status": {"conditions": list(conditions)},
        },
        PodGroup,
    )


def member(name: str, of: str, node_name: str = "", message: str = "") -> Pod:
    conditions = [{"type": "PodScheduled", "status": "False", "message": message}]
    return convert(
        {
            "metadata": {"name": name, "namespace": "default", "uid": name},
            "spec": {
                "schedulerName": "default-scheduler",
                "nodeName": node_name,
                "schedulingGroup": {"podGroupName": of},
            },
            "status": {"conditions": conditions if message else []},
        },
        Pod,
    )


def condition(status: str, message: str = "") -> dict[str, str]:
    return {
        "type": "PodGroupInitiallyScheduled",
        "status": status,
        "reason": "Unschedulable",
        "message": message,
    }


def state_of(*objects: Any) -> WorldState:
    return WorldState(world_of(*objects, gates=GATES))


def test_without_groups_there_are_none() -> None:
    assert groups(state_of(node("n1"))) == ()


def test_how_a_gang_stands() -> None:
    state = state_of(
        node("n1"),
        node("n2"),
        a_group("g", condition("True")),
        member("a", "g", "n1"),
        member("b", "g", "n2"),
        member("c", "g"),
    )

    (told,) = groups(state)

    assert (told.policy, told.min_count, told.pods, told.placed) == ("gang", 2, 3, 2)
    assert (told.state, told.message) == ("scheduled", "")
    assert set(told.nodes) == {"n1", "n2"}


def test_those_that_wait_come_first_and_say_why() -> None:
    constraints = {"topology": [{"key": "rack"}]}
    state = state_of(
        a_group("a", condition("True")),
        a_group("b", gang=None),
        a_group("c", condition("False", "minCount (2) cannot be satisfied")),
        a_group("d", schedulingConstraints=constraints),
        member("x", "d"),
    )

    told = groups(state)

    assert [each.name for each in told] == ["c", "b", "d", "a"]
    assert told[0].message == "minCount (2) cannot be satisfied"
    assert (told[1].policy, told[1].state) == ("basic", "pending")
    assert told[2].message == "waits for more of its pods: 1 of 2 are there"
    assert told[2].topology == ("rack",)


def test_one_group_with_its_members_those_that_wait_first() -> None:
    state = state_of(
        node("n1"), a_group("g"), member("a", "g", "n1"), member("b", "g", message="no room")
    )

    told = group(state, "default", "g")

    assert told is not None
    assert [(each.name, each.node, each.message) for each in told.members] == [
        ("b", "", "no room"),
        ("a", "n1", ""),
    ]
    assert group(state, "default", "other") is None


def test_the_group_of_a_pod() -> None:
    pod, stray = member("a", "g"), member("b", "gone")
    state = state_of(a_group("g"), pod, stray)

    told = group_of_pod(state, pod)

    assert told is not None
    assert told.name == "g"
    assert group_of_pod(state, stray) is None
