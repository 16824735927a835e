"""Rights: everything that a scheduler does, with no other roles than those of kube-scheduler.

The API server's own bootstrap roles are all that the user system:kube-scheduler has, and its audit
log says what became of each of that user's requests.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from kubesched.config.features import FeatureGates
from kubesched.kinds import watched
from tests.support.waiting import until

from .control_plane import ControlPlane, JsonObject
from .pretend_provisioner import PretendProvisioner
from .replicas import elected, free_port, holder_of, page, serving
from .scheduler_process import (
    SchedulerProcess,
    create_budget,
    delete_pod,
    events_of,
    node,
    patch_node,
    pod,
    pods_path,
    run_scheduler,
    wait_until_bound,
    wait_until_refused,
)
from .serving_callers import ask, connect
from .volume_objects import DRIVER, claim, claims_path, create_class, create_volumes, local_volume

SCHEDULER = "system:kube-scheduler"
NAMESPACE = "default"
ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"

#: What a scheduler must have done for the audit log to be worth anything: verb and resource.
DONE = {
    "create pods/binding",
    "patch pods/status",
    "delete pods",
    "create events.events.k8s.io",
    "create leases.coordination.k8s.io",
    "update leases.coordination.k8s.io",
    "patch persistentvolumes",
    "patch persistentvolumeclaims",
    "get configmaps",
    "create tokenreviews.authentication.k8s.io",
    "create subjectaccessreviews.authorization.k8s.io",
    *(f"{verb} {kind.path}" for verb in ("list", "watch") for kind in watched(FeatureGates.of())),
}


class AuditedPlane(ControlPlane):
    """A control plane that writes down what the scheduler's user asks of it."""

    @property
    def audit_log(self) -> Path:
        """One JSON document a line."""
        return self.folder / "audit.log"

    def _apiserver_arguments(self) -> list[str]:
        policy = {
            "apiVersion": "audit.k8s.io/v1",
            "kind": "Policy",
            "omitStages": ["RequestReceived"],
            "rules": [{"level": "Metadata", "users": [SCHEDULER]}, {"level": "None"}],
        }
        file = self.folder / "audit-policy.json"
        file.write_text(json.dumps(policy))
        # With this the API server publishes whose certificates count, as every cluster's does.
        authority = self.folder / "clients.pem"
        if not authority.exists():
            trustme.CA().cert_pem.write_to_path(authority)
        return [
            *super()._apiserver_arguments(),
            f"--audit-policy-file={file}",
            f"--audit-log-path={self.audit_log}",
            f"--client-ca-file={authority}",
        ]

    def audited(self) -> list[JsonObject]:
        """What was written down until now."""
        return [json.loads(line) for line in self.audit_log.read_text().splitlines()]


@pytest.fixture
def plane(assets: Path) -> Iterator[AuditedPlane]:
    with AuditedPlane(assets) as started:
        yield started


def _what(entry: JsonObject) -> str:
    about = entry.get("objectRef")
    if about is None:
        return f"{entry['verb']} {entry['requestURI']}"
    group = f".{about['apiGroup']}" if "apiGroup" in about else ""
    subresource = f"/{about['subresource']}" if "subresource" in about else ""
    return f"{entry['verb']} {about['resource']}{group}{subresource}"


def _refused(plane: AuditedPlane) -> list[str]:
    return [
        f"{_what(entry)}: {entry['requestURI']}"
        for entry in plane.audited()
        if entry["responseStatus"]["code"] in (401, 403)
    ]


def test_the_roles_of_kube_scheduler_are_enough(plane: AuditedPlane) -> None:
    _assert_no_other_roles(plane)
    port = free_port()
    config = elected(plane, "kube-scheduler")
    with (
        PretendProvisioner(plane).running(),
        run_scheduler(plane, config, *serving(plane, port, looks_up=True)) as scheduler,
    ):
        until(lambda: holder_of(plane, "kube-scheduler"))
        _place(plane)
        _bind_volumes(plane)
        _preempt(plane)
        _look_at_it(plane, port, scheduler)
        # Once more when it ends: the lease is given back.
        assert scheduler.terminate() == 0
        assert scheduler.log_lines("EF") == []

    done = {_what(entry) for entry in plane.audited()}
    assert sorted(DONE - done) == []
    assert _refused(plane) == []
    _assert_that_a_refusal_would_have_been_seen(plane)


def _assert_no_other_roles(plane: ControlPlane) -> None:
    """All bindings of the user are those that the API server comes with."""
    path = "/apis/rbac.authorization.k8s.io/v1"
    bound = {
        (item["roleRef"]["kind"], item["roleRef"]["name"])
        for kind in ("clusterrolebindings", "rolebindings")
        for item in plane.request("GET", f"{path}/{kind}")["items"]
        if any(subject["name"] == SCHEDULER for subject in item.get("subjects", ()))
    }
    assert bound == {
        ("ClusterRole", "system:kube-scheduler"),
        ("ClusterRole", "system:volume-scheduler"),
        ("Role", "extension-apiserver-authentication-reader"),
        ("Role", "system::leader-locking-kube-scheduler"),
    }


def _place(plane: ControlPlane) -> None:
    """Affinity, spreading, services, gates, and pods that wait."""
    nodes = [node(f"n{number}", labels={ZONE: f"z{number % 2}"}) for number in range(4)]
    plane.create_many("/api/v1/nodes", nodes)
    service = {
        "metadata": {"name": "s"},
        "spec": {"selector": {"app": "a"}, "ports": [{"port": 1}]},
    }
    plane.request("POST", f"/api/v1/namespaces/{NAMESPACE}/services", service)
    apart = [{"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": HOST}]
    spread = [
        {
            "maxSkew": 1,
            "topologyKey": ZONE,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "a"}},
        }
    ]
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": apart}}
    placed = [
        pod(f"a{n}", labels={"app": "a"}, affinity=affinity, topologySpreadConstraints=spread)
        for n in range(4)
    ]
    plane.create_many(pods_path(NAMESPACE), placed)
    wait_until_bound(plane, NAMESPACE)
    waits = pod("waits", nodeSelector={"disk": "fast"}, tolerations=[{"operator": "Exists"}])
    plane.request("POST", pods_path(NAMESPACE), waits)
    wait_until_refused(plane, NAMESPACE, "waits")
    patch_node(plane, "n0", {"metadata": {"labels": {"disk": "fast"}}})
    wait_until_bound(plane, NAMESPACE, "waits")
    for name in ("waits", *(f"a{n}" for n in range(4))):
        delete_pod(plane, NAMESPACE, name)


def _bind_volumes(plane: ControlPlane) -> None:
    """A volume that is there, and one that has to be made."""
    create_class(plane, "local", provisioner="kubernetes.io/no-provisioner")
    create_class(plane, "made", provisioner=DRIVER)
    create_volumes(plane, local_volume("v1", "local", "n1"))
    for name, storage_class in (("c1", "local"), ("c2", "made")):
        plane.request("POST", claims_path(NAMESPACE), claim(name, storage_class))
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]
        plane.request("POST", pods_path(NAMESPACE), pod(f"with-{name}", volumes=volumes))
    wait_until_bound(plane, NAMESPACE, "with-c1", "with-c2")


def _preempt(plane: ControlPlane) -> None:
    """Each node is full with a pod; one of them is not protected by a budget."""
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    plane.request("POST", classes, {"metadata": {"name": "test-high"}, "value": 1000})
    create_budget(plane, NAMESPACE, "protected", allowed=0)
    for number in range(4):
        labels = {"app": "protected"} if number else {}
        plane.request(
            "POST",
            pods_path(NAMESPACE),
            pod(
                f"full-{number}",
                requests={"cpu": "4"},
                labels=labels,
                nodeName=f"n{number}",
                terminationGracePeriodSeconds=0,
            ),
        )
    important = pod("important", requests={"cpu": "4"}, priorityClassName="test-high")
    plane.request("POST", pods_path(NAMESPACE), important)
    assert wait_until_bound(plane, NAMESPACE, "important") == {"important": "n0"}
    told = until(lambda: events_of(plane, NAMESPACE, "full-0"))
    assert [each["reason"] for each in told] == ["Preempted"]


def _look_at_it(plane: ControlPlane, port: int, scheduler: SchedulerProcess) -> None:
    """Callers that the API server has to be asked about, and an operator's signal."""
    assert page(plane, port, "/metrics").code == 200
    account = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
    plane.request("POST", account, {"metadata": {"name": "nobody"}})
    token = plane.request("POST", f"{account}/nobody/token", {"spec": {}})["status"]["token"]
    connection = connect(port)
    reply = ask(connection, "/metrics", "GET", {"Authorization": f"Bearer {token}"})
    connection.close()
    assert reply.code == 403
    scheduler.send(signal.SIGUSR2)
    scheduler.wait_for_log('"Cache matches the API server" kind="pods"')


def _assert_that_a_refusal_would_have_been_seen(plane: AuditedPlane) -> None:
    plane._admin_token, admin = plane._scheduler_token, plane._admin_token
    try:
        status, _ = plane._exchange("GET", "/api/v1/secrets")
    finally:
        plane._admin_token = admin
    assert status == 403
    until(lambda: _refused(plane) == ["list secrets: /api/v1/secrets"])
