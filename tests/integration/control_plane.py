"""A real control plane on loopback, for tests that must not take a fake's word.

    ControlPlane --starts--> etcd <-- kube-apiserver (RBAC, static tokens, its own certificate)
         |                                  ^
         |-- admin.kubeconfig ------------> | kubectl(), request(), create_many()
         '-- scheduler.kubeconfig --------> | run_kube_scheduler(), or the scheduler under test

Nothing else runs: no controller manager, no kubelet. So a bound pod stays Pending, no one
taints a node, no one answers a finalizer, and a namespace is emptied by `delete_namespace`.

Every process dies with the test process, and all files are in one temporary folder. Starting and
stopping is what `kubesched bench` does too; what only tests need is here.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import ssl
import subprocess
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kubesched.bench import control_plane
from kubesched.bench.control_plane import JsonObject, PlaneApiError
from kubesched.bench.processes import Process, StartError
from kubesched.client.resources import ResourcePath
from kubesched.config.features import FeatureGates
from kubesched.kinds import watched

__all__ = [
    "BINARIES",
    "MERGE_PATCH",
    "OLDER_SERVER",
    "STRATEGIC_MERGE_PATCH",
    "CommandError",
    "ControlPlane",
    "JsonObject",
    "PlaneApiError",
    "Process",
    "StartError",
]

BINARIES = ("etcd", "kube-apiserver", "kube-scheduler", "kubectl")
#: The oldest API server that kubesched is tested with; the newest is what all tests use.
OLDER_SERVER = "v1.36.4"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"

#: Cluster-wide objects that a scheduler reads, and that one test must not leave to the next.
_CLUSTER_OBJECTS = tuple(
    kind.path.collection()
    for kind in watched()
    if not kind.path.namespaced and kind.name != "Namespace"
)


class CommandError(RuntimeError):
    """kubectl failed; carries what it wrote to stderr."""


class ControlPlane(control_plane.ControlPlane):
    """etcd and kube-apiserver from a folder of binaries; `with` starts and stops them."""

    def __init__(self, assets: Path, *, feature_gates: str = "", runtime_config: str = "") -> None:
        super().__init__(assets, feature_gates=feature_gates, runtime_config=runtime_config)
        self._namespaced: list[tuple[str, str]] = []

    @property
    def admin_token(self) -> str:
        """The bearer token of a user who may do everything."""
        return self._admin_token

    @property
    def scheduler_token(self) -> str:
        """The bearer token of system:kube-scheduler."""
        return self._scheduler_token

    @property
    def tls(self) -> ssl.SSLContext | None:
        """How a client connects that trusts the API server; None until that is started."""
        return self._tls

    @contextlib.contextmanager
    def run_kube_scheduler(
        self, config: JsonObject | None = None, *extra_args: str
    ) -> Iterator[Process]:
        """Run the real kube-scheduler, to compare with; its log's end goes with a test's failure.

        `config` is a KubeSchedulerConfiguration, whose kind, kubeconfig and leader election (off)
        are filled in where it does not say. `extra_args` outrank it.
        """
        filled: JsonObject = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            **(config or {}),
        }
        filled["clientConnection"] = {
            "kubeconfig": str(self.scheduler_kubeconfig),
            **filled.get("clientConnection", {}),
        }
        filled["leaderElection"] = {"leaderElect": False, **filled.get("leaderElection", {})}
        name = f"kube-scheduler-{secrets.token_hex(3)}"
        file = self.folder / f"{name}.json"
        file.write_text(json.dumps(filled))
        process = self._spawn(
            name, f"--config={file}", "--secure-port=0", *extra_args, binary="kube-scheduler"
        )
        try:
            yield process
        except BaseException as error:
            error.add_note(process.describe())
            raise
        finally:
            process.end(grace=10)
            self._processes.pop(name, None)

    # ------------------------------------------------------------------ objects

    def kubectl(self, *args: str, input: str | None = None) -> str:  # noqa: A002  as in subprocess
        """Run kubectl as admin and return what it printed."""
        result = subprocess.run(
            [self.assets / "kubectl", f"--kubeconfig={self.admin_kubeconfig}", *args],
            input=input,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "HOME": str(self.folder)},  # where it caches discovery
        )
        if result.returncode:
            raise CommandError(f"kubectl {' '.join(args)}: {result.stderr.strip()}")
        return result.stdout

    def create_many(
        self, path: str, objects: Iterable[JsonObject], concurrency: int = 16
    ) -> list[JsonObject]:
        """Create many objects over a few connections; return them in the order they came."""
        with ThreadPoolExecutor(max_workers=concurrency) as pool:
            return list(pool.map(lambda each: self.request("POST", path, each), objects))

    def serves(self, resource: ResourcePath) -> bool:
        """Whether the API server has a resource in that version."""
        try:
            found = self.request("GET", resource.group_path)["resources"]
        except PlaneApiError as error:
            if error.status != 404:
                raise
            return False
        return resource.plural in {each["name"] for each in found}

    def absent_kinds(self) -> list[str]:
        """Return what a scheduler with default gates watches and this API server does not have."""
        kinds = watched(FeatureGates.of())
        return sorted(str(kind.path) for kind in kinds if not self.serves(kind.path))

    def purge(self, path: str) -> None:
        """Delete a whole collection at once, finalizers or not: nobody here would answer them."""
        options = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
        self.request("DELETE", path, options)
        for left in self.request("GET", path)["items"]:
            if left["metadata"].get("finalizers"):
                patch = {"metadata": {"finalizers": None}}
                with contextlib.suppress(PlaneApiError):  # it may be gone by now
                    name = left["metadata"]["name"]
                    self.request("PATCH", f"{path}/{name}", patch, content_type=MERGE_PATCH)

    def purge_object(self, path: str) -> None:
        """Delete one object at once, finalizers or not."""
        self.request("DELETE", path)
        with contextlib.suppress(PlaneApiError):  # it is gone unless there are finalizers
            self.request(
                "PATCH", path, {"metadata": {"finalizers": None}}, content_type=MERGE_PATCH
            )

    def purge_cluster(self) -> None:
        """Delete all pods of all namespaces, and the cluster-wide objects a scheduler reads."""
        pods = self.request("GET", "/api/v1/pods")["items"]
        for namespace in sorted({pod["metadata"]["namespace"] for pod in pods}):
            self.purge(f"/api/v1/namespaces/{namespace}/pods")
        for path in _CLUSTER_OBJECTS:
            self.purge(path)

    def create_namespace(self, name: str) -> None:
        """Create a namespace."""
        self.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})

    def delete_namespace(self, name: str) -> None:
        """Delete a namespace and all in it, as the namespace controller would."""
        path = f"/api/v1/namespaces/{name}"
        namespace = self.request("DELETE", path)  # from here on nothing can be created in it
        for group_version, resource in self._namespaced_resources():
            self.purge(f"{group_version}/namespaces/{name}/{resource}")
        namespace["spec"]["finalizers"] = []
        self.request("PUT", f"{path}/finalize", namespace)

    def _namespaced_resources(self) -> list[tuple[str, str]]:
        """Return (API path, plural) of what a namespace can hold and what can be deleted at once.

        All versions are asked, not the preferred ones only: an alpha resource may live in a group
        whose preferred version does not know it.
        """
        if not self._namespaced:
            groups = self.request("GET", "/apis")["groups"]
            versions = [v["groupVersion"] for group in groups for v in group["versions"]]
            found: dict[tuple[str, str], str] = {}
            for prefix in ("/api/v1", *(f"/apis/{version}" for version in versions)):
                for resource in self.request("GET", prefix)["resources"]:
                    if resource["namespaced"] and "deletecollection" in resource["verbs"]:
                        group = prefix.rpartition("/")[0]
                        found.setdefault((group, resource["name"]), prefix)
            self._namespaced = [(prefix, plural) for (_, plural), prefix in found.items()]
        return self._namespaced
