"""How an extender is reached, from its configuration: address, TLS and proxy.

    urlPrefix + verb ──> request target
    urlPrefix, enableHTTPS, tlsConfig, HTTPS_PROXY… ──> ClusterAccess ──> client.transport

The URL's scheme decides whether TLS is used. ``enableHTTPS`` without a CA disables the verification
of certificates, as in kube-scheduler.
"""

from __future__ import annotations

import base64
import ssl
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from kubesched.client import proxy as proxies
from kubesched.client.access import ClusterAccess, Server, tls_context
from kubesched.client.credentials import (
    ClientCertificateFiles,
    Credentials,
    StaticCredentials,
    load_certificate,
    reason_of,
)
from kubesched.clock import Clock
from kubesched.config.types import Extender, ExtenderTLSConfig
from kubesched.errors import ConfigError, KubeconfigError

#: Characters that are not escaped in a path or a query; "%", because escapes stay as they are.
_PATH_SAFE = "/%:@!$&'()*+,;=~"
_QUERY_SAFE = f"{_PATH_SAFE}?"


def extender_access(
    config: Extender,
    *,
    where: str,
    environment: Mapping[str, str],
    clock: Clock | None = None,
) -> ClusterAccess:
    """Return how an extender is reached; a ConfigError names the invalid field."""
    if "://" not in config.url_prefix:
        raise ConfigError(
            f"{where}.urlPrefix: {config.url_prefix!r} must be a URL such as http://host:port/path"
        )
    try:
        parsed = Server.parse(config.url_prefix, where=f"{where}.urlPrefix")
        server = parsed._replace(base_path="")  # it is part of every verb's target
        proxy = proxies.from_environment(
            environment, scheme=server.scheme, host=server.host, port=server.port
        )
    except KubeconfigError as error:
        raise ConfigError(str(error)) from error
    headers = _authorization(config.url_prefix)
    if server.scheme == "http":
        return ClusterAccess(server=server, headers=headers, proxy=proxy)
    tls = config.tls_config or ExtenderTLSConfig()
    context = _context(config, tls, where=f"{where}.tlsConfig")
    return ClusterAccess(
        server=server,
        headers=headers,
        proxy=proxy,
        ssl_context=context,
        tls_server_name=tls.server_name,
        credentials=_client_certificate(tls, context, where=f"{where}.tlsConfig", clock=clock),
    )


def verb_url(config: Extender, verb: str) -> str:
    """Return the URL of a verb of an extender."""
    return f"{config.url_prefix.rstrip('/')}/{verb}"


def request_target(url: str) -> str:
    """Return path and query of a URL, as in a request line."""
    parts = urlsplit(url)
    path = quote(parts.path, safe=_PATH_SAFE) or "/"
    return f"{path}?{quote(parts.query, safe=_QUERY_SAFE)}" if parts.query else path


def without_password(url: str) -> str:
    """Return the URL for messages, without its password."""
    parts = urlsplit(url)
    if parts.password is None:
        return url
    return parts._replace(
        netloc=f"{parts.username}:xxxxx@{parts.netloc.rpartition('@')[2]}"
    ).geturl()


def _authorization(url: str) -> tuple[tuple[str, str], ...]:
    """Return the Authorization header for the user in a URL."""
    parts = urlsplit(url)
    if parts.username is None:
        return ()
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
    return (("Authorization", f"Basic {base64.b64encode(pair).decode('ascii')}"),)


def _context(config: Extender, tls: ExtenderTLSConfig, *, where: str) -> ssl.SSLContext:
    authority = tls.ca_data or _read(tls.ca_file, where=f"{where}.caFile")
    has_authority = bool(tls.ca_data or tls.ca_file)
    if has_authority and tls.insecure:
        raise ConfigError(
            f"{where}: specifying a root certificates file with the insecure flag is not allowed"
        )
    insecure = tls.insecure or (config.enable_https and not has_authority)
    try:
        pem = authority.decode("ascii") if has_authority else None
        return tls_context(ca_pem=pem, verify=not insecure)
    except (ssl.SSLError, ValueError) as error:
        field = "caData" if tls.ca_data else "caFile"
        raise ConfigError(
            f"{where}.{field}: unable to load root certificates: no valid certificate authority "
            "data seen"
        ) from error


def _client_certificate(
    tls: ExtenderTLSConfig, context: ssl.SSLContext, *, where: str, clock: Clock | None
) -> Credentials:
    """Load the client certificate; if it is from files, it is reloaded when they change."""
    has_certificate = tls.cert_data or tls.cert_file
    has_key = tls.key_data or tls.key_file
    if not (has_certificate and has_key):  # half a pair counts as none, as in client-go
        return StaticCredentials()
    certificate = tls.cert_data or _read(tls.cert_file, where=f"{where}.certFile")
    key = tls.key_data or _read(tls.key_file, where=f"{where}.keyFile")
    try:
        if not (tls.cert_data or tls.key_data):
            return ClientCertificateFiles(
                StaticCredentials(),
                context=context,
                certificate=Path(tls.cert_file),
                key=Path(tls.key_file),
                clock=clock,
            )
        load_certificate(context, certificate, key)
    except (ssl.SSLError, OSError) as error:
        raise ConfigError(
            f"{where}: certificate and key are not a PEM certificate and its key: "
            f"{getattr(error, 'reason', None) or error}"
        ) from error
    return StaticCredentials()


def _read(path: str, *, where: str) -> bytes:
    if not path:
        return b""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"{where}: cannot read {path}: {reason_of(error)}") from error
