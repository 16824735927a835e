"""Which events an updated object amounts to."""

from __future__ import annotations

import msgspec
import pytest

from kubesched.api.core import Node, NodePodPreemptionPolicy, Pod, PodCondition, Toleration
from kubesched.queue.differences import node_events, pod_events
from kubesched.queue.events import Action, Resource
from tests.support.objects import node, on_node, pod


def _actions(old: Node, new: Node) -> list[str | None]:
    found = node_events(old, new)
    assert all(event.resource is Resource.NODE for event in found)
    return [event.action.name for event in found]


@pytest.mark.parametrize(
    ("new", "want"),
    [
        pytest.param(node(), [], id="nothing"),
        pytest.param(node(cpu="8"), ["UPDATE_NODE_ALLOCATABLE"], id="allocatable"),
        pytest.param(node(labels={"a": "b"}), ["UPDATE_NODE_LABEL"], id="labels"),
        pytest.param(node(taints=["a:NoSchedule"]), ["UPDATE_NODE_TAINT"], id="taints"),
        pytest.param(node(conditions={"Ready": "True"}), ["UPDATE_NODE_CONDITION"], id="condition"),
        pytest.param(node(annotations={"a": "b"}), ["UPDATE_NODE_ANNOTATION"], id="annotations"),
        pytest.param(node(features=["X"]), ["UPDATE_NODE_DECLARED_FEATURE"], id="features"),
        pytest.param(node(unschedulable=True), [], id="a cordon helps nobody"),
        pytest.param(node(images={"web:1": 5}), [], id="images help nobody to fit"),
        pytest.param(
            node(cpu="8", labels={"a": "b"}, taints=["a:NoSchedule"]),
            ["UPDATE_NODE_ALLOCATABLE", "UPDATE_NODE_LABEL", "UPDATE_NODE_TAINT"],
            id="several, in order",
        ),
    ],
)
def test_a_node_that_changes(new: Node, want: list[str]) -> None:
    assert _actions(node(), new) == want


def test_another_spelling_of_the_same_amount_is_no_event() -> None:
    assert _actions(node(cpu="1", memory="1Gi"), node(cpu="1000m", memory="1024Mi")) == []


def test_a_lifted_cordon_counts_as_a_change_of_taints_and_comes_first() -> None:
    cordoned = node(unschedulable=True)
    assert _actions(cordoned, node()) == ["UPDATE_NODE_TAINT"]
    assert _actions(cordoned, node(cpu="8")) == ["UPDATE_NODE_TAINT", "UPDATE_NODE_ALLOCATABLE"]


def test_preemption_for_a_resize_may_be_forbidden() -> None:
    policy = NodePodPreemptionPolicy(disable_resize_preemption=("example.com/autoscaler",))
    old = node()
    new = msgspec.structs.replace(
        node(features=["X"], annotations={"a": "b"}),
        spec=msgspec.structs.replace(old.spec, pod_preemption_policy=policy),
    )
    assert _actions(old, new) == [
        "UPDATE_NODE_ANNOTATION",
        "UPDATE_NODE_PREEMPTION_POLICY",
        "UPDATE_NODE_DECLARED_FEATURE",
    ]


def test_a_heartbeat_is_no_event() -> None:
    old = node(conditions={"Ready": "True", "DiskPressure": "False"})
    reordered = node(conditions={"DiskPressure": "False", "Ready": "True"})
    again = msgspec.structs.replace(
        reordered, metadata=msgspec.structs.replace(old.metadata, resource_version="77")
    )
    assert _actions(old, again) == []


def test_a_condition_that_flips_is() -> None:
    old, new = node(conditions={"Ready": "False"}), node(conditions={"Ready": "True"})
    assert _actions(old, new) == ["UPDATE_NODE_CONDITION"]


def test_no_labels_and_empty_labels_are_the_same() -> None:
    empty = msgspec.structs.replace(
        node(), metadata=msgspec.structs.replace(node().metadata, labels={})
    )
    assert _actions(node(), empty) == []
    assert _actions(empty, node()) == []


# --- pods -------------------------------------------------------------------------------------


def _pod_actions(old: Pod, new: Pod) -> list[str | None]:
    return [event.action.name for event in pod_events(old, new)]


_TOLERATION = Toleration(operator="Exists")


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(pod(), pod(), ["UPDATE"], id="nothing specific"),
        pytest.param(pod(), pod(labels={"a": "b"}), ["UPDATE_POD_LABEL"], id="labels"),
        pytest.param(pod(cpu="2"), pod(cpu="1"), ["UPDATE_POD_SCALE_DOWN"], id="asks for less"),
        pytest.param(pod(cpu="1"), pod(cpu="2"), ["UPDATE_POD_SCALE_UP"], id="asks for more"),
        pytest.param(pod(), pod(cpu="0"), ["UPDATE_POD_SCALE_UP"], id="zero instead of nothing"),
        pytest.param(pod(cpu="1"), pod(cpu="1000m"), ["UPDATE"], id="asks in other words"),
        pytest.param(
            pod(cpu="1", memory="1Gi"),
            pod(cpu="2"),
            ["UPDATE_POD_SCALE_DOWN", "UPDATE_POD_SCALE_UP"],
            id="one thing less, another more",
        ),
        pytest.param(pod(cpu="0"), pod(), ["UPDATE_POD_SCALE_DOWN"], id="nothing instead of zero"),
        pytest.param(pod(cpu="1001u"), pod(cpu="1000u"), ["UPDATE_POD_SCALE_DOWN"], id="a hair"),
        pytest.param(
            pod(gates=["a"]), pod(), ["UPDATE_POD_SCHEDULING_GATES_ELIMINATED"], id="last gate"
        ),
        pytest.param(pod(gates=["a", "b"]), pod(gates=["a"]), ["UPDATE"], id="not the last gate"),
        pytest.param(
            pod(), pod(tolerations=[_TOLERATION]), ["UPDATE_POD_TOLERATION"], id="toleration"
        ),
        pytest.param(
            pod(gates=["a"], cpu="2"),
            pod(cpu="1", labels={"a": "b"}, tolerations=[_TOLERATION]),
            [
                "UPDATE_POD_LABEL",
                "UPDATE_POD_SCALE_DOWN",
                "UPDATE_POD_SCHEDULING_GATES_ELIMINATED",
                "UPDATE_POD_TOLERATION",
            ],
            id="several, in order",
        ),
    ],
)
def test_a_pod_that_changes(old: Pod, new: Pod, want: list[str]) -> None:
    assert _pod_actions(old, new) == want
    assert {event.resource for event in pod_events(old, new)} == {Resource.UNSCHEDULED_POD}
    itself = pod_events(old, new, is_target=True)
    assert {event.resource for event in itself} == {Resource.TARGET_POD}
    placed = pod_events(on_node(old, "n"), on_node(new, "n"))
    assert {event.resource for event in placed} == {Resource.ASSIGNED_POD}


def test_a_pod_is_scaled_down_when_the_kubelet_has_done_it() -> None:
    asked = pod(node="n", cpu="1", resized_to={"cpu": "2"})
    done = pod(node="n", cpu="1", resized_to={"cpu": "1"})
    assert _pod_actions(asked, done) == ["UPDATE_POD_SCALE_DOWN"]
    assert _pod_actions(done, asked) == ["UPDATE_POD_SCALE_UP"]


def test_a_resize_that_becomes_infeasible_frees_what_it_wanted() -> None:
    wanting = pod(node="n", cpu="4", resized_to={"cpu": "1"})
    refused = PodCondition(type="PodResizePending", status="True", reason="Infeasible")
    given_up = msgspec.structs.replace(
        wanting, status=msgspec.structs.replace(wanting.status, conditions=(refused,))
    )
    assert _pod_actions(wanting, given_up) == ["UPDATE_POD_SCALE_DOWN"]


def test_a_pod_that_is_bound_is_an_assigned_pod() -> None:
    events = pod_events(pod(), pod(node="n"))
    assert [(event.resource, event.action) for event in events] == [
        (Resource.ASSIGNED_POD, Action.UPDATE)
    ]
