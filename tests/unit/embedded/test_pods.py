"""Pods: what is shared between them, and what admission can be told not to do."""

from __future__ import annotations

from typing import Any

from kubesched.clock import VirtualClock
from kubesched.embedded import Admission, EmbeddedCluster
from kubesched.embedded.pods import with_label_keys
from kubesched.embedded.registry import Where
from kubesched.embedded.resources import PODS

JsonObject = dict[str, Any]


def a_pod(name: str, **spec: Any) -> JsonObject:
    containers = [{"name": "c", "image": "registry.example/app:1"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": containers, **spec},
    }


def spec_of(cluster: EmbeddedCluster, name: str) -> JsonObject:
    version = cluster.store.get(PODS, f"default/{name}")
    assert version is not None
    spec: JsonObject = version.obj["spec"]
    return spec


def test_pods_that_were_sent_with_the_same_spec_share_it() -> None:
    cluster = EmbeddedCluster()
    for name in ("a", "b"):
        cluster.create(a_pod(name))
    cluster.create(a_pod("c", schedulerName="other"))

    assert spec_of(cluster, "a") is spec_of(cluster, "b")
    assert spec_of(cluster, "a")["schedulerName"] == "default-scheduler"
    assert spec_of(cluster, "c")["schedulerName"] == "other"


def test_pods_on_different_nodes_share_all_but_the_node() -> None:
    cluster = EmbeddedCluster()
    cluster.create(a_pod("a", nodeName="n1"))
    cluster.create(a_pod("b", nodeName="n2"))

    first, second = spec_of(cluster, "a"), spec_of(cluster, "b")
    assert (first["nodeName"], second["nodeName"]) == ("n1", "n2")
    assert first["containers"] is second["containers"]


def test_a_change_of_one_pod_is_not_seen_in_another() -> None:
    cluster = EmbeddedCluster()
    for name in ("a", "b"):
        cluster.create(a_pod(name))
    body = b'{"spec":{"containers":[{"name":"c","image":"registry.example/app:2"}]}}'
    kind = "application/strategic-merge-patch+json"

    cluster.registry.patch(Where(PODS, "default", "a"), kind, body)
    cluster.registry.bind(
        Where(PODS, "default"), {"metadata": {"name": "a"}, "target": {"name": "n1"}}
    )

    assert spec_of(cluster, "a")["containers"][0]["image"] == "registry.example/app:2"
    assert spec_of(cluster, "a")["nodeName"] == "n1"
    assert spec_of(cluster, "b")["containers"][0]["image"] == "registry.example/app:1"
    assert "nodeName" not in spec_of(cluster, "b")
    cluster.create(a_pod("c"))
    assert spec_of(cluster, "c") is spec_of(cluster, "b")


def test_the_priority_follows_the_classes_as_they_change() -> None:
    cluster = EmbeddedCluster()

    def add_class(name: str, value: int, **fields: Any) -> None:
        cluster.create(
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": value,
                **fields,
            }
        )

    cluster.create(a_pod("before"))
    add_class("default", 7, globalDefault=True)
    cluster.create(a_pod("after"))
    add_class("high", 9)
    cluster.create(a_pod("high", priorityClassName="high"))

    found = {n: spec_of(cluster, n)["priority"] for n in ("before", "after", "high")}
    assert found == {"before": 0, "after": 7, "high": 9}
    assert spec_of(cluster, "after")["priorityClassName"] == "default"


def test_admission_can_be_left_out() -> None:
    admission = Admission(priority=False, default_toleration_seconds=False, topology_labels=False)
    cluster = EmbeddedCluster(admission=admission)
    labels = {"topology.kubernetes.io/zone": "z"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": labels}}
    cluster.create(node)

    created = cluster.create(a_pod("a", priority=5, nodeName="n"))

    assert created["spec"]["priority"] == 5
    assert "tolerations" not in created["spec"]
    assert "preemptionPolicy" not in created["spec"]
    assert "labels" not in created["metadata"]


def test_a_pod_created_on_a_node_is_labelled_with_its_place() -> None:
    cluster = EmbeddedCluster()
    labels = {"topology.kubernetes.io/zone": "z", "other": "x"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": labels}}
    cluster.create(node)

    created = cluster.create(a_pod("a", nodeName="n"))

    assert created["metadata"]["labels"] == {"topology.kubernetes.io/zone": "z"}


def test_own_labels_are_put_into_selectors_of_a_copy() -> None:
    term = {"labelSelector": {}, "topologyKey": "z", "matchLabelKeys": ["a", "b"]}
    spec = {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}

    result = with_label_keys(spec, {"a": "1"})

    (found,) = result["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert found["labelSelector"] == {
        "matchExpressions": [{"key": "a", "operator": "In", "values": ["1"]}]
    }
    assert term["labelSelector"] == {}


def test_times_are_those_of_the_clock() -> None:
    cluster = EmbeddedCluster(clock=VirtualClock(1_767_323_045.9))

    created = cluster.create(a_pod("a", schedulingGates=[{"name": "wait"}]))

    assert created["metadata"]["creationTimestamp"] == "2026-01-02T03:04:05Z"
    (condition,) = created["status"]["conditions"]
    assert condition["lastTransitionTime"] == "2026-01-02T03:04:05Z"
