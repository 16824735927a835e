"""Valid values of kube-scheduler's TLS flags: Go's names of cipher suites, versions, curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

CIPHERS: Final = (
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
)
INSECURE_CIPHERS: Final = (
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_RSA_WITH_RC4_128_SHA",
)
TLS_VERSIONS: Final = ("VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13")

#: P-256, P-384, P-521, X25519, and the hybrids of ML-KEM with P-256, X25519 and P-384
CURVES: Final = frozenset({23, 24, 25, 29, 4587, 4588, 4589})
_LARGEST_CURVE: Final = 0xFFFF


def cipher_error(names: Sequence[str]) -> str:
    """Return the error about a list of cipher suites, if any."""
    known = frozenset(CIPHERS + INSECURE_CIPHERS)
    unknown = (name for name in names if name not in known)
    return next((f"Cipher suite {name} not supported or doesn't exist" for name in unknown), "")


def curve_error(curves: Sequence[int]) -> str:
    """Return the error about a list of curves, if any."""
    seen = set()
    for curve in curves:
        if not 0 < curve <= _LARGEST_CURVE:
            return f"curve preference {curve} is out of range (must be 1-{_LARGEST_CURVE})"
        if curve in seen:
            return f"duplicate curve preference {curve}"
        if curve not in CURVES:
            return f"curve preference {curve} is not supported by the current Go version"
        seen.add(curve)
    return ""


def version_error(name: str) -> str:
    """Return the error about the name of a TLS version, if any."""
    return "" if not name or name in TLS_VERSIONS else f'unknown tls version "{name}"'
