"""Callers with certificates, their own or their proxy's."""

from __future__ import annotations

import asyncio
import datetime as dt
import socket
import ssl
import time
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kubesched.clock import VirtualClock
from kubesched.server.options import (
    AuthenticationOptions,
    AuthorizationOptions,
)
from tests.support.serving import LOOPBACK, Reviewer, client_tls, parse, reviewing, served

from .conftest import Run
from .delegation import delegated


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_callers_with_certificates(
    run: Run,
    reviewer: Reviewer,
    tmp_path: Path,
    client_authority: trustme.CA,
    version: ssl.TLSVersion,
) -> None:
    client_authority.cert_pem.write_to_path(tmp_path / "clients")
    issue = client_authority.issue_cert
    callers = {
        "certified": issue("a.test", common_name="certified"),
        "eve": issue("a.test", common_name="eve"),
        "root": issue("a.test", common_name="root", organization_name="system:masters"),
        "certified by another": client_authority.create_child_ca().issue_cert(
            "a.test", common_name="certified"
        ),
        "nobody": None,
    }

    async def main() -> dict[str, int]:
        codes = {}
        async with delegated(
            reviewer, tmp_path, client_ca_file=str(tmp_path / "clients")
        ) as target:
            for name, certificate in callers.items():
                tls = client_tls(certificate, version=version)
                codes[name] = (await target.ask("/metrics", tls=tls)).code
        return codes

    assert run(main()) == {
        "certified": 200,
        "eve": 403,
        "root": 200,
        "certified by another": 200,
        "nobody": 403,
    }


def test_a_token_counts_if_the_certificate_names_nobody(
    run_once: Run, reviewer: Reviewer, tmp_path: Path, client_authority: trustme.CA
) -> None:
    client_authority.cert_pem.write_to_path(tmp_path / "clients")
    tls = client_tls(client_authority.issue_cert("a.test"))

    async def main() -> list[int]:
        async with delegated(
            reviewer, tmp_path, client_ca_file=str(tmp_path / "clients")
        ) as target:
            tokens = ("ann's", "wrong", "")
            return [(await target.ask("/metrics", token=t, tls=tls)).code for t in tokens]

    assert run_once(main()) == [200, 401, 403]


def test_a_certificate_of_a_stranger_does_not_even_connect(
    run: Run,
    reviewer: Reviewer,
    tmp_path: Path,
    client_authority: trustme.CA,
    strange_authority: trustme.CA,
) -> None:
    client_authority.cert_pem.write_to_path(tmp_path / "clients")
    tls = client_tls(
        strange_authority.issue_cert("a.test", common_name="certified"),
        version=ssl.TLSVersion.TLSv1_2,
    )

    async def main() -> None:
        async with delegated(
            reviewer, tmp_path, client_ca_file=str(tmp_path / "clients")
        ) as target:
            with pytest.raises(ConnectionResetError):
                await target.ask("/metrics", tls=tls)
            assert (await target.ask("/healthz")).code == 200

    run(main())


def test_a_certificate_of_a_server_is_none_of_a_client(
    run_once: Run, reviewer: Reviewer, tmp_path: Path, client_authority: trustme.CA
) -> None:
    client_authority.cert_pem.write_to_path(tmp_path / "clients")
    files = (str(tmp_path / "server.crt"), str(tmp_path / "server.key"))
    write_server_certificate(client_authority, *map(Path, files))
    tls = client_tls(version=ssl.TLSVersion.TLSv1_2)
    tls.load_cert_chain(*files)

    async def main() -> None:
        async with delegated(
            reviewer, tmp_path, client_ca_file=str(tmp_path / "clients")
        ) as target:
            with pytest.raises(ConnectionResetError):
                await target.ask("/metrics", tls=tls)

    run_once(main())


def write_server_certificate(authority: trustme.CA, cert_file: Path, key_file: Path) -> None:
    """A certificate of the authority that is good for servers only."""
    signer = load_pem_private_key(authority.private_key_pem.bytes(), password=None)
    issuer = x509.load_pem_x509_certificate(authority.cert_pem.bytes())
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "certified")]))
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(hours=1))
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(signer, hashes.SHA256())
    )
    cert_file.write_bytes(certificate.public_bytes(Encoding.PEM))
    form = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    key_file.write_bytes(key.private_bytes(*form))


def test_a_certificate_is_not_asked_for_if_nobody_is_trusted(
    run_once: Run, reviewer: Reviewer, tmp_path: Path, strange_authority: trustme.CA
) -> None:
    tls = client_tls(strange_authority.issue_cert("a.test", common_name="certified"))

    async def main() -> int:
        async with delegated(reviewer, tmp_path) as target:
            return (await target.ask("/metrics", token="ann's", tls=tls)).code

    assert run_once(main()) == 200


def test_callers_behind_a_proxy(
    run: Run,
    reviewer: Reviewer,
    tmp_path: Path,
    client_authority: trustme.CA,
    proxy_authority: trustme.CA,
) -> None:
    reviewer.config_map = {
        "client-ca-file": client_authority.cert_pem.bytes().decode(),
        "requestheader-client-ca-file": proxy_authority.cert_pem.bytes().decode(),
        "requestheader-allowed-names": '["front-proxy"]',
        "requestheader-username-headers": '["X-Remote-User"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
    }
    issue = proxy_authority.issue_cert
    proxy = client_tls(issue("a.test", common_name="front-proxy"))
    other = client_tls(issue("a.test", common_name="other"))
    client = client_tls(client_authority.issue_cert("a.test", common_name="eve"))
    ann = {"X-Remote-User": "proxied"}
    masters = {"X-Remote-User": "x", "X-Remote-Group": "system:masters"}
    cases: dict[str, tuple[ssl.SSLContext, dict[str, str], int]] = {
        "for somebody": (proxy, ann, 200),
        "for a master": (proxy, masters, 200),
        "for somebody without rights": (proxy, {"X-Remote-User": "eve"}, 403),
        "for nobody": (proxy, {}, 401),
        "not on the list": (other, ann, 401),
        "not a proxy": (client, masters, 403),
        "no certificate": (client_tls(), masters, 403),
    }

    async def main() -> dict[str, int]:
        async with delegated(reviewer, tmp_path) as target:
            return {
                name: (await target.ask("/metrics", tls=tls, headers=headers)).code
                for name, (tls, headers, _) in cases.items()
            }

    assert run(main()) == {name: code for name, (_, _, code) in cases.items()}


def test_a_resumed_connection_is_recognised_as_well(
    run_once: Run, reviewer: Reviewer, tmp_path: Path, client_authority: trustme.CA
) -> None:
    """TLS 1.2 lets clients resume without a ticket; then no chain comes along."""
    client_authority.cert_pem.write_to_path(tmp_path / "clients")
    certificate = client_authority.issue_cert("a.test", common_name="certified")
    context = client_tls(certificate, version=ssl.TLSVersion.TLSv1_2)

    def ask(port: int, session: ssl.SSLSession | None) -> tuple[int, ssl.SSLSession | None, bool]:
        with (
            socket.create_connection((LOOPBACK, port)) as raw,
            context.wrap_socket(raw, session=session) as tls,
        ):
            tls.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            received = b"".join(iter(lambda: tls.recv(65536), b""))
            return parse(received).code, tls.session, bool(tls.session_reused)

    async def main() -> None:
        async with delegated(
            reviewer, tmp_path, client_ca_file=str(tmp_path / "clients")
        ) as target:
            first, session, _ = await asyncio.to_thread(ask, target.port, None)
            second, _, resumed = await asyncio.to_thread(ask, target.port, session)
            assert [first, second] == [200, 200]
            assert resumed

    run_once(main())


def test_a_certificate_that_ends_while_its_connection_lasts(
    run_once: Run, reviewer: Reviewer, tmp_path: Path, client_authority: trustme.CA
) -> None:
    client_authority.cert_pem.write_to_path(tmp_path / "clients")
    tls = client_tls(client_authority.issue_cert("a.test", common_name="certified"))
    clock = VirtualClock(time.time())

    async def main() -> list[int]:
        async with reviewing(reviewer, tmp_path) as kubeconfig:
            options = AuthenticationOptions(
                kubeconfig=kubeconfig, client_ca_file=str(tmp_path / "clients")
            )
            rights = AuthorizationOptions(kubeconfig=kubeconfig)
            async with served(authentication=options, authorization=rights, clock=clock) as target:
                before = await target.ask("/metrics", tls=tls)
                clock.advance(990 * 365 * 86400)
                return [before.code, (await target.ask("/metrics", tls=tls)).code]

    assert run_once(main()) == [200, 401]
