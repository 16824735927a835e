"""Starts the schedulers of applied manifests as a kubelet would, and says why they would not work.

    Deployment, ConfigMap, ServiceAccount ──> a folder for each mount, the pod's account
                                          ──> one process a replica ──> does a pod get its node?

There is no container, so paths of mounts are those of folders, and the working folder is empty as
that of the image is. The rights are the real ones: those of the account that the manifest names.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import yaml

from kubesched.bench.control_plane import ControlPlane, JsonObject, PlaneApiError, eventually
from kubesched.bench.processes import LOOPBACK, Process, free_ports, spawn

from .markdown import ROOT

DEPLOYMENTS: Final = "/apis/apps/v1/deployments"
LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
_COMMAND: Final = "kube-scheduler"

#: kube-scheduler in a pod: the folder of its account is given as the first argument.
_IN_POD: Final = """\
import functools, sys
from pathlib import Path
from kubesched.client import kubeconfig
account = Path(sys.argv.pop(1))
kubeconfig.in_cluster = functools.partial(kubeconfig.in_cluster, folder=account)
from kubesched.cli.kube_scheduler import main
sys.exit(main(sys.argv[1:]))
"""


class PretendKubelet:
    """Looks at each Deployment of a scheduler once, whenever it was changed."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self._plane = plane
        self._folder = folder
        self._seen: set[tuple[str, int]] = set()

    def complaints(self) -> list[str]:
        """Why schedulers of Deployments that are new or changed would not work."""
        found: list[str] = []
        for deployment in self._plane.request("GET", DEPLOYMENTS)["items"]:
            metadata = deployment["metadata"]
            version = (metadata["uid"], metadata["generation"])
            if version not in self._seen and _is_scheduler(deployment):
                self._seen.add(version)
                folder = self._folder / f"pods-{len(self._seen)}"
                found += _Pods(self._plane, deployment, folder).complaints()
        return found


def _is_scheduler(deployment: JsonObject) -> bool:
    containers = deployment["spec"]["template"]["spec"]["containers"]
    return any(each["name"] == _COMMAND for each in containers)


class _Pods:
    """The pods of one Deployment."""

    def __init__(self, plane: ControlPlane, deployment: JsonObject, folder: Path) -> None:
        self._plane = plane
        self._folder = folder
        self._namespace: str = deployment["metadata"]["namespace"]
        self._replicas: int = deployment["spec"]["replicas"]
        self._spec: JsonObject = deployment["spec"]["template"]["spec"]
        (self._container,) = self._spec["containers"]

    def complaints(self) -> list[str]:
        found: list[str] = []
        image: str = self._container["image"]
        registry, slash, _ = image.partition("/")
        if not slash or not {".", ":"} & set(registry):
            found.append(f"image {image!r} names no registry that nodes could pull it from")
        (self._folder / "root").mkdir(parents=True)
        try:
            self._arguments = self._mounted()
            config = self._completed_configuration()
        except (_BrokenError, PlaneApiError) as broken:
            return [*found, str(broken)]
        election = config["leaderElection"]
        if self._replicas > 1 and not election["leaderElect"]:
            found.append(f"{self._replicas} replicas without leader election all schedule at once")
        try:
            self._schedule(config, election["resourceName"])
        except _BrokenError as broken:
            found.append(str(broken))
        return found

    def _mounted(self) -> list[str]:
        """Make the folders of mounts; return the arguments with their paths."""
        arguments: list[str] = [*self._container.get("command", [_COMMAND])[1:]]
        arguments += self._container.get("args", [])
        volumes = {each["name"]: each for each in self._spec.get("volumes", [])}
        for number, mount in enumerate(self._container.get("volumeMounts", [])):
            inside, folder = mount["mountPath"], self._folder / f"mount-{number}"
            folder.mkdir()
            volume = volumes[mount["name"]]
            if "configMap" not in volume:
                raise _BrokenError(f"volume {mount['name']}: only ConfigMaps can be mounted here")
            name = volume["configMap"]["name"]
            path = f"/api/v1/namespaces/{self._namespace}/configmaps/{name}"
            for file, text in self._plane.request("GET", path)["data"].items():
                (folder / file).write_text(text.replace(inside, str(folder)))
            arguments = [each.replace(inside, str(folder)) for each in arguments]
        return arguments

    def _completed_configuration(self) -> JsonObject:
        """What is in force in the container; raises if its command line is refused."""
        written = self._folder / "config.yaml"
        done = subprocess.run(
            [*self._command(), *self._arguments, f"--write-config-to={written}"],
            cwd=self._folder / "root",
            env=self._environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        if done.returncode:
            raise _BrokenError(done.stderr.strip().splitlines()[-1])
        config: JsonObject = yaml.safe_load(written.read_text())
        return config

    def _schedule(self, config: JsonObject, lease: str) -> None:
        """Run all replicas; raise unless one leads, none ends, and pods get their nodes."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(_scheduler_in_charge(self._plane))
            replicas = [
                stack.enter_context(self._replica(number)) for number in range(self._replicas)
            ]
            names = [each["schedulerName"] for each in config["profiles"]]
            with _pods_of(self._plane, names) as bound:

                def done() -> bool:
                    for each in replicas:
                        if not each.is_running:
                            raise _BrokenError(f"the container ends: {_last_line(each)}")
                    return bound()

                try:
                    eventually(done, seconds=30)
                except AssertionError:
                    logs = "\n".join(each.describe() for each in replicas)
                    raise _BrokenError(
                        f"no pod of {names} gets a node within 30 s\n{logs}"
                    ) from None
            if config["leaderElection"]["leaderElect"]:
                holder = self._plane.request("GET", f"{LEASES}/{lease}")["spec"]["holderIdentity"]
                if not holder:
                    raise _BrokenError(f"no replica holds the lease {lease}")

    @contextlib.contextmanager
    def _replica(self, number: int) -> Iterator[Process]:
        (port,) = free_ports(1)
        where = (f"--bind-address={LOOPBACK}", f"--secure-port={port}")
        process = spawn(
            f"replica {number}",
            [*self._command(), *self._arguments, *where],
            log=self._folder / f"replica-{number}.log",
            cwd=self._folder / "root",
            environment=self._environment(),
        )
        try:
            yield process
        finally:
            process.end(grace=15)

    def _command(self) -> list[str]:
        return [sys.executable, "-c", _IN_POD, str(self._account())]

    def _account(self) -> Path:
        """The folder of the pod's account, as the kubelet projects it."""
        folder = self._folder / "account"
        if not folder.exists():
            account = self._spec.get("serviceAccountName", "default")
            path = f"/api/v1/namespaces/{self._namespace}/serviceaccounts/{account}/token"
            token = self._plane.request("POST", path, {"spec": {}})["status"]["token"]
            (cluster,) = json.loads(self._plane.admin_kubeconfig.read_text())["clusters"]
            authority = base64.b64decode(cluster["cluster"]["certificate-authority-data"])
            folder.mkdir()
            (folder / "token").write_text(token)
            (folder / "ca.crt").write_bytes(authority)
            (folder / "namespace").write_text(self._namespace)
        return folder

    def _environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "PYTHONPATH": str(ROOT / "src"),
            "KUBERNETES_SERVICE_HOST": LOOPBACK,
            "KUBERNETES_SERVICE_PORT": str(self._plane.port),
        }


class _BrokenError(Exception):
    """Why the pods do not work."""


def _last_line(process: Process) -> str:
    lines = process.log.read_text(errors="replace").splitlines()
    return lines[-1] if lines else "without a word"


@contextlib.contextmanager
def _scheduler_in_charge(plane: ControlPlane) -> Iterator[None]:
    """Have another scheduler hold the lease of kube-scheduler, as in any cluster."""
    lease = {
        "metadata": {"name": _COMMAND},
        "spec": {"holderIdentity": "in-charge", "leaseDurationSeconds": 3600},
    }
    plane.request("POST", LEASES, lease)
    try:
        yield
    finally:
        plane.request("DELETE", f"{LEASES}/{_COMMAND}")


@contextlib.contextmanager
def _pods_of(plane: ControlPlane, schedulers: list[str]) -> Iterator[Callable[[], bool]]:
    """Make a node, and a pod for each scheduler; give what tells whether all are bound."""
    pods = "/api/v1/namespaces/default/pods"
    node = {
        "metadata": {"name": "kubelet-pretends"},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    }
    plane.request("POST", "/api/v1/nodes", node)
    names = [f"kubelet-pretends-{number}" for number in range(len(schedulers))]
    for name, scheduler in zip(names, schedulers, strict=True):
        spec = {"schedulerName": scheduler, "containers": [{"name": "main", "image": "pause"}]}
        plane.request("POST", pods, {"metadata": {"name": name}, "spec": spec})

    def bound() -> bool:
        found = (plane.request("GET", f"{pods}/{name}") for name in names)
        return all(each["spec"].get("nodeName") for each in found)

    try:
        yield bound
    finally:
        for name in names:
            plane.request("DELETE", f"{pods}/{name}", {"gracePeriodSeconds": 0})
        plane.request("DELETE", "/api/v1/nodes/kubelet-pretends")
