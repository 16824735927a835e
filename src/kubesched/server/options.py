"""Options of the flag groups secure serving, authentication and authorization."""

from __future__ import annotations

from msgspec import Struct


class SniCertificate(Struct, frozen=True):
    """A certificate for some SNI names."""

    cert_file: str
    key_file: str
    #: host names, or ``*.`` patterns; empty: the names in the certificate
    names: tuple[str, ...] = ()


class ServingOptions(Struct, frozen=True):
    """Where and how to serve."""

    bind_address: str = "0.0.0.0"  # noqa: S104 (kube-scheduler's default: all interfaces)
    #: 0 serves nothing
    secure_port: int = 10259
    #: empty keeps a self-signed certificate in memory
    cert_dir: str = ""
    tls_cert_file: str = ""
    tls_private_key_file: str = ""
    #: Go's names of cipher suites; empty: the library's default
    tls_cipher_suites: tuple[str, ...] = ()
    #: Go's numbers of curves
    tls_curve_preferences: tuple[int, ...] = ()
    #: VersionTLS10 to VersionTLS13; "" is VersionTLS12
    tls_min_version: str = ""
    tls_sni_cert_key: tuple[SniCertificate, ...] = ()
    permit_port_sharing: bool = False
    permit_address_sharing: bool = False


class AuthenticationOptions(Struct, frozen=True):
    """How callers are authenticated."""

    kubeconfig: str = ""
    token_cache_ttl_s: float = 10.0
    client_ca_file: str = ""
    requestheader_username_headers: tuple[str, ...] = ("x-remote-user",)
    requestheader_uid_headers: tuple[str, ...] = ()
    requestheader_group_headers: tuple[str, ...] = ("x-remote-group",)
    requestheader_extra_headers_prefix: tuple[str, ...] = ("x-remote-extra-",)
    requestheader_client_ca_file: str = ""
    requestheader_allowed_names: tuple[str, ...] = ()
    skip_lookup: bool = False
    tolerate_lookup_failure: bool = True


class AuthorizationOptions(Struct, frozen=True):
    """How requests are authorized."""

    kubeconfig: str = ""
    allow_cache_ttl_s: float = 10.0
    deny_cache_ttl_s: float = 10.0
    always_allow_paths: tuple[str, ...] = ("/healthz", "/readyz", "/livez")
