"""Which events a registration matches, and what events are called."""

from __future__ import annotations

import pytest

from kubesched.queue import events
from kubesched.queue.events import Action, ClusterEvent, Resource

NODE, POD = Resource.NODE, Resource.POD
ASSIGNED, UNSCHEDULED = Resource.ASSIGNED_POD, Resource.UNSCHEDULED_POD
TARGET = Resource.TARGET_POD
ANY = Resource.ANY


def test_action_bits_are_in_kubernetes_order() -> None:
    assert [action.name for action in sorted(Action, key=int)] == [
        "ADD",
        "DELETE",
        "UPDATE_NODE_ALLOCATABLE",
        "UPDATE_NODE_LABEL",
        "UPDATE_NODE_TAINT",
        "UPDATE_NODE_CONDITION",
        "UPDATE_NODE_ANNOTATION",
        "UPDATE_NODE_DECLARED_FEATURE",
        "UPDATE_NODE_PREEMPTION_POLICY",
        "UPDATE_POD_LABEL",
        "UPDATE_POD_SCALE_DOWN",
        "UPDATE_POD_SCALE_UP",
        "UPDATE_POD_TOLERATION",
        "UPDATE_POD_SCHEDULING_GATES_ELIMINATED",
        "UPDATE_POD_GENERATED_RESOURCE_CLAIM",
    ]
    assert int(Action.ADD) == 1


def test_a_general_update_is_all_updates_and_all_is_everything() -> None:
    updates = [action for action in Action if action.name and action.name.startswith("UPDATE_")]
    combined = Action(0)
    for action in updates:
        combined |= action
    assert combined == Action.UPDATE
    assert Action.UPDATE | Action.ADD | Action.DELETE == Action.ALL


@pytest.mark.parametrize(
    ("happened", "registered", "want"),
    [
        pytest.param((NODE, Action.ADD), (NODE, Action.ADD), True, id="the same"),
        pytest.param((NODE, Action.ADD), (NODE, Action.DELETE), False, id="another action"),
        pytest.param((NODE, Action.ADD), (POD, Action.ADD), False, id="another resource"),
        pytest.param(
            (NODE, Action.UPDATE_NODE_LABEL),
            (NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
            True,
            id="one of several",
        ),
        pytest.param(
            (NODE, Action.UPDATE_NODE_TAINT),
            (NODE, Action.UPDATE),
            True,
            id="a specific update matches a general registration",
        ),
        pytest.param(
            (UNSCHEDULED, Action.UPDATE),
            (POD, Action.UPDATE_POD_LABEL),
            False,
            id="never the other way round",
        ),
        pytest.param(
            (UNSCHEDULED, Action.UPDATE), (POD, Action.UPDATE), True, id="general and general"
        ),
        pytest.param((UNSCHEDULED, Action.UPDATE), (POD, Action.ALL), True, id="all actions"),
        pytest.param((ASSIGNED, Action.DELETE), (POD, Action.DELETE), True, id="placed pods are"),
        pytest.param((UNSCHEDULED, Action.ADD), (POD, Action.ADD), True, id="waiting pods are"),
        pytest.param(
            (POD, Action.ADD), (ASSIGNED, Action.ADD), False, id="pods need not be placed pods"
        ),
        pytest.param(
            (UNSCHEDULED, Action.ADD), (ASSIGNED, Action.ADD), False, id="neither are these"
        ),
        pytest.param((TARGET, Action.UPDATE), (POD, Action.UPDATE), True, id="nor the pod itself"),
        pytest.param(
            (TARGET, Action.UPDATE), (UNSCHEDULED, Action.UPDATE), False, id="it is not another"
        ),
        pytest.param((NODE, Action.DELETE), (ANY, Action.DELETE), True, id="any resource"),
        pytest.param((NODE, Action.ADD), (ANY, Action.DELETE), False, id="but this action"),
        pytest.param((NODE, Action.DELETE), (ANY, Action.ALL), True, id="wildcard"),
    ],
)
def test_matching(
    happened: tuple[Resource, Action], registered: tuple[Resource, Action], want: bool
) -> None:
    assert ClusterEvent(*happened).matches(ClusterEvent(*registered)) is want


@pytest.mark.parametrize(
    ("event", "want"),
    [
        (events.NODE_ADD, "NodeAdd"),
        (events.NODE_DELETE, "NodeDelete"),
        (ClusterEvent(NODE, Action.UPDATE_NODE_LABEL), "NodeUpdateNodeLabel"),
        (events.ASSIGNED_POD_ADD, "AssignedPodAdd"),
        (events.ASSIGNED_POD_DELETE, "AssignedPodDelete"),
        (events.UNSCHEDULED_POD_ADD, "UnscheduledPodAdd"),
        (ClusterEvent(TARGET, Action.UPDATE), "TargetPodUpdate"),
        (ClusterEvent(TARGET, Action.UPDATE_POD_SCALE_UP), "TargetPodUpdatePodScaleUp"),
        (
            ClusterEvent(NODE, Action.UPDATE_NODE_PREEMPTION_POLICY),
            "NodeUpdateNodePreemptionPolicy",
        ),
        (events.FORCE_ACTIVATE, "ForceActivate"),
        (events.UNSCHEDULABLE_TIMEOUT, "UnschedulableTimeout"),
        (events.SCHEDULE_ATTEMPT_FAILURE, "ScheduleAttemptFailure"),
        (events.BACKOFF_COMPLETE, "BackoffComplete"),
        (events.POP_FROM_BACKOFF, "PopFromBackoffQ"),
    ],
)
def test_labels_are_those_of_kubernetes_metrics(event: ClusterEvent, want: str) -> None:
    assert event.label == want


def test_wildcards() -> None:
    assert events.UNSCHEDULABLE_TIMEOUT.is_wildcard
    assert events.FORCE_ACTIVATE.is_wildcard
    assert not events.NODE_ADD.is_wildcard
    assert not ClusterEvent(ANY, Action.DELETE).is_wildcard
