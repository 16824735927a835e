"""Preemption on a real API server: who goes, what is written, and that kube-scheduler agrees.

There is no kubelet, so a victim with a grace period stays, terminating, and shows what was written
about it; one without goes at once, and the pod that it made room for gets its place.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.support.waiting import until

from .comparable import comparable
from .control_plane import ControlPlane, JsonObject
from .scheduler_process import (
    all_pods,
    condition_of,
    configuration,
    create_budget,
    delete_pod,
    events_of,
    node,
    pod,
    pods_path,
    run_scheduler,
    wait_until_bound,
    wait_until_refused,
)

_PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
#: What a second attempt at a pod, which would be a mistake here, gets to show.
_SETTLING_SECONDS = 0.5

LOW, MIDDLE, HIGH, POLITE = "test-low", "test-middle", "test-high", "test-polite"
_CLASSES: list[JsonObject] = [
    {"metadata": {"name": LOW}, "value": -10},
    {"metadata": {"name": MIDDLE}, "value": 10},
    {"metadata": {"name": HIGH}, "value": 1000},
    {"metadata": {"name": POLITE}, "value": 1000, "preemptionPolicy": "Never"},
]


@pytest.fixture(autouse=True)
def priority_classes(control_plane: ControlPlane, clean_cluster: None) -> Iterator[None]:
    """Four priorities."""
    control_plane.create_many(_PRIORITY_CLASSES, _CLASSES)
    yield
    for each in _CLASSES:
        control_plane.request("DELETE", f"{_PRIORITY_CLASSES}/{each['metadata']['name']}")


def on(
    node_name: str,
    name: str,
    *,
    cpu: str = "4",
    priority: str = LOW,
    grace_s: int = 30,
    **more: Any,
) -> JsonObject:
    """A pod that has its node already."""
    return pod(
        name,
        requests={"cpu": cpu},
        nodeName=node_name,
        priorityClassName=priority,
        terminationGracePeriodSeconds=grace_s,
        **more,
    )


def asking(name: str, *, cpu: str = "2", priority: str = HIGH, **spec: Any) -> JsonObject:
    """A pod that wants a node."""
    return pod(name, requests={"cpu": cpu}, priorityClassName=priority, **spec)


def victims_of(plane: ControlPlane, namespace: str) -> list[str]:
    """The pods that are on their way out."""
    return sorted(
        each["metadata"]["name"]
        for each in all_pods(plane, namespace)
        if "deletionTimestamp" in each["metadata"]
    )


# ---------------------------------------------------------------------- ours


def test_a_pod_waits_for_its_victims_to_go_and_takes_their_place(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.create_many("/api/v1/nodes", [node("n1")])
    control_plane.create_many(pods_path(namespace), [on("n1", "victim")])
    with run_scheduler(control_plane) as scheduler:
        scheduler.wait_until_scheduling()
        created = control_plane.request("POST", pods_path(namespace), asking("preemptor"))
        until(lambda: victims_of(control_plane, namespace) == ["victim"] or None)
        victim = control_plane.request("GET", pods_path(namespace, "victim"))
        until(lambda: events_of(control_plane, namespace, "victim"))
        waiting = control_plane.request("GET", pods_path(namespace, "preemptor"))

        (condition,) = victim["status"]["conditions"]
        assert condition.pop("lastTransitionTime")
        assert condition == {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": "default-scheduler: preempting to accommodate a higher priority pod",
            "lastProbeTime": None,
            "observedGeneration": 1,
        }
        (event,) = events_of(control_plane, namespace, "victim")
        assert (event["type"], event["reason"], event["action"]) == (
            "Normal",
            "Preempted",
            "Preempting",
        )
        uid = created["metadata"]["uid"]
        assert event["note"] == f"Preempted by pod {uid} on node n1"
        assert (event["related"]["name"], event["related"]["uid"]) == ("preemptor", uid)
        assert waiting["status"]["nominatedNodeName"] == "n1"
        assert "nodeName" not in waiting["spec"]

        delete_pod(control_plane, namespace, "victim")
        assert wait_until_bound(control_plane, namespace, "preemptor") == {"preemptor": "n1"}


def test_victims_without_grace_go_at_once(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.create_many("/api/v1/nodes", [node("n1")])
    victims = [on("n1", f"victim-{number}", cpu="1", grace_s=0) for number in range(4)]
    control_plane.create_many(pods_path(namespace), victims)
    with run_scheduler(control_plane):
        control_plane.request("POST", pods_path(namespace), asking("preemptor", cpu="3"))
        assert wait_until_bound(control_plane, namespace, "preemptor") == {"preemptor": "n1"}
        names = [each["metadata"]["name"] for each in all_pods(control_plane, namespace)]
        assert len(names) == 2


def test_a_budget_is_respected_where_there_is_a_choice(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.create_many("/api/v1/nodes", [node("n1"), node("n2")])
    create_budget(control_plane, namespace, "guarded", allowed=0)
    create_budget(control_plane, namespace, "spare", allowed=1)
    control_plane.create_many(
        pods_path(namespace),
        [
            on("n1", "guarded", labels={"app": "guarded"}),
            on("n2", "spare", labels={"app": "spare"}, priority=MIDDLE),
        ],
    )
    with run_scheduler(control_plane):
        control_plane.request("POST", pods_path(namespace), asking("preemptor"))
        until(lambda: victims_of(control_plane, namespace))
        time.sleep(_SETTLING_SECONDS)
        assert victims_of(control_plane, namespace) == ["spare"]


def test_a_pod_may_choose_not_to_preempt(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.create_many("/api/v1/nodes", [node("n1")])
    control_plane.create_many(pods_path(namespace), [on("n1", "stays")])
    with run_scheduler(control_plane):
        control_plane.request("POST", pods_path(namespace), asking("polite", priority=POLITE))
        assert wait_until_refused(control_plane, namespace, "polite") == (
            "0/1 nodes are available: 1 Insufficient cpu. "
            "preemption: not eligible due to preemptionPolicy=Never."
        )
        time.sleep(_SETTLING_SECONDS)
        assert victims_of(control_plane, namespace) == []


# ---------------------------------------------------------------------- nominations that are void


def nominated_with_its_place_taken(plane: ControlPlane, namespace: str) -> None:
    """A pod waits for its victim, and a more important one takes what was free beside that."""
    plane.create_many(pods_path(namespace), [on("n1", "victim", cpu="1")])
    plane.request("POST", pods_path(namespace), asking("nominated", cpu="2", priority=MIDDLE))
    until(lambda: nomination_of(plane, namespace, "nominated") == "n1" or None)
    plane.request("POST", pods_path(namespace), asking("high", cpu="1", priority=HIGH))
    assert wait_until_bound(plane, namespace, "high") == {"high": "n1"}


def nomination_of(plane: ControlPlane, namespace: str, name: str) -> str:
    status: JsonObject = plane.request("GET", pods_path(namespace, name))["status"]
    return str(status.get("nominatedNodeName", ""))


SMALL = {"cpu": "2"}


def test_a_nomination_that_cannot_come_true_is_given_up_and_others_get_the_room(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.create_many("/api/v1/nodes", [node("n1", allocatable=SMALL)])
    with run_scheduler(control_plane) as scheduler:
        scheduler.wait_until_scheduling()
        nominated_with_its_place_taken(control_plane, namespace)
        control_plane.request("POST", pods_path(namespace), asking("late", cpu="1", priority=LOW))
        wait_until_refused(control_plane, namespace, "late")
        delete_pod(control_plane, namespace, "victim")
        assert wait_until_bound(control_plane, namespace, "late") == {"late": "n1"}
        assert nomination_of(control_plane, namespace, "nominated") == ""


@pytest.mark.parametrize("what_happens", ["its place is taken", "its node is deleted"])
def test_a_pod_whose_nomination_cannot_come_true_preempts_elsewhere(
    control_plane: ControlPlane, namespace: str, what_happens: str
) -> None:
    nodes = [node(name, allocatable=SMALL) for name in ("n1", "n2")]
    control_plane.create_many("/api/v1/nodes", nodes)
    # Two victims instead of one: it hurts less on the other node.
    others = [on("n2", f"other-{number}", cpu="1", grace_s=0) for number in range(2)]
    control_plane.create_many(pods_path(namespace), others)
    with run_scheduler(control_plane) as scheduler:
        scheduler.wait_until_scheduling()
        nominated_with_its_place_taken(control_plane, namespace)
        assert victims_of(control_plane, namespace) == ["victim"]
        if what_happens == "its place is taken":
            delete_pod(control_plane, namespace, "victim")
        else:
            control_plane.request("DELETE", "/api/v1/nodes/n1")
        assert wait_until_bound(control_plane, namespace, "nominated") == {"nominated": "n2"}


# ---------------------------------------------------------------------- ours and the real one


@dataclass(frozen=True)
class Case:
    """A cluster, pods that wait for a node in it, and who has to go."""

    nodes: list[JsonObject]
    placed: list[JsonObject]
    pods: list[JsonObject]
    victims: list[str]
    #: what budgets of apps allow
    budgets: dict[str, int] = field(default_factory=dict)


CASES = {
    "one victim": Case([node("n1")], [on("n1", "victim")], [asking("p")], ["victim"]),
    "the less important one": Case(
        [node("n1")],
        [on("n1", "low", cpu="2"), on("n1", "middle", cpu="2", priority=MIDDLE)],
        [asking("p")],
        ["low"],
    ),
    "several victims": Case(
        [node("n1")],
        [on("n1", "low", cpu="2"), on("n1", "middle", cpu="2", priority=MIDDLE)],
        [asking("p", cpu="4")],
        ["low", "middle"],
    ),
    "the node where it hurts less": Case(
        [node("n1"), node("n2"), node("n3", unschedulable=True)],
        [on("n1", "middle", priority=MIDDLE), on("n2", "low"), on("n3", "out-of-reach")],
        [asking("p")],
        ["low"],
    ),
    "budgets that differ": Case(
        [node("n1"), node("n2")],
        [
            on("n1", "guarded", labels={"app": "guarded"}),
            on("n2", "spare", labels={"app": "spare"}, priority=MIDDLE),
        ],
        [asking("p")],
        ["spare"],
        budgets={"guarded": 0, "spare": 1},
    ),
    "a budget that cannot be kept": Case(
        [node("n1")],
        [on("n1", "guarded", labels={"app": "guarded"})],
        [asking("p")],
        ["guarded"],
        budgets={"guarded": 0},
    ),
    "a host port": Case(
        [node("n1")],
        [on("n1", "holds", cpu="1", host_ports=(8080,)), on("n1", "other", cpu="1")],
        [pod("p", host_ports=(8080,), priorityClassName=HIGH)],
        ["holds"],
    ),
    "away from a victim": Case(
        [node("n1")],
        [on("n1", "web", cpu="1", labels={"app": "web"}), on("n1", "db", cpu="1")],
        [
            asking(
                "p",
                affinity={
                    "podAntiAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [
                            {
                                "labelSelector": {"matchLabels": {"app": "web"}},
                                "topologyKey": "kubernetes.io/hostname",
                            }
                        ]
                    }
                },
            )
        ],
        ["web"],
    ),
    "nobody is less important": Case(
        [node("n1"), node("n2", allocatable={"cpu": "1"})],
        [on("n1", "high", priority=HIGH)],
        [asking("p"), asking("polite", priority=POLITE)],
        [],
    ),
    "it would not help": Case(
        [
            node("n1"),
            node("small", allocatable={"cpu": "1"}),
            node("closed", unschedulable=True),
            node("mixed"),
        ],
        [
            on("n1", "high", priority=HIGH),
            on("small", "low", cpu="1"),
            on("mixed", "most", cpu="3", priority=HIGH),
            on("mixed", "rest", cpu="1"),
        ],
        [
            asking("p"),
            asking("huge", cpu="64"),
            asking("elsewhere", nodeSelector={"absent": "x"}),
            asking("named", cpu="64", nodeSelector={"kubernetes.io/hostname": "n1"}),
        ],
        [],
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_pods_and_events_read_as_those_of_kube_scheduler(
    control_plane: ControlPlane, namespace: str, case: Case
) -> None:
    config = configuration(control_plane.scheduler_kubeconfig)
    control_plane.create_many("/api/v1/nodes", case.nodes)
    for app, allowed in case.budgets.items():
        create_budget(control_plane, namespace, app, allowed=allowed)

    expected = observed(
        control_plane, namespace, case, lambda: control_plane.run_kube_scheduler(config)
    )
    ours = observed(control_plane, namespace, case, lambda: run_scheduler(control_plane, config))

    assert ours == expected


def observed(
    plane: ControlPlane,
    namespace: str,
    case: Case,
    scheduler: Callable[[], AbstractContextManager[object]],
) -> dict[str, list[JsonObject]]:
    """What pods and events look like after a scheduler had its turn; nothing of it stays."""
    created = plane.create_many(pods_path(namespace), [*case.placed, *case.pods])
    with scheduler():
        for each in case.pods:
            name = each["metadata"]["name"]
            until(lambda: condition_of(plane, namespace, name))  # noqa: B023  at once
            until(lambda: events_of(plane, namespace, name))  # noqa: B023  the same
        for name in case.victims:
            until(lambda: events_of(plane, namespace, name))  # noqa: B023  the same
        time.sleep(_SETTLING_SECONDS)
        assert victims_of(plane, namespace) == case.victims
    versions = {each["metadata"]["resourceVersion"]: "as created" for each in created}
    uids = {each["metadata"]["uid"]: f"uid of {each['metadata']['name']}" for each in created}
    events = [_told(comparable(event, versions), uids) for event in events_of(plane, namespace)]
    pods = [_told(comparable(each, versions), uids) for each in all_pods(plane, namespace)]
    plane.purge(pods_path(namespace))
    plane.purge(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")
    return {
        "pods": sorted(pods, key=lambda each: str(each["metadata"]["name"])),
        "events": sorted(events, key=lambda each: str(each["regarding"]["name"])),
    }


def _told(value: JsonObject, uids: dict[str, str]) -> JsonObject:
    """Replace uids in notes by names, and blank when a victim has to be gone.

    Events about victims name the preemptor as related. kube-scheduler 1.37 means to do the same,
    but hands its recorder a wrapped pod, which that cannot refer to: so this is left out here.
    """
    text = json.dumps(value)
    for uid, name in uids.items():
        text = text.replace(uid, name)
    result: JsonObject = json.loads(text)
    if "deletionTimestamp" in result["metadata"]:
        result["metadata"]["deletionTimestamp"] = "…"
    if result.pop("related", None):
        for entry in result["metadata"]["managedFields"]:
            entry["fieldsV1"].pop("f:related", None)
    return result
