"""TLS failures as messages that name what to check."""

from __future__ import annotations

import ssl

import pytest

from kubesched.client.tls_errors import explain_tls

PEER = "10.0.0.1:6443"


def verification(code: int) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "failed")
    error.verify_code = code
    error.verify_message = "as OpenSSL says"
    return error


def handshake(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, "failed")
    error.reason = reason
    return error


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (verification(19), "signed by unknown authority (as OpenSSL says); check certificate-auth"),
        (verification(10), "has expired; renew it, and check this machine's clock"),
        (verification(9), "is not valid yet; check this machine's clock"),
        (verification(62), "is for another name (as OpenSSL says); check server and tls-server"),
        (verification(1), "the server's certificate is refused: as OpenSSL says"),
        (handshake("WRONG_VERSION_NUMBER"), "the server does not speak TLS"),
        (handshake("TLSV13_ALERT_CERTIFICATE_REQUIRED"), "check client-certificate of the user"),
        (handshake("NO_CIPHERS"), "TLS failed: NO_CIPHERS"),
    ],
)
def test_each_failure_names_its_remedy(error: ssl.SSLError, message: str) -> None:
    explained = str(explain_tls(error, PEER))

    assert explained.startswith(f"{PEER}: ")
    assert message in explained


def test_other_errors_are_not_about_tls() -> None:
    assert explain_tls(ConnectionResetError(), PEER) is None
