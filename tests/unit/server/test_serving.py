"""How a server begins and ends, and what it refuses to begin with."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kubesched.errors import ClientError, ConfigError
from kubesched.server.options import (
    AuthenticationOptions,
    AuthorizationOptions,
    ServingOptions,
    SniCertificate,
)
from kubesched.server.serving import SecureServer, process_started
from kubesched.server.sources import HealthCheck, Sources
from tests.support.serving import LOOPBACK, Reply, Reviewer, client_tls, reviewing, served
from tests.support.waiting import eventually

from .conftest import Run
from .delegation import delegated


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


def test_the_end_is_told_as_operators_know_it(
    run_once: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with served():
            pass

    with caplog.at_level(logging.INFO, logger="kubesched.server.serving"):
        run_once(main())
    assert [each.getMessage() for each in caplog.records[-2:]] == [
        "[graceful-termination] secure server has stopped listening",
        "[graceful-termination] secure server is exiting",
    ]


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
            parts = target.server._parts
            assert parts is not None
            await eventually(lambda: parts.routes.profiler._busy)
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


def test_when_this_process_started() -> None:
    assert 0 <= time.time() - process_started() < 86400
