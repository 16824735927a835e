"""Callers of a scheduler's HTTPS endpoints, known to a real control plane in all ways there are.

Callers ──creates──> service accounts, role bindings, ConfigMap of certificate authorities
   └── ask(port, caller, path) ──> Reply

serve_endpoints ──> our endpoints in a thread of their own, with the scheduler's kubeconfig
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import secrets
import socket
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Self

import trustme

from kubesched.server.options import AuthenticationOptions, AuthorizationOptions, ServingOptions
from kubesched.server.serving import SecureServer
from kubesched.server.sources import Sources

from .control_plane import ControlPlane, JsonObject, PlaneApiError

LOOPBACK = "127.0.0.1"
CONFIG_MAPS = "/api/v1/namespaces/kube-system/configmaps"
CONFIG_MAP = "extension-apiserver-authentication"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
#: The role that comes with Kubernetes for those who watch over components.
MONITORING = "system:monitoring"


@dataclass(frozen=True)
class Caller:
    """What somebody sends along."""

    token: str = ""
    certificate: trustme.LeafCert | None = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Reply:
    """What came back."""

    code: int
    headers: dict[str, str]
    body: str
    content: bytes = b""


class Callers:
    """All sorts of callers, by what they are; `with` creates and deletes what they need."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self._plane = plane
        self._namespace = namespace
        self._suffix = secrets.token_hex(3)
        self.client_authority = trustme.CA(organization_name="clients")
        self.proxy_authority = trustme.CA(organization_name="proxies")
        self.by_name: dict[str, Caller] = {}
        #: (port, caller) -> a connection that is kept open for the next question
        self._connections: dict[tuple[int, str], http.client.HTTPSConnection] = {}

    def __enter__(self) -> Self:
        """Create everything."""
        self._bind("User", f"certified-{self._suffix}", f"proxied-{self._suffix}")
        self.publish(self.client_authority, self.proxy_authority)
        issue = self.client_authority.issue_cert
        proxy = self.proxy_authority.issue_cert("p.test", common_name="front-proxy")
        stray = self.proxy_authority.issue_cert("p.test", common_name="not-on-the-list")
        user, group = "X-Remote-User", "X-Remote-Group"
        somebody = {user: f"proxied-{self._suffix}"}
        self.by_name = {
            "anonymous": Caller(),
            "wrong token": Caller(token="wrong"),
            "token without rights": Caller(token=self._service_account("powerless")),
            "monitoring token": Caller(token=self._monitor()),
            "admin token": Caller(token=self._plane.admin_token),
            "certificate without rights": Caller(certificate=issue("c.test", common_name="eve")),
            "monitoring certificate": Caller(
                certificate=issue("c.test", common_name=f"certified-{self._suffix}")
            ),
            "masters' certificate": Caller(
                certificate=issue("c.test", common_name="x", organization_name="system:masters")
            ),
            "proxy for nobody": Caller(certificate=proxy),
            "proxy without rights": Caller(certificate=proxy, headers={user: "eve"}),
            "monitoring proxy": Caller(certificate=proxy, headers=somebody),
            "masters' proxy": Caller(
                certificate=proxy, headers={user: "x", group: "system:masters"}
            ),
            "unknown proxy": Caller(certificate=stray, headers=somebody),
            "headers without a proxy": Caller(headers={user: "x", group: "system:masters"}),
        }
        return self

    def __exit__(self, *_: object) -> None:
        """Delete what is not in the test's namespace."""
        self.hang_up()
        self._plane.request("DELETE", f"{CONFIG_MAPS}/{CONFIG_MAP}")
        for kind in ("user", "serviceaccount"):
            with contextlib.suppress(PlaneApiError):
                self._plane.request("DELETE", f"{BINDINGS}/{kind}-{self._suffix}")

    def publish(self, clients: trustme.CA, proxies: trustme.CA) -> None:
        """Say whose certificates count, as the API server would if it had any itself."""
        data = {
            "client-ca-file": clients.cert_pem.bytes().decode(),
            "requestheader-client-ca-file": proxies.cert_pem.bytes().decode(),
            "requestheader-allowed-names": '["front-proxy"]',
            "requestheader-username-headers": '["X-Remote-User"]',
            "requestheader-group-headers": '["X-Remote-Group"]',
            "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
        }
        config_map: JsonObject = {"metadata": {"name": CONFIG_MAP}, "data": data}
        try:
            self._plane.request("POST", CONFIG_MAPS, config_map)
        except PlaneApiError as error:
            if error.status != 409:
                raise
            self._plane.request("PUT", f"{CONFIG_MAPS}/{CONFIG_MAP}", config_map)

    def ask(
        self, port: int, caller: str, path: str, method: str = "GET", *, accept: str = ""
    ) -> Reply:
        """Ask as somebody, over their connection if they have one."""
        who = self.by_name[caller]
        headers = dict(who.headers)
        if who.token:
            headers["Authorization"] = f"Bearer {who.token}"
        if accept:
            headers["Accept"] = accept
        connection = self._connections.get((port, caller))
        if connection is None:
            connection = self._connections[port, caller] = connect(port, who.certificate)
        return ask(connection, path, method, headers)

    def hang_up(self) -> None:
        """End all connections."""
        while self._connections:
            self._connections.popitem()[1].close()

    def _monitor(self) -> str:
        token = self._service_account("monitor")
        self._bind("ServiceAccount", "monitor")
        return token

    def _service_account(self, name: str) -> str:
        """Create a service account; return a token of it."""
        path = f"/api/v1/namespaces/{self._namespace}/serviceaccounts"
        self._plane.request("POST", path, {"metadata": {"name": name}})
        answer = self._plane.request("POST", f"{path}/{name}/token", {"spec": {}})
        return str(answer["status"]["token"])

    def _bind(self, kind: str, *names: str) -> None:
        account = kind == "ServiceAccount"
        subjects = [
            {"kind": kind, "name": name, **({"namespace": self._namespace} if account else {})}
            for name in names
        ]
        role = {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": MONITORING,
        }
        metadata = {"name": f"{kind.lower()}-{self._suffix}"}
        binding = {"metadata": metadata, "subjects": subjects, "roleRef": role}
        self._plane.request("POST", BINDINGS, binding)


def connect(port: int, certificate: trustme.LeafCert | None = None) -> http.client.HTTPSConnection:
    """A connection that takes whatever certificate the server shows."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if certificate is not None:
        certificate.configure_cert(context)
    return http.client.HTTPSConnection(LOOPBACK, port, context=context, timeout=20)


def ask(
    connection: http.client.HTTPSConnection, path: str, method: str, headers: dict[str, str]
) -> Reply:
    """Make one request."""
    connection.request(method, path, headers=headers)
    with connection.getresponse() as answer:
        found = {name.lower(): value for name, value in answer.getheaders()}
        content = answer.read()
        return Reply(answer.status, found, content.decode(errors="replace"), content)


@contextlib.contextmanager
def serve_endpoints(plane: ControlPlane, sources: Sources) -> Iterator[int]:
    """Serve our endpoints as the scheduler would; yields their port."""
    started: list[int | BaseException] = []
    ready, done = threading.Event(), threading.Event()

    async def main() -> None:
        kubeconfig = str(plane.scheduler_kubeconfig)
        server = SecureServer(
            ServingOptions(bind_address=LOOPBACK),
            AuthenticationOptions(kubeconfig=kubeconfig, tolerate_lookup_failure=False),
            AuthorizationOptions(kubeconfig=kubeconfig),
            sources,
            listener=socket.create_server((LOOPBACK, 0)),
        )
        async with server:
            started.append(server.port)
            ready.set()
            await asyncio.to_thread(done.wait)

    def run() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:  # noqa: BLE001 (raised again in the test's thread)
            started.append(error)
            ready.set()

    thread = threading.Thread(target=run, name="endpoints")
    thread.start()
    try:
        assert ready.wait(30)
        if isinstance(started[0], BaseException):
            raise started[0]
        yield started[0]
    finally:
        done.set()
        thread.join(30)
        assert not thread.is_alive()
