"""The control plane itself: that what the other integration tests build on is there."""

from __future__ import annotations

import json
import ssl
import urllib.request
from pathlib import Path

import pytest

from kubesched import KUBERNETES_VERSION
from tests.support.waiting import until

from .control_plane import CommandError, ControlPlane, JsonObject, PlaneApiError, StartError

pytestmark = pytest.mark.usefixtures("clean_cluster")


def node(name: str, *, cpu: str = "4") -> JsonObject:
    allocatable = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": allocatable, "capacity": allocatable},
    }


def pod(name: str, *, cpu: str = "100m", **spec: object) -> JsonObject:
    container = {
        "name": "c",
        "image": "registry.invalid/c",
        "resources": {"requests": {"cpu": cpu}},
    }
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def pods_path(namespace: str, name: str = "") -> str:
    return f"/api/v1/namespaces/{namespace}/pods" + (f"/{name}" if name else "")


def scheduled_condition(plane: ControlPlane, namespace: str, name: str) -> JsonObject | None:
    status = plane.request("GET", pods_path(namespace, name))["status"]
    conditions: list[JsonObject] = status.get("conditions", [])
    return next((c for c in conditions if c["type"] == "PodScheduled"), None)


def event_note(plane: ControlPlane, namespace: str, reason: str) -> str | None:
    path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
    events = plane.request("GET", path)["items"]
    return next((str(e["note"]) for e in events if e["reason"] == reason), None)


def test_the_version_is_the_one_we_replace(control_plane: ControlPlane) -> None:
    assert control_plane.request("GET", "/version")["gitVersion"] == KUBERNETES_VERSION


def test_a_node_keeps_its_allocatable_and_gets_no_taint(control_plane: ControlPlane) -> None:
    control_plane.request("POST", "/api/v1/nodes", node("n1", cpu="3"))
    stored = control_plane.request("GET", "/api/v1/nodes/n1")
    assert stored["status"]["allocatable"]["cpu"] == "3"
    assert "taints" not in stored["spec"]


def test_a_pod_is_bound_through_its_subresource(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.request("POST", "/api/v1/nodes", node("n1"))
    control_plane.request("POST", pods_path(namespace), pod("p1"))
    binding = {"metadata": {"name": "p1"}, "target": {"kind": "Node", "name": "n1"}}
    control_plane.request("POST", pods_path(namespace, "p1") + "/binding", binding)
    assert control_plane.request("GET", pods_path(namespace, "p1"))["spec"]["nodeName"] == "n1"
    with pytest.raises(PlaneApiError, match="already assigned to node") as refused:
        control_plane.request("POST", pods_path(namespace, "p1") + "/binding", binding)
    assert refused.value.status == 409


def test_priority_admission_fills_in_the_priority(
    control_plane: ControlPlane, namespace: str
) -> None:
    critical = pod("p1", priorityClassName="system-node-critical")
    created = control_plane.request("POST", pods_path(namespace), critical)
    assert created["spec"]["priority"] == 2_000_001_000
    assert created["spec"]["preemptionPolicy"] == "PreemptLowerPriority"


def test_events_of_the_new_group_are_stored(control_plane: ControlPlane, namespace: str) -> None:
    event = {
        "metadata": {"name": "e1"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "test",
        "reportingInstance": "test-1",
        "action": "Scheduling",
        "reason": "Tested",
        "type": "Normal",
        "note": "it is stored",
        "regarding": {"kind": "Pod", "namespace": namespace, "name": "p1"},
    }
    control_plane.request("POST", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events", event)
    assert event_note(control_plane, namespace, "Tested") == "it is stored"


def test_many_pods_are_created_in_order(control_plane: ControlPlane, namespace: str) -> None:
    names = [f"p{i}" for i in range(200)]
    created = control_plane.create_many(pods_path(namespace), map(pod, names))
    assert [each["metadata"]["name"] for each in created] == names


def test_kubectl_reads_writes_and_explains_a_failure(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.kubectl(
        "apply", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "Node", **node("n1")})
    )
    assert control_plane.kubectl("get", "nodes", "-o", "name") == "node/n1\n"
    with pytest.raises(CommandError, match='pods "absent" not found'):
        control_plane.kubectl("get", "pod", "absent", "-n", namespace)


def test_the_schedulers_kubeconfig_has_only_the_schedulers_rights(
    control_plane: ControlPlane,
) -> None:
    config = f"--kubeconfig={control_plane.scheduler_kubeconfig}"
    control_plane.kubectl(config, "auth", "can-i", "create", "pods", "--subresource=binding")
    with pytest.raises(CommandError, match="forbidden"):
        control_plane.kubectl(config, "create", "namespace", "not-for-schedulers")


def test_the_certificate_holds_for_strict_clients(control_plane: ControlPlane) -> None:
    strict = ssl.create_default_context(
        cadata=(control_plane.folder / "certificates" / "apiserver.crt").read_text()
    )
    strict.verify_flags |= ssl.VERIFY_X509_STRICT
    with urllib.request.urlopen(f"{control_plane.url}/livez", context=strict) as answer:  # noqa: S310
        assert answer.status == 200


def test_a_killed_api_server_comes_back_with_its_objects(
    control_plane: ControlPlane, namespace: str
) -> None:
    created = control_plane.request("POST", pods_path(namespace), pod("p1"))
    control_plane.kill_apiserver()
    with pytest.raises(OSError, match="refused"):
        control_plane.request("GET", pods_path(namespace, "p1"))
    control_plane.start_apiserver()
    stored = control_plane.request("GET", pods_path(namespace, "p1"))
    assert stored["metadata"] == created["metadata"]


def test_a_namespace_and_all_in_it_is_gone_at_once(control_plane: ControlPlane) -> None:
    control_plane.create_namespace("short-lived")
    held = {**pod("p1"), "metadata": {"name": "p1", "finalizers": ["example.com/never-answered"]}}
    control_plane.request("POST", pods_path("short-lived"), held)
    control_plane.delete_namespace("short-lived")
    with pytest.raises(PlaneApiError) as absent:
        control_plane.request("GET", "/api/v1/namespaces/short-lived")
    assert absent.value.status == 404
    assert control_plane.request("GET", "/api/v1/pods")["items"] == []


def test_the_real_scheduler_binds_what_fits_and_explains_what_does_not(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.create_many("/api/v1/nodes", [node("n1"), node("n2"), node("n3", cpu="1")])
    control_plane.create_many(pods_path(namespace), [pod("fits"), pod("never", cpu="64")])
    with control_plane.run_kube_scheduler():
        bound = until(
            lambda: control_plane.request("GET", pods_path(namespace, "fits"))["spec"].get(
                "nodeName"
            )
        )
        condition = until(lambda: scheduled_condition(control_plane, namespace, "never"))
        note = until(lambda: event_note(control_plane, namespace, "FailedScheduling"))
    assert bound in {"n1", "n2", "n3"}
    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
    assert condition["message"] == note
    assert note == (
        "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: "
        "3 Preemption is not helpful for scheduling."
    )


def test_the_real_scheduler_takes_a_configuration(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.request("POST", "/api/v1/nodes", node("n1"))
    control_plane.request("POST", pods_path(namespace), pod("p1", schedulerName="other"))
    with control_plane.run_kube_scheduler({"profiles": [{"schedulerName": "other"}]}, "--v=2"):
        until(lambda: event_note(control_plane, namespace, "Scheduled"))


def test_a_second_control_plane_serves_apis_that_are_off_by_default(assets: Path) -> None:
    options = ControlPlane(
        assets,
        feature_gates="GenericWorkload=true",
        runtime_config="scheduling.k8s.io/v1beta1=true",
    )
    with options as plane:
        served = plane.request("GET", "/apis/scheduling.k8s.io/v1beta1")["resources"]
    assert "podgroups" in {each["name"] for each in served}


def test_a_failed_start_shows_the_log_and_leaves_nothing(assets: Path) -> None:
    plane = ControlPlane(assets, feature_gates="NoSuchGate=true")
    with pytest.raises(StartError, match="unrecognized feature gate: NoSuchGate"):
        plane.start()
    assert not plane.folder.exists()
