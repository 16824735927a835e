"""Resolves kubeconfig files, or a pod's service account, to a ``ClusterAccess``.

    files ──read──> KubeconfigFile … ──merge (first wins)──> context ──> cluster + user ──> access

The rules are client-go's: an explicit file alone; else the files of $KUBECONFIG, missing ones
skipped; else ~/.kube/config. Relative paths are relative to the file that contains them.
Credentials are not sent to servers without TLS.
"""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Mapping
from pathlib import Path

from kubesched.client import proxy as proxies
from kubesched.client.access import ClusterAccess, Server, tls_context
from kubesched.client.credentials import TokenFileCredentials, read_token, reason_of
from kubesched.client.kubeconfig_file import (
    Context,
    KubeconfigCluster,
    KubeconfigFile,
    KubeconfigUser,
    Located,
    read,
)
from kubesched.client.kubeconfig_user import (
    Impersonated,
    authority_pem,
    credentials_of,
    impersonation_headers,
)
from kubesched.clock import Clock
from kubesched.errors import KubeconfigError

_log = logging.getLogger(__name__)

_NO_FILE = Path(os.devnull)

SERVICE_ACCOUNT_FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def load(
    path: str | Path | None = None,
    *,
    context: str | None = None,
    master: str | None = None,
    impersonated: Impersonated | None = None,
    environment: Mapping[str, str] | None = None,
    clock: Clock | None = None,
) -> ClusterAccess:
    """Resolve a kubeconfig.

    ``master`` replaces the server's address, and needs no kubeconfig; ``impersonated`` replaces the
    user that the kubeconfig impersonates, if any.
    """
    environment = os.environ if environment is None else environment
    merged = _Merged(_read_all(path, environment, optional=bool(master)))
    return _access(
        merged,
        context,
        master=master,
        impersonated=impersonated,
        environment=environment,
        clock=clock,
    )


def for_component(
    path: str | Path | None = None,
    *,
    master: str | None = None,
    environment: Mapping[str, str] | None = None,
    clock: Clock | None = None,
) -> ClusterAccess:
    """Resolve as control plane components do: from the file, the address, or the pod's own."""
    environment = os.environ if environment is None else environment
    if path:
        return load(path, master=master, environment=environment, clock=clock)
    if master:
        # An address alone does not imply the user's own kubeconfig.
        return _access(_Merged([]), None, master=master, environment=environment, clock=clock)
    _log.warning(
        "Neither --kubeconfig nor --master was specified.  "
        "Using the inClusterConfig.  This might not work."
    )
    return in_cluster(environment=environment, clock=clock)


def in_cluster(
    *,
    folder: Path = SERVICE_ACCOUNT_FOLDER,
    environment: Mapping[str, str] | None = None,
    clock: Clock | None = None,
) -> ClusterAccess:
    """Use the service account of our own pod."""
    environment = os.environ if environment is None else environment
    host = environment.get("KUBERNETES_SERVICE_HOST", "")
    port = environment.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise KubeconfigError(
            "unable to load in-cluster configuration: KUBERNETES_SERVICE_HOST and "
            "KUBERNETES_SERVICE_PORT are not set; outside of a pod, name a file with --kubeconfig"
        )
    bracketed = f"[{host}]" if ":" in host else host
    server = Server.parse(f"https://{bracketed}:{port}", where="KUBERNETES_SERVICE_HOST")
    token_file = folder / "token"
    first_token = read_token(token_file)
    return ClusterAccess(
        server=server,
        ssl_context=_in_cluster_tls(folder / "ca.crt"),
        credentials=TokenFileCredentials(token_file, first_token=first_token, clock=clock),
        proxy=_proxy_of(server, environment),
        namespace=_in_cluster_namespace(folder, environment),
    )


def _in_cluster_tls(ca_file: Path) -> ssl.SSLContext:
    try:
        return tls_context(ca_pem=ca_file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ssl.SSLError) as error:
        raise KubeconfigError(
            f"{ca_file}: cannot load the cluster's certificate authority: {reason_of(error)}"
        ) from error


def _in_cluster_namespace(folder: Path, environment: Mapping[str, str]) -> str:
    if namespace := environment.get("POD_NAMESPACE"):
        return namespace
    try:
        return (folder / "namespace").read_text(encoding="utf-8").strip() or "default"
    except OSError:
        return "default"


def _read_all(
    path: str | Path | None, environment: Mapping[str, str], *, optional: bool = False
) -> list[KubeconfigFile]:
    if path:
        return [read(Path(path))]
    if listed := environment.get("KUBECONFIG"):
        names = [name for name in dict.fromkeys(listed.split(os.pathsep)) if name]
        files = [Path(name) for name in names]
    else:
        files = [Path(environment.get("HOME") or Path.home()) / ".kube" / "config"]
    found = [file for file in files if file.exists()]
    if not found and not optional:
        names_tried = ", ".join(str(file) for file in files)
        raise KubeconfigError(
            f"no kubeconfig found (looked for {names_tried}); name a file with --kubeconfig"
        )
    return [read(file) for file in found]


class _Merged:
    """Several files merged: for every name, the first file that has it counts."""

    def __init__(self, files: list[KubeconfigFile]) -> None:
        self._where = ", ".join(str(file.path) for file in files)
        self._current = next((f.current_context for f in files if f.current_context), "")
        self._contexts: dict[str, Located[Context]] = {}
        self._clusters: dict[str, Located[KubeconfigCluster]] = {}
        self._users: dict[str, Located[KubeconfigUser]] = {}
        for file in reversed(files):
            self._contexts.update(file.contexts)
            self._clusters.update(file.clusters)
            self._users.update(file.users)

    def context(self, name: str | None, *, optional: bool) -> Located[Context] | None:
        """Return the named context, or the current one."""
        wanted = name or self._current
        if not wanted:
            if optional:
                return None
            raise KubeconfigError(
                f"{self._where}: current-context is not set; set it to one of: "
                f"{_names(self._contexts)}"
            )
        found = self._contexts.get(wanted)
        if found is None:
            field = "contexts" if name else "current-context"
            raise KubeconfigError(
                f"{self._where}: {field}: context {wanted!r} does not exist; there is: "
                f"{_names(self._contexts)}"
            )
        return found

    def cluster(
        self, context: Located[Context] | None, *, optional: bool
    ) -> Located[KubeconfigCluster]:
        """Return the context's cluster; an empty one if an address was given explicitly."""
        found = self._clusters.get(context.value.cluster) if context else None
        if found is not None:
            return found
        if context is None or (optional and not context.value.cluster):
            return Located(KubeconfigCluster(), _NO_FILE, "")
        raise KubeconfigError(
            f"{context.where}.cluster: cluster {context.value.cluster!r} does not exist; "
            f"there is: {_names(self._clusters)}"
        )

    def user(self, context: Located[Context] | None) -> Located[KubeconfigUser]:
        """Return the context's user; an empty one if it names none."""
        if context is None or not context.value.user:
            return Located(KubeconfigUser(), _NO_FILE, "")
        found = self._users.get(context.value.user)
        if found is None:
            raise KubeconfigError(
                f"{context.where}.user: user {context.value.user!r} does not exist; "
                f"there is: {_names(self._users)}"
            )
        return found


def _names(table: Mapping[str, object]) -> str:
    return ", ".join(sorted(table)) or "(none)"


def _access(
    merged: _Merged,
    context_name: str | None,
    *,
    master: str | None,
    impersonated: Impersonated | None = None,
    environment: Mapping[str, str],
    clock: Clock | None,
) -> ClusterAccess:
    chosen = merged.context(context_name, optional=bool(master))
    cluster = merged.cluster(chosen, optional=bool(master))
    user = merged.user(chosen)
    server = _server(cluster, user, master)
    headers = impersonation_headers(user, impersonated)
    namespace = (chosen.value.namespace if chosen else "") or "default"
    proxy = _proxy_of(server, environment, cluster)
    if server.scheme == "http":
        return ClusterAccess(server=server, headers=headers, namespace=namespace, proxy=proxy)
    context = _tls(cluster)
    return ClusterAccess(
        server=server,
        ssl_context=context,
        # tls-server-name belongs to the kubeconfig's address, not to an explicit one.
        tls_server_name="" if master else cluster.value.tls_server_name,
        credentials=credentials_of(user, cluster, context=context, clock=clock),
        proxy=proxy,
        headers=headers,
        namespace=namespace,
    )


def _server(
    cluster: Located[KubeconfigCluster], user: Located[KubeconfigUser], master: str | None
) -> Server:
    value = cluster.value
    secured = (
        value.certificate_authority
        or value.certificate_authority_data
        or value.insecure_skip_tls_verify
        or user.value.client_certificate
        or user.value.client_certificate_data
    )
    scheme = "https" if secured else "http"
    if master:
        return Server.parse(master, where="--master", default_scheme=scheme)
    if not value.server:
        raise KubeconfigError(f"{cluster.where}.server: the API server's address is missing")
    return Server.parse(value.server, where=f"{cluster.where}.server", default_scheme=scheme)


def _proxy_of(
    server: Server,
    environment: Mapping[str, str],
    cluster: Located[KubeconfigCluster] | None = None,
) -> proxies.Proxy | None:
    if cluster is not None and cluster.value.proxy_url:
        return proxies.parse(cluster.value.proxy_url, where=f"{cluster.where}.proxy-url")
    return proxies.from_environment(
        environment, scheme=server.scheme, host=server.host, port=server.port
    )


def _tls(cluster: Located[KubeconfigCluster]) -> ssl.SSLContext:
    value = cluster.value
    ca_pem, ca_field = authority_pem(cluster)
    if value.insecure_skip_tls_verify and ca_pem is not None:
        raise KubeconfigError(
            f"{cluster.where}.{ca_field}: a certificate authority makes no sense together with "
            "insecure-skip-tls-verify: remove one of the two"
        )
    try:
        return tls_context(ca_pem=ca_pem, verify=not value.insecure_skip_tls_verify)
    except ssl.SSLError as error:
        raise KubeconfigError(
            f"{cluster.where}.{ca_field}: not a PEM certificate: {error.reason or error}"
        ) from error
