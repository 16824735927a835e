"""TLS errors as messages that say what to check."""

from __future__ import annotations

import ssl

from kubesched.errors import ConnectionFailedError

#: OpenSSL's verification results by meaning.
_UNKNOWN_AUTHORITY = frozenset({2, 18, 19, 20, 21, 27})
_EXPIRED = 10
_NOT_YET_VALID = 9
_WRONG_NAME = frozenset({62, 64})

_CLIENT_CERTIFICATE_ALERTS = (
    "CERTIFICATE_REQUIRED",
    "ALERT_BAD_CERTIFICATE",
    "ALERT_CERTIFICATE",
    "ALERT_UNKNOWN_CA",
    "ALERT_HANDSHAKE_FAILURE",
)


def explain_tls(error: Exception, peer: str) -> ConnectionFailedError | None:
    """Return the exception for a TLS failure, None if it was something else."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return ConnectionFailedError(f"{peer}: {_verification(error)}")
    if isinstance(error, ssl.SSLError):
        return ConnectionFailedError(f"{peer}: {_handshake(error)}")
    return None


def _verification(error: ssl.SSLCertVerificationError) -> str:
    code = error.verify_code
    detail = " ".join(str(error.verify_message or error).split())
    if code in _UNKNOWN_AUTHORITY:
        return (
            f"certificate signed by unknown authority ({detail}); "
            "check certificate-authority of the cluster in the kubeconfig"
        )
    if code == _EXPIRED:
        return "the server's certificate has expired; renew it, and check this machine's clock"
    if code == _NOT_YET_VALID:
        return "the server's certificate is not valid yet; check this machine's clock"
    if code in _WRONG_NAME:
        return (
            f"the server's certificate is for another name ({detail}); "
            "check server and tls-server-name of the cluster in the kubeconfig"
        )
    return f"the server's certificate is refused: {detail}"


def _handshake(error: ssl.SSLError) -> str:
    reason = error.reason or ""
    if reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"):
        return "the server does not speak TLS (should its address begin with http://?)"
    if any(alert in reason for alert in _CLIENT_CERTIFICATE_ALERTS):
        return (
            f"the server refused our client certificate ({reason}); "
            "check client-certificate of the user in the kubeconfig"
        )
    return f"TLS failed: {reason or ' '.join(str(error).split())}"
