"""One extender over HTTP: addresses, TLS, and answers that nobody would wish for."""

from __future__ import annotations

import asyncio
import base64
import ssl
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import trustme

from kubesched.clock import VirtualClock
from kubesched.config.durations import Duration
from kubesched.config.types import Extender, ExtenderTLSConfig
from kubesched.errors import (
    ClientError,
    ConfigError,
    ConnectionFailedError,
    ExtenderError,
    KubeschedError,
    RequestTimeoutError,
)
from kubesched.scheduler.extender_http import HttpExtender
from tests.support.servers import (
    CHUNKED_HEAD,
    Exchange,
    Handler,
    Script,
    ScriptedServer,
    answer,
    chunk,
)

from .extender_lab import NO_ENVIRONMENT, run, say

OK = say({"NodeNames": ["a"]})


async def ask(config: Extender, *, max_answer_bytes: int | None = None) -> list[str]:
    """Ask about node a; gives the nodes that passed."""
    extender = HttpExtender(
        config,
        where="extenders[0]",
        environment=NO_ENVIRONMENT,
        max_answer_bytes=max_answer_bytes,
    )
    try:
        return (await extender.filter(b"{}", ["a"])).nodes or []
    finally:
        await extender.aclose()


def config_for(server: ScriptedServer, path: str = "", **fields: Any) -> Extender:
    defaults: dict[str, Any] = {"filter_verb": "filter", "node_cache_capable": True}
    return Extender(url_prefix=server.url + path, **(defaults | fields))


def refusal_of(
    handler: Handler, *, max_answer_bytes: int | None = None, **fields: Any
) -> tuple[ClientError, str]:
    """What is raised when the server behaves like that, and the server's URL."""

    async def main() -> tuple[ClientError, str]:
        async with ScriptedServer(handler) as server:
            with pytest.raises(ClientError) as refused:
                await ask(config_for(server, **fields), max_answer_bytes=max_answer_bytes)
            return refused.value, server.url

    error, url = run(main())
    assert "\n" not in str(error)
    return error, url


def always(data: bytes) -> Handler:
    async def handler(exchange: Exchange) -> bytes:
        return data

    return handler


# --- addresses --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "verb", "want"),
    [
        ("", "filter", "/filter"),
        ("/", "filter", "/filter"),
        ("/a/b", "filter", "/a/b/filter"),
        ("/a/b///", "filter", "/a/b/filter"),
        ("/a", "v1/filter", "/a/v1/filter"),
        ("/a", "filter?mode=x y", "/a/filter?mode=x%20y"),
        ("/a%2Fb/ü", "filter", "/a%2Fb/%C3%BC/filter"),
    ],
)
def test_a_verb_is_added_to_the_prefix(path: str, verb: str, want: str) -> None:
    async def main() -> None:
        async with ScriptedServer(always(OK)) as server:
            assert await ask(config_for(server, path, filter_verb=verb)) == ["a"]
            assert server.requests[0].target == want
            assert server.requests[0].method == "POST"

    run(main())


def test_a_user_name_in_the_url_signs_in_and_its_password_is_never_shown() -> None:
    async def main() -> None:
        async with ScriptedServer(always(answer("", status=403))) as server:
            url = f"http://me:s%3Acret@127.0.0.1:{server.port}"
            with pytest.raises(ExtenderError) as refused:
                await ask(Extender(url_prefix=url, filter_verb="filter"))
            sent = server.requests[0].headers["authorization"]
            assert sent == f"Basic {base64.b64encode(b'me:s:cret').decode()}"
            assert str(refused.value) == (
                "failed filter with extender at URL "
                f"http://me:xxxxx@127.0.0.1:{server.port}/filter, code 403"
            )

    run(main())


@pytest.mark.parametrize("url", ["", "host:80", "/path", "ftp://host", "http://", "http://h:99999"])
def test_a_prefix_that_is_no_url_is_refused_by_its_field(url: str) -> None:
    with pytest.raises(ConfigError, match=r"^extenders\[0\]\.urlPrefix: "):
        HttpExtender(Extender(url_prefix=url), where="extenders[0]", environment=NO_ENVIRONMENT)


def test_the_environments_proxy_is_used() -> None:
    async def main() -> None:
        async with ScriptedServer(always(OK)) as proxy:
            extender = HttpExtender(
                Extender(
                    url_prefix="http://extender.example:8080/x",
                    filter_verb="filter",
                    node_cache_capable=True,
                ),
                environment={"HTTP_PROXY": proxy.url},
            )
            try:
                assert (await extender.filter(b"{}", ["a"])).nodes == ["a"]
            finally:
                await extender.aclose()
            assert proxy.requests[0].target == "http://extender.example:8080/x/filter"

    run(main())


def test_connections_are_kept() -> None:
    async def main() -> None:
        async with ScriptedServer(always(OK)) as server:
            extender = HttpExtender(config_for(server), environment=NO_ENVIRONMENT)
            for _ in range(3):
                await extender.filter(b"{}", ["a"])
            await extender.aclose()
            assert server.connections == 1

    run(main())


# --- answers that are failures ------------------------------------------------------------------


@pytest.mark.parametrize("code", [201, 204, 301, 302, 307, 308, 400, 404, 500, 503])
def test_anything_but_200_is_a_failure_and_redirects_are_not_followed(code: int) -> None:
    async def main() -> None:
        elsewhere = {"Location": "/elsewhere", "Retry-After": "0"}
        body = b"" if code == 204 else OK
        script = (
            Script()
            .on("POST", "/filter", answer(body, status=code, headers=elsewhere))
            .on("POST", "/elsewhere", OK)
            .on("GET", "/elsewhere", OK)
        )
        async with ScriptedServer(script) as server:
            with pytest.raises(ExtenderError) as refused:
                await ask(config_for(server))
            assert str(refused.value) == (
                f"failed filter with extender at URL {server.url}/filter, code {code}"
            )
            assert [exchange.path for exchange in server.requests] == ["/filter"]

    run(main())


@pytest.mark.parametrize(
    "body", [b"", b"not JSON", b'{"NodeNames":', b'{"NodeNames":{"a":1}}', b"[1,2]", b"\xff\xfe"]
)
def test_an_answer_that_cannot_be_read_names_the_extender(body: bytes) -> None:
    error, url = refusal_of(always(answer(body)))
    assert isinstance(error, ExtenderError)
    assert str(error).startswith(
        f"failed filter with extender at URL {url}/filter: the answer cannot be read: "
    )


def test_nobody_there() -> None:
    async def main() -> None:
        async with ScriptedServer(always(OK)) as server:
            config = config_for(server)
        with pytest.raises(ConnectionFailedError, match="connection refused") as refused:
            await ask(config)
        assert f"127.0.0.1:{server.port}" in str(refused.value)

    run(main())


def test_a_connection_that_breaks() -> None:
    async def hang_up(exchange: Exchange) -> None:
        await exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
        exchange.hang_up()

    error, _ = refusal_of(hang_up)
    assert isinstance(error, ConnectionFailedError)
    assert str(error).startswith("POST /filter: ")


def test_an_answer_that_is_not_http() -> None:
    error, _ = refusal_of(always(b"SSH-2.0-OpenSSH_9.6\r\n"))
    assert "not HTTP/1.1" in str(error)


# --- limits -----------------------------------------------------------------------------------


def test_a_body_that_never_ends_is_cut_without_being_kept() -> None:
    limit = 1 << 20
    sent = 0

    async def flood(exchange: Exchange) -> None:
        nonlocal sent
        await exchange.send(CHUNKED_HEAD)
        piece = chunk(b" " * (1 << 16))
        while True:
            await exchange.send(piece)
            sent += 1 << 16

    tracemalloc.start()
    error, _ = refusal_of(flood, max_answer_bytes=limit)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "the answer is larger than 1048576 bytes" in str(error)
    assert peak < 16 << 20


def test_a_length_that_is_a_lie_costs_nothing() -> None:
    async def boast(exchange: Exchange) -> None:
        await exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n{}")

    error, _ = refusal_of(boast, http_timeout=Duration.of_seconds(0.1))
    assert isinstance(error, RequestTimeoutError)


def test_the_limit_depends_on_whether_nodes_come_back() -> None:
    names = HttpExtender(Extender(url_prefix="http://h", node_cache_capable=True))
    nodes = HttpExtender(Extender(url_prefix="http://h"))
    assert names.max_answer_bytes == 64 << 20
    assert nodes.max_answer_bytes == 256 << 20


@pytest.mark.parametrize("how", ["silence", "drip", "drip headers"])
def test_slow_answers_end_with_the_time_out(how: str) -> None:
    async def slow(exchange: Exchange) -> None:
        if how == "silence":
            await asyncio.sleep(3600)
        await exchange.send(b"HTTP/1.1 200 OK\r\n")
        if how == "drip":
            await exchange.send(b"Content-Length: 100000\r\n\r\n")
        while True:
            await exchange.send(b" " if how == "drip" else b"X-More: 1\r\n")
            await asyncio.sleep(0.01)

    started = time.monotonic()
    error, _ = refusal_of(slow, http_timeout=Duration.of_seconds(0.2))
    assert 0.15 < time.monotonic() - started < 2
    assert isinstance(error, RequestTimeoutError)
    assert str(error).startswith("POST /filter: 127.0.0.1:")
    assert str(error).endswith("(httpTimeout is 200ms)")


@pytest.mark.parametrize("timeout_s", [0, -1])
def test_without_a_time_out_there_still_is_one(timeout_s: int) -> None:
    extender = HttpExtender(
        Extender(url_prefix="http://h", http_timeout=Duration.of_seconds(timeout_s))
    )
    assert extender._timeout == Duration.of_seconds(5)


# --- TLS --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def server_tls(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("extender.example").configure_cert(context)
    return context


def over_tls(server_tls: ssl.SSLContext, **fields: Any) -> list[str]:
    async def main() -> list[str]:
        async with ScriptedServer(always(OK), tls=server_tls) as server:
            return await ask(config_for(server, **fields))

    return run(main())


def pem(authority: trustme.CA) -> bytes:
    return authority.cert_pem.bytes()


def trusting(authority: trustme.CA, **fields: Any) -> ExtenderTLSConfig:
    return ExtenderTLSConfig(ca_data=pem(authority), server_name="extender.example", **fields)


def test_https_without_an_authority_checks_nobody(server_tls: ssl.SSLContext) -> None:
    assert over_tls(server_tls, enable_https=True) == ["a"]
    assert over_tls(server_tls, enable_https=True, tls_config=ExtenderTLSConfig()) == ["a"]
    assert over_tls(server_tls, tls_config=ExtenderTLSConfig(insecure=True)) == ["a"]


def test_an_https_url_alone_checks_against_the_systems_authorities(
    server_tls: ssl.SSLContext,
) -> None:
    with pytest.raises(ConnectionFailedError, match="unknown authority") as refused:
        over_tls(server_tls)
    assert str(refused.value).endswith("; check tlsConfig of the extender")


def test_an_authority_is_checked_even_with_enable_https(
    authority: trustme.CA, server_tls: ssl.SSLContext
) -> None:
    for enable_https in (True, False):
        trusted = trusting(authority)
        assert over_tls(server_tls, enable_https=enable_https, tls_config=trusted) == ["a"]
        with pytest.raises(ConnectionFailedError, match="unknown authority"):
            over_tls(server_tls, enable_https=enable_https, tls_config=trusting(trustme.CA()))


def test_the_server_name_is_what_the_certificate_is_checked_for(
    authority: trustme.CA, server_tls: ssl.SSLContext
) -> None:
    nameless = ExtenderTLSConfig(ca_data=pem(authority))
    with pytest.raises(ConnectionFailedError, match="for another name") as refused:
        over_tls(server_tls, tls_config=nameless)
    assert "kubeconfig" not in str(refused.value)


def test_enable_https_does_not_make_an_http_url_https() -> None:
    async def main() -> None:
        async with ScriptedServer(always(OK)) as server:
            assert await ask(config_for(server, enable_https=True)) == ["a"]

    run(main())


def test_data_wins_over_files(
    authority: trustme.CA, server_tls: ssl.SSLContext, tmp_path: Path
) -> None:
    right, wrong = tmp_path / "right.pem", tmp_path / "wrong.pem"
    right.write_bytes(pem(authority))
    wrong.write_bytes(pem(trustme.CA()))
    name = "extender.example"
    from_file = ExtenderTLSConfig(ca_file=str(right), server_name=name)
    both = ExtenderTLSConfig(ca_file=str(wrong), ca_data=pem(authority), server_name=name)
    other = ExtenderTLSConfig(ca_file=str(right), ca_data=pem(trustme.CA()), server_name=name)
    assert over_tls(server_tls, tls_config=from_file) == ["a"]
    assert over_tls(server_tls, tls_config=both) == ["a"]
    with pytest.raises(ConnectionFailedError, match="unknown authority"):
        over_tls(server_tls, tls_config=other)


@pytest.mark.parametrize("kept", ["data", "files", "data, and files of somebody else", "mixed"])
def test_a_client_certificate_is_shown(authority: trustme.CA, kept: str, tmp_path: Path) -> None:
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("extender.example").configure_cert(server_side)
    authority.configure_trust(server_side)
    server_side.verify_mode = ssl.CERT_REQUIRED
    ours, others = authority.issue_cert("scheduler.example"), trustme.CA().issue_cert("x.example")
    shown = others if "somebody else" in kept else ours
    cert_file, key_file = tmp_path / "cert.pem", tmp_path / "key.pem"
    cert_file.write_bytes(shown.cert_chain_pems[0].bytes())
    key_file.write_bytes(shown.private_key_pem.bytes())
    fields: dict[str, Any] = {}
    if kept != "data":
        fields |= {"cert_file": str(cert_file), "key_file": str(key_file)}
    if kept != "files":
        fields["cert_data"] = ours.cert_chain_pems[0].bytes()
    if kept.startswith("data"):
        fields["key_data"] = ours.private_key_pem.bytes()
    assert over_tls(server_side, tls_config=trusting(authority, **fields)) == ["a"]
    with pytest.raises(ConnectionFailedError):
        over_tls(server_side, tls_config=trusting(authority))


def test_a_client_certificate_in_files_is_loaded_again_after_it_changed(
    authority: trustme.CA, tmp_path: Path
) -> None:
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("extender.example").configure_cert(server_side)
    authority.configure_trust(server_side)
    server_side.verify_mode = ssl.CERT_REQUIRED
    cert_file, key_file = tmp_path / "cert.pem", tmp_path / "key.pem"

    def write(name: str) -> None:
        issued = authority.issue_cert(name)
        cert_file.write_bytes(issued.cert_chain_pems[0].bytes())
        key_file.write_bytes(issued.private_key_pem.bytes())

    def shown(exchange: Exchange) -> str:
        certificate = exchange.writer.get_extra_info("ssl_object").getpeercert()
        return str(certificate["subjectAltName"][0][1])

    async def main() -> None:
        names: list[str] = []

        async def note_the_client(exchange: Exchange) -> bytes:
            names.append(shown(exchange))
            return OK

        write("first.example")
        tls = trusting(authority, cert_file=str(cert_file), key_file=str(key_file))
        clock = VirtualClock()
        async with ScriptedServer(note_the_client, tls=server_side) as server:
            extender = HttpExtender(
                config_for(server, tls_config=tls), environment=NO_ENVIRONMENT, clock=clock
            )
            await extender.filter(b"{}", ["a"])
            write("second.example")
            await extender.filter(b"{}", ["a"])
            clock.advance(301)
            await extender.filter(b"{}", ["a"])
            await extender.aclose()
        assert names == ["first.example", "first.example", "second.example"]

    run(main())


def test_half_a_client_certificate_counts_as_none(
    authority: trustme.CA, server_tls: ssl.SSLContext
) -> None:
    half = trusting(authority, cert_data=b"whatever")
    assert over_tls(server_tls, tls_config=half) == ["a"]


def test_tls_settings_that_cannot_be_used_are_refused_by_their_field(
    authority: trustme.CA, tmp_path: Path
) -> None:
    ours = authority.issue_cert("a.example")
    cases: list[tuple[ExtenderTLSConfig, str]] = [
        (ExtenderTLSConfig(insecure=True, ca_data=pem(authority)), "with the insecure flag"),
        (ExtenderTLSConfig(ca_data=b"nonsense"), "caData: unable to load root certificates"),
        (ExtenderTLSConfig(ca_data=b"\xff"), "caData: unable to load root certificates"),
        (ExtenderTLSConfig(ca_file=str(tmp_path / "no")), "caFile: cannot read .*: No such file"),
        (ExtenderTLSConfig(cert_data=b"x", key_file=str(tmp_path / "no")), "keyFile: cannot read"),
        (ExtenderTLSConfig(cert_file=str(tmp_path / "no"), key_data=b"x"), "certFile: cannot read"),
        (ExtenderTLSConfig(cert_data=b"x", key_data=b"y"), "not a PEM certificate and its key"),
        (
            ExtenderTLSConfig(
                cert_data=ours.cert_chain_pems[0].bytes(),
                key_data=trustme.CA().issue_cert("b.example").private_key_pem.bytes(),
            ),
            "not a PEM certificate and its key",
        ),
    ]
    for tls, want in cases:
        with pytest.raises(ConfigError, match=want) as refused:
            HttpExtender(
                Extender(url_prefix="https://h", tls_config=tls),
                where="extenders[3]",
                environment=NO_ENVIRONMENT,
            )
        assert str(refused.value).startswith("extenders[3].tlsConfig")
        assert "\n" not in str(refused.value)


def test_a_server_that_does_not_speak_tls() -> None:
    async def main() -> None:
        async with ScriptedServer(always(OK)) as server:
            url = server.url.replace("http://", "https://")
            with pytest.raises(KubeschedError) as refused:
                await ask(
                    Extender(
                        url_prefix=url,
                        filter_verb="filter",
                        enable_https=True,
                        http_timeout=Duration.of_seconds(0.5),
                    )
                )
            assert isinstance(refused.value, ClientError)

    run(main())
