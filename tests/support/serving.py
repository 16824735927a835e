"""What the server's tests are made with: requests without a socket, servers and clients with one.

served(Sources(…), …) ──> Target ──ask("/metrics", token=…, tls=…)──> Reply
reviewing(Reviewer(…)) ──> a kubeconfig whose API server decides as the Reviewer says
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import shutil
import socket
import ssl
import tempfile
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trustme
import yaml

from kubesched.clock import Clock
from kubesched.server.certificates import serving_pair
from kubesched.server.options import AuthenticationOptions, AuthorizationOptions, ServingOptions
from kubesched.server.request import CERTIFICATES_EXTENSION, ServerRequest
from kubesched.server.serving import SecureServer
from kubesched.server.sources import MetricsPage, Sources
from tests.support.servers import Exchange, ScriptedServer, answer, failure

LOOPBACK = "127.0.0.1"
_CONFIG_MAP = "extension-apiserver-authentication"
_CONFIG_MAPS = "/api/v1/namespaces/kube-system/configmaps"
METRICS = MetricsPage(lambda: b"up 1\n")


# ---------------------------------------------------------------------- without a socket


def request(
    target: str = "/",
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    *,
    body: bytes = b"",
    certificates: tuple[bytes, ...] = (),
) -> ServerRequest:
    """A request as the protocol hands it on."""
    path, _, query = target.partition("?")
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "client": (LOOPBACK, 1),
        "headers": [(k.lower().encode(), v.encode()) for k, v in (headers or {}).items()],
        "extensions": {CERTIFICATES_EXTENSION: certificates},
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    return ServerRequest(scope, receive)


# ---------------------------------------------------------------------- with one


@dataclass(frozen=True)
class Reply:
    """What came back."""

    code: int
    headers: dict[str, str]
    text: str


@dataclass(frozen=True)
class Target:
    """A running server."""

    server: SecureServer

    @property
    def port(self) -> int:
        return self.server.port

    async def ask(
        self,
        target: str,
        method: str = "GET",
        *,
        token: str = "",
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        tls: ssl.SSLContext | None = None,
        name: str | None = None,
    ) -> Reply:
        """Make one request over a connection of its own."""
        sent = {"Host": LOOPBACK, "Connection": "close", **(headers or {})}
        if token:
            sent["Authorization"] = f"Bearer {token}"
        if body:
            sent["Content-Length"] = str(len(body))
        lines = [f"{method} {target} HTTP/1.1", *(f"{k}: {v}" for k, v in sent.items())]
        reader, writer = await asyncio.open_connection(
            LOOPBACK, self.port, ssl=tls or client_tls(), server_hostname=name or ""
        )
        try:
            writer.write("\r\n".join([*lines, "", ""]).encode() + body)
            return parse(await reader.read())
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def certificate(self, name: str | None = None) -> dict[str, Any]:
        """The certificate that is shown for a name, without a look at whether it is any good."""
        _, writer = await asyncio.open_connection(
            LOOPBACK, self.port, ssl=client_tls(), server_hostname=name or ""
        )
        der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        return describe(der)


def parse(received: bytes) -> Reply:
    """Split an answer."""
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    pairs = (line.partition(": ") for line in lines)
    return Reply(int(first.split(" ")[1]), {k: v for k, _, v in pairs}, body.decode())


def describe(der: bytes) -> dict[str, Any]:
    """Common name and alternative names of a certificate."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    certificate = x509.load_der_x509_certificate(der)
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    return {
        "cn": names[0].value if names else "",
        "dns": alternatives.value.get_values_for_type(x509.DNSName),
        "ip": [str(each) for each in alternatives.value.get_values_for_type(x509.IPAddress)],
        "serial": certificate.serial_number,
    }


def client_tls(
    certificate: trustme.LeafCert | None = None, *, version: ssl.TLSVersion | None = None
) -> ssl.SSLContext:
    """A client that trusts every server and shows a certificate if given."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if version is not None:
        context.minimum_version = context.maximum_version = version
    if certificate is not None:
        certificate.configure_cert(context)
    return context


@contextlib.asynccontextmanager
async def served(
    sources: Sources | None = None,
    *,
    serving: ServingOptions | None = None,
    authentication: AuthenticationOptions | None = None,
    authorization: AuthorizationOptions | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[Target]:
    """Serve on a free port of loopback; everybody may see /metrics unless `authorization` says."""
    listener = socket.create_server((LOOPBACK, 0))
    listener.setblocking(False)
    server = SecureServer(
        serving or _cheap_certificate(),
        authentication or AuthenticationOptions(),
        authorization or AuthorizationOptions(always_allow_paths=("/*",)),
        sources or Sources(metrics=METRICS),
        clock=clock,
        listener=listener,
        reload_period_s=0.02,
    )
    async with server:
        yield Target(server)


@functools.cache
def _cheap_certificate() -> ServingOptions:
    """Options with a certificate that is made only once: RSA keys take their time."""
    folder = Path(tempfile.mkdtemp(prefix="kubesched-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    options = ServingOptions(bind_address=LOOPBACK, cert_dir=str(folder))
    serving_pair(options)
    return options


# ---------------------------------------------------------------------- an API server that decides


@dataclass
class Reviewer:
    """What an API server knows of tokens and rights."""

    #: token -> the user as a TokenReview describes them
    tokens: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: (user, path): what they may see
    rights: set[tuple[str, str]] = field(default_factory=set)
    #: data of the ConfigMap extension-apiserver-authentication; None: there is none
    config_map: dict[str, str] | None = None
    #: specs of the reviews that were asked for
    token_reviews: list[dict[str, Any]] = field(default_factory=list)
    access_reviews: list[dict[str, Any]] = field(default_factory=list)
    #: answered instead of a review, first to last, as long as there are any
    failures: list[bytes] = field(default_factory=list)

    async def __call__(self, exchange: Exchange) -> bytes | None:
        """Answer one request to the API server."""
        if exchange.query.get("watch"):
            await asyncio.Event().wait()
        if exchange.path.endswith("reviews") and self.failures:
            return self.failures.pop(0)
        known = {
            "/apis/authentication.k8s.io/v1/tokenreviews": self._review_token,
            "/apis/authorization.k8s.io/v1/subjectaccessreviews": self._review_access,
            f"{_CONFIG_MAPS}/{_CONFIG_MAP}": self._get_config_map,
            _CONFIG_MAPS: self._list_config_maps,
        }
        return known[exchange.path](exchange)

    def _review_token(self, exchange: Exchange) -> bytes:
        review = exchange.json
        assert review["kind"] == "TokenReview"
        self.token_reviews.append(review["spec"])
        user = self.tokens.get(review["spec"]["token"])
        status = {"authenticated": True, "user": user} if user else {}
        return answer({**review, "status": status}, status=201)

    def _review_access(self, exchange: Exchange) -> bytes:
        review = exchange.json
        assert review["kind"] == "SubjectAccessReview"
        spec = review["spec"]
        self.access_reviews.append(spec)
        allowed = (spec["user"], spec["nonResourceAttributes"]["path"]) in self.rights
        return answer({**review, "status": {"allowed": allowed}}, status=201)

    def _get_config_map(self, _exchange: Exchange) -> bytes:
        if self.config_map is None:
            return failure(404, "NotFound", "no such configmap")
        return answer(self._config_map())

    def _list_config_maps(self, exchange: Exchange) -> bytes:
        assert exchange.query["fieldSelector"] == f"metadata.name={_CONFIG_MAP}"
        items = [] if self.config_map is None else [self._config_map()]
        return answer({"metadata": {"resourceVersion": "1"}, "items": items})

    def _config_map(self) -> dict[str, Any]:
        metadata = {
            "name": _CONFIG_MAP,
            "namespace": "kube-system",
            "uid": "1",
            "resourceVersion": "1",
        }
        return {"metadata": metadata, "data": self.config_map}


@contextlib.asynccontextmanager
async def reviewing(reviewer: Reviewer, folder: Path) -> AsyncIterator[str]:
    """Run an API server that decides so; yields the path of a kubeconfig for it."""
    async with ScriptedServer(reviewer) as api:
        yield write_kubeconfig(folder / "kubeconfig", api.url)


def write_kubeconfig(path: Path, url: str) -> str:
    """A kubeconfig without credentials; returns its path."""
    config = {
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": ""}}],
        "current-context": "c",
    }
    path.write_text(yaml.safe_dump(config))
    return str(path)


def write_pair(
    folder: Path, certificate: trustme.LeafCert, name: str = "serving"
) -> ServingOptions:
    """Write a certificate and its key to files; options that name them."""
    cert_file, key_file = folder / f"{name}.crt", folder / f"{name}.key"
    cert_file.write_bytes(b"".join(each.bytes() for each in certificate.cert_chain_pems))
    key_file.write_bytes(certificate.private_key_pem.bytes())
    return ServingOptions(
        bind_address=LOOPBACK, tls_cert_file=str(cert_file), tls_private_key_file=str(key_file)
    )
