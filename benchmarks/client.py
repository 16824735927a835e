"""CPU cost of the API client: small POSTs, as bindings are, and watch events.

    python benchmarks/client.py [--requests 20000] [--concurrency 50]

A minimal server runs in its own process on loopback; the CPU time is that of this process alone,
best of three runs. Requests/s are limited by the slower of the two.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, cast

import msgspec
import trustme
import uvloop
from rich.console import Console
from rich.table import Table

from kubesched.client.access import ClusterAccess, Server, tls_context
from kubesched.client.credentials import StaticCredentials
from kubesched.client.events import EventRecorder
from kubesched.client.meta import ObjectReference
from kubesched.client.resources import PODS
from kubesched.client.rest import ApiClient
from kubesched.client.watch import WatchEvent

BEST_OF = 3
WATCH_EVENTS = 20_000
TOKEN = "x" * 600  # about what a service account's token is long

# As much as kube-apiserver answers to a binding.
_STATUS = b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}'
_CREATED = (
    b"HTTP/1.1 201 Created\r\n"
    b"Audit-Id: 5d0e9c4c-6f49-4a55-9a3e-9b2f0d0e3c11\r\n"
    b"Cache-Control: no-cache, private\r\n"
    b"Content-Type: application/json\r\n"
    b"X-Kubernetes-Pf-Flowschema-Uid: 7a0bb0d1-2b3c-4d5e-8f90-123456789abc\r\n"
    b"X-Kubernetes-Pf-Prioritylevel-Uid: 9a0bb0d1-2b3c-4d5e-8f90-123456789abc\r\n"
    b"Date: Sun, 15 Nov 2026 19:53:00 GMT\r\n"
    b"Content-Length: %d\r\n\r\n"
) % len(_STATUS) + _STATUS
_length_of = re.compile(rb"Content-Length: (\d+)\r\n").search


class _Pod(msgspec.Struct, frozen=True):
    metadata: _Meta


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    namespace: str
    uid: str
    resource_version: str


def _event(number: int) -> bytes:
    pod = {
        "kind": "Pod",
        "metadata": {
            "name": f"pod-{number}",
            "namespace": "default",
            "uid": f"8f9a2a52-2a6f-4e94-a1d3-{number:012d}",
            "resourceVersion": str(number),
            "annotations": {"padding": "x" * 3000},
        },
    }
    return msgspec.json.encode({"type": "MODIFIED", "object": pod}) + b"\n"


class _MinimalServer(asyncio.Protocol):
    """Answers every POST with the same response, and every GET with a long watch."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        data = self._rest + data
        while (end := data.find(b"\r\n\r\n") + 4) > 3:
            found = _length_of(data, 0, end)
            end += int(found[1]) if found else 0
            if len(data) < end:
                break
            if data.startswith(b"POST"):
                self.transport.write(_CREATED)
            else:
                self._watch()
            data = data[end:]
        self._rest = data

    def _watch(self) -> None:
        self.transport.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for number in range(WATCH_EVENTS):
            line = _event(number)
            self.transport.write(b"%x\r\n%b\r\n" % (len(line), line))
        self.transport.write(b"0\r\n\r\n")


async def _serve(certificate: str) -> None:
    context = None
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(_MinimalServer, "127.0.0.1", 0, ssl=context)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextmanager
def _server(certificate: Path | None) -> Iterator[int]:
    command = [sys.executable, __file__, "--serve", str(certificate or "")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield int((process.stdout or sys.stdin).readline())
        finally:
            process.terminate()


class Cost(NamedTuple):
    """The cost of a run, per item."""

    per_second: float
    cpu_us: float


async def _cost(work: Callable[[], Awaitable[None]], count: int) -> Cost:
    started, cpu = time.perf_counter(), time.process_time()
    await work()
    cpu = time.process_time() - cpu
    return Cost(count / (time.perf_counter() - started), cpu / count * 1e6)


async def _posts(client: ApiClient, requests: int, concurrency: int) -> Cost:
    path = PODS.item("pod-12345", namespace="default", subresource="binding")
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {
            "name": "pod-12345",
            "namespace": "default",
            "uid": "8f9a2a52-2a6f-4e94-a1d3-2f50e4d61e3f",
        },
        "target": {"kind": "Node", "name": "node-00042"},
    }
    turns = iter(range(requests))

    async def worker() -> None:
        for _ in turns:
            await client.post(path, binding)

    async def work() -> None:
        await asyncio.gather(*(worker() for _ in range(concurrency)))

    return await _cost(work, requests)


async def _events(client: ApiClient, requests: int) -> Cost:
    recorder = EventRecorder(client, controller="c", instance="i", queue_size=requests)
    task = asyncio.create_task(recorder.run())

    async def work() -> None:
        for number in range(requests):
            recorder.record(
                ObjectReference(kind="Pod", namespace="default", name=f"pod-{number}", uid="u"),
                "Scheduled",
                type="Normal",
                action="Binding",
                note=f"Successfully assigned default/pod-{number} to node-00042",
            )
        await recorder.flush(60)

    cost = await _cost(work, requests)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return cost


async def _watch(client: ApiClient) -> Cost:
    async def work() -> None:
        seen = 0
        async with client.watch(
            PODS.collection(), _Pod, resource_version="1", timeout_s=300
        ) as stream:
            async for batch in stream:
                seen += sum(isinstance(event, WatchEvent) for event in batch)
        if seen != WATCH_EVENTS:
            raise RuntimeError(f"{seen} events came, not {WATCH_EVENTS}")

    return await _cost(work, WATCH_EVENTS)


async def _measure(access: ClusterAccess, arguments: argparse.Namespace) -> dict[str, Cost]:
    requests, concurrency = arguments.requests, arguments.concurrency
    async with ApiClient(access) as client:
        await _posts(client, 1000, concurrency)
        costs = {
            f"POST, {concurrency} at once": [
                await _posts(client, requests, concurrency) for _ in range(BEST_OF)
            ],
            "POST, one after the other": [
                await _posts(client, requests // 4, 1) for _ in range(BEST_OF)
            ],
            "event recorded and sent": [await _events(client, requests) for _ in range(BEST_OF)],
            "watch event, 3 KB": [await _watch(client) for _ in range(BEST_OF)],
        }
    return {name: min(runs, key=lambda cost: cost.cpu_us) for name, runs in costs.items()}


def _report(arguments: argparse.Namespace) -> None:
    table = Table("loop", "wire", "what", title="API client, best of three")
    for column in ("per second", "CPU µs each"):
        table.add_column(column, justify="right")
    authority = trustme.CA()
    context = tls_context(ca_pem=authority.cert_pem.bytes().decode())
    with tempfile.TemporaryDirectory() as folder:
        certificate = Path(folder) / "server.pem"
        authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(
            str(certificate)
        )
        for wire in ("plain", "TLS"):
            with _server(certificate if wire == "TLS" else None) as port:
                access = ClusterAccess(
                    server=Server("https" if wire == "TLS" else "http", "127.0.0.1", port),
                    ssl_context=context if wire == "TLS" else None,
                    credentials=StaticCredentials.token(TOKEN),
                )
                for name, factory in (
                    ("uvloop", uvloop.new_event_loop),
                    ("asyncio", asyncio.new_event_loop),
                ):
                    with asyncio.Runner(loop_factory=factory) as runner:
                        costs = runner.run(_measure(access, arguments))
                    for what, cost in costs.items():
                        table.add_row(
                            name, wire, what, f"{cost.per_second:,.0f}", f"{cost.cpu_us:.1f}"
                        )
    Console().print(table)


def main() -> None:
    """Measure, or run the server."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--concurrency", type=int, default=50)
    parser.add_argument("--serve", metavar="CERTIFICATE", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve is not None:
        uvloop.run(_serve(arguments.serve))
    else:
        _report(arguments)


if __name__ == "__main__":
    main()
