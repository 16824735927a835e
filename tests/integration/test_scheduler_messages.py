"""What the scheduler writes about a pod is what kube-scheduler writes, to the byte.

For each case the same nodes and pods are given first to the real kube-scheduler and then to ours,
under the same configuration, in the same namespace. Afterwards every pod and every event must be
the same as a whole: spec, conditions, notes, and who owns which field. Only times, identities and
versions may differ.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import pytest

from tests.support.waiting import until

from .comparable import comparable
from .control_plane import ControlPlane, JsonObject
from .scheduler_process import (
    all_pods,
    condition_of,
    configuration,
    events_of,
    node,
    pod,
    pods_path,
    run_scheduler,
)

pytestmark = pytest.mark.usefixtures("clean_cluster")

#: What a second attempt at a pod, which would be a mistake here, gets to show.
_SETTLING_SECONDS = 0.3


@dataclass(frozen=True)
class Case:
    """A cluster, and pods that wait for a node in it."""

    nodes: list[JsonObject]
    pods: list[JsonObject]
    #: pods that have their node already
    placed: list[JsonObject] = field(default_factory=list)
    #: pod → node that it is nominated to
    nominated: dict[str, str] = field(default_factory=dict)


def taint(key: str, effect: str = "NoSchedule", value: str = "") -> JsonObject:
    return {"key": key, "effect": effect, "value": value}


def requiring(*terms: JsonObject) -> JsonObject:
    """The affinity of a pod that goes only to nodes of one of these terms."""
    required = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def named(*names: str) -> JsonObject:
    """A node selector term for nodes by name; the API takes one name a requirement."""
    fields = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in names]
    return {"matchFields": fields}


def labelled(key: str, operator: str, *values: str) -> JsonObject:
    expression: JsonObject = {"key": key, "operator": operator}
    return {"matchExpressions": [expression | ({"values": list(values)} if values else {})]}


def nodes(count: int, **options: object) -> list[JsonObject]:
    return [node(f"n{i}", **options) for i in range(count)]  # type: ignore[arg-type]  # passed on


ALWAYS = {"restartPolicy": "Always"}


def container(name: str, *, cpu: str, **more: object) -> JsonObject:
    return {"name": name, "image": "i", "resources": {"requests": {"cpu": cpu}}, **more}


CASES = {
    "a pod that fits": Case([node("n1")], [pod("p", requests={"cpu": "1"})]),
    "more than any node has": Case(
        nodes(3, allocatable={"ephemeral-storage": "10Gi"}),
        [
            pod("cpu", requests={"cpu": "64"}),
            pod("memory", requests={"memory": "1Ti"}),
            pod("storage", requests={"ephemeral-storage": "1Ti"}),
            pod("all", requests={"cpu": "64", "memory": "1Ti", "ephemeral-storage": "1Ti"}),
        ],
    ),
    "no room left": Case(
        [node("full", allocatable={"pods": "1"}), node("busy"), node("closed", unschedulable=True)],
        [pod("p", requests={"cpu": "3"})],
        placed=[pod("a", nodeName="full"), pod("b", nodeName="busy", requests={"cpu": "1500m"})],
    ),
    "init containers and sidecars": Case(
        nodes(2),
        [
            pod("init", initContainers=[container("i", cpu="5")]),
            pod(
                "sidecar", requests={"cpu": "2"}, initContainers=[container("s", cpu="3", **ALWAYS)]
            ),
        ],
    ),
    "a mix of taints": Case(
        [
            node("a", taints=[taint("dedicated", value="gpu")]),
            node("b", taints=[taint("dedicated", value="gpu"), taint("other", "NoExecute")]),
            node("c", taints=[taint("other", "NoExecute")]),
            node("d", taints=[taint("soft", "PreferNoSchedule"), taint("last", value="x")]),
            node("e", taints=[taint("node.kubernetes.io/not-ready", "NoExecute")]),
        ],
        [
            pod("tolerates-nothing", nodeSelector={"absent": "on-e"}),
            pod("plain", requests={"cpu": "5"}),
            pod(
                "tolerates-some",
                requests={"cpu": "5"},
                tolerations=[
                    {"key": "dedicated", "operator": "Equal", "value": "gpu"},
                    {"key": "other", "operator": "Exists", "effect": "NoSchedule"},
                ],
            ),
            pod("tolerates-all", requests={"cpu": "5"}, tolerations=[{"operator": "Exists"}]),
        ],
    ),
    "labels that no node has": Case(
        [node("a", labels={"size": "5", "zone": "z1"}), node("b", labels={"size": "small"})],
        [
            pod("selector", nodeSelector={"zone": "z2"}),
            pod("expression", affinity=requiring(labelled("size", "Gt", "5"))),
            pod("number", affinity=requiring(labelled("size", "Lt", "99999999999999999999"))),
            pod(
                "both",
                nodeSelector={"zone": "z1"},
                affinity=requiring(labelled("zone", "DoesNotExist")),
            ),
            pod("empty-term", affinity=requiring({})),
        ],
    ),
    "nodes by name": Case(
        nodes(4),
        [
            pod("absent", affinity=requiring(named("nowhere"))),
            pod("too-large", requests={"cpu": "64"}, affinity=requiring(named("n1"))),
            pod(
                "two-too-large",
                requests={"cpu": "64"},
                affinity=requiring(named("n1"), named("n2")),
            ),
            pod("contradiction", affinity=requiring(named("n1", "n2"))),
            pod(
                "mixed",
                requests={"cpu": "64"},
                affinity=requiring(named("n1"), labelled("x", "Exists")),
            ),
            pod("one-of-them", affinity=requiring(named("n3"))),
        ],
    ),
    "host ports that are taken": Case(
        nodes(2),
        [pod("p", host_ports=(8080,)), pod("two", host_ports=(8080, 9090))],
        placed=[pod(f"holds-{i}", host_ports=(8080,), nodeName=f"n{i}") for i in range(2)],
    ),
    "cordoned nodes": Case(
        nodes(3, unschedulable=True),
        [
            pod("p"),
            pod("tolerates", requests={"cpu": "64"}, tolerations=[{"operator": "Exists"}]),
        ],
    ),
    "resources nobody has heard of": Case(
        [*nodes(2), node("has-one", allocatable={"example.com/gpu": "1"})],
        [
            pod("unknown", requests={"example.com/dongle": "1"}),
            pod("too-many", requests={"example.com/gpu": "2"}),
            pod("hugepages", requests={"cpu": "1", "hugepages-2Mi": "4Mi"}),
        ],
    ),
    "many reasons, sorted as text": Case(
        [
            node("cordoned", unschedulable=True),
            *(node(f"tainted-{i}", taints=[taint("no")]) for i in range(2)),
            *(node(f"small-{i}", allocatable={"cpu": "1"}) for i in range(12)),
            *(node(f"smaller-{i}", allocatable={"cpu": "1", "memory": "1Gi"}) for i in range(10)),
            *(node(f"elsewhere-{i}", labels={"zone": "z2"}) for i in range(3)),
            node("full", allocatable={"pods": "0"}),
        ],
        [
            pod(
                "p",
                requests={"cpu": "2", "memory": "2Gi"},
                affinity=requiring(labelled("zone", "NotIn", "z2")),
            ),
            pod("q", requests={"cpu": "64", "example.com/gpu": "1"}),
        ],
    ),
    "a message longer than an event takes": Case(
        [node(f"n{i}", taints=[taint(f"key-{i}-{'x' * 40}", value="v" * 20)]) for i in range(30)],
        [pod("p")],
    ),
    "a nominated node among those that PreFilter leaves": Case(
        nodes(3),
        [pod("p", requests={"cpu": "1"}, affinity=requiring(named("n1")))],
        placed=[pod("full", nodeName="n1", requests={"cpu": "4"})],
        nominated={"p": "n1"},
    ),
    "a nominated node that PreFilter leaves out": Case(
        nodes(4),
        [pod("p", requests={"cpu": "5"}, affinity=requiring(named("n1")))],
        nominated={"p": "n2"},
    ),
    "a nominated node that is left out, and has a taint": Case(
        [*nodes(3), node("tainted", taints=[taint("dedicated")])],
        [pod("p", requests={"cpu": "5"}, affinity=requiring(named("n1")))],
        nominated={"p": "tainted"},
    ),
    "a nominated node that is not there": Case(
        nodes(2), [pod("p", requests={"cpu": "5"})], nominated={"p": "gone"}
    ),
    "no nodes at all": Case([], [pod("p", requests={"cpu": "1"})]),
    "values that are meant to hurt": Case(
        [
            node("huge", allocatable={"cpu": "1E", "memory": "1E", "pods": "1E"}),
            node("overflow", allocatable={"cpu": "9223372036854775807", "memory": "7E"}),
            node("tiny", allocatable={"cpu": "1n", "memory": "1m", "pods": "0"}),
        ],
        [
            pod("most-that-is-counted", requests={"cpu": "9e15", "memory": "9223372036854775807"}),
            pod("gpus", requests={"example.com/gpu": "9223372036854775807"}),
            pod("nothing", requests={"cpu": "0", "memory": "0"}, nodeSelector={"absent": ""}),
            pod("number", affinity=requiring(labelled("x", "Gt", "9223372036854775808"))),
        ],
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_pods_and_events_read_as_those_of_kube_scheduler(
    control_plane: ControlPlane, namespace: str, case: Case
) -> None:
    config = configuration(control_plane.scheduler_kubeconfig)
    control_plane.create_many("/api/v1/nodes", case.nodes)

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
    waiting = [each["metadata"]["name"] for each in case.pods]
    for name, node_name in case.nominated.items():
        plane.request(
            "PATCH",
            f"{pods_path(namespace, name)}/status",
            {"status": {"nominatedNodeName": node_name}},
            content_type="application/merge-patch+json",
        )
    with scheduler():
        for name in waiting:
            until(lambda: condition_of(plane, namespace, name))  # noqa: B023  at once
            until(lambda: events_of(plane, namespace, name))  # noqa: B023  the same
        time.sleep(_SETTLING_SECONDS)
    versions = {each["metadata"]["resourceVersion"]: "as created" for each in created}
    events = [comparable(event, versions) for event in events_of(plane, namespace)]
    pods = [comparable(each, versions) for each in all_pods(plane, namespace)]
    plane.purge(pods_path(namespace))
    plane.purge(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")
    return {
        "pods": sorted(pods, key=lambda each: str(each["metadata"]["name"])),
        "events": sorted(events, key=lambda each: str(each["regarding"]["name"])),
    }
