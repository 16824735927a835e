"""Stock programs against the embedded API server: kubectl, and kube-scheduler itself.

What they read and write is not ours, so that they notice what our own tests would not.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from kubesched import KUBERNETES_VERSION
from kubesched.embedded import (
    RUN_SECONDS,
    EmbeddedCluster,
    KubeletOptions,
    NodeTemplate,
    SimulatedDriver,
)
from tests.support.waiting import until

JsonObject = dict[str, Any]

OPTIONS = KubeletOptions(start_delay_s=0.05, job_run_s=0.2, grace_cap_s=0.05, heartbeat_s=1)
DRIVER = SimulatedDriver("gpu.example.com", {}, [{"name": "gpu-0"}])
POD = """
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  containers: [{name: c, image: "registry.example/app:1", resources: {requests: {cpu: 100m}}}]
"""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  replicas: 2
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec:
      containers:
      - {name: one, image: "registry.example/one:1"}
      - {name: two, image: "registry.example/two:1"}
"""
DEVICES = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: "device.driver == 'gpu.example.com'"}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}}
---
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: pair}
spec: {schedulingPolicy: {gang: {minCount: 2}}}
---
apiVersion: v1
kind: Pod
metadata: {name: claimer}
spec:
  resourceClaims: [{name: gpu, resourceClaimTemplateName: one}]
  containers: [{name: c, image: "registry.example/app:1", resources: {claims: [{name: gpu}]}}]
"""


class Programs:
    """Runs kubectl against a cluster that lives in another thread."""

    def __init__(self, assets: Path, folder: Path, cluster: EmbeddedCluster) -> None:
        self.assets = assets
        self.folder = folder
        self.kubeconfig = folder / "kubeconfig"
        cluster.write_kubeconfig(self.kubeconfig)

    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "HOME": str(self.folder),  # where kubectl caches discovery
            "PATH": f"{self.folder}{os.pathsep}{os.environ['PATH']}",
            "KUBECONFIG": str(self.kubeconfig),
        }

    def command(self, *args: str) -> list[str]:
        return [str(self.assets / "kubectl"), *args]

    def kubectl(self, *args: str, stdin: str | None = None) -> str:
        result = subprocess.run(
            self.command(*args),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env=self.environment(),
        )
        assert result.returncode == 0, result.stderr
        return result.stdout

    def fails(self, *args: str, stdin: str | None = None) -> str:
        with pytest.raises(AssertionError) as caught:
            self.kubectl(*args, stdin=stdin)
        return str(caught.value).partition("\n")[0]

    def get(self, *args: str) -> JsonObject:
        found: JsonObject = json.loads(self.kubectl("get", "-o", "json", *args))
        return found


@pytest.fixture
def programs(assets: Path, tmp_path: Path) -> Iterator[Programs]:
    """A cluster of three nodes."""
    ready: Future[EmbeddedCluster] = Future()
    loop_of: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def run() -> None:
        stop = asyncio.Event()
        async with EmbeddedCluster(
            kubelet=OPTIONS, drivers=[DRIVER], run_workloads=True
        ) as cluster:
            cluster.add_nodes(3, NodeTemplate(cpu="4", zones=("a", "b")))
            loop_of.set_result((asyncio.get_running_loop(), stop))
            ready.set_result(cluster)
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    try:
        yield Programs(assets, tmp_path, ready.result(20))
    finally:
        loop, stop = loop_of.result(20)
        loop.call_soon_threadsafe(stop.set)
        thread.join()


def test_what_a_person_sees_first(programs: Programs) -> None:
    nodes = programs.kubectl("get", "nodes").splitlines()
    wide = programs.kubectl("get", "nodes", "-o", "wide").splitlines()

    assert nodes[0].split() == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert [line.split()[:3] for line in nodes[1:]] == [
        [f"node-000{number}", "Ready", "<none>"] for number in range(3)
    ]
    assert "INTERNAL-IP" in wide[0]
    assert f"Server Version: {KUBERNETES_VERSION}" in programs.kubectl("version")
    assert "control plane is running at http://127.0.0.1" in programs.kubectl("cluster-info")
    resources = programs.kubectl("api-resources", "--verbs=list", "-o", "name").split()
    assert {"pods", "nodes", "deployments.apps", "resourceclaims.resource.k8s.io"} <= set(resources)


def test_a_plugin_of_kubectl(programs: Programs) -> None:
    for name in ("kubectl_kubesched", "kubectl_complete_kubesched"):
        # As pip installs them: kubectl looks for kubectl-NAME, and for kubectl_complete-NAME.
        script = programs.folder / name[::-1].replace("_", "-", 1)[::-1]
        source = f"from kubesched.cli import entry; raise SystemExit(entry.{name}())"
        script.write_text(f"#!/bin/sh\nexec '{sys.executable}' -c '{source}' \"$@\"\n")
        script.chmod(0o755)
    programs.kubectl("apply", "-f", "-", stdin=POD.replace("100m", "100"))

    said = programs.kubectl("kubesched", "explain", "pod", "default/web")
    completed = programs.kubectl("__complete", "kubesched", "explain", "--sn").splitlines()

    assert "Insufficient cpu" in said
    assert completed[0] == "--snapshot"


def test_apply_changes_what_changed(programs: Programs) -> None:
    def apply(text: str, *options: str) -> str:
        return programs.kubectl("apply", "-f", "-", *options, stdin=text).strip()

    assert apply(DEPLOYMENT) == "deployment.apps/shop created"
    assert apply(DEPLOYMENT) == "deployment.apps/shop unchanged"
    changed = DEPLOYMENT.replace("replicas: 2", "replicas: 3").replace("one:1", "one:2")
    assert apply(changed) == "deployment.apps/shop configured"
    fewer = "\n".join(line for line in changed.splitlines() if "name: two" not in line)
    assert apply(fewer) == "deployment.apps/shop configured"

    spec = programs.get("deployment", "shop")["spec"]
    images = [each["image"] for each in spec["template"]["spec"]["containers"]]
    assert (spec["replicas"], images) == (3, ["registry.example/one:2"])


def test_apply_on_the_server(programs: Programs) -> None:
    def apply(text: str, *options: str) -> str:
        return programs.kubectl("apply", "--server-side", "-f", "-", *options, stdin=text).strip()

    assert apply(DEPLOYMENT) == "deployment.apps/shop serverside-applied"
    fewer = "\n".join(line for line in DEPLOYMENT.splitlines() if "name: two" not in line)
    assert apply(fewer) == "deployment.apps/shop serverside-applied"
    message = programs.fails(
        "apply",
        "--server-side",
        "--field-manager=other",
        "-f",
        "-",
        stdin=DEPLOYMENT.replace("one:1", "one:9"),
    )
    apply(DEPLOYMENT.replace("one:1", "one:9"), "--field-manager=other", "--force-conflicts")

    assert 'conflict with "kubectl"' in message
    template = programs.get("deployment", "shop")["spec"]["template"]["spec"]
    assert [each["image"] for each in template["containers"]] == [
        "registry.example/one:9",
        "registry.example/two:1",
    ]


def test_create_sends_protobuf(programs: Programs) -> None:
    created = [
        programs.kubectl("create", *words.split()).strip()
        for words in (
            "namespace team",
            "configmap settings --from-literal=key=value",
            "secret generic password --from-literal=key=value",
            "serviceaccount robot",
            "deployment api --image=registry.example/api:1 --replicas=3 --port=8080",
            "job once --image=registry.example/job:1 -- sleep 1",
            "service clusterip api --tcp=80:8080",
            "priorityclass high --value=1000 --preemption-policy=Never",
            "poddisruptionbudget api --selector=app=api --min-available=50%",
        )
    ]

    assert created[0] == "namespace/team created"
    assert all(line.endswith(" created") for line in created)
    spec = programs.get("deployment", "api")["spec"]
    assert (spec["replicas"], spec["selector"]) == (3, {"matchLabels": {"app": "api"}})
    (container,) = spec["template"]["spec"]["containers"]
    assert container["ports"] == [{"containerPort": 8080, "protocol": "TCP"}]
    assert programs.get("job", "once")["spec"]["template"]["spec"]["containers"][0]["command"] == [
        "sleep",
        "1",
    ]
    assert programs.get("secret", "password")["data"] == {"key": "dmFsdWU="}
    assert programs.get("poddisruptionbudget", "api")["spec"]["minAvailable"] == "50%"
    service = programs.get("service", "api")["spec"]
    assert (service["ports"][0]["targetPort"], service["type"]) == (8080, "ClusterIP")
    assert programs.get("priorityclass", "high")["preemptionPolicy"] == "Never"


def test_small_changes(programs: Programs) -> None:
    programs.kubectl("create", "-f", "-", stdin=POD)
    programs.kubectl("label", "pod", "web", "tier=front")
    programs.kubectl("annotate", "pod", "web", "note=hello")
    programs.kubectl("cordon", "node-0000")
    programs.kubectl("taint", "node", "node-0001", "key=value:NoSchedule")
    programs.kubectl("patch", "pod", "web", "-p", '{"metadata": {"labels": {"app": null}}}')

    meta = programs.get("pod", "web")["metadata"]
    assert meta["labels"] == {"tier": "front"}
    assert meta["annotations"]["note"] == "hello"
    assert programs.get("node", "node-0000")["spec"]["unschedulable"] is True
    assert programs.get("node", "node-0001")["spec"]["taints"] == [
        {"key": "key", "value": "value", "effect": "NoSchedule"}
    ]
    listed = programs.kubectl("get", "pods", "-l", "tier=front", "-o", "name")
    assert listed.strip() == "pod/web"


def test_describe_tells_all(programs: Programs) -> None:
    programs.kubectl("create", "-f", "-", stdin=POD)

    pod = programs.kubectl("describe", "pod", "web")
    node = programs.kubectl("describe", "node", "node-0000")

    assert "Node:         <none>" in pod
    assert "cpu:        100m" in pod
    assert "Events:           <none>" in pod
    assert "topology.kubernetes.io/zone=a" in node
    assert "Non-terminated Pods:" in node


def test_delete_waits_until_it_is_gone(programs: Programs) -> None:
    programs.kubectl(
        "create", "-f", "-", stdin=POD.replace("spec:", "spec:\n  nodeName: node-0000")
    )
    programs.kubectl("wait", "pod/web", "--for=condition=Ready", "--timeout=20s")

    deleted = programs.kubectl("delete", "pod", "web", "--timeout=20s")

    assert 'pod "web" deleted' in deleted
    assert "not found" in programs.fails("get", "pod", "web")


def test_a_namespace_goes_with_what_is_in_it(programs: Programs) -> None:
    programs.kubectl("create", "namespace", "team")
    pod = POD.replace("spec:", "spec:\n  nodeName: node-0000")
    programs.kubectl("create", "-n", "team", "-f", "-", stdin=pod)

    programs.kubectl("delete", "namespace", "team", "--timeout=20s")

    assert "not found" in programs.fails("get", "namespace", "team")
    assert programs.kubectl("get", "pods", "-A", "-o", "name") == ""


def test_a_job_completes(programs: Programs) -> None:
    programs.kubectl("create", "job", "once", "--image=registry.example/job:1")
    uid = programs.get("job", "once")["metadata"]["uid"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "once", "uid": uid}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "once-1",
            "ownerReferences": [owner],
            "annotations": {RUN_SECONDS: "0.1"},
        },
        "spec": {
            "nodeName": "node-0000",
            "restartPolicy": "Never",
            "containers": [{"name": "c", "image": "registry.example/job:1"}],
        },
    }
    programs.kubectl("create", "-f", "-", stdin=json.dumps(pod))

    programs.kubectl("wait", "job/once", "--for=condition=complete", "--timeout=20s")

    row = programs.kubectl("get", "job", "once", "--no-headers").split()
    assert row[:3] == ["once", "Complete", "1/1"]
    assert programs.kubectl("get", "pod", "once-1", "--no-headers").split()[2] == "Completed"


def test_get_watches(programs: Programs) -> None:
    programs.kubectl("create", "-f", "-", stdin=POD.replace("name: web", "name: before"))
    watching = subprocess.Popen(
        programs.command("get", "pods", "--watch", "-o", "wide"),
        stdout=subprocess.PIPE,
        text=True,
        env=programs.environment(),
    )
    try:
        assert watching.stdout is not None
        # What comes after the list is not missed.
        header, first = (watching.stdout.readline().split() for _ in range(2))
        pod = POD.replace("spec:", "spec:\n  nodeName: node-0001")
        programs.kubectl("create", "-f", "-", stdin=pod)
        states = []
        while "Running" not in states:
            states.append(watching.stdout.readline().split()[2])
    finally:
        watching.kill()
        watching.communicate()

    assert header[:4] == ["NAME", "READY", "STATUS", "RESTARTS"]
    assert first[:3] == ["before", "0/1", "Pending"]
    assert states == ["Pending", "Running"]


def test_what_is_wrong_is_said(programs: Programs) -> None:
    assert 'pods "nobody" not found' in programs.fails("get", "pod", "nobody")
    bad = POD.replace("100m", "much")
    assert "quantities must match" in programs.fails("create", "-f", "-", stdin=bad)
    nameless = POD.replace("name: c", "name: C_")
    assert "spec.containers[0].name: Invalid value" in programs.fails(
        "create", "-f", "-", stdin=nameless
    )


@contextlib.contextmanager
def kube_scheduler(programs: Programs) -> Iterator[None]:
    """Run kube-scheduler, which speaks protobuf, elects a leader and streams its lists."""
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(programs.kubeconfig)},
    }
    file = programs.folder / "scheduler.json"
    file.write_text(json.dumps(config))
    log = programs.folder / "scheduler.log"
    with log.open("w") as sink:
        process = subprocess.Popen(
            [programs.assets / "kube-scheduler", f"--config={file}", "--secure-port=0"],
            stdout=sink,
            stderr=sink,
        )
    try:
        yield
    except BaseException as error:
        error.add_note(log.read_text()[-4000:])
        raise
    finally:
        process.kill()
        process.wait()


def test_kube_scheduler_schedules(programs: Programs) -> None:
    huge = POD.replace("name: web", "name: huge").replace("100m", '"100"')
    programs.kubectl("create", "-f", "-", stdin=f"{POD}---{huge}")

    with kube_scheduler(programs):
        programs.kubectl("wait", "pod/web", "--for=condition=Ready", "--timeout=30s")
        until(lambda: "FailedScheduling" in programs.kubectl("get", "events", "--no-headers"))

        web, huge_pod = programs.get("pod", "web"), programs.get("pod", "huge")
        events = programs.kubectl("get", "events", "--no-headers")
        lease = programs.get("lease", "-n", "kube-system", "kube-scheduler")

    assert web["spec"]["nodeName"].startswith("node-")
    assert web["metadata"]["labels"]["topology.kubernetes.io/zone"] in {"a", "b"}
    (condition,) = huge_pod["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("PodScheduled", "Unschedulable")
    assert "0/3 nodes are available: 3 Insufficient cpu." in condition["message"]
    assert f"Successfully assigned default/web to {web['spec']['nodeName']}" in events
    assert lease["spec"]["holderIdentity"]


def test_devices_and_groups(programs: Programs) -> None:
    programs.kubectl("apply", "-f", "-", stdin=DEVICES)

    slices = programs.kubectl("get", "resourceslices").splitlines()
    assert slices[0].split() == ["NAME", "NODE", "DRIVER", "POOL", "AGE"]
    assert slices[1].split()[1:4] == ["node-0000", "gpu.example.com", "node-0000"]
    group = programs.kubectl("get", "podgroups").splitlines()
    assert group[0].split() == ["NAME", "POLICY", "WORKLOAD", "STATUS", "AGE"]
    assert group[1].split()[:4] == ["pair", "Gang", "<none>", "Pending"]
    until(lambda: "pending" in programs.kubectl("get", "resourceclaims"))
    assert "Device Class Name:  gpu" in programs.kubectl("describe", "resourceclaims")
    assert "Min Count:  2" in programs.kubectl("describe", "podgroup", "pair")
    assert "gpu.example.com" in programs.kubectl("describe", "resourceslices")

    programs.kubectl("delete", "pod", "claimer", "--wait=false")
    until(lambda: not programs.get("resourceclaims")["items"])
    programs.kubectl("delete", "podgroup", "pair", "--timeout=20s")


def test_workloads_make_pods_and_are_scaled_and_rolled_out(programs: Programs) -> None:
    programs.kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    until(lambda: len(programs.get("pods")["items"]) == 2)

    scaled = programs.kubectl("scale", "deployment/shop", "--replicas=1").strip()
    assert scaled == "deployment.apps/shop scaled"
    until(lambda: len(programs.get("pods")["items"]) == 1)
    for pod in programs.get("pods")["items"]:
        bind(programs, pod["metadata"]["name"])
    assert "successfully rolled out" in programs.kubectl("rollout", "status", "deployment/shop")

    programs.kubectl("set", "image", "deployment/shop", "one=registry.example/one:2")
    history = programs.kubectl("rollout", "history", "deployment/shop").split()
    assert history[-4:] == ["1", "<none>", "2", "<none>"]
    programs.kubectl("rollout", "undo", "deployment/shop")
    spec = programs.get("deployment", "shop")["spec"]["template"]["spec"]
    assert spec["containers"][0]["image"] == "registry.example/one:1"

    programs.kubectl("delete", "deployment", "shop")
    until(lambda: not programs.get("pods")["items"])
    assert programs.kubectl("auth", "can-i", "create", "pods").strip() == "yes"


def bind(programs: Programs, name: str) -> None:
    """Bind a pod, as a scheduler does."""
    target = {"apiVersion": "v1", "kind": "Node", "name": "node-0000"}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
    path = f"/api/v1/namespaces/default/pods/{name}/binding"
    programs.kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(body))
