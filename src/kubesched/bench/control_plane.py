"""A real control plane on loopback: etcd and kube-apiserver, and nothing else.

    ControlPlane --starts--> etcd <-- kube-apiserver (RBAC, static tokens, its own certificate)
         |-- admin.kubeconfig ------------> |
         '-- scheduler.kubeconfig --------> | the scheduler's own user

No controller manager, no kubelet: a bound pod stays Pending, nodes are not tainted, finalizers
stay. Every process dies with this one, and all files are in one temporary folder.
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import http.client
import json
import secrets
import shutil
import socket
import ssl
import tempfile
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self, TypeVar

from kubesched.bench.processes import LOOPBACK, Process, StartError, free_ports, spawn
from kubesched.errors import KubeschedError

JsonObject = dict[str, Any]
T = TypeVar("T")

JSON = "application/json"

_START_SECONDS = 90.0
#: The server closes connections idle for 90 s; one that is close to that is not used.
_IDLE_SECONDS = 30.0

#: Admission plugins that depend on a controller which does not run here: service accounts are never
#: created, node conditions never reported, and protection finalizers never removed.
DISABLED_ADMISSION = ("ServiceAccount", "TaintNodesByCondition", "StorageObjectInUseProtection")

#: Permissions that system:kube-scheduler must have before the plane is ready, one per bootstrap
#: role. /readyz says that the roles are stored; the authorizer sees them a little later.
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


class PlaneApiError(KubeschedError):
    """The API server answered with an error status."""

    def __init__(self, request: str, status: int, answer: JsonObject) -> None:
        super().__init__(f"{request}: {status} {answer.get('message', answer)}")
        self.status = status
        self.answer = answer


class ControlPlane:
    """etcd and kube-apiserver from a folder of binaries; `with` starts and stops them."""

    def __init__(
        self,
        assets: Path,
        *,
        feature_gates: str = "",
        runtime_config: str = "",
        disabled_admission: tuple[str, ...] = DISABLED_ADMISSION,
    ) -> None:
        self.assets = assets
        self.feature_gates = feature_gates
        self.runtime_config = runtime_config
        self.disabled_admission = disabled_admission
        self.folder = Path(tempfile.mkdtemp(prefix="kubesched-envtest-"))
        self.etcd_port, self._peer_port, self.port = free_ports(3)
        self._admin_token = secrets.token_hex(16)
        self._scheduler_token = secrets.token_hex(16)
        #: Name -> what runs under it; filled by `_spawn`, emptied by `stop`.
        self._processes: dict[str, Process] = {}
        #: Connections that no request uses now, each with the time of its last use.
        self._idle: deque[tuple[http.client.HTTPSConnection, float]] = deque()
        self._tls: ssl.SSLContext | None = None
        # Linux takes the thread that started a process for its parent, so a server started from a
        # short-lived thread would die with it. This thread lives until `stop`.
        self._starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="envtest")

    @property
    def url(self) -> str:
        """The API server's address; it stays the same over restarts."""
        return f"https://{LOOPBACK}:{self.port}"

    @property
    def admin_kubeconfig(self) -> Path:
        """The kubeconfig of a member of system:masters."""
        return self.folder / "admin.kubeconfig"

    @property
    def scheduler_kubeconfig(self) -> Path:
        """The kubeconfig of the user system:kube-scheduler."""
        return self.folder / "scheduler.kubeconfig"

    def process(self, name: str) -> Process:
        """Return one of the running processes: etcd or kube-apiserver."""
        return self._processes[name]

    # ------------------------------------------------------------------ processes

    def start(self) -> Self:
        """Start everything and return once a scheduler could work; on failure clean up."""
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
        """Kill running processes and delete all files; nothing needs a graceful end."""
        atexit.unregister(self.stop)
        self._close_idle()
        self._starter.shutdown()
        while self._processes:
            self._processes.popitem()[1].end()
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
            if not server.is_running:
                raise StartError(server.describe())
            with contextlib.suppress(OSError, http.client.HTTPException, PlaneApiError):
                return self._is_ready()
            return False

        try:
            eventually(ready, seconds=_START_SECONDS)
        except AssertionError as error:
            raise StartError(f"not ready in time: {server.describe()}") from error

    def _etcd_arguments(self) -> list[str]:
        client, peer = (f"http://{LOOPBACK}:{p}" for p in (self.etcd_port, self._peer_port))
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
        # The server creates its certificate and key at the first start. Any RSA key can sign
        # service account tokens, so this one is used.
        key = certificates / "apiserver.key"
        arguments = [
            f"--etcd-servers=http://{LOOPBACK}:{self.etcd_port}",
            f"--cert-dir={certificates}",
            f"--secure-port={self.port}",
            f"--bind-address={LOOPBACK}",
            f"--advertise-address={LOOPBACK}",
            f"--service-account-issuer={self.url}",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--authorization-mode=RBAC",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            f"--disable-admission-plugins={','.join(self.disabled_admission)}",
            "--allow-privileged=true",
            "--endpoint-reconciler-type=none",
            "--profiling=false",
            "--delete-collection-workers=16",  # one by default: half a minute for 10,000 pods
            # No limits: the benchmark is about the scheduler, not the server's fairness.
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
        command = [str(self.assets / (binary or name)), *arguments]

        def start() -> Process:
            # Recorded by the thread that `stop` waits for: nothing can start after it.
            process = spawn(name, command, log=log, cwd=self.folder)
            self._processes[name] = process
            return process

        return self._starter.submit(start).result()

    def _is_ready(self) -> bool:
        """Return whether a scheduler could work; write the kubeconfigs when the server listens."""
        if self._tls is None:
            with socket.create_connection((LOOPBACK, self.port), timeout=2):
                self._trust((self.folder / "certificates" / "apiserver.crt").read_text())
        status, _ = self._exchange("GET", "/readyz")
        if status != 200:
            return False
        self.request("GET", "/api/v1/namespaces/default")  # created by the server after it is ready
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

    # ------------------------------------------------------------------ requests

    def request(
        self, method: str, path: str, body: object = None, *, content_type: str = JSON
    ) -> JsonObject:
        """Send a request as admin; raises `PlaneApiError` for a status of 400 and above."""
        payload = None if body is None else json.dumps(body).encode()
        status, raw = self._exchange(method, path, payload, content_type=content_type)
        try:
            answer: JsonObject = json.loads(raw)
        except ValueError:
            answer = {"message": raw.decode(errors="replace")}
        if status >= 400:
            raise PlaneApiError(f"{method} {path}", status, answer)
        return answer

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
        """Return a connection for one request, reused if possible."""
        while self._idle:
            with contextlib.suppress(IndexError):  # another thread may take the last one
                connection, last_used = self._idle.pop()
                if time.monotonic() - last_used < _IDLE_SECONDS:
                    return connection
                connection.close()
        return http.client.HTTPSConnection(LOOPBACK, self.port, context=self._tls, timeout=60)

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop()[0].close()


def eventually(probe: Callable[[], T | None], *, seconds: float = 30, every: float = 0.05) -> T:
    """Return the probe's first true result; fail with its last one on timeout."""
    deadline = time.monotonic() + seconds
    while not (answer := probe()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s; the last answer was {answer!r}")
        time.sleep(every)
    return answer
