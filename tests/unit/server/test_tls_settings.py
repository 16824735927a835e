"""The TLS flags, in Go's names."""

from __future__ import annotations

import ssl

import pytest

from kubesched.errors import ConfigError
from kubesched.server.options import ServingOptions
from kubesched.server.tls_settings import TlsSettings


def settings(**options: object) -> TlsSettings:
    return TlsSettings.of(ServingOptions(**options))  # type: ignore[arg-type]  # by name


def names(context: ssl.SSLContext) -> set[str]:
    """The suites before TLS 1.3."""
    return {c["name"] for c in context.get_ciphers() if c["protocol"] != "TLSv1.3"}


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("", ssl.TLSVersion.TLSv1_2),
        ("VersionTLS10", ssl.TLSVersion.TLSv1),
        ("VersionTLS11", ssl.TLSVersion.TLSv1_1),
        ("VersionTLS12", ssl.TLSVersion.TLSv1_2),
        ("VersionTLS13", ssl.TLSVersion.TLSv1_3),
    ],
)
def test_the_oldest_version(name: str, version: ssl.TLSVersion) -> None:
    assert settings(tls_min_version=name).context().minimum_version == version


def test_only_the_suites_that_are_named() -> None:
    suites = ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305")

    assert names(settings(tls_cipher_suites=suites).context()) == {
        "ECDHE-RSA-AES128-GCM-SHA256",
        "ECDHE-RSA-CHACHA20-POLY1305",
    }


def test_suites_of_tls_13_alone_leave_nothing_older() -> None:
    context = settings(tls_cipher_suites=("TLS_AES_128_GCM_SHA256",)).context()

    assert context.minimum_version == ssl.TLSVersion.TLSv1_3


@pytest.mark.parametrize(
    "suite",
    [
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
    ],
)
def test_every_preferred_suite_is_known_to_openssl(suite: str) -> None:
    assert len(names(settings(tls_cipher_suites=(suite,)).context())) == 1


def test_an_insecure_suite_is_used_and_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    context = settings(tls_cipher_suites=("TLS_RSA_WITH_AES_128_GCM_SHA256",)).context()

    assert names(context) == {"AES128-GCM-SHA256"}
    assert caplog.messages == ["Use of insecure cipher 'TLS_RSA_WITH_AES_128_GCM_SHA256' detected."]


@pytest.mark.parametrize(("number", "curve"), [(23, "prime256v1"), (25, "secp521r1")])
def test_one_curve(number: int, curve: str) -> None:
    assert settings(tls_curve_preferences=(number,)).curve == curve


def test_of_several_curves_the_best_known_one_is_used(caplog: pytest.LogCaptureFixture) -> None:
    assert settings(tls_curve_preferences=(24, 29, 23)).curve == "prime256v1"
    assert "only prime256v1 is used" in caplog.text


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"tls_min_version": "TLS1.2"}, 'unknown tls version "TLS1.2"'),
        ({"tls_cipher_suites": ("AES",)}, "Cipher suite AES not supported or doesn't exist"),
        (
            {"tls_cipher_suites": ("TLS_RSA_WITH_RC4_128_SHA",)},
            f"--tls-cipher-suites: {ssl.OPENSSL_VERSION} has none of these suites",
        ),
        (
            {"tls_curve_preferences": (0,)},
            "curve preference 0 is out of range (must be 1-65535)",
        ),
        (
            {"tls_curve_preferences": (65536,)},
            "curve preference 65536 is out of range (must be 1-65535)",
        ),
        ({"tls_curve_preferences": (23, 23)}, "duplicate curve preference 23"),
        ({"tls_curve_preferences": (7,)}, "curve preference 7 is not supported"),
    ],
)
def test_what_means_nothing_is_refused(options: dict[str, object], complaint: str) -> None:
    with pytest.raises(ConfigError) as refused:
        settings(**options)

    assert str(refused.value) == complaint
