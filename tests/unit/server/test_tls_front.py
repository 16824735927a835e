"""Certificates as clients see them: by name, and after files changed. All over real connections."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

import pytest
import trustme

from kubesched.server.certificates import MemoryPair, self_signed
from kubesched.server.options import ServingOptions, SniCertificate
from kubesched.server.tls_front import NamedPair, TlsFront, names_of
from kubesched.server.tls_settings import TlsSettings
from tests.support.serving import LOOPBACK, client_tls, served, write_pair
from tests.support.waiting import eventually

from .conftest import Run


def sni(folder: Path, file: str, *names: str, certificate: trustme.LeafCert) -> SniCertificate:
    options = write_pair(folder, certificate, file)
    return SniCertificate(options.tls_cert_file, options.tls_private_key_file, names)


def spoil(file: Path) -> None:
    file.write_bytes(b"half of it")


def test_the_certificate_depends_on_the_name(
    run: Run, tmp_path: Path, client_authority: trustme.CA
) -> None:
    issue = client_authority.issue_cert
    options = ServingOptions(
        bind_address=LOOPBACK,
        tls_sni_cert_key=(
            sni(tmp_path, "a", "a.example", "*.b.example", certificate=issue("first.test")),
            sni(tmp_path, "b", certificate=issue("a.example", "second.test", "*.second.test")),
            sni(tmp_path, "c", "a.example", certificate=issue("third.test")),
        ),
    )
    shown: dict[str | None, str] = {}

    async def main() -> None:
        async with served(serving=options) as target:
            for name in (
                "a.example",
                "A.EXAMPLE",
                "x.b.example",
                "y.x.b.example",
                "b.example",
                "second.test",
                "sub.second.test",
                "first.test",
                None,
            ):
                shown[name] = (await target.certificate(name))["dns"][0]

    run(main())

    assert shown == {
        "a.example": "first.test",  # named explicitly, and first
        "A.EXAMPLE": "first.test",
        "x.b.example": "first.test",
        "y.x.b.example": "localhost",  # a pattern stands for one label
        "b.example": "localhost",
        "second.test": "a.example",  # names in the certificate
        "sub.second.test": "a.example",
        "first.test": "localhost",  # explicit names replace those in the certificate
        None: "localhost",
    }


def test_a_client_without_sni_may_mean_the_address(
    run: Run, tmp_path: Path, client_authority: trustme.CA
) -> None:
    certificate = client_authority.issue_cert("by-address.test")
    options = ServingOptions(
        bind_address=LOOPBACK,
        tls_sni_cert_key=(sni(tmp_path, "a", LOOPBACK, certificate=certificate),),
    )

    async def main() -> list[str]:
        async with served(serving=options) as target:
            shown: list[str] = (await target.certificate())["dns"]
            return shown

    assert run(main()) == ["by-address.test"]


def test_new_files_are_served_without_a_restart(
    run: Run, tmp_path: Path, client_authority: trustme.CA, caplog: pytest.LogCaptureFixture
) -> None:
    issue = client_authority.issue_cert
    options = write_pair(tmp_path, issue("old.test"))
    cert_file = Path(options.tls_cert_file)
    names: list[str] = []

    async def main() -> None:
        async with served(serving=options) as target:

            async def see(name: str) -> None:
                while name not in names:
                    names.extend((await target.certificate())["dns"])

            await see("old.test")
            spoil(cert_file)
            await eventually(lambda: "the old one stays in use" in caplog.text)
            assert (await target.certificate())["dns"] == ["old.test"]
            write_pair(tmp_path, issue("new.test"))
            await see("new.test")

    run(main())


def test_files_behind_a_link_that_moves(
    run_once: Run, tmp_path: Path, client_authority: trustme.CA
) -> None:
    """As in a volume of a Secret."""
    for version in ("old", "new"):
        (tmp_path / version).mkdir()
        write_pair(tmp_path / version, client_authority.issue_cert(f"{version}.test"))
    current = tmp_path / "current"
    current.symlink_to("old")
    options = ServingOptions(
        bind_address=LOOPBACK,
        tls_cert_file=str(current / "serving.crt"),
        tls_private_key_file=str(current / "serving.key"),
    )

    async def main() -> None:
        async with served(serving=options) as target:
            assert (await target.certificate())["dns"] == ["old.test"]
            (tmp_path / "next").symlink_to("new")
            os.replace(tmp_path / "next", current)  # noqa: PTH105 (the atomic one, by name)
            while (await target.certificate())["dns"] != ["new.test"]:
                pass

    run_once(main())


@pytest.mark.parametrize(
    ("options", "version", "works"),
    [
        ({}, ssl.TLSVersion.TLSv1_2, True),
        ({}, ssl.TLSVersion.TLSv1_3, True),
        ({"tls_min_version": "VersionTLS13"}, ssl.TLSVersion.TLSv1_2, False),
        ({"tls_min_version": "VersionTLS13"}, ssl.TLSVersion.TLSv1_3, True),
        ({"tls_cipher_suites": ("TLS_AES_128_GCM_SHA256",)}, ssl.TLSVersion.TLSv1_2, False),
    ],
)
def test_versions_that_are_spoken(
    run: Run, options: dict[str, object], version: ssl.TLSVersion, works: bool
) -> None:
    serving = ServingOptions(bind_address=LOOPBACK, **options)  # type: ignore[arg-type]  # by name

    async def main() -> bool:
        async with served(serving=serving) as target:
            try:
                return (await target.ask("/metrics", tls=client_tls(version=version))).code == 200
            except OSError:
                return False

    assert run(main()) is works


def test_only_the_cipher_suites_that_are_named(run: Run) -> None:
    suite = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"
    serving = ServingOptions(bind_address=LOOPBACK, tls_cipher_suites=(suite,))

    async def main() -> list[bool]:
        works = []
        async with served(serving=serving) as target:
            for ciphers in ("ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-RSA-AES128-GCM-SHA256"):
                tls = client_tls(version=ssl.TLSVersion.TLSv1_2)
                tls.set_ciphers(ciphers)
                try:
                    works.append((await target.ask("/metrics", tls=tls)).code == 200)
                except OSError:
                    works.append(False)
        return works

    assert run(main()) == [True, False]


def test_certificates_of_clients_are_asked_for_when_somebody_is_trusted(
    client_authority: trustme.CA,
) -> None:
    front = TlsFront(TlsSettings.of(ServingOptions()), MemoryPair(self_signed("")))
    modes = [front.context.verify_mode]
    for pem in (client_authority.cert_pem.bytes().decode(), ""):
        front.trust(pem)
        modes.append(front.context.verify_mode)

    assert modes == [ssl.CERT_NONE, ssl.CERT_OPTIONAL, ssl.CERT_NONE]


def test_names_in_a_certificate(tmp_path: Path, client_authority: trustme.CA) -> None:
    certificate = client_authority.issue_cert(
        "A.test", "*.b.test", "10.0.0.1", common_name="c.test"
    )
    pair = NamedPair(sni(tmp_path, "a", certificate=certificate)).source.read()

    assert names_of(pair.leaf) == ["c.test", "a.test", "*.b.test"]


@pytest.mark.parametrize("common_name", ["10.0.0.1", "not a host", "under_score.test"])
def test_a_common_name_that_is_no_host(
    tmp_path: Path, client_authority: trustme.CA, common_name: str
) -> None:
    certificate = client_authority.issue_cert("a.test", common_name=common_name)
    pair = NamedPair(sni(tmp_path, "a", certificate=certificate)).source.read()

    assert names_of(pair.leaf) == ["a.test"]
