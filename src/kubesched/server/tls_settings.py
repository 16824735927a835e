"""Maps the TLS flags, in Go's names, to ``ssl`` contexts.

Both Go and OpenSSL choose among the allowed cipher suites and curves themselves: the flags restrict
them, not their order. The suites of TLS 1.3 cannot be chosen in either.
"""

from __future__ import annotations

import logging
import ssl
import warnings

from msgspec import Struct

from kubesched.errors import ConfigError
from kubesched.go_text import quoted
from kubesched.server.options import ServingOptions

_log = logging.getLogger(__name__)

_VERSIONS = {
    "VersionTLS10": ssl.TLSVersion.TLSv1,
    "VersionTLS11": ssl.TLSVersion.TLSv1_1,
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}

_TLS13_SUITES = frozenset(
    {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}
)
#: Go's name -> OpenSSL's.
_SUITES = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
}
_INSECURE_SUITES = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256": "ECDHE-ECDSA-AES128-SHA256",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA": "ECDHE-ECDSA-RC4-SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA": "ECDHE-RSA-DES-CBC3-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256": "ECDHE-RSA-AES128-SHA256",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA": "ECDHE-RSA-RC4-SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA": "DES-CBC3-SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256": "AES128-SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA": "AES256-SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "TLS_RSA_WITH_RC4_128_SHA": "RC4-SHA",
}

#: Go's number -> OpenSSL's name, most widely supported first.
_CURVES = {
    23: "prime256v1",
    29: "X25519",
    24: "secp384r1",
    25: "secp521r1",
    4588: "X25519MLKEM768",
    4587: "SecP256r1MLKEM768",
    4589: "SecP384r1MLKEM1024",
}
_LARGEST_CURVE = 65535


class TlsSettings(Struct, frozen=True):
    """Common settings of all contexts of one server."""

    min_version: ssl.TLSVersion
    #: in OpenSSL's syntax; "": the library's default
    ciphers: str = ""
    #: in OpenSSL's syntax; "": the library's default
    curve: str = ""

    @classmethod
    def of(cls, options: ServingOptions) -> TlsSettings:
        """Translate the flags; raises ConfigError if one is invalid."""
        suites = _suites(options.tls_cipher_suites)
        min_version = _min_version(options.tls_min_version)
        if options.tls_cipher_suites and not suites:
            # Only suites of TLS 1.3 are allowed, so older versions have none.
            min_version = ssl.TLSVersion.TLSv1_3
        settings = cls(min_version, ":".join(suites), _curve(options.tls_curve_preferences))
        settings.context()
        return settings

    def context(self) -> ssl.SSLContext:
        """Create a context without a certificate; raises ConfigError if OpenSSL lacks something."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with warnings.catch_warnings():
            # A user who requests TLS 1.0 explicitly needs no deprecation warning.
            warnings.simplefilter("ignore", DeprecationWarning)
            context.minimum_version = self.min_version
        context.set_alpn_protocols(["http/1.1"])
        # No session resumption: a resumed connection would not present its certificates.
        context.options |= ssl.OP_NO_TICKET | ssl.OP_CIPHER_SERVER_PREFERENCE
        context.num_tickets = 0
        # As strict with client certificates as Go, not stricter; any trusted authority is a root,
        # even an intermediate one.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        self._restrict(context)
        return context

    def _restrict(self, context: ssl.SSLContext) -> None:
        old = self.min_version < ssl.TLSVersion.TLSv1_2
        try:
            if self.ciphers or old:
                # OpenSSL's default security level disables the old versions.
                level = ":@SECLEVEL=0" if old else ""
                context.set_ciphers((self.ciphers or "DEFAULT") + level)
        except ssl.SSLError:
            raise ConfigError(
                f"--tls-cipher-suites: {ssl.OPENSSL_VERSION} has none of these suites"
            ) from None
        try:
            if self.curve:
                context.set_ecdh_curve(self.curve)
        except (ValueError, ssl.SSLError):
            raise ConfigError(
                f"--tls-curve-preferences: {ssl.OPENSSL_VERSION} does not know {self.curve}"
            ) from None


def _min_version(name: str) -> ssl.TLSVersion:
    try:
        return _VERSIONS[name or "VersionTLS12"]
    except KeyError:
        raise ConfigError(f"unknown tls version {quoted(name)}") from None


def _suites(names: tuple[str, ...]) -> list[str]:
    """Return OpenSSL's names of the suites before TLS 1.3."""
    suites = []
    for name in names:
        if name in _INSECURE_SUITES:
            _log.warning("Use of insecure cipher '%s' detected.", name)
        if name in _TLS13_SUITES:
            continue
        suite = _SUITES.get(name) or _INSECURE_SUITES.get(name)
        if suite is None:
            raise ConfigError(f"Cipher suite {name} not supported or doesn't exist")
        suites.append(suite)
    return suites


def _curve(numbers: tuple[int, ...]) -> str:
    for position, number in enumerate(numbers):
        if not 0 < number <= _LARGEST_CURVE:
            raise ConfigError(
                f"curve preference {number} is out of range (must be 1-{_LARGEST_CURVE})"
            )
        if number in numbers[:position]:
            raise ConfigError(f"duplicate curve preference {number}")
        if number not in _CURVES:
            raise ConfigError(f"curve preference {number} is not supported")
    allowed = [name for number, name in _CURVES.items() if number in numbers]
    if len(allowed) > 1:
        # The ssl module sets one curve or leaves all on; others must stay off.
        _log.warning(
            "--tls-curve-preferences: of the %d curves, only %s is used", len(allowed), allowed[0]
        )
    return allowed[0] if allowed else ""
