"""The manifests of deploy/ on a real API server: it takes them, and the rights in them suffice.

The scheduler runs as a process with the identity, the flags and the configuration that a manifest
gives it, and does one of everything that it can do. The API server's audit log says what it asked
for, and must not have a single refusal.
"""

from __future__ import annotations

import contextlib
import json
import re
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubesched.bench.processes import free_ports
from kubesched.config.features import FeatureGates
from kubesched.kinds import watched
from tests.support.prometheus_queries import expressions, selectors
from tests.support.waiting import until

from .audited_plane import AuditedPlane, Request
from .control_plane import CommandError, JsonObject
from .pretend_provisioner import PretendProvisioner
from .scheduler_process import (
    delete_pod,
    events_of,
    node_of,
    pod,
    pods_path,
    run_command,
    wait_until_bound,
    wait_until_refused,
)
from .serving_callers import LOOPBACK, ask, connect
from .volume_objects import claim, claims_path, create_class, create_volumes, local_volume, zoned

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
STATIC_POD = DEPLOY / "kubeadm" / "kube-scheduler.yaml"
KUBEADM_PATCH = DEPLOY / "kubeadm" / "patches" / "kube-scheduler+strategic.yaml"
BASE = DEPLOY / "second-scheduler"
MONITORING = DEPLOY / "monitoring"
RENDERED = DEPLOY / "helm" / "rendered"

SERVICE_ACCOUNT = "system:serviceaccount:kube-system:kubesched"
SCHEDULER = "system:kube-scheduler"
PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture(scope="module")
def plane(assets: Path) -> Iterator[AuditedPlane]:
    """An API server with an audit log, and the operators' kinds that manifests name."""
    with AuditedPlane(assets) as started:
        for kind in ("ServiceMonitor", "PrometheusRule"):
            _define(started, kind)
        started.create_namespace("scheduling")
        yield started


def _define(plane: AuditedPlane, kind: str) -> None:
    """Create a kind of the Prometheus operator, without its schema."""
    plural = f"{kind.lower()}s"
    name = f"{plural}.monitoring.coreos.com"
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": anything},
    }
    spec = {
        "group": "monitoring.coreos.com",
        "names": {"kind": kind, "plural": plural},
        "scope": "Namespaced",
        "versions": [version],
    }
    plane.request("POST", CRDS, {"metadata": {"name": name}, "spec": spec})

    def established() -> bool:
        conditions = plane.request("GET", f"{CRDS}/{name}")["status"]["conditions"]
        found = {each["type"]: each["status"] for each in conditions or ()}
        return found.get("Established") == "True"

    until(established)


def _base(plane: AuditedPlane) -> list[JsonObject]:
    """The objects of the second scheduler, as kustomize makes them."""
    return [each for each in yaml.safe_load_all(plane.kubectl("kustomize", str(BASE))) if each]


# --- manifests ----------------------------------------------------------------------------------

MANIFESTS: dict[str, Callable[[AuditedPlane], str]] = {
    "static pod": lambda _: STATIC_POD.read_text(),
    "second scheduler": lambda plane: plane.kubectl("kustomize", str(BASE)),
    "network policy": lambda _: (
        BASE / "components" / "network-policy" / "network-policy.yaml"
    ).read_text(),
    "service monitor": lambda _: (MONITORING / "service-monitor.yaml").read_text(),
    "prometheus rule": lambda _: (MONITORING / "prometheus-rule.yaml").read_text(),
    "service of static pods": lambda _: (MONITORING / "static-pod-service.yaml").read_text(),
    "coscheduling": lambda _: "\n---\n".join(
        (DEPLOY / "coscheduling" / name).read_text() for name in ("crd.yaml", "rbac.yaml")
    ),
    "chart": lambda _: (RENDERED / "default.yaml").read_text(),
    "chart with everything": lambda _: (RENDERED / "everything.yaml").read_text(),
}


class TestManifests:
    @pytest.mark.parametrize("name", MANIFESTS)
    def test_the_api_server_takes_them(self, plane: AuditedPlane, name: str) -> None:
        manifest = MANIFESTS[name](plane)
        wanted = [each for each in yaml.safe_load_all(manifest) if each]

        taken = plane.kubectl(
            *("apply", "--server-side", "--dry-run=server", "--validate=strict", "--filename=-"),
            input=manifest,
        )

        assert len(taken.splitlines()) == len(wanted)
        assert all("serverside-applied (server dry run)" in line for line in taken.splitlines())

    def test_every_file_is_among_them(self) -> None:
        """A manifest that nobody names here, or in the kustomization, would not be checked."""
        named = {
            STATIC_POD,
            BASE / "components" / "network-policy" / "network-policy.yaml",
            *(BASE / each for each in ("kustomization.yaml", "scheduler.yaml")),
            *(MONITORING / f"{each}.yaml" for each in ("service-monitor", "prometheus-rule")),
            MONITORING / "static-pod-service.yaml",
            KUBEADM_PATCH,
            *(DEPLOY / "coscheduling" / f"{each}.yaml" for each in ("crd", "rbac", "scheduler")),
            BASE / "components" / "network-policy" / "kustomization.yaml",
        }
        listed = yaml.safe_load((BASE / "kustomization.yaml").read_text())["resources"]
        named |= {BASE / each for each in listed}

        # Charts and krew's manifest are no objects of a cluster, and have tests of their own.
        others = {"helm", "krew"}
        there = {file for file in DEPLOY.rglob("*.yaml") if others.isdisjoint(file.parts)}

        assert there == named

    def test_the_component_fits_the_base(self, plane: AuditedPlane, tmp_path: Path) -> None:
        # kustomize takes relative paths only, and resolves no links.
        up = "/".join([".."] * (len(tmp_path.resolve().parts) - 1))
        overlay = {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": [f"{up}{BASE}"],
            "components": [f"{up}{BASE}/components/network-policy"],
            "images": [{"name": "kubesched", "newName": "registry.invalid/k", "newTag": "1"}],
        }
        (tmp_path / "kustomization.yaml").write_text(json.dumps(overlay))

        made = list(yaml.safe_load_all(plane.kubectl("kustomize", str(tmp_path))))

        (deployment,) = (each for each in made if each["kind"] == "Deployment")
        assert "NetworkPolicy" in [each["kind"] for each in made]
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        assert container["image"] == "registry.invalid/k:1"

    def test_the_static_pod_is_kubeadms_with_the_patch(self, plane: AuditedPlane) -> None:
        patched = plane.kubectl(
            *("patch", "--local", "--type=strategic", "--filename=-", "--output=json"),
            f"--patch-file={KUBEADM_PATCH}",
            input=json.dumps(kubeadm_pod()),
        )

        assert json.loads(patched) == yaml.safe_load(STATIC_POD.read_text())


def kubeadm_pod() -> JsonObject:
    """The static pod as kubeadm v1.37 writes it for a cluster without settings of its own."""
    conf = "/etc/kubernetes/scheduler.conf"

    def probe(path: str, **more: int) -> JsonObject:
        where = {"host": "127.0.0.1", "path": path, "port": "probe-port", "scheme": "HTTPS"}
        return {"httpGet": where, "timeoutSeconds": 15, **more}

    container = {
        "name": "kube-scheduler",
        "image": "registry.k8s.io/kube-scheduler:v1.37.1",
        "imagePullPolicy": "IfNotPresent",
        "command": [
            "kube-scheduler",
            f"--authentication-kubeconfig={conf}",
            f"--authorization-kubeconfig={conf}",
            "--bind-address=127.0.0.1",
            f"--kubeconfig={conf}",
            "--leader-elect=true",
        ],
        "livenessProbe": probe(
            "/livez", initialDelaySeconds=10, periodSeconds=10, failureThreshold=8
        ),
        "readinessProbe": probe("/readyz", periodSeconds=1, failureThreshold=3),
        "startupProbe": probe(
            "/livez", initialDelaySeconds=10, periodSeconds=10, failureThreshold=24
        ),
        "ports": [{"name": "probe-port", "containerPort": 10259, "protocol": "TCP"}],
        "resources": {"requests": {"cpu": "100m"}},
        "volumeMounts": [{"name": "kubeconfig", "mountPath": conf, "readOnly": True}],
    }
    file = {"path": conf, "type": "FileOrCreate"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "kube-scheduler",
            "namespace": "kube-system",
            "labels": {"component": "kube-scheduler", "tier": "control-plane"},
        },
        "spec": {
            "containers": [container],
            "hostNetwork": True,
            "priority": 2000001000,
            "priorityClassName": "system-node-critical",
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "volumes": [{"name": "kubeconfig", "hostPath": file}],
        },
    }


# --- rights -------------------------------------------------------------------------------------


@pytest.fixture
def namespace(plane: AuditedPlane) -> Iterator[str]:
    """A namespace for this test's pods; nothing is left in the cluster when it is over."""
    name = f"deploy-{secrets.token_hex(3)}"
    plane.create_namespace(name)
    high = {"metadata": {"name": f"{name}-high"}, "value": 1000}
    plane.request("POST", PRIORITY_CLASSES, high)
    yield name
    plane.request("DELETE", f"{PRIORITY_CLASSES}/{name}-high")
    plane.delete_namespace(name)
    plane.purge_cluster()


@pytest.fixture
def account(plane: AuditedPlane) -> Iterator[Path]:
    """The second scheduler's service account with its rights; yields its kubeconfig."""
    kinds = ("ServiceAccount", "Role", "RoleBinding", "ClusterRoleBinding", "ConfigMap")
    objects = [each for each in _base(plane) if each["kind"] in kinds]
    manifest = yaml.safe_dump_all(objects)
    plane.kubectl("apply", "--server-side", "--filename=-", input=manifest)
    path = "/api/v1/namespaces/kube-system/serviceaccounts/kubesched/token"
    token = plane.request("POST", path, {"spec": {"expirationSeconds": 3600}})["status"]["token"]
    token_file = plane.folder / "token"
    token_file.write_text(token)
    kubeconfig = json.loads(plane.scheduler_kubeconfig.read_text())
    kubeconfig["users"][0]["user"] = {"tokenFile": str(token_file)}
    file = plane.folder / "account.kubeconfig"
    file.write_text(json.dumps(kubeconfig))
    yield file
    plane.kubectl("delete", "--filename=-", input=manifest)


def _lease_holder(plane: AuditedPlane, name: str) -> str:
    path = f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{name}"
    return str(plane.request("GET", path)["spec"]["holderIdentity"])


def _do_everything(plane: AuditedPlane, namespace: str, scheduler_name: str) -> None:
    """Let the scheduler bind, refuse, preempt, and deal with volumes; wait until it has."""
    name: dict[str, Any] = {"schedulerName": scheduler_name}
    plane.create_many("/api/v1/nodes", [zoned("n1", "a"), zoned("n2", "b", cpu="1")])
    create = plane.create_many
    create(pods_path(namespace), [pod(f"plain-{i}", **name) for i in range(3)])
    wait_until_bound(plane, namespace, *(f"plain-{i}" for i in range(3)))
    create(pods_path(namespace), [pod("too-big", requests={"cpu": "64"}, **name)])
    wait_until_refused(plane, namespace, "too-big")
    _preempt(plane, namespace, name)
    _bind_volumes(plane, namespace, name)


def _preempt(plane: AuditedPlane, namespace: str, name: dict[str, Any]) -> None:
    victim = pod("victim", requests={"cpu": "4"}, terminationGracePeriodSeconds=0, **name)
    plane.request("POST", pods_path(namespace), victim)
    wait_until_bound(plane, namespace, "victim")
    high = {"priorityClassName": f"{namespace}-high", **name}
    plane.request("POST", pods_path(namespace), pod("first", requests={"cpu": "4"}, **high))
    wait_until_bound(plane, namespace, "first")
    gone = until(lambda: [e for e in events_of(plane, namespace) if e["reason"] == "Preempted"])
    assert gone[0]["regarding"]["name"] == "victim"
    delete_pod(plane, namespace, "first")


def _bind_volumes(plane: AuditedPlane, namespace: str, name: dict[str, Any]) -> None:
    """One claim for a volume that is there, and one for a volume to be made."""
    with PretendProvisioner(plane).running():
        create_class(plane, "there", provisioner="kubernetes.io/no-provisioner")
        create_class(plane, "made")
        create_volumes(plane, local_volume("pv", "there", "n1"))
        plane.create_many(claims_path(namespace), [claim("there", "there"), claim("made", "made")])
        volumes = [
            {"name": each, "persistentVolumeClaim": {"claimName": each}}
            for each in ("there", "made")
        ]
        plane.request("POST", pods_path(namespace), pod("stateful", volumes=volumes, **name))
        wait_until_bound(plane, namespace, "stateful")
    assert node_of(plane, namespace, "stateful") == "n1"
    bound = plane.request("GET", claims_path(namespace, "there"))
    assert bound["spec"]["volumeName"] == "pv"


def _ask_as_somebody(plane: AuditedPlane, port: int) -> None:
    """Read the metrics with a token, which the scheduler has to ask the API server about."""
    with contextlib.closing(connect(port)) as connection:
        token = {"Authorization": f"Bearer {plane.scheduler_token}"}
        assert ask(connection, "/metrics", "GET", token).code == 403, "it has no right to look"
        admin = {"Authorization": f"Bearer {plane.admin_token}"}
        assert ask(connection, "/livez", "GET", {}).code == 200
        pages = [ask(connection, path, "GET", admin) for path in ("/metrics", "/metrics/slis")]
        assert [page.code for page in pages] == [200, 200]
    lines = "".join(page.body for page in pages).splitlines()
    assert "scheduler_preemption_victims_count 1" in lines
    _assert_there_is_something_to_show({re.split("[{ ]", line)[0] for line in lines})


def _assert_there_is_something_to_show(exported: set[str]) -> None:
    """Fail if alerts or dashboard ask for a series that a scheduler with work does not have."""
    asked = {name for _, expression in expressions() for name, _ in selectors(expression)}
    # The first is Prometheus' own; the second is there only if something went wrong.
    assert asked - exported == {"up", "kubesched_queue_missed_wakeups_total"}


#: What the work above cannot be done without, as the API server names it.
NEEDED = {
    ("create", "pods/binding"),
    ("patch", "pods/status"),
    ("delete", "pods"),
    ("create", "events"),
    ("create", "leases"),
    ("update", "leases"),
    ("patch", "persistentvolumes"),
    ("patch", "persistentvolumeclaims"),
    ("create", "tokenreviews"),
    ("create", "subjectaccessreviews"),
    ("get", "configmaps"),
    *(
        (verb, resource)
        for verb in ("list", "watch")
        for resource in ("configmaps", *(kind.path.plural for kind in watched(FeatureGates.of())))
    ),
}


def _assert_never_refused(requests: list[Request]) -> None:
    refused = [each for each in requests if each.code in (401, 403)]
    assert not refused
    missing = NEEDED - {(each.verb, each.resource) for each in requests}
    assert not missing, "the work was not done, or not by whom we think"


class TestRights:
    def test_the_second_scheduler_works_with_those_of_its_manifest(
        self, plane: AuditedPlane, namespace: str, account: Path, tmp_path: Path
    ) -> None:
        objects = _base(plane)
        (config_map,) = (each for each in objects if each["kind"] == "ConfigMap")
        (deployment,) = (each for each in objects if each["kind"] == "Deployment")
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        config = yaml.safe_load(config_map["data"]["scheduler.yaml"])
        # In a pod it is the pod's own account.
        config["clientConnection"] = {"kubeconfig": str(account)}
        file = tmp_path / "scheduler.yaml"
        file.write_text(yaml.safe_dump(config))
        mounted = "/etc/kubesched/scheduler.yaml"
        (port,) = free_ports(1)
        flags = (
            *(each.replace(mounted, str(file)) for each in container["args"]),
            f"--authentication-kubeconfig={account}",
            f"--authorization-kubeconfig={account}",
            f"--bind-address={LOOPBACK}",
            f"--secure-port={port}",
        )

        with run_command(tmp_path / "log", *flags) as scheduler:
            scheduler.wait_until_scheduling()
            holder = _lease_holder(plane, config["leaderElection"]["resourceName"])
            assert holder
            _do_everything(plane, namespace, config["profiles"][0]["schedulerName"])
            _ask_as_somebody(plane, port)
            assert _lease_holder(plane, "kubesched") == holder

        _assert_never_refused(plane.requests_of(SERVICE_ACCOUNT))
        assert _lease_holder(plane, "kubesched") == "", "given up at the end"

    def test_the_static_pod_works_with_those_of_kube_scheduler(
        self, plane: AuditedPlane, namespace: str, tmp_path: Path
    ) -> None:
        (container,) = yaml.safe_load(STATIC_POD.read_text())["spec"]["containers"]
        command, *given = container["command"]
        conf = "/etc/kubernetes/scheduler.conf"
        (port,) = free_ports(1)
        flags = [each.replace(conf, str(plane.scheduler_kubeconfig)) for each in given]

        with run_command(tmp_path / "log", *flags, f"--secure-port={port}") as scheduler:
            scheduler.wait_until_scheduling()
            assert _lease_holder(plane, command) != ""
            _do_everything(plane, namespace, "default-scheduler")
            _ask_as_somebody(plane, port)

        _assert_never_refused(plane.requests_of(SCHEDULER))

    def test_a_refusal_would_be_in_the_audit_log(self, plane: AuditedPlane, account: Path) -> None:
        with pytest.raises(CommandError, match="forbidden"):
            plane.kubectl(f"--kubeconfig={account}", "get", "secrets", "--namespace=kube-system")

        refused = [each for each in plane.requests_of(SERVICE_ACCOUNT) if each.code == 403]
        assert [(each.verb, each.resource) for each in refused] == [("list", "secrets")]
