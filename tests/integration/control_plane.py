"""A real control plane on loopback, for tests that must not take a fake's word.

    ControlPlane --starts--> etcd <-- kube-apiserver (RBAC, static tokens, its own certificate)
         |                                  ^
         |-- admin.kubeconfig ------------> | kubectl(), request(), create_many()
         '-- scheduler.kubeconfig --------> | run_kube_scheduler(), or the scheduler under test

Nothing else runs: no controller manager, no kubelet. So a bound pod stays Pending, no one
taints a node, no one answers a finalizer, and a namespace is emptied by `delete_namespace`.

Every process dies with the test process, and all files are in one temporary folder.
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import http.client
import json
import os
import secrets
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

JsonObject = dict[str, Any]
T = TypeVar("T")

BINARIES = ("etcd", "kube-apiserver", "kube-scheduler", "kubectl")
JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"

_LOOPBACK = "127.0.0.1"
_LOG_TAIL_LINES = 20
_START_SECONDS = 90.0
#: The server closes a connection that was idle for 90 s; one that may be dying is not used.
_IDLE_SECONDS = 30.0

#: Admission plugins that wait for a controller which does not run here: service accounts are never
#: made, node conditions never reported, and protection finalizers never taken off again.
_DISABLED_ADMISSION = "ServiceAccount,TaintNodesByCondition,StorageObjectInUseProtection"

#: What system:kube-scheduler must be allowed before the plane is ready, one per bootstrap role that
#: is bound to it. /readyz says that the roles are stored; the authorizer sees them a little later.
_SCHEDULER_MAY: tuple[dict[str, str], ...] = (
    {"verb": "list", "resource": "nodes"},
    {"verb": "create", "resource": "pods", "subresource": "binding"},
    {"verb": "create", "group": "events.k8s.io", "resource": "events"},
    {"verb": "update", "resource": "persistentvolumes"},
    {
        "verb": "get",
        "resource": "configmaps",
        "namespace": "kube-system",
        "name": "extension-apiserver-authentication",
    },
)

#: Cluster-wide objects that a scheduler reads, and that one test must not leave to the next.
_CLUSTER_OBJECTS = (
    "/api/v1/nodes",
    "/api/v1/persistentvolumes",
    "/apis/resource.k8s.io/v1/deviceclasses",
    "/apis/resource.k8s.io/v1/resourceslices",
    "/apis/storage.k8s.io/v1/csidrivers",
    "/apis/storage.k8s.io/v1/csinodes",
    "/apis/storage.k8s.io/v1/storageclasses",
    "/apis/storage.k8s.io/v1/volumeattachments",
)

#: Run before each binary: asks Linux to kill the process when its parent is gone, even if the
#: parent was killed. Not a preexec_fn, which is unsafe and warned about once there are threads.
_LAUNCHER = """
import ctypes, os, signal, sys
if sys.platform == "linux":
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != int(sys.argv[1]):
        sys.exit("the parent was gone before the start")
os.execv(sys.argv[2], sys.argv[2:])
"""


class StartError(RuntimeError):
    """A process of the control plane did not start; carries the end of its log."""


class CommandError(RuntimeError):
    """kubectl failed; carries what it wrote to stderr."""


class ApiError(RuntimeError):
    """The API server answered with an error status."""

    def __init__(self, request: str, status: int, answer: JsonObject) -> None:
        super().__init__(f"{request}: {status} {answer.get('message', answer)}")
        self.status = status
        self.answer = answer


@dataclass(frozen=True)
class Process:
    """A running binary and where it logs."""

    name: str
    popen: subprocess.Popen[bytes]
    log: Path

    def describe(self) -> str:
        """Say whether it runs and what it logged last."""
        status = self.popen.poll()
        state = "is running" if status is None else f"ended with status {status}"
        lines = self.log.read_text(errors="replace").splitlines()[-_LOG_TAIL_LINES:]
        return "\n".join([f"{self.name} {state}; the end of its log:", *lines])

    def end(self, *, grace: float = 0) -> None:
        """End it by its process id: ask and wait `grace` seconds if given, then kill."""
        if grace and self.popen.poll() is None:
            self.popen.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.popen.wait(grace)
        self.popen.kill()
        self.popen.wait()


def eventually(probe: Callable[[], T | None], *, seconds: float = 30, every: float = 0.05) -> T:
    """Return the probe's first true answer; fail with its last one when the time is over."""
    deadline = time.monotonic() + seconds
    while not (answer := probe()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s; the last answer was {answer!r}")
        time.sleep(every)
    return answer


class ControlPlane:
    """etcd and kube-apiserver from a folder of binaries; `with` starts and stops them."""

    def __init__(self, assets: Path, *, feature_gates: str = "", runtime_config: str = "") -> None:
        self.assets = assets
        self.feature_gates = feature_gates
        self.runtime_config = runtime_config
        self.folder = Path(tempfile.mkdtemp(prefix="kubesched-envtest-"))
        self.etcd_port, self._peer_port, self.port = _free_ports(3)
        self._admin_token = secrets.token_hex(16)
        self._scheduler_token = secrets.token_hex(16)
        #: Name -> what runs under it; filled by `_spawn`, emptied by `stop`.
        self._processes: dict[str, Process] = {}
        #: Connections that no request uses now, each with the time of its last use.
        self._idle: deque[tuple[http.client.HTTPSConnection, float]] = deque()
        self._tls: ssl.SSLContext | None = None
        self._namespaced: list[tuple[str, str]] = []
        # Linux takes the thread that started a process for its parent, so that a server started
        # from a test's short-lived thread would die with it. This one lives until `stop`.
        self._starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="envtest")

    @property
    def url(self) -> str:
        """The API server's address; it stays the same over restarts."""
        return f"https://{_LOOPBACK}:{self.port}"

    @property
    def admin_kubeconfig(self) -> Path:
        """The kubeconfig of a member of system:masters."""
        return self.folder / "admin.kubeconfig"

    @property
    def scheduler_kubeconfig(self) -> Path:
        """The kubeconfig of the user system:kube-scheduler."""
        return self.folder / "scheduler.kubeconfig"

    # ------------------------------------------------------------------ processes

    def start(self) -> Self:
        """Start everything and return once a scheduler could work; on failure leave nothing."""
        atexit.register(self.stop)
        (self.folder / "tokens.csv").write_text(
            f'{self._admin_token},admin,admin,"system:masters"\n'
            f"{self._scheduler_token},system:kube-scheduler,scheduler\n"
        )
        try:
            self._spawn("etcd", *self._etcd_arguments())
            self.start_apiserver()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Kill what still runs and delete all files; there is nothing worth a graceful end."""
        atexit.unregister(self.stop)
        self._close_idle()
        while self._processes:
            self._processes.popitem()[1].end()
        self._starter.shutdown()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def kill_apiserver(self) -> None:
        """Kill the API server as a crash would; etcd keeps running and keeps the objects."""
        self._processes.pop("kube-apiserver").end()
        self._close_idle()

    def start_apiserver(self) -> None:
        """Start the API server, the first time or again, on the same port, data and certificate."""
        server = self._spawn("kube-apiserver", *self._apiserver_arguments())

        def ready() -> bool:
            if server.popen.poll() is not None:
                raise StartError(server.describe())
            with contextlib.suppress(OSError, http.client.HTTPException, ApiError):
                return self._is_ready()
            return False

        try:
            eventually(ready, seconds=_START_SECONDS)
        except AssertionError as error:
            raise StartError(f"not ready in time: {server.describe()}") from error

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

    def _etcd_arguments(self) -> list[str]:
        client, peer = (f"http://{_LOOPBACK}:{p}" for p in (self.etcd_port, self._peer_port))
        return [
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",  # the data need not outlive the machine
            "--log-level=warn",
            f"--quota-backend-bytes={8 << 30}",
        ]

    def _apiserver_arguments(self) -> list[str]:
        certificates = self.folder / "certificates"
        # The server makes its certificate and key at the first start. Any RSA key will do to sign
        # service account tokens, so that one does, and no other tool has to make one.
        key = certificates / "apiserver.key"
        arguments = [
            f"--etcd-servers=http://{_LOOPBACK}:{self.etcd_port}",
            f"--cert-dir={certificates}",
            f"--secure-port={self.port}",
            f"--bind-address={_LOOPBACK}",
            f"--advertise-address={_LOOPBACK}",
            f"--service-account-issuer={self.url}",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--authorization-mode=RBAC",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            f"--disable-admission-plugins={_DISABLED_ADMISSION}",
            "--allow-privileged=true",
            "--endpoint-reconciler-type=none",
            "--profiling=false",
            "--delete-collection-workers=16",  # one by default: half a minute for 10,000 pods
            # No limits: a test measures the scheduler, not the server's fairness.
            "--enable-priority-and-fairness=false",
            "--max-requests-inflight=0",
            "--max-mutating-requests-inflight=0",
        ]
        if self.feature_gates:
            arguments.append(f"--feature-gates={self.feature_gates}")
        if self.runtime_config:
            arguments.append(f"--runtime-config={self.runtime_config}")
        return arguments

    def _spawn(self, name: str, *arguments: str, binary: str | None = None) -> Process:
        log = self.folder / f"{name}.log"
        launch = [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(os.getpid())]
        command = [*launch, str(self.assets / (binary or name)), *arguments]

        def start() -> subprocess.Popen[bytes]:
            with log.open("ab") as sink:
                return subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, cwd=self.folder
                )

        process = Process(name, self._starter.submit(start).result(), log)
        self._processes[name] = process
        return process

    def _is_ready(self) -> bool:
        """Answer whether a scheduler could work; write the kubeconfigs when the server listens."""
        if self._tls is None:
            with socket.create_connection((_LOOPBACK, self.port), timeout=2):
                self._trust((self.folder / "certificates" / "apiserver.crt").read_text())
        status, _ = self._exchange("GET", "/readyz")
        if status != 200:
            return False
        self.request("GET", "/api/v1/namespaces/default")  # made by the server after it is ready
        return all(map(self._scheduler_may, _SCHEDULER_MAY))

    def _scheduler_may(self, attributes: dict[str, str]) -> bool:
        review = {"spec": {"user": "system:kube-scheduler", "resourceAttributes": attributes}}
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        return bool(self.request("POST", path, review)["status"]["allowed"])

    def _trust(self, certificates: str) -> None:
        self._tls = ssl.create_default_context(cadata=certificates)
        cluster = {
            "server": self.url,
            "certificate-authority-data": base64.b64encode(certificates.encode()).decode(),
        }
        for path, user, token in (
            (self.admin_kubeconfig, "admin", self._admin_token),
            (self.scheduler_kubeconfig, "system:kube-scheduler", self._scheduler_token),
        ):
            config = {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "envtest", "cluster": cluster}],
                "users": [{"name": user, "user": {"token": token}}],
                "contexts": [{"name": "envtest", "context": {"cluster": "envtest", "user": user}}],
                "current-context": "envtest",
            }
            path.write_text(json.dumps(config, indent=2))  # JSON is YAML

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

    def request(
        self, method: str, path: str, body: object = None, *, content_type: str = JSON
    ) -> JsonObject:
        """Ask the API server as admin; raise `ApiError` for an answer of 400 and above."""
        payload = None if body is None else json.dumps(body).encode()
        status, raw = self._exchange(method, path, payload, content_type=content_type)
        try:
            answer: JsonObject = json.loads(raw)
        except ValueError:
            answer = {"message": raw.decode(errors="replace")}
        if status >= 400:
            raise ApiError(f"{method} {path}", status, answer)
        return answer

    def create_many(
        self, path: str, objects: Iterable[JsonObject], concurrency: int = 16
    ) -> list[JsonObject]:
        """Create many objects over a few connections; return them in the order they came."""
        with ThreadPoolExecutor(max_workers=concurrency) as pool:
            return list(pool.map(lambda each: self.request("POST", path, each), objects))

    def purge(self, path: str) -> None:
        """Delete a whole collection at once, finalizers or not: nobody here would answer them."""
        options = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
        self.request("DELETE", path, options)
        for left in self.request("GET", path)["items"]:
            if left["metadata"].get("finalizers"):
                patch = {"metadata": {"finalizers": None}}
                with contextlib.suppress(ApiError):  # it may be gone by now
                    name = left["metadata"]["name"]
                    self.request("PATCH", f"{path}/{name}", patch, content_type=MERGE_PATCH)

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

    def _exchange(
        self, method: str, path: str, payload: bytes | None = None, *, content_type: str = JSON
    ) -> tuple[int, bytes]:
        headers = {
            "Authorization": f"Bearer {self._admin_token}",
            "Accept": JSON,
            "Content-Type": content_type,
        }
        connection = self._connection()
        try:
            connection.request(method, path, body=payload, headers=headers)
            with connection.getresponse() as response:
                result = response.status, response.read()
        except BaseException:
            connection.close()
            raise
        self._idle.append((connection, time.monotonic()))
        return result

    def _connection(self) -> http.client.HTTPSConnection:
        """Return a connection for one request alone, kept alive from an earlier one if possible."""
        while self._idle:
            with contextlib.suppress(IndexError):  # another thread may take the last one
                connection, last_used = self._idle.pop()
                if time.monotonic() - last_used < _IDLE_SECONDS:
                    return connection
                connection.close()
        return http.client.HTTPSConnection(_LOOPBACK, self.port, context=self._tls, timeout=60)

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop()[0].close()


def _free_ports(count: int) -> list[int]:
    """Return ports that are free now; held together, so that none is found twice."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((_LOOPBACK, 0))
        return [int(each.getsockname()[1]) for each in sockets]
