"""Trusted authorities: of clients, and of front proxies.

    --client-ca-file, --requestheader-client-ca-file ──┐
                                                       ├──> Trust ──> TLS, authentication
    ConfigMap extension-apiserver-authentication ──────┘

What the flags leave open is read from the cluster and watched there. An invalid update is logged,
and the previous value stays.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from msgspec import Struct

from kubesched.api.meta import ApiStruct, ObjectMeta
from kubesched.client import resources
from kubesched.client.credentials import reason_of
from kubesched.client.file_stamp import stamp
from kubesched.client.informer import Informer
from kubesched.client.rest import ApiClient
from kubesched.errors import (
    ClientError,
    ConfigError,
    ForbiddenError,
    KubeconfigError,
    NotFoundError,
)
from kubesched.server.options import AuthenticationOptions

_log = logging.getLogger(__name__)

_NAMESPACE = "kube-system"
_NAME = "extension-apiserver-authentication"
_ROLE = "extension-apiserver-authentication-reader"
_LOOKUP_TIMEOUT_S = 10.0


class Authorities(Struct, frozen=True):
    """Certificate authorities."""

    certificates: tuple[x509.Certificate, ...]

    @classmethod
    def parse(cls, pem: bytes) -> Authorities:
        """Parse a bundle; raises ValueError if it has no certificate, or a malformed one."""
        return cls(tuple(x509.load_pem_x509_certificates(pem)))

    @property
    def pem(self) -> str:
        """All of them, concatenated."""
        return "".join(each.public_bytes(Encoding.PEM).decode() for each in self.certificates)


class FrontProxy(Struct, frozen=True):
    """Which proxies may impersonate users, and in which headers."""

    authorities: Authorities
    #: allowed common names; empty: any that the authorities verify
    allowed_names: tuple[str, ...] = ()
    username_headers: tuple[str, ...] = ()
    uid_headers: tuple[str, ...] = ()
    group_headers: tuple[str, ...] = ()
    extra_header_prefixes: tuple[str, ...] = ()


class Trust(Struct, frozen=True):
    """The current authorities; None: none of that kind."""

    clients: Authorities | None = None
    front_proxy: FrontProxy | None = None

    @property
    def pem(self) -> str:
        """All authorities, "" if there are none."""
        proxies = self.front_proxy.authorities if self.front_proxy else None
        return "".join(each.pem for each in (self.clients, proxies) if each)


class ConfigMap(ApiStruct, frozen=True):
    """The part of a ConfigMap that is read here."""

    metadata: ObjectMeta = ObjectMeta()
    data: dict[str, str] | None = None


class TrustKeeper:
    """Holds the trusted authorities, keeps them current, and calls back on changes."""

    def __init__(
        self,
        options: AuthenticationOptions,
        client: ApiClient | None,
        *,
        on_change: Callable[[Trust], None],
    ) -> None:
        """Without a client, nothing is looked up. Raises ConfigError if a file is invalid."""
        self._options = options
        self._client = client
        self._on_change = on_change
        self.current = Trust()
        #: file -> its stamp when it was read
        self._seen: dict[str, object] = {}
        self._read_files(told=False)

    @property
    def looks_up(self) -> bool:
        """Whether the ConfigMap is needed."""
        options = self._options
        given = options.client_ca_file and options.requestheader_client_ca_file
        return self._client is not None and not options.skip_lookup and not given

    async def look_up(self) -> None:
        """Read the ConfigMap once; raises ClientError if that fails and must not."""
        if self._client is None or not self.looks_up:
            return
        path = resources.CONFIG_MAPS.item(_NAME, namespace=_NAMESPACE)
        try:
            found = await self._client.get(path, ConfigMap, timeout_s=_LOOKUP_TIMEOUT_S)
        except NotFoundError:
            return  # it may be created later
        except (ClientError, KubeconfigError) as error:
            self._lookup_failed(error)
            return
        self._take(found)

    async def follow(self) -> None:
        """Watch the ConfigMap until cancelled."""
        if self._client is None or not self.looks_up:
            return
        await Informer(
            self._client,
            resources.CONFIG_MAPS,
            ConfigMap,
            handler=self,
            namespace=_NAMESPACE,
            field_selector=f"metadata.name={_NAME}",
        ).run()

    def on_add(self, obj: ConfigMap, initial: bool) -> None:  # noqa: ARG002 (the informer's)
        """Apply the ConfigMap."""
        self._take(obj)

    def on_update(self, old: ConfigMap, new: ConfigMap) -> None:  # noqa: ARG002 (the informer's)
        """Apply the changed ConfigMap."""
        self._take(new)

    def on_delete(self, obj: ConfigMap) -> None:
        """Keep the last value: a deletion revokes no trust."""

    def reload(self) -> None:
        """Reload changed files."""
        if any(stamp(Path(file)) != seen for file, seen in self._seen.items()):
            try:
                self._read_files(told=True)
            except ConfigError as error:
                _log.error("cannot load certificate authorities: %s; the old ones stay", error)

    # ------------------------------------------------------------ files

    def _read_files(self, *, told: bool) -> None:
        options, current = self._options, self.current
        if options.client_ca_file:
            clients = self._bundle(options.client_ca_file)
            current = msgspec.structs.replace(current, clients=clients)
        if options.requestheader_client_ca_file:
            proxy = FrontProxy(
                authorities=self._bundle(options.requestheader_client_ca_file),
                allowed_names=options.requestheader_allowed_names,
                username_headers=options.requestheader_username_headers,
                uid_headers=options.requestheader_uid_headers,
                group_headers=options.requestheader_group_headers,
                extra_header_prefixes=options.requestheader_extra_headers_prefix,
            )
            current = msgspec.structs.replace(current, front_proxy=proxy)
        self._change(current, told=told)

    def _bundle(self, file: str) -> Authorities:
        self._seen[file] = stamp(Path(file))
        try:
            return Authorities.parse(Path(file).read_bytes())
        except OSError as error:
            raise ConfigError(
                f"unable to load client CA file: {file}: {reason_of(error)}"
            ) from None
        except ValueError:
            raise ConfigError(
                f"unable to load client CA file: {file}: does not contain PEM certificates"
            ) from None

    # ------------------------------------------------------------ the ConfigMap

    def _take(self, config_map: ConfigMap) -> None:
        data = config_map.data or {}
        current = self.current
        try:
            if not self._options.client_ca_file and (pem := data.get("client-ca-file")):
                clients = Authorities.parse(pem.encode())
                current = msgspec.structs.replace(current, clients=clients)
            if not self._options.requestheader_client_ca_file and (
                pem := data.get("requestheader-client-ca-file")
            ):
                proxy = _front_proxy(Authorities.parse(pem.encode()), data)
                current = msgspec.structs.replace(current, front_proxy=proxy)
        except (ValueError, msgspec.DecodeError) as error:
            where = f"configmap/{_NAME} in {_NAMESPACE}"
            _log.error("%s cannot be used: %s; what it said before stays", where, error)
            return
        self._change(current, told=True)

    def _change(self, new: Trust, *, told: bool) -> None:
        if new == self.current:
            return
        self.current = new
        if told:
            _log.info("Loaded new certificate authorities of clients")
            self._on_change(new)

    def _lookup_failed(self, error: ClientError | KubeconfigError) -> None:
        if isinstance(error, ForbiddenError):
            _log.warning(
                "Unable to get configmap/%s in %s.  Usually fixed by 'kubectl create rolebinding "
                "-n %s ROLEBINDING_NAME --role=%s --serviceaccount=YOUR_NS:YOUR_SA'",
                *(_NAME, _NAMESPACE, _NAMESPACE, _ROLE),
            )
        if not self._options.tolerate_lookup_failure:
            raise ClientError(
                f"unable to load configmap based request-header-client-ca-file: {error}"
            ) from error
        _log.warning("Error looking up in-cluster authentication configuration: %s", error)
        _log.warning(
            "Continuing without authentication configuration. "
            "This may treat all requests as anonymous."
        )
        _log.warning(
            "To require authentication configuration lookup to succeed, "
            "set --authentication-tolerate-lookup-failure=false"
        )


def _front_proxy(authorities: Authorities, data: dict[str, str]) -> FrontProxy:
    def listed(key: str) -> tuple[str, ...]:
        text = data.get(key)
        # Go encodes a nil slice as null.
        return msgspec.json.decode(text, type=tuple[str, ...] | None) or () if text else ()

    return FrontProxy(
        authorities=authorities,
        allowed_names=listed("requestheader-allowed-names"),
        username_headers=listed("requestheader-username-headers"),
        uid_headers=listed("requestheader-uid-headers"),
        group_headers=listed("requestheader-group-headers"),
        extra_header_prefixes=listed("requestheader-extra-headers-prefix"),
    )
