"""Credentials: headers, token files that change, certificates that change."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

import pytest
import trustme

from kubesched.client.access import tls_context
from kubesched.client.credentials import (
    ClientCertificateFiles,
    StaticCredentials,
    TokenFileCredentials,
)
from kubesched.clock import VirtualClock
from kubesched.errors import KubeconfigError

from .conftest import Run


def test_fixed_headers(run_once: Run) -> None:
    async def main() -> None:
        assert await StaticCredentials().authorization_header() is None
        assert await StaticCredentials.token("t").authorization_header() == "Bearer t"
        basic = StaticCredentials.basic("ann", "pä:ss")
        assert await basic.authorization_header() == "Basic YW5uOnDDpDpzcw=="
        assert not basic.invalidate(await basic.authorization_header())

    run_once(main())


class TestTokenFile:
    def test_it_is_read_again_after_a_minute(self, run_once: Run, tmp_path: Path) -> None:
        file = tmp_path / "token"
        file.write_text("one\n")
        clock = VirtualClock()
        credentials = TokenFileCredentials(file, clock=clock)

        async def main() -> None:
            assert await credentials.authorization_header() == "Bearer one"
            file.write_text("two")
            clock.advance(59)
            assert await credentials.authorization_header() == "Bearer one"
            clock.advance(1)
            assert await credentials.authorization_header() == "Bearer two"

        run_once(main())

    def test_it_is_read_again_after_a_refusal(self, run_once: Run, tmp_path: Path) -> None:
        file = tmp_path / "token"
        file.write_text("old")
        credentials = TokenFileCredentials(file, clock=VirtualClock())

        async def main() -> None:
            old = await credentials.authorization_header()
            file.write_text("new")
            assert credentials.invalidate(old)
            assert await credentials.authorization_header() == "Bearer new"

        run_once(main())

    def test_a_late_refusal_of_the_last_token_does_not_matter(
        self, run_once: Run, tmp_path: Path
    ) -> None:
        file = tmp_path / "token"
        file.write_text("one")
        clock = VirtualClock()
        credentials = TokenFileCredentials(file, clock=clock)

        async def main() -> None:
            one = await credentials.authorization_header()
            file.write_text("two")
            clock.advance(60)
            assert await credentials.authorization_header() == "Bearer two"
            file.write_text("three")
            credentials.invalidate(one)
            assert await credentials.authorization_header() == "Bearer two"

        run_once(main())

    @pytest.mark.parametrize("trouble", ["gone", "empty"])
    def test_trouble_keeps_the_last_token(
        self,
        run_once: Run,
        tmp_path: Path,
        trouble: str,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        file = tmp_path / "token"
        file.write_text("good")
        clock = VirtualClock()
        credentials = TokenFileCredentials(file, clock=clock)

        async def main() -> None:
            await credentials.authorization_header()
            if trouble == "gone":
                file.unlink()
            else:
                file.write_text("  \n")
            clock.advance(60)
            assert await credentials.authorization_header() == "Bearer good"
            file.write_text("better")
            clock.advance(60)
            assert await credentials.authorization_header() == "Bearer better"

        run_once(main())
        assert "the last token stays in use" in caplog.text

    def test_without_any_token_it_is_an_error(self, run_once: Run, tmp_path: Path) -> None:
        credentials = TokenFileCredentials(tmp_path / "nothing")

        async def main() -> None:
            with pytest.raises(KubeconfigError, match=r"cannot read token file .*nothing: No such"):
                await credentials.authorization_header()

        run_once(main())

    def test_a_token_cannot_smuggle_headers(self, run_once: Run, tmp_path: Path) -> None:
        file = tmp_path / "token"
        file.write_text("a\r\nX-Evil: yes")
        credentials = TokenFileCredentials(file)

        async def main() -> None:
            with pytest.raises(KubeconfigError, match="odd characters"):
                await credentials.authorization_header()

        run_once(main())


class TestCertificateFiles:
    @staticmethod
    def _write(authority: trustme.CA, folder: Path, name: str) -> tuple[Path, Path]:
        pair = authority.issue_cert("x", common_name=name)
        certificate, key = folder / "c.pem", folder / "k.pem"
        certificate.write_bytes(pair.cert_chain_pems[0].bytes())
        key.write_bytes(pair.private_key_pem.bytes())
        return certificate, key

    def test_changed_files_are_loaded_and_counted(
        self, run_once: Run, authority: trustme.CA, tmp_path: Path
    ) -> None:
        certificate, key = self._write(authority, tmp_path, "one")
        clock = VirtualClock()
        credentials = ClientCertificateFiles(
            StaticCredentials.token("t"),
            context=tls_context(ca_pem=None),
            certificate=certificate,
            key=key,
            clock=clock,
        )

        async def main() -> None:
            assert await credentials.authorization_header() == "Bearer t"
            self._write(authority, tmp_path, "two")
            os.utime(certificate, ns=(1, 1))
            assert credentials.generation == 0
            clock.advance(300)
            await credentials.authorization_header()
            assert credentials.generation == 1
            clock.advance(300)
            await credentials.authorization_header()
            assert credentials.generation == 1

        run_once(main())

    def test_half_written_files_keep_the_old_certificate(
        self, run_once: Run, authority: trustme.CA, tmp_path: Path
    ) -> None:
        certificate, key = self._write(authority, tmp_path, "one")
        context = tls_context(ca_pem=None)
        clock = VirtualClock()
        credentials = ClientCertificateFiles(
            StaticCredentials(), context=context, certificate=certificate, key=key, clock=clock
        )

        async def main() -> None:
            certificate.write_bytes(certificate.read_bytes()[:50])
            os.utime(certificate, ns=(1, 1))
            clock.advance(300)
            await credentials.authorization_header()
            assert credentials.generation == 0
            self._write(authority, tmp_path, "two")
            os.utime(certificate, ns=(2, 2))
            assert credentials.invalidate(None)
            assert credentials.generation == 1

        run_once(main())

    def test_a_key_of_somebody_else_is_an_error(
        self, authority: trustme.CA, tmp_path: Path
    ) -> None:
        certificate, key = self._write(authority, tmp_path, "one")
        key.write_bytes(authority.issue_cert("y").private_key_pem.bytes())

        with pytest.raises(ssl.SSLError):
            ClientCertificateFiles(
                StaticCredentials(),
                context=tls_context(ca_pem=None),
                certificate=certificate,
                key=key,
            )
