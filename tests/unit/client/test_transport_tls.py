"""TLS towards the server: whom we trust, what we show, and what is said when it fails."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import socket
import ssl
from pathlib import Path

import pytest
import trustme

from kubesched.client.access import ClusterAccess, Server, tls_context
from kubesched.client.credentials import load_certificate
from kubesched.client.transport import Transport
from kubesched.errors import ConnectionFailedError
from tests.support.servers import Exchange, ScriptedServer, answer

from .conftest import Run


async def _peer(exchange: Exchange) -> bytes:
    tls = exchange.writer.get_extra_info("ssl_object")
    certificate = tls.getpeercert() or {}
    names = [value for rdn in certificate.get("subject", ()) for _, value in rdn]
    return answer({"alpn": tls.selected_alpn_protocol(), "client": names})


async def _get(server: ScriptedServer, context: ssl.SSLContext, **fields: str) -> bytes:
    pool = Transport(server.tls_access(context, **fields))
    try:
        return (await pool.request("GET", "/")).body
    finally:
        await pool.aclose()


def test_a_server_of_our_authority_is_trusted(
    run: Run, server_tls: ssl.SSLContext, authority_pem: str
) -> None:
    async def main() -> None:
        async with ScriptedServer(_peer, tls=server_tls) as server:
            pool = Transport(server.tls_access(tls_context(ca_pem=authority_pem)))
            for _ in range(3):
                await pool.request("GET", "/")
            await pool.aclose()
            assert server.connections == 1

    run(main())


def test_an_intermediate_authority_can_be_the_root_of_trust(
    run_once: Run, authority: trustme.CA
) -> None:
    intermediate = authority.create_child_ca()
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    intermediate.issue_cert("127.0.0.1").configure_cert(server_side)
    pem = intermediate.cert_pem.bytes().decode()

    async def main() -> None:
        async with ScriptedServer(_peer, tls=server_side) as server:
            await _get(server, tls_context(ca_pem=pem))

    run_once(main())


def test_http_1_1_is_what_we_ask_for(run: Run, authority: trustme.CA, authority_pem: str) -> None:
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_side.set_alpn_protocols(["h2", "http/1.1"])
    authority.issue_cert("127.0.0.1").configure_cert(server_side)

    async def main() -> None:
        async with ScriptedServer(_peer, tls=server_side) as server:
            body = await _get(server, tls_context(ca_pem=authority_pem))
            assert b'"alpn":"http/1.1"' in body

    run(main())


def test_an_unknown_authority_is_refused_with_advice(run: Run, server_tls: ssl.SSLContext) -> None:
    other = trustme.CA().cert_pem.bytes().decode()

    async def main() -> None:
        async with ScriptedServer(_peer, tls=server_tls) as server:
            with pytest.raises(ConnectionFailedError) as error:
                await _get(server, tls_context(ca_pem=other))
            message = str(error.value)
            assert f"127.0.0.1:{server.port}: certificate signed by unknown authority" in message
            assert "check certificate-authority of the cluster in the kubeconfig" in message
            assert "\n" not in message

    run(main())


def test_verification_can_be_switched_off(run_once: Run, server_tls: ssl.SSLContext) -> None:
    async def main() -> None:
        async with ScriptedServer(_peer, tls=server_tls) as server:
            assert await _get(server, tls_context(ca_pem=None, verify=False))

    run_once(main())


def test_a_certificate_for_another_name_is_refused(
    run: Run, authority: trustme.CA, authority_pem: str
) -> None:
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("elsewhere.example").configure_cert(server_side)

    async def main() -> None:
        async with ScriptedServer(_peer, tls=server_side) as server:
            with pytest.raises(ConnectionFailedError, match=r"for another name .*tls-server-name"):
                await _get(server, tls_context(ca_pem=authority_pem))

    run(main())


def test_tls_server_name_is_the_name_that_is_checked(
    run: Run, authority: trustme.CA, authority_pem: str
) -> None:
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("elsewhere.example").configure_cert(server_side)

    async def main() -> None:
        async with ScriptedServer(_peer, tls=server_side) as server:
            context = tls_context(ca_pem=authority_pem)
            assert await _get(server, context, tls_server_name="elsewhere.example")

    run(main())


def test_an_expired_certificate_is_refused(
    run_once: Run, authority: trustme.CA, authority_pem: str
) -> None:
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    yesterday = dt.datetime.now(dt.UTC) - dt.timedelta(days=1)
    authority.issue_cert("127.0.0.1", not_after=yesterday).configure_cert(server_side)

    async def main() -> None:
        async with ScriptedServer(_peer, tls=server_side) as server:
            with pytest.raises(ConnectionFailedError, match="certificate has expired"):
                await _get(server, tls_context(ca_pem=authority_pem))

    run_once(main())


def test_a_server_without_tls_is_recognised(run: Run, authority_pem: str) -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
        writer.close()

    async def main() -> None:
        listener = await asyncio.start_server(plain, "127.0.0.1", 0)
        port = listener.sockets[0].getsockname()[1]
        access = ClusterAccess(
            server=Server("https", "127.0.0.1", port),
            ssl_context=tls_context(ca_pem=authority_pem),
        )
        pool = Transport(access)
        with pytest.raises(ConnectionFailedError) as error:
            await pool.request("GET", "/")
        await pool.aclose()
        listener.close()
        await listener.wait_closed()
        assert str(error.value) == (
            f"GET /: 127.0.0.1:{port}: the server does not speak TLS "
            "(should its address begin with http://?)"
        )

    run(main())


def _refuse_one_client(listener: socket.socket, context: ssl.SSLContext) -> None:
    """A server that sends the TLS alert for a missing certificate, as Go's does."""
    raw, _ = listener.accept()
    with raw:
        raw.settimeout(5)
        tls = context.wrap_socket(raw, server_side=True, do_handshake_on_connect=False)
        with contextlib.suppress(ssl.SSLError):
            tls.do_handshake()
        with contextlib.suppress(OSError):
            tls.shutdown(socket.SHUT_WR)
            while socket.socket.recv(tls, 4096):
                pass
        tls.close()


class TestClientCertificates:
    @staticmethod
    def _server_side(authority: trustme.CA) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)
        context.verify_mode = ssl.CERT_REQUIRED
        authority.configure_trust(context)
        return context

    def test_ours_is_shown(self, run: Run, authority: trustme.CA, authority_pem: str) -> None:
        mine = authority.issue_cert("scheduler", common_name="system:kube-scheduler")
        context = tls_context(ca_pem=authority_pem)
        load_certificate(context, mine.cert_chain_pems[0].bytes(), mine.private_key_pem.bytes())

        async def main() -> None:
            async with ScriptedServer(_peer, tls=self._server_side(authority)) as server:
                assert b"system:kube-scheduler" in await _get(server, context)

        run(main())

    def test_without_one_the_refusal_says_so(
        self, run: Run, authority: trustme.CA, authority_pem: str
    ) -> None:
        async def main() -> None:
            with socket.create_server(("127.0.0.1", 0)) as listener:
                port = listener.getsockname()[1]
                refusing = asyncio.create_task(
                    asyncio.to_thread(_refuse_one_client, listener, self._server_side(authority))
                )
                access = ClusterAccess(
                    server=Server("https", "127.0.0.1", port),
                    ssl_context=tls_context(ca_pem=authority_pem),
                )
                pool = Transport(access)
                with pytest.raises(ConnectionFailedError, match="refused our client certificate"):
                    await pool.request("GET", "/")
                await pool.aclose()
                await refusing

        run(main())

    def test_loading_leaves_no_file_behind(
        self, authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        mine = authority.issue_cert("scheduler")
        context = tls_context(ca_pem=None)

        load_certificate(context, mine.cert_chain_pems[0].bytes(), mine.private_key_pem.bytes())
        with pytest.raises(ssl.SSLError):
            load_certificate(context, b"no", b"no")

        assert list(tmp_path.iterdir()) == []
