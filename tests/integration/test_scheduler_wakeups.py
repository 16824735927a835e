"""A pod that found no node sleeps until something happens that may help it, and no longer.

In each test a pod is refused first. What helps must bring it to a node within two seconds; what
does not help must not cost another attempt, which would show as another FailedScheduling event.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from .control_plane import STRATEGIC_MERGE_PATCH, ControlPlane, JsonObject
from .scheduler_process import (
    condition_of,
    delete_pod,
    events_of,
    node,
    node_of,
    patch_node,
    pod,
    pods_path,
    run_scheduler,
    seconds_until_bound,
    wait_until_bound,
    wait_until_refused,
)

pytestmark = pytest.mark.usefixtures("clean_cluster")

#: A first backoff, which is a second, and some time for everything else.
WOKEN_WITHIN_SECONDS = 2.0
#: Longer than a first backoff, so that a pod that was woken in vain has had its attempt.
ASLEEP_SECONDS = 1.6

Change = Callable[[ControlPlane, str], None]


def patch_pod(
    plane: ControlPlane, namespace: str, name: str, patch: JsonObject, *, subresource: str = ""
) -> None:
    path = pods_path(namespace, name) + subresource
    plane.request("PATCH", path, patch, content_type=STRATEGIC_MERGE_PATCH)


def add_node(**options: object) -> Change:
    new = node("new", **options)  # type: ignore[arg-type]  # passed on
    return lambda plane, _: _done(plane.request("POST", "/api/v1/nodes", new))


def change_node(patch: JsonObject, *, status: bool = False) -> Change:
    return lambda plane, _: patch_node(plane, "n1", patch, status=status)


def change_pod(name: str, patch: JsonObject, *, subresource: str = "") -> Change:
    return lambda plane, namespace: patch_pod(
        plane, namespace, name, patch, subresource=subresource
    )


def delete(name: str) -> Change:
    return lambda plane, namespace: delete_pod(plane, namespace, name)


def add_pod(new: JsonObject) -> Change:
    return lambda plane, namespace: _done(plane.request("POST", pods_path(namespace), new))


def _done(_: object) -> None:
    """Turn an answer that nobody needs into none."""


TAINT = {"key": "keep-out", "effect": "NoSchedule"}
#: What admission adds to every pod, and nobody may take away.
DEFAULT_TOLERATIONS = [
    {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
]
LARGE = {"cpu": "3"}
SHRUNK = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}


@dataclass(frozen=True)
class Wait:
    """A cluster of one node, and what changes in it while the pod "p" waits."""

    pod: JsonObject
    #: what makes it fit
    helps: Change
    #: what does not matter to the plugin that refused it
    does_not_help: dict[str, Change] = field(default_factory=dict)
    node: JsonObject = field(default_factory=lambda: node("n1"))
    #: pods that are on the node
    placed: list[JsonObject] = field(default_factory=list)
    refused_because: str = ""


ANNOTATED = {"metadata": {"annotations": {"any": "change"}}}
MORE_CPU = {"status": {"allocatable": {"cpu": "5"}}}
HEARTBEAT = {
    "status": {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": None}]}
}
NO_ROOM = "1 Insufficient cpu"

WAITS = {
    "a new node": Wait(
        pod("p", requests={"cpu": "6"}),
        helps=add_node(allocatable={"cpu": "8"}),
        refused_because=NO_ROOM,
        does_not_help={
            "a label": change_node({"metadata": {"labels": {"zone": "z1"}}}),
            "an annotation": change_node(ANNOTATED),
            "a heartbeat": change_node(HEARTBEAT, status=True),
            "another pod": add_pod(pod("small")),
            "a word on the pod itself": change_pod("p", ANNOTATED),
        },
    ),
    "an uncordoned node": Wait(
        pod("p"),
        node=node("n1", unschedulable=True),
        helps=change_node({"spec": {"unschedulable": None}}),
        refused_because="1 node(s) were unschedulable",
        does_not_help={
            "more CPU": change_node(MORE_CPU, status=True),
            "a label": change_node({"metadata": {"labels": {"zone": "z1"}}}),
        },
    ),
    "a removed taint": Wait(
        pod("p"),
        node=node("n1", taints=[TAINT]),
        helps=change_node({"spec": {"taints": None}}),
        refused_because="1 node(s) had untolerated taint(s)",
        does_not_help={
            "more CPU": change_node(MORE_CPU, status=True),
            "a pod's end": delete("there"),
        },
        placed=[pod("there", nodeName="n1")],
    ),
    "a new toleration": Wait(
        pod("p"),
        node=node("n1", taints=[TAINT]),
        helps=change_pod(
            "p", {"spec": {"tolerations": [*DEFAULT_TOLERATIONS, {"operator": "Exists"}]}}
        ),
        refused_because="1 node(s) had untolerated taint(s)",
    ),
    "a label": Wait(
        pod("p", nodeSelector={"zone": "z1"}),
        helps=change_node({"metadata": {"labels": {"zone": "z1"}}}),
        refused_because="1 node(s) didn't match Pod's node affinity/selector",
        does_not_help={
            "more CPU": change_node(MORE_CPU, status=True),
            "a pod's end": delete("there"),
        },
        placed=[pod("there", nodeName="n1", requests=LARGE)],
    ),
    "a pod's end that frees CPU": Wait(
        pod("p", requests=LARGE),
        placed=[pod("there", nodeName="n1", requests=LARGE)],
        helps=delete("there"),
        refused_because=NO_ROOM,
    ),
    "a pod's end that frees a host port": Wait(
        pod("p", host_ports=(8080,)),
        placed=[pod("there", nodeName="n1", host_ports=(8080,))],
        helps=delete("there"),
        refused_because="1 node(s) didn't have free ports for the requested pod ports",
        does_not_help={
            "more CPU": change_node(MORE_CPU, status=True),
            "a label": change_node({"metadata": {"labels": {"zone": "z1"}}}),
        },
    ),
    "a finished pod": Wait(
        pod("p", requests=LARGE),
        placed=[pod("there", nodeName="n1", requests=LARGE)],
        helps=change_pod("there", {"status": {"phase": "Succeeded"}}, subresource="/status"),
        refused_because=NO_ROOM,
    ),
    "a pod that shrinks": Wait(
        pod("p", requests=LARGE),
        placed=[pod("there", nodeName="n1", requests=LARGE)],
        helps=change_pod("there", SHRUNK, subresource="/resize"),
        refused_because=NO_ROOM,
    ),
    "more room on the node": Wait(
        pod("p", requests={"cpu": "5"}),
        helps=change_node(MORE_CPU, status=True),
        refused_because=NO_ROOM,
    ),
}


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS.keys())
def test_a_pod_is_woken_by(control_plane: ControlPlane, namespace: str, wait: Wait) -> None:
    set_up(control_plane, namespace, wait)
    with run_scheduler(control_plane):
        assert wait.refused_because in wait_until_refused(control_plane, namespace, "p")
        wait.helps(control_plane, namespace)
        seconds = seconds_until_bound(control_plane, namespace, "p")
    assert seconds < WOKEN_WITHIN_SECONDS


UNDISTURBED = [name for name, wait in WAITS.items() if wait.does_not_help]


@pytest.mark.parametrize("name", UNDISTURBED)
def test_what_does_not_help_costs_no_attempt_of_a_pod_that_waits_for(
    control_plane: ControlPlane, namespace: str, name: str
) -> None:
    wait = WAITS[name]
    set_up(control_plane, namespace, wait)
    with run_scheduler(control_plane):
        wait_until_refused(control_plane, namespace, "p")
        before = condition_of(control_plane, namespace, "p")
        for change in wait.does_not_help.values():
            change(control_plane, namespace)
        time.sleep(ASLEEP_SECONDS)
        assert attempts(control_plane, namespace, "p") == 1
        assert condition_of(control_plane, namespace, "p") == before
        # It was asleep and not forgotten.
        wait.helps(control_plane, namespace)
        wait_until_bound(control_plane, namespace, "p", seconds=WOKEN_WITHIN_SECONDS)


def test_a_gated_pod_is_not_tried_until_its_last_gate_is_gone(
    control_plane: ControlPlane, namespace: str
) -> None:
    gates = [{"name": "example.com/one"}, {"name": "example.com/two"}]
    control_plane.request("POST", "/api/v1/nodes", node("n1"))
    control_plane.request("POST", pods_path(namespace), pod("p", schedulingGates=gates))
    with run_scheduler(control_plane) as scheduler:
        scheduler.wait_until_scheduling()
        remove = {"name": "example.com/one", "$patch": "delete"}
        patch_pod(control_plane, namespace, "p", {"spec": {"schedulingGates": [remove]}})
        patch_node(control_plane, "n1", MORE_CPU, status=True)
        time.sleep(0.5)
        assert node_of(control_plane, namespace, "p") == ""
        assert (condition_of(control_plane, namespace, "p") or {})["reason"] == "SchedulingGated"
        assert events_of(control_plane, namespace) == []
        patch_pod(control_plane, namespace, "p", {"spec": {"schedulingGates": None}})
        assert seconds_until_bound(control_plane, namespace, "p") < WOKEN_WITHIN_SECONDS


def test_a_pod_that_is_woken_in_vain_says_why_it_still_waits(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.request("POST", "/api/v1/nodes", node("n1"))
    control_plane.request("POST", pods_path(namespace), pod("p", requests={"cpu": "6"}))
    with run_scheduler(control_plane):
        first = wait_until_refused(control_plane, namespace, "p")
        control_plane.request("POST", "/api/v1/nodes", node("n2", unschedulable=True))
        time.sleep(ASLEEP_SECONDS)
        second = wait_until_refused(control_plane, namespace, "p")
        counted = attempts(control_plane, namespace, "p")
    assert first == (
        "0/1 nodes are available: 1 Insufficient cpu. "
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )
    assert second == (
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable. "
        "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )
    assert counted == 2


def set_up(plane: ControlPlane, namespace: str, wait: Wait) -> None:
    plane.request("POST", "/api/v1/nodes", wait.node)
    for each in [*wait.placed, wait.pod]:
        plane.request("POST", pods_path(namespace), each)


def attempts(plane: ControlPlane, namespace: str, name: str) -> int:
    """How often a pod was refused, as its events tell it."""
    refusals = [e for e in events_of(plane, namespace, name) if e["reason"] == "FailedScheduling"]
    return sum((each.get("series") or {"count": 1})["count"] for each in refusals)
