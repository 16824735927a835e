"""A pod that found no node sleeps until something happens that may help it, and no longer.

In each test a pod is refused first. What helps must bring it to a node within a second; what does
not help must not cost another attempt, which would show as another FailedScheduling event. Much of
what does not help is of the right kind and wrong in detail: another port, another label.
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

#: An idle scheduler does not wait for backoffs to end.
WOKEN_WITHIN_SECONDS = 1.0
#: Longer than a first backoff, so that a pod that was woken in vain has had its attempt.
ASLEEP_SECONDS = 1.6

Change = Callable[[ControlPlane, str], None]


def patch_pod(
    plane: ControlPlane, namespace: str, name: str, patch: JsonObject, *, subresource: str = ""
) -> None:
    path = pods_path(namespace, name) + subresource
    plane.request("PATCH", path, patch, content_type=STRATEGIC_MERGE_PATCH)


def add_node(name: str = "new", **options: object) -> Change:
    new = node(name, **options)  # type: ignore[arg-type]  # passed on
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


def near(**labels: str) -> JsonObject:
    """An affinity to pods on the same node."""
    return {"podAffinity": _required(labels)}


def away_from(**labels: str) -> JsonObject:
    """An anti-affinity to pods on the same node."""
    return {"podAntiAffinity": _required(labels)}


def _required(labels: dict[str, str]) -> JsonObject:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": labels}}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def restarting_all(name: str) -> JsonObject:
    """A pod that needs nodes which can restart all of its containers at once."""
    asking = pod(name)
    on_exit = {"operator": "In", "values": [42]}
    rule = {"action": "RestartAllContainers", "exitCodes": on_exit}
    asking["spec"]["containers"][0] |= {"restartPolicy": "Never", "restartPolicyRules": [rule]}
    return asking


SPREAD = {
    "maxSkew": 1,
    "topologyKey": "kubernetes.io/hostname",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}
FEATURE = "RestartAllContainersOnContainerExits"
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
    more_nodes: list[JsonObject] = field(default_factory=list)
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
            "a node that is too small": add_node("small", allocatable={"cpu": "5"}),
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
            "a node that is cordoned, too": add_node("other", unschedulable=True),
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
            "a node with the same taint": add_node("other", taints=[TAINT]),
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
            "another label": change_node({"metadata": {"labels": {"zone": "z2"}}}),
            "a node without the label": add_node("other"),
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
        placed=[
            pod("there", nodeName="n1", host_ports=(8080,)),
            pod("other", nodeName="n1", host_ports=(9090,)),
        ],
        helps=delete("there"),
        refused_because="1 node(s) didn't have free ports for the requested pod ports",
        does_not_help={
            "the end of a pod with another port": delete("other"),
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
        does_not_help={
            "more memory": change_node({"status": {"allocatable": {"memory": "9Gi"}}}, status=True),
        },
    ),
    "a friend": Wait(
        pod("p", affinity=near(app="friend")),
        helps=add_pod(pod("friend", labels={"app": "friend"})),
        refused_because="1 node(s) didn't match pod affinity rules",
        does_not_help={
            "a stranger": add_pod(pod("stranger", labels={"app": "stranger"})),
            "more CPU": change_node(MORE_CPU, status=True),
        },
    ),
    "the end of a foe": Wait(
        pod("p", affinity=away_from(app="foe")),
        placed=[
            pod("foe", nodeName="n1", labels={"app": "foe"}),
            pod("other", nodeName="n1", labels={"app": "other"}),
        ],
        helps=delete("foe"),
        refused_because="1 node(s) didn't match pod anti-affinity rules",
        does_not_help={
            "the end of another": delete("other"),
            "more CPU": change_node(MORE_CPU, status=True),
        },
    ),
    "a foe that is none any more": Wait(
        pod("p", affinity=away_from(app="foe")),
        placed=[pod("foe", nodeName="n1", labels={"app": "foe"})],
        helps=change_pod("foe", {"metadata": {"labels": {"app": "friend"}}}),
        refused_because="1 node(s) didn't match pod anti-affinity rules",
        does_not_help={"another label": change_pod("foe", {"metadata": {"labels": {"a": "b"}}})},
    ),
    "a balance": Wait(
        pod("p", labels={"app": "web"}, topologySpreadConstraints=[SPREAD]),
        placed=[
            pod("web", nodeName="n1", labels={"app": "web"}),
            pod("other", nodeName="n1", labels={"app": "other"}),
        ],
        more_nodes=[node("n2", unschedulable=True)],
        helps=delete("web"),
        refused_because="1 node(s) didn't match pod topology spread constraints",
        does_not_help={
            "the end of a pod that does not count": delete("other"),
            "more CPU": change_node(MORE_CPU, status=True),
        },
    ),
    "a node that can do what the pod needs": Wait(
        restarting_all("p"),
        helps=change_node({"status": {"declaredFeatures": [FEATURE]}}, status=True),
        refused_because="1 node(s) didn't match Pod's required features",
        does_not_help={
            "more CPU": change_node(MORE_CPU, status=True),
            "a label": change_node({"metadata": {"labels": {"zone": "z1"}}}),
        },
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
        time.sleep(0.5)  # time in which it could be placed
        assert node_of(control_plane, namespace, "p") == ""
        assert (condition_of(control_plane, namespace, "p") or {})["reason"] == "SchedulingGated"
        assert events_of(control_plane, namespace) == []
        patch_pod(control_plane, namespace, "p", {"spec": {"schedulingGates": None}})
        assert seconds_until_bound(control_plane, namespace, "p") < WOKEN_WITHIN_SECONDS


#: Large enough for the pod that waits, and cordoned.
UNUSABLE = node("n2", allocatable={"cpu": "8"}, unschedulable=True)


def test_a_pod_that_is_woken_in_vain_says_why_it_still_waits(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.request("POST", "/api/v1/nodes", node("n1"))
    control_plane.request("POST", pods_path(namespace), pod("p", requests={"cpu": "6"}))
    with run_scheduler(control_plane):
        first = wait_until_refused(control_plane, namespace, "p")
        control_plane.request("POST", "/api/v1/nodes", UNUSABLE)
        time.sleep(ASLEEP_SECONDS)
        second = wait_until_refused(control_plane, namespace, "p")
        counted = attempts(control_plane, namespace, "p")
    assert first == (
        "0/1 nodes are available: 1 Insufficient cpu. "
        "preemption: 0/1 nodes are available: "
        "1 Preemption is not helpful for scheduling."
    )
    assert second == (
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable. "
        "preemption: 0/2 nodes are available: "
        "2 Preemption is not helpful for scheduling."
    )
    assert counted == 2


def set_up(plane: ControlPlane, namespace: str, wait: Wait) -> None:
    for each in [wait.node, *wait.more_nodes]:
        plane.request("POST", "/api/v1/nodes", each)
    for each in [*wait.placed, wait.pod]:
        plane.request("POST", pods_path(namespace), each)


def attempts(plane: ControlPlane, namespace: str, name: str) -> int:
    """How often a pod was refused, as its events tell it."""
    refusals = [e for e in events_of(plane, namespace, name) if e["reason"] == "FailedScheduling"]
    return sum((each.get("series") or {"count": 1})["count"] for each in refusals)
