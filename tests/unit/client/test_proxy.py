"""Proxies: when one is used, and how we talk to it."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import replace

import pytest

from kubesched.client.access import ClusterAccess, Server, tls_context
from kubesched.client.proxy import Proxy, from_environment, parse
from kubesched.client.transport import Transport
from kubesched.errors import ConnectionFailedError, KubeconfigError
from tests.support.servers import Exchange, ScriptedServer, answer

from .conftest import Run


class TestUrl:
    def test_all_parts_are_read(self) -> None:
        proxy = parse("http://us%40er:p%3Aw@proxy.example:3128", where="proxy-url")

        assert proxy == Proxy(
            scheme="http", host="proxy.example", port=3128, username="us@er", password="p:w"
        )
        assert proxy.authorization == "Basic dXNAZXI6cDp3"

    @pytest.mark.parametrize(
        ("url", "port"),
        [("http://p", 80), ("https://p", 443), ("socks5://p", 1080), ("http://[::1]:8", 8)],
    )
    def test_ports_have_defaults(self, url: str, port: int) -> None:
        assert parse(url, where="x").port == port

    @pytest.mark.parametrize(
        ("url", "complaint"),
        [
            ("ftp://p", "must be http, https, or socks5"),
            ("proxy:3128", "must be http, https, or socks5"),
            ("http://", "host is missing"),
            ("http://p:port", "not a URL"),
        ],
    )
    def test_mistakes_name_the_field(self, url: str, complaint: str) -> None:
        with pytest.raises(KubeconfigError, match=f"clusters.x..proxy-url: .*{complaint}"):
            parse(url, where="clusters[x].proxy-url")


class TestEnvironment:
    @pytest.mark.parametrize(
        ("no_proxy", "host", "used"),
        [
            ("", "api.example.org", True),
            ("example.org", "api.example.org", False),
            ("example.org", "example.org", False),
            (".example.org", "api.example.org", False),
            (".example.org", "example.org", True),
            ("*.example.org", "api.example.org", False),
            ("ample.org", "example.org", True),
            ("example.org:443", "api.example.org", True),
            ("example.org:6443", "api.example.org", False),
            ("*", "api.example.org", False),
            ("foo, EXAMPLE.org", "Api.Example.ORG", False),
            ("10.0.0.0/8", "10.1.2.3", False),
            ("10.0.0.0/8", "11.1.2.3", True),
            ("10.1.2.3", "10.1.2.3", False),
            ("fd00::/8", "fd00::1", False),
            ("[fd00::1]:6443", "fd00::1", False),
            ("nonsense/xx", "10.1.2.3", True),
            ("", "localhost", False),
            ("", "127.0.0.5", False),
            ("", "::1", False),
        ],
    )
    def test_no_proxy(self, no_proxy: str, host: str, used: bool) -> None:
        environment = {"HTTPS_PROXY": "http://proxy:1", "NO_PROXY": no_proxy}

        found = from_environment(environment, scheme="https", host=host, port=6443)

        assert (found is not None) == used

    def test_the_variable_depends_on_the_scheme(self) -> None:
        environment = {"HTTPS_PROXY": "secure:1", "http_proxy": "http://plain:2"}

        secure = from_environment(environment, scheme="https", host="api", port=1)
        plain = from_environment(environment, scheme="http", host="api", port=1)

        assert secure == Proxy(scheme="http", host="secure", port=1)
        assert plain == Proxy(scheme="http", host="plain", port=2)


async def _ok(_: Exchange) -> bytes:
    return answer({"reached": True})


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
    writer.close()


class ConnectProxy(ScriptedServer):
    """An HTTP proxy that connects where it is told; a password may be wanted."""

    def __init__(self, *, password: str = "", tls: ssl.SSLContext | None = None) -> None:
        super().__init__(_ok, tls=tls)
        self._password = password
        self.targets: list[str] = []

    async def _converse(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: int
    ) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        if self._password and f"Proxy-Authorization: {self._password}" not in head:
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
            return
        target = head.split(" ")[1]
        self.targets.append(target)
        host, _, port = target.rpartition(":")
        await self._wire(
            reader, writer, host, int(port), b"HTTP/1.1 200 Connected\r\nVia: x\r\n\r\n"
        )

    async def _wire(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        host: str,
        port: int,
        greeting: bytes,
    ) -> None:
        there_reader, there_writer = await asyncio.open_connection(host, port)
        writer.write(greeting)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_pipe(reader, there_writer))
                group.create_task(_pipe(there_reader, writer))
        except* (ConnectionError, ssl.SSLError):
            pass
        finally:
            there_writer.transport.abort()


class SocksProxy(ConnectProxy):
    """A SOCKS 5 proxy."""

    async def _converse(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: int
    ) -> None:
        _, count = await reader.readexactly(2)
        methods = await reader.readexactly(count)
        if self._password:
            assert 2 in methods
            writer.write(b"\x05\x02")
            name = await reader.readexactly((await reader.readexactly(2))[1])
            password = await reader.readexactly((await reader.readexactly(1))[0])
            good = f"{name.decode()}:{password.decode()}" == self._password
            writer.write(b"\x01\x00" if good else b"\x01\x01")
            if not good:
                return
        else:
            writer.write(b"\x05\x00")
        assert await reader.readexactly(4) == b"\x05\x01\x00\x03"
        host = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
        port = int.from_bytes(await reader.readexactly(2), "big")
        self.targets.append(f"{host}:{port}")
        if port == 1:
            writer.write(b"\x05\x05\x00\x01" + bytes(6))
            return
        await self._wire(reader, writer, host, port, b"\x05\x00\x00\x01" + bytes(6))


async def _get(access: ClusterAccess) -> bytes:
    pool = Transport(access)
    try:
        await pool.request("GET", "/first")
        return (await pool.request("GET", "/second")).body
    finally:
        await pool.aclose()


def _through(access: ClusterAccess, proxy: ScriptedServer, **fields: str) -> ClusterAccess:
    scheme = fields.pop("scheme", "http")
    return replace(access, proxy=Proxy(scheme=scheme, host="127.0.0.1", port=proxy.port, **fields))


class TestHttpProxy:
    def test_tls_goes_through_a_tunnel(
        self, run: Run, server_tls: ssl.SSLContext, authority_pem: str
    ) -> None:
        async def main() -> None:
            async with ScriptedServer(_ok, tls=server_tls) as server, ConnectProxy() as proxy:
                access = server.tls_access(tls_context(ca_pem=authority_pem))
                assert await _get(_through(access, proxy)) == b'{"reached":true}'
                assert proxy.targets == [f"127.0.0.1:{server.port}"]
                assert "proxy-authorization" not in server.requests[0].headers

        run(main())

    def test_the_password_is_given(
        self, run: Run, server_tls: ssl.SSLContext, authority_pem: str
    ) -> None:
        async def main() -> None:
            async with (
                ScriptedServer(_ok, tls=server_tls) as server,
                ConnectProxy(password="Basic bWU6c2VjcmV0") as proxy,
            ):
                access = server.tls_access(tls_context(ca_pem=authority_pem))
                signed = _through(access, proxy, username="me", password="secret")
                assert await _get(signed) == b'{"reached":true}'
                with pytest.raises(ConnectionFailedError) as error:
                    await _get(_through(access, proxy))
                assert (
                    f"the proxy 127.0.0.1:{proxy.port} refused to connect to "
                    f"127.0.0.1:{server.port}: 407 Proxy Authentication Required; check proxy-url"
                ) in str(error.value)

        run(main())

    def test_the_proxy_itself_may_speak_tls(
        self, run: Run, server_tls: ssl.SSLContext, authority_pem: str
    ) -> None:
        async def main() -> None:
            async with (
                ScriptedServer(_ok, tls=server_tls) as server,
                ConnectProxy(tls=server_tls) as proxy,
            ):
                access = server.tls_access(tls_context(ca_pem=authority_pem))
                body = await _get(_through(access, proxy, scheme="https"))
                assert body == b'{"reached":true}'

        run(main())

    def test_the_servers_certificate_is_still_checked(
        self, run: Run, server_tls: ssl.SSLContext
    ) -> None:
        async def main() -> None:
            async with ScriptedServer(_ok, tls=server_tls) as server, ConnectProxy() as proxy:
                access = server.tls_access(tls_context(ca_pem=None))
                with pytest.raises(ConnectionFailedError, match="unknown authority"):
                    await _get(_through(access, proxy))

        run(main())

    def test_a_plain_server_is_reached_by_its_whole_address(self, run: Run) -> None:
        async def main() -> None:
            async with ScriptedServer(_ok) as relay:
                access = ClusterAccess(server=Server("http", "api.example", 8080, "/base"))
                signed = _through(access, relay, username="me", password="secret")
                assert await _get(signed) == b'{"reached":true}'
                exchange = relay.requests[0]
                assert exchange.target == "http://api.example:8080/base/first"
                assert exchange.headers["host"] == "api.example:8080"
                assert exchange.headers["proxy-authorization"] == "Basic bWU6c2VjcmV0"

        run(main())

    def test_a_proxy_that_is_not_there_is_named(self, run: Run, authority_pem: str) -> None:
        async def main() -> None:
            async with ConnectProxy() as proxy:
                pass
            access = ClusterAccess(
                server=Server("https", "api.example", 6443),
                ssl_context=tls_context(ca_pem=authority_pem),
            )
            with pytest.raises(
                ConnectionFailedError, match=f"refused through the proxy 127.0.0.1:{proxy.port}"
            ):
                await _get(_through(access, proxy))

        run(main())

    def test_what_is_not_a_proxy_is_said_to_be_none(self, run: Run, authority_pem: str) -> None:
        async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"220 mail ready\r\n\r\n")
            writer.close()

        async def main() -> None:
            listener = await asyncio.start_server(babble, "127.0.0.1", 0)
            access = ClusterAccess(
                server=Server("https", "api.example", 6443),
                ssl_context=tls_context(ca_pem=authority_pem),
                proxy=Proxy(
                    scheme="http", host="127.0.0.1", port=listener.sockets[0].getsockname()[1]
                ),
            )
            with pytest.raises(ConnectionFailedError, match="does not speak HTTP"):
                await _get(access)
            listener.close()
            await listener.wait_closed()

        run(main())


class TestSocksProxy:
    def test_tls_and_plain_go_through(
        self, run: Run, server_tls: ssl.SSLContext, authority_pem: str
    ) -> None:
        async def main() -> None:
            async with (
                ScriptedServer(_ok, tls=server_tls) as secure,
                ScriptedServer(_ok) as plain,
                SocksProxy() as proxy,
            ):
                access = secure.tls_access(tls_context(ca_pem=authority_pem))
                assert await _get(_through(access, proxy, scheme="socks5")) == b'{"reached":true}'
                through = _through(plain.access, proxy, scheme="socks5")
                assert await _get(through) == b'{"reached":true}'
                assert proxy.targets == [
                    f"127.0.0.1:{secure.port}",
                    f"127.0.0.1:{plain.port}",
                ]

        run(main())

    def test_name_and_password_are_given(self, run: Run) -> None:
        async def main() -> None:
            async with ScriptedServer(_ok) as server, SocksProxy(password="me:secret") as proxy:
                good = _through(
                    server.access, proxy, scheme="socks5", username="me", password="secret"
                )
                assert await _get(good) == b'{"reached":true}'
                bad = _through(server.access, proxy, scheme="socks5", username="me", password="x")
                with pytest.raises(
                    ConnectionFailedError, match="refused the user name or password"
                ):
                    await _get(bad)

        run(main())

    def test_a_refusal_is_explained(self, run: Run) -> None:
        async def main() -> None:
            async with SocksProxy() as proxy:
                access = ClusterAccess(server=Server("http", "api.example", 1))
                with pytest.raises(
                    ConnectionFailedError, match=r"api.example:1: connection refused"
                ):
                    await _get(_through(access, proxy, scheme="socks5"))

        run(main())
