"""Builds credentials from a kubeconfig's user and cluster: certificates, tokens, plugins."""

from __future__ import annotations

import base64
import binascii
import re
import ssl
from pathlib import Path
from typing import NamedTuple

import msgspec

from kubesched.client.credentials import (
    ClientCertificateFiles,
    Credentials,
    StaticCredentials,
    TokenFileCredentials,
    load_certificate,
    read_token,
    reason_of,
)
from kubesched.client.exec_plugin import API_VERSIONS, ExecCluster, ExecConfig, ExecCredentials
from kubesched.client.kubeconfig_file import KubeconfigCluster, KubeconfigUser, Located
from kubesched.clock import Clock
from kubesched.errors import KubeconfigError

#: Key of a cluster extension that is passed to its exec plugin.
_EXEC_EXTENSION = "client.authentication.k8s.io/exec"
_INTERACTIVE_MODES = ("Never", "IfAvailable", "Always")
_ILLEGAL_IN_HEADER_NAME = re.compile(rb"[^!#$&'*+.^_`|~0-9A-Za-z-]")
_ILLEGAL_IN_HEADER_VALUE = re.compile(r"[^\t\x20-\x7e\x80-\xff]")


def authority_pem(cluster: Located[KubeconfigCluster]) -> tuple[str | None, str]:
    """Return the certificate authority to trust, and the field that it came from."""
    value = cluster.value
    if value.certificate_authority_data:
        field = "certificate-authority-data"
        pem = _decode(value.certificate_authority_data, where=f"{cluster.where}.{field}")
    elif value.certificate_authority:
        field = "certificate-authority"
        path = cluster.resolve(value.certificate_authority)
        pem = _read_file(path, where=f"{cluster.where}.{field}")
    else:
        return None, ""
    try:
        return pem.decode("ascii"), field
    except UnicodeDecodeError as error:
        raise KubeconfigError(f"{cluster.where}.{field}: not a PEM certificate") from error


def credentials_of(
    user: Located[KubeconfigUser],
    cluster: Located[KubeconfigCluster],
    *,
    context: ssl.SSLContext,
    clock: Clock | None,
) -> Credentials:
    """Return the user's credentials; a client certificate is loaded into ``context``."""
    value = user.value
    if value.token and (value.username or value.password):
        raise KubeconfigError(
            f"{user.where}: more than one authentication method: token and username/password; "
            "remove one of the two"
        )
    if value.auth_provider is not None:
        raise KubeconfigError(
            f"{user.where}.auth-provider: no longer supported by Kubernetes; use an exec plugin"
        )
    header = _header(user, clock)
    if value.client_certificate or value.client_certificate_data:
        return _with_certificate(user, header or StaticCredentials(), context=context, clock=clock)
    if header is not None:
        return header
    if value.exec is not None:
        return _exec(user, value.exec, cluster, context=context, clock=clock)
    return StaticCredentials()


class Impersonated(NamedTuple):
    """The user and the groups to act as; empty for those of the kubeconfig."""

    user: str = ""
    groups: tuple[str, ...] = ()


def impersonation_headers(
    user: Located[KubeconfigUser], impersonated: Impersonated | None = None
) -> tuple[tuple[str, str], ...]:
    """Return the impersonation headers."""
    value = user.value
    if impersonated is not None:
        value = msgspec.structs.replace(
            value,
            as_=impersonated.user or value.as_,
            as_groups=list(impersonated.groups) or value.as_groups,
        )
    if not value.as_:
        if value.as_uid or value.as_groups or value.as_user_extra:
            raise KubeconfigError(
                f"{user.where}: as-uid, as-groups and as-user-extra need a user to impersonate: "
                "set as"
            )
        return ()
    headers = [("Impersonate-User", value.as_)]
    if value.as_uid:
        headers.append(("Impersonate-Uid", value.as_uid))
    headers += [("Impersonate-Group", group) for group in value.as_groups or ()]
    for key, entries in (value.as_user_extra or {}).items():
        name = f"Impersonate-Extra-{_escape_header_name(key)}"
        headers += [(name, entry) for entry in entries]
    for name, text in headers:
        if _ILLEGAL_IN_HEADER_VALUE.search(text):
            raise KubeconfigError(f"{user.where}: {text!r} cannot be sent as {name}")
    return tuple(headers)


def _escape_header_name(key: str) -> str:
    def escape(match: re.Match[bytes]) -> bytes:
        return b"%%%02X" % match[0][0]

    return _ILLEGAL_IN_HEADER_NAME.sub(escape, key.encode()).decode("ascii")


def _header(user: Located[KubeconfigUser], clock: Clock | None) -> Credentials | None:
    value = user.value
    if value.token_file:
        path = user.resolve(value.token_file)
        # The file has precedence; the token beside it only serves until the file can be read.
        try:
            first_token = value.token or read_token(path)
        except KubeconfigError as error:
            raise KubeconfigError(f"{user.where}.tokenFile: {error}") from error
        return TokenFileCredentials(path, first_token=first_token, clock=clock)
    if value.token:
        if not value.token.isascii() or not value.token.isprintable():
            raise KubeconfigError(f"{user.where}.token: not a token: it has odd characters")
        return StaticCredentials.token(value.token)
    if value.username or value.password:
        return StaticCredentials.basic(value.username, value.password)
    return None


def _with_certificate(
    user: Located[KubeconfigUser],
    inner: Credentials,
    *,
    context: ssl.SSLContext,
    clock: Clock | None,
) -> Credentials:
    value = user.value
    if not (value.client_key or value.client_key_data):
        raise KubeconfigError(
            f"{user.where}: client-certificate needs its key: set client-key or client-key-data"
        )
    try:
        if not (value.client_certificate_data or value.client_key_data):
            certificate = user.resolve(value.client_certificate)
            key = user.resolve(value.client_key)
            _read_file(certificate, where=f"{user.where}.client-certificate")
            _read_file(key, where=f"{user.where}.client-key")
            return ClientCertificateFiles(
                inner, context=context, certificate=certificate, key=key, clock=clock
            )
        load_certificate(
            context,
            _pem(user, value.client_certificate_data, value.client_certificate, "certificate"),
            _pem(user, value.client_key_data, value.client_key, "key"),
        )
    except (ssl.SSLError, OSError) as error:
        raise KubeconfigError(
            f"{user.where}: client-certificate and client-key are not a PEM certificate "
            f"and its key: {getattr(error, 'reason', None) or error}"
        ) from error
    return inner


def _pem(user: Located[KubeconfigUser], data: str, path: str, what: str) -> bytes:
    if data:
        return _decode(data, where=f"{user.where}.client-{what}-data")
    return _read_file(user.resolve(path), where=f"{user.where}.client-{what}")


def _decode(text: str, *, where: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise KubeconfigError(f"{where}: not base64: {error}") from error


def _read_file(path: Path, *, where: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise KubeconfigError(f"{where}: cannot read {path}: {reason_of(error)}") from error


def _exec(
    user: Located[KubeconfigUser],
    config: ExecConfig,
    cluster: Located[KubeconfigCluster],
    *,
    context: ssl.SSLContext,
    clock: Clock | None,
) -> ExecCredentials:
    where = f"{user.where}.exec"
    mode = config.interactive_mode
    if not mode and config.api_version.endswith("v1beta1"):
        mode = "IfAvailable"
    command = config.command
    if "/" in command:  # a bare name is searched in $PATH
        command = str(user.resolve(command))
    config = msgspec.structs.replace(config, command=command, interactive_mode=mode)
    _check_exec(config, where)
    return ExecCredentials(
        config,
        where=where,
        cluster=_exec_cluster(cluster) if config.provide_cluster_info else None,
        context=context,
        clock=clock,
    )


def _check_exec(config: ExecConfig, where: str) -> None:
    if not config.command:
        raise KubeconfigError(f"{where}.command: the plugin's program is missing")
    if config.api_version not in API_VERSIONS:
        raise KubeconfigError(
            f"{where}.apiVersion: must be {' or '.join(API_VERSIONS)}, "
            f"not {config.api_version or '(none)'}"
        )
    if config.interactive_mode not in _INTERACTIVE_MODES:
        raise KubeconfigError(
            f"{where}.interactiveMode: must be one of {', '.join(_INTERACTIVE_MODES)}, "
            f"not {config.interactive_mode or '(none)'}"
        )
    if any(not item.name for item in config.env or ()):
        raise KubeconfigError(f"{where}.env: a variable without a name")


def _exec_cluster(cluster: Located[KubeconfigCluster]) -> ExecCluster:
    value = cluster.value
    ca_pem, _ = authority_pem(cluster)
    extensions = {item.name: item.extension for item in value.extensions or ()}
    return ExecCluster(
        server=value.server,
        tls_server_name=value.tls_server_name,
        insecure_skip_tls_verify=value.insecure_skip_tls_verify,
        certificate_authority_data=base64.b64encode((ca_pem or "").encode()).decode("ascii"),
        proxy_url=value.proxy_url,
        disable_compression=value.disable_compression,
        config=extensions.get(_EXEC_EXTENSION),
    )
