"""The whole server over real TLS: callers of all sorts, and its beginning and end."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import logging
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable
from email.utils import parsedate_to_datetime
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
from kubesched.errors import ClientError, ConfigError
from kubesched.server.options import (
    AuthenticationOptions,
    AuthorizationOptions,
    ServingOptions,
    SniCertificate,
)
from kubesched.server.serving import SecureServer, process_started
from kubesched.server.sources import HealthCheck, MetricsPage, Sources
from tests.unit.client.servers import failure

from .conftest import Run
from .harness import (
    LOOPBACK,
    Reply,
    Reviewer,
    Target,
    client_tls,
    parse,
    reviewing,
    served,
)

ANN = {"username": "ann", "groups": ["people"]}
EVE = {"username": "eve"}
ROOT = {"username": "root", "groups": ["system:masters"]}


@pytest.fixture
def reviewer() -> Reviewer:
    return Reviewer(
        tokens={"ann's": ANN, "eve's": EVE, "root's": ROOT},
        rights={("ann", "/metrics"), ("proxied", "/metrics"), ("certified", "/metrics")},
    )


@contextlib.asynccontextmanager
async def delegated(
    reviewer: Reviewer, folder: Path, **authentication: object
) -> AsyncIterator[Target]:
    """A server whose callers are known to an API server."""
    async with reviewing(reviewer, folder) as kubeconfig:
        options = AuthenticationOptions(kubeconfig=kubeconfig, **authentication)  # type: ignore[arg-type]  # by name
        rights = AuthorizationOptions(kubeconfig=kubeconfig)
        async with served(authentication=options, authorization=rights) as target:
            yield target


# ---------------------------------------------------------------------- tokens


CALLS = {
    ("", "/healthz"): 200,
    ("", "/healthz/ping"): 403,
    ("", "/metrics"): 403,
    ("", "/nothing"): 403,
    ("wrong", "/metrics"): 401,
    ("wrong", "/healthz"): 401,
    ("eve's", "/healthz"): 200,
    ("eve's", "/metrics"): 403,
    ("ann's", "/metrics"): 200,
    ("ann's", "/configz"): 403,
    ("root's", "/metrics"): 200,
    ("root's", "/healthz/ping"): 200,
    ("root's", "/nothing"): 404,
}


def test_callers_with_tokens(run: Run, reviewer: Reviewer, tmp_path: Path) -> None:
    async def main() -> dict[tuple[str, str], Reply]:
        async with delegated(reviewer, tmp_path) as target:
            return {(token, path): await target.ask(path, token=token) for token, path in CALLS}

    replies = run(main())

    assert {call: reply.code for call, reply in replies.items()} == CALLS
    for (_, path), reply in replies.items():
        assert reply.headers["cache-control"] == "no-cache, private"
        assert ("up 1" in reply.text) is (reply.code == 200 and path == "/metrics")


def test_forms_of_a_token(run_once: Run, reviewer: Reviewer, tmp_path: Path) -> None:
    forms = {
        "Bearer ann's": 200,
        "bearer ann's": 200,
        "  Bearer ann's  ": 200,
        "Bearer ann's more": 200,
        "Bearer": 403,
        "Bearer ": 403,
        "Bearer  ann's": 403,
        "Basic YTpi": 403,
        "ann's": 403,
    }

    async def main() -> dict[str, int]:
        async with delegated(reviewer, tmp_path) as target:
            return {
                form: (await target.ask("/metrics", headers={"Authorization": form})).code
                for form in forms
            }

    assert run_once(main()) == forms


def test_who_has_no_rights_learns_nothing_but_that(
    run_once: Run, reviewer: Reviewer, tmp_path: Path
) -> None:
    async def main() -> list[Reply]:
        async with delegated(reviewer, tmp_path) as target:
            paths = ("/metrics", "/nothing")
            return [await target.ask(path, token="eve's") for path in paths]

    there, not_there = run_once(main())

    assert there.text == not_there.text.replace("/nothing", "/metrics")
    assert there.text == (
        '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":'
        '"forbidden: User \\"eve\\" cannot get path \\"/metrics\\"","reason":"Forbidden",'
        '"details":{},"code":403}\n'
    )


def test_the_verb_and_the_decoded_path_are_what_is_authorized(
    run_once: Run, reviewer: Reviewer, tmp_path: Path
) -> None:
    async def main() -> tuple[Reply, Reply]:
        async with delegated(reviewer, tmp_path) as target:
            encoded = await target.ask("/%6detrics?x=/healthz", token="ann's")
            strange = await target.ask("/metrics%3Cb%3E", "DELETE", token="ann's")
            return encoded, strange

    encoded, strange = run_once(main())

    assert encoded.code == 200
    assert 'cannot delete path \\"/metrics\\u0026lt;b\\u0026gt;\\"' in strange.text
    asked = [each["nonResourceAttributes"] for each in reviewer.access_reviews]
    assert asked == [
        {"path": "/metrics", "verb": "get"},
        {"path": "/metrics<b>", "verb": "delete"},
    ]


def test_answers_about_callers_are_kept(run_once: Run, reviewer: Reviewer, tmp_path: Path) -> None:
    async def main() -> None:
        async with delegated(reviewer, tmp_path) as target:
            for _ in range(5):
                await target.ask("/metrics", token="ann's")

    run_once(main())

    assert len(reviewer.token_reviews) == len(reviewer.access_reviews) == 1


def test_an_api_server_that_cannot_tell_whose_a_token_is(
    run_once: Run, reviewer: Reviewer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    reviewer.failures = [failure(403, "Forbidden", "tokenreviews is forbidden")]

    async def main() -> Reply:
        async with delegated(reviewer, tmp_path) as target:
            return await target.ask("/metrics", token="ann's")

    assert run_once(main()).code == 401
    assert "tokenreviews is forbidden" in caplog.text


def test_an_api_server_that_cannot_tell_who_may(
    run_once: Run, reviewer: Reviewer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    reviewer.failures = [failure(403, "Forbidden", "subjectaccessreviews is forbidden")]

    async def main() -> Reply:
        async with delegated(reviewer, tmp_path) as target:
            return await target.ask("/metrics")

    reply = run_once(main())

    assert reply.code == 500
    assert reply.text == (
        'Internal Server Error: "/metrics": the authorization cannot be checked\n'
    )
    assert "subjectaccessreviews is forbidden" in caplog.text


def test_without_kubeconfigs_only_open_paths_are_open(
    run_once: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    async def main() -> list[int]:
        async with served(authorization=AuthorizationOptions()) as target:
            asked = (("/healthz", ""), ("/metrics", ""), ("/metrics", "any"))
            return [(await target.ask(path, token=token)).code for path, token in asked]

    assert run_once(main()) == [200, 403, 403]
    assert "so client certificate authentication won't work." in caplog.text
    assert "so SubjectAccessReview of authorization tokens won't work." in caplog.text


# ---------------------------------------------------------------------- certificates


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


# ---------------------------------------------------------------------- answers


def test_an_exception_is_a_500_without_its_text(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> bytes:
        raise RuntimeError("the secret cause")

    async def main() -> list[Reply]:
        async with served(Sources(metrics=MetricsPage(broken))) as target:
            return [await target.ask("/metrics"), await target.ask("/healthz")]

    reply, next_one = run(main())

    assert reply.code == 500
    assert reply.text == (
        "This request caused an error in the server. Look in the logs for details.\n"
    )
    assert "the secret cause" in caplog.text
    assert next_one.code == 200


def test_answers_carry_the_date(run_once: Run) -> None:
    async def main() -> Reply:
        async with served() as target:
            return await target.ask("/healthz")

    date = parsedate_to_datetime(run_once(main()).headers["date"])

    assert abs(date.timestamp() - time.time()) < 10


def test_head_has_no_body(run: Run) -> None:
    async def main() -> Reply:
        async with served() as target:
            return await target.ask("/healthz", "HEAD")

    reply = run(main())

    assert (reply.code, reply.headers["content-length"], reply.text) == (200, "2", "")


# ---------------------------------------------------------------------- pages in pieces

END = "0\r\n\r\n"


def test_a_page_comes_in_pieces_and_others_are_served_in_between(run: Run) -> None:
    others_served = asyncio.Event()

    async def pieces() -> AsyncIterator[bytes]:
        yield b"a 1\n"
        yield b""
        await others_served.wait()
        yield b"b 2\n"

    async def main() -> Reply:
        async with served(Sources(resource_metrics=MetricsPage(pieces))) as target:
            asking = asyncio.create_task(target.ask("/metrics/resources"))
            await asyncio.sleep(0.05)
            assert not asking.done()
            assert (await target.ask("/healthz")).code == 200
            others_served.set()
            return await asking

    reply = run(main())

    assert reply.code == 200
    assert reply.headers["transfer-encoding"] == "chunked"
    assert "content-length" not in reply.headers
    assert reply.text == f"4\r\na 1\n\r\n4\r\nb 2\n\r\n{END}"


def test_the_head_of_a_page_in_pieces_costs_nothing(run: Run) -> None:
    asked_for = False

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal asked_for
        asked_for = True
        yield b"a 1\n"

    async def main() -> Reply:
        async with served(Sources(resource_metrics=MetricsPage(pieces))) as target:
            return await target.ask("/metrics/resources", "HEAD")

    reply = run(main())

    assert (reply.code, reply.text) == (200, "")
    assert not asked_for


def test_a_page_that_fails_half_way_is_not_complete(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"a 1\n"
        raise RuntimeError("the cause")

    async def main() -> list[Reply]:
        async with served(Sources(resource_metrics=MetricsPage(pieces))) as target:
            return [await target.ask("/metrics/resources"), await target.ask("/healthz")]

    reply, next_one = run(main())

    assert reply.text == "4\r\na 1\n\r\n"
    assert "/metrics/resources" in caplog.text
    assert "the cause" in caplog.text
    assert next_one.code == 200


def test_a_page_without_end_does_not_hold_up_the_end(
    run_once: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kubesched.server.serving.GRACE_S", 0.2)
    begun = asyncio.Event()

    async def pieces() -> AsyncIterator[bytes]:
        while True:
            yield b"a 1\n"
            begun.set()
            await asyncio.sleep(0.01)

    async def main() -> tuple[Reply, float]:
        async with served(Sources(resource_metrics=MetricsPage(pieces))) as target:
            asking = asyncio.create_task(target.ask("/metrics/resources"))
            await begun.wait()
            began = time.monotonic()
        return await asking, time.monotonic() - began

    reply, taken = run_once(main())

    assert reply.code == 200
    assert not reply.text.endswith(END)
    assert taken < 3


# ---------------------------------------------------------------------- who hears of callers


def test_callers_are_observed(run_once: Run, reviewer: Reviewer, tmp_path: Path) -> None:
    class Heard:
        def __init__(self) -> None:
            self.names: list[str] = []
            self.decisions: list[tuple[bool, bool]] = []
            self.answers: list[tuple[str, str, int]] = []

        def on_authenticated(self, username: str, *, duration_s: float) -> None:
            assert duration_s >= 0
            self.names.append(username)

        def on_authorized(self, *, allowed: bool, failed: bool, duration_s: float) -> None:
            assert duration_s >= 0
            self.decisions.append((allowed, failed))

    class Requests:
        def __init__(self, purpose: str) -> None:
            self._purpose = purpose

        def on_answer(
            self,
            method: str,
            code: int,
            duration_s: float | None,
            *,
            sizes: tuple[int, int] = (0, 0),
        ) -> None:
            assert duration_s is not None
            assert min(sizes) > 0
            heard.answers.append((self._purpose, method, code))

        def on_limited(self, method: str, waited_s: float) -> None:
            assert method == "POST"
            assert waited_s < 1

    heard = Heard()
    sources = Sources(
        metrics=MetricsPage(lambda: b"up 1\n"),
        observe_callers=heard,
        observe_requests=lambda purpose, host: Requests(purpose) if host else None,
    )

    async def main() -> None:
        async with reviewing(reviewer, tmp_path) as kubeconfig:
            who = AuthenticationOptions(kubeconfig=kubeconfig, skip_lookup=True)
            may = AuthorizationOptions(kubeconfig=kubeconfig)
            async with served(sources, authentication=who, authorization=may) as target:
                for token in ("ann's", "eve's", "wrong", "ann's"):
                    await target.ask("/metrics", token=token)
                reviewer.failures = [failure(400, "BadRequest", "no")]
                await target.ask("/configz", token="ann's")

    run_once(main())

    assert heard.names == ["ann", "eve", "", "ann", "ann"]
    assert heard.decisions == [(True, False), (False, False), (True, False), (False, True)]
    assert heard.answers == [
        ("authentication", "POST", 201),
        ("authorization", "POST", 201),
        ("authentication", "POST", 201),
        ("authorization", "POST", 201),
        ("authentication", "POST", 201),
        ("authorization", "POST", 400),
    ]


def test_verbosity_is_set_over_the_wire(run: Run) -> None:
    levels: list[int] = []

    async def main() -> Reply:
        sources = Sources(profiling=True, set_verbosity=levels.append)
        async with served(sources) as target:
            return await target.ask("/debug/flags/v", "PUT", body=b"4")

    assert run(main()).text == "successfully set klog.logging.verbosity to 4\n"
    assert levels == [4]


def test_requests_are_logged_for_those_who_want_it(
    run_once: Run, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "kubesched.server.app")

    async def main() -> None:
        async with served() as target:
            await target.ask("/metrics?a=b", token="very-secret")

    run_once(main())

    assert 'verb="GET" URI="/metrics?a=b"' in caplog.text
    assert "resp=200" in caplog.text
    assert "very-secret" not in caplog.text


# ---------------------------------------------------------------------- beginning and end


def test_one_connection_serves_many_requests(run: Run) -> None:
    async def main() -> None:
        async with served() as target:
            reader, writer = await asyncio.open_connection(LOOPBACK, target.port, ssl=client_tls())
            for _ in range(3):
                writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
                head = await reader.readuntil(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 200 OK")
                assert await reader.readexactly(2) == b"ok"
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    run(main())


def test_port_0_serves_nothing(run_once: Run) -> None:
    async def main() -> None:
        options = ServingOptions(secure_port=0, tls_cert_file="/absent")
        server = SecureServer(options, AuthenticationOptions(), AuthorizationOptions(), Sources())
        async with server:
            assert server.port == 0

    run_once(main())


def test_an_idle_connection_does_not_hold_up_the_end(run: Run) -> None:
    async def main() -> float:
        async with served() as target:
            _, writer = await asyncio.open_connection(LOOPBACK, target.port, ssl=client_tls())
            began = time.monotonic()
        taken = time.monotonic() - began
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        return taken

    assert run(main()) < 2


def test_a_client_that_does_not_listen_does_not_hold_up_the_end(run: Run) -> None:
    def connect(port: int) -> ssl.SSLSocket:
        raw = socket.create_connection((LOOPBACK, port))
        tls = client_tls().wrap_socket(raw)
        tls.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        while not tls.recv(65536).endswith(b"ok"):
            pass
        return tls

    async def main() -> float:
        async with served() as target:
            deaf = await asyncio.to_thread(connect, target.port)
            began = time.monotonic()
        deaf.close()
        return time.monotonic() - began

    assert run(main()) < 2


def test_a_profile_under_way_ends_with_the_server(run: Run) -> None:
    async def main() -> tuple[Reply, float]:
        async with served(Sources(profiling=True)) as target:
            asking = asyncio.create_task(target.ask("/debug/pprof/profile?seconds=600"))
            await asyncio.sleep(0.3)
            began = time.monotonic()
        return await asking, time.monotonic() - began

    reply, taken = run(main())

    assert reply.code == 200
    assert taken < 3


@pytest.mark.parametrize("token", ["", "ann's"], ids=["authorization", "authentication"])
def test_a_request_that_hangs_is_cut_off(
    run_once: Run,
    reviewer: Reviewer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    token: str,
) -> None:
    monkeypatch.setattr("kubesched.server.serving.GRACE_S", 0.2)
    hanging = asyncio.Event()

    async def hang(_self: Reviewer, _exchange: object) -> None:
        hanging.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(Reviewer, "__call__", hang)

    async def main() -> tuple[Reply, float]:
        async with delegated(reviewer, tmp_path, skip_lookup=True) as target:
            asking = asyncio.create_task(target.ask("/metrics", token=token))
            await hanging.wait()
            began = time.monotonic()
        return await asking, time.monotonic() - began

    reply, taken = run_once(main())

    assert (reply.code, reply.text) == (503, "the server is shutting down\n")
    assert taken < 3


def test_shutdown_is_seen_by_probes_before_it_is_over(run_once: Run) -> None:
    stopping = False
    check = HealthCheck("shutdown", lambda: "process is shutting down" if stopping else None)

    async def main() -> list[int]:
        nonlocal stopping
        async with served(Sources(readyz=(check,))) as target:
            before = await target.ask("/readyz")
            stopping = True
            return [before.code, (await target.ask("/readyz")).code]

    assert run_once(main()) == [200, 500]


Options = tuple[ServingOptions, AuthenticationOptions, AuthorizationOptions]
OPTIONS: dict[str, Callable[[Path], Options]] = {
    "a certificate that is not there": lambda folder: (
        ServingOptions(tls_cert_file=f"{folder}/absent", tls_private_key_file=f"{folder}/absent"),
        AuthenticationOptions(),
        AuthorizationOptions(),
    ),
    "an SNI certificate that is not there": lambda folder: (
        ServingOptions(tls_sni_cert_key=(SniCertificate(f"{folder}/a", f"{folder}/b"),)),
        AuthenticationOptions(),
        AuthorizationOptions(),
    ),
    "an authority that is not there": lambda folder: (
        ServingOptions(),
        AuthenticationOptions(client_ca_file=f"{folder}/absent"),
        AuthorizationOptions(),
    ),
    "a kubeconfig that is not there": lambda folder: (
        ServingOptions(),
        AuthenticationOptions(kubeconfig=f"{folder}/absent"),
        AuthorizationOptions(),
    ),
    "a star in the middle": lambda _: (
        ServingOptions(),
        AuthenticationOptions(),
        AuthorizationOptions(always_allow_paths=("/a*b",)),
    ),
    "an unknown suite": lambda _: (
        ServingOptions(tls_cipher_suites=("x",)),
        AuthenticationOptions(),
        AuthorizationOptions(),
    ),
}


@pytest.mark.parametrize("mistake", OPTIONS)
def test_options_that_cannot_work_are_refused_at_once(tmp_path: Path, mistake: str) -> None:
    with socket.create_server((LOOPBACK, 0)) as listener, pytest.raises(ConfigError) as refused:
        SecureServer(*OPTIONS[mistake](tmp_path), Sources(), listener=listener)

    assert len(str(refused.value).splitlines()) == 1


def test_a_lookup_that_must_work_and_does_not(
    run_once: Run, reviewer: Reviewer, tmp_path: Path
) -> None:
    async def main() -> None:
        async with reviewing(reviewer, tmp_path) as kubeconfig:
            pass  # and gone
        options = AuthenticationOptions(kubeconfig=kubeconfig, tolerate_lookup_failure=False)
        with pytest.raises(ClientError, match="unable to load configmap based request-header"):
            async with served(authentication=options):
                pass

    run_once(main())


def test_a_lookup_that_may_fail(run_once: Run, reviewer: Reviewer, tmp_path: Path) -> None:
    async def main() -> int:
        async with reviewing(reviewer, tmp_path) as kubeconfig:
            pass  # and gone
        options = AuthenticationOptions(kubeconfig=kubeconfig)
        async with served(authentication=options) as target:
            return (await target.ask("/metrics")).code

    assert run_once(main()) == 200


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


def test_when_this_process_started() -> None:
    assert 0 <= time.time() - process_started() < 86400
