"""The address and credentials of one API server, as resolved from a kubeconfig."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urlsplit

from kubesched.client.credentials import Credentials, StaticCredentials
from kubesched.client.proxy import Proxy
from kubesched.errors import KubeconfigError


class Server(NamedTuple):
    """An API server's address."""

    scheme: str
    host: str
    port: int
    #: "" or a path prefix of every request, without a trailing slash
    base_path: str = ""

    @property
    def address(self) -> str:
        """``host:port``, as in a ``Host`` header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The whole address."""
        return f"{self.scheme}://{self.address}{self.base_path}"

    @classmethod
    def parse(cls, text: str, *, where: str, default_scheme: str = "http") -> Server:
        """An address from a URL, or from ``host:port`` as kubeconfig allows it."""
        try:
            parts = urlsplit(text if "://" in text else f"{default_scheme}://{text}")
            port = parts.port
        except ValueError as error:
            raise KubeconfigError(f"{where}: {text!r} is not a URL: {error}") from error
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise KubeconfigError(
                f"{where}: {text!r} must be a URL such as https://host:6443, or a host:port pair"
            )
        default_port = 443 if parts.scheme == "https" else 80
        return cls(parts.scheme, parts.hostname, port or default_port, parts.path.rstrip("/"))


@dataclass(frozen=True, kw_only=True)
class ClusterAccess:
    """Everything a connection needs; built by ``kubeconfig.load`` or ``kubeconfig.in_cluster``."""

    server: Server
    #: None for http://
    ssl_context: ssl.SSLContext | None = None
    #: TLS server name, "" for the server's host
    tls_server_name: str = ""
    credentials: Credentials = field(default_factory=StaticCredentials)
    proxy: Proxy | None = None
    #: sent with every request, e.g. for impersonation
    headers: tuple[tuple[str, str], ...] = ()
    #: namespace of the kubeconfig's context
    namespace: str = "default"

    @classmethod
    def plain(cls, url: str) -> ClusterAccess:
        """Access without TLS and credentials, e.g. to the embedded API server."""
        server = Server.parse(url, where="API server address")
        if server.scheme != "http":
            raise KubeconfigError(f"API server address: {url!r} needs credentials, use kubeconfig")
        return cls(server=server)


def tls_context(*, ca_pem: str | None, verify: bool = True) -> ssl.SSLContext:
    """A client context that trusts ``ca_pem`` alone, or the system's authorities if it is None."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    # Many cluster CAs are created by simple tools: be as strict as Go, not stricter, and accept an
    # intermediate CA as the root of trust.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif ca_pem is None:
        context.load_default_certs()
    else:
        context.load_verify_locations(cadata=ca_pem)
    return context
