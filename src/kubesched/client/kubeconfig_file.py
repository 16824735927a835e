"""One kubeconfig file as typed values, each with its location for error messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
import yaml
from msgspec import Struct, field

from kubesched.client.credentials import reason_of
from kubesched.client.exec_plugin import ExecConfig
from kubesched.config import untrusted_yaml
from kubesched.errors import KubeconfigError

T = TypeVar("T")


class Extension(Struct, frozen=True):
    """Third-party data, e.g. of an exec plugin."""

    name: str = ""
    extension: Any = None


class KubeconfigCluster(Struct, frozen=True, rename="kebab"):
    """``clusters[].cluster``: a server and its certificate authority."""

    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""
    disable_compression: bool = False
    extensions: list[Extension] | None = None


class KubeconfigUser(Struct, frozen=True, rename="kebab"):
    """``users[].user``: credentials."""

    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = field(default="", name="tokenFile")
    as_: str = field(default="", name="as")
    as_uid: str = ""
    as_groups: list[str] | None = None
    as_user_extra: dict[str, list[str]] | None = None
    username: str = ""
    password: str = ""
    auth_provider: Any = None
    exec: ExecConfig | None = None


class Context(Struct, frozen=True):
    """``contexts[].context``: a cluster, a user and a namespace."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(Struct, frozen=True):
    name: str
    cluster: KubeconfigCluster | None = None


class _NamedUser(Struct, frozen=True):
    name: str
    user: KubeconfigUser | None = None


class _NamedContext(Struct, frozen=True):
    name: str
    context: Context | None = None


class _Document(Struct, frozen=True):
    kind: str = "Config"
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None
    current_context: str | None = field(default=None, name="current-context")


class Located(NamedTuple, Generic[T]):
    """A value with its file and its location in the file."""

    value: T
    file: Path
    #: such as ``users[admin]``
    field: str

    @property
    def where(self) -> str:
        """File and field, the start of an error message."""
        return f"{self.file}: {self.field}"

    def resolve(self, path: str) -> Path:
        """Resolve a path relative to the file's folder."""
        return self.file.parent / path


class KubeconfigFile(NamedTuple):
    """The entries of a file, by name."""

    path: Path
    current_context: str
    contexts: dict[str, Located[Context]]
    clusters: dict[str, Located[KubeconfigCluster]]
    users: dict[str, Located[KubeconfigUser]]


def read(path: Path) -> KubeconfigFile:
    """Read a file; every mistake in it is a ``KubeconfigError`` that names its location."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise KubeconfigError(f"cannot read kubeconfig {path}: {reason_of(error)}") from error
    try:
        tree = untrusted_yaml.load(text)
    except yaml.YAMLError as error:
        raise KubeconfigError(f"{path}: not YAML: {untrusted_yaml.problem(error)}") from error
    try:
        document = msgspec.convert(tree if tree is not None else {}, type=_Document)
    except msgspec.ValidationError as error:
        raise KubeconfigError(f"{path}: not a kubeconfig: {error}") from error
    if document.kind != "Config":
        raise KubeconfigError(f"{path}: kind: want Config, not {document.kind}")
    return _by_name(path, document)


def _by_name(path: Path, document: _Document) -> KubeconfigFile:
    contexts = [(item.name, item.context or Context()) for item in document.contexts or ()]
    clusters = [
        (item.name, item.cluster or KubeconfigCluster()) for item in document.clusters or ()
    ]
    users = [(item.name, item.user or KubeconfigUser()) for item in document.users or ()]
    return KubeconfigFile(
        path,
        document.current_context or "",
        _located(path, "contexts", contexts),
        _located(path, "clusters", clusters),
        _located(path, "users", users),
    )


def _located(path: Path, field_name: str, items: list[tuple[str, T]]) -> dict[str, Located[T]]:
    table: dict[str, Located[T]] = {}
    for name, value in items:
        if name in table:
            raise KubeconfigError(f"{path}: {field_name}: duplicate name {name!r}")
        table[name] = Located(value, path, f"{field_name}[{name}]")
    return table
