"""From an extender's configuration to how it is reached: address, TLS and proxy.

    urlPrefix + verb ──> request target
    urlPrefix, enableHTTPS, tlsConfig, HTTPS_PROXY… ──> ClusterAccess ──> client.transport

The URL's scheme decides whether there is TLS at all. ``enableHTTPS`` without an authority means
that nobody's certificate is checked; that is how kube-scheduler reads it.
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

#: What may stand in a path or a query as it is; "%" so that what is escaped stays so.
_PATH_SAFE = "/%:@!$&'()*+,;=~"
_QUERY_SAFE = f"{_PATH_SAFE}?"


def extender_access(
    config: Extender,
    *,
    where: str,
    environment: Mapping[str, str],
    clock: Clock | None = None,
) -> ClusterAccess:
    """Say how an extender is reached; a ConfigError names the field that makes it impossible."""
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
    """Address of one of an extender's verbs."""
    return f"{config.url_prefix.rstrip('/')}/{verb}"


def request_target(url: str) -> str:
    """Path and query of a URL, as they stand in a request line."""
    parts = urlsplit(url)
    path = quote(parts.path, safe=_PATH_SAFE) or "/"
    return f"{path}?{quote(parts.query, safe=_QUERY_SAFE)}" if parts.query else path


def without_password(url: str) -> str:
    """The URL as messages may show it."""
    parts = urlsplit(url)
    if parts.password is None:
        return url
    return parts._replace(
        netloc=f"{parts.username}:xxxxx@{parts.netloc.rpartition('@')[2]}"
    ).geturl()


def _authorization(url: str) -> tuple[tuple[str, str], ...]:
    """The header that a user name in a URL stands for."""
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
    """Load what we show; from files alone, it is loaded again when they change."""
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
