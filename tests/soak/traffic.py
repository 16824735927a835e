"""What reaches a scheduler in any cluster, busy or not.

    node heartbeats · /livez and /readyz probes · /metrics scrapes

Lease renewals, bookmarks and the end of watches come from the scheduler and the API server
themselves.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field

import msgspec

from kubesched.bench.processes import LOOPBACK
from kubesched.client.access import ClusterAccess, Server, tls_context
from kubesched.client.rest import STRATEGIC_MERGE_PATCH, ApiClient
from kubesched.errors import KubeschedError, NotFoundError

from .objects import NODES, ready

#: Intervals of the kubelet and Prometheus in most clusters.
HEARTBEAT_EVERY_S = 60.0
PROBE_EVERY_S = 5.0
SCRAPE_EVERY_S = 15.0


@dataclass(frozen=True)
class Target:
    """The scheduler under measurement, and its cluster."""

    #: may do everything
    client: ApiClient
    #: address of the scheduler's health and metrics
    port: int
    #: credentials for metrics
    token: str
    #: what happened, by name
    counts: Counter[str] = field(default_factory=Counter)


def idle(target: Target) -> list[Coroutine[None, None, None]]:
    """The tasks of an idle cluster."""
    probes = (_probes(target, path) for path in ("/livez", "/readyz"))
    return [_heartbeats(target), *probes, _scrapes(target)]


@contextlib.asynccontextmanager
async def running(work: list[Coroutine[None, None, None]]) -> AsyncIterator[None]:
    """Run tasks beside the caller; one that fails ends it."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(each) for each in work]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()


async def every(
    seconds: float, step: Callable[[], Coroutine[None, None, None]], counts: Counter[str]
) -> None:
    """Repeat something; failures are counted and retried."""
    while True:
        await asyncio.sleep(seconds)
        try:
            await step()
        except (KubeschedError, OSError) as failed:
            counts[f"failures ({type(failed).__name__})"] += 1


async def names(client: ApiClient, path: str) -> list[str]:
    """The names of all objects of a collection."""
    answer = await client.request("GET", path)
    return [each["metadata"]["name"] for each in msgspec.json.decode(answer.body)["items"]]


async def _heartbeats(target: Target) -> None:
    """Let each kubelet report, spread over the period."""

    async def all_nodes() -> None:
        began = time.monotonic()
        nodes = await names(target.client, NODES)
        for place, name in enumerate(nodes):
            status = {"status": {"conditions": [ready()]}}
            with contextlib.suppress(NotFoundError):  # replaced meanwhile
                path = f"{NODES}/{name}/status"
                await target.client.patch(path, status, content_type=STRATEGIC_MERGE_PATCH)
                target.counts["heartbeats"] += 1
            due = began + HEARTBEAT_EVERY_S * (place + 1) / len(nodes)
            await asyncio.sleep(max(0.0, due - time.monotonic()))

    await every(0.0, all_nodes, target.counts)


async def _probes(target: Target, path: str) -> None:
    """Probe as the kubelet does: on a new connection each time."""
    trust_all = ssl.create_default_context()
    trust_all.check_hostname = False
    trust_all.verify_mode = ssl.CERT_NONE
    request = f"GET {path} HTTP/1.1\r\nHost: {LOOPBACK}\r\nConnection: close\r\n\r\n".encode()

    async def probe() -> None:
        reader, writer = await asyncio.open_connection(LOOPBACK, target.port, ssl=trust_all)
        try:
            writer.write(request)
            answer = await reader.read()
            target.counts[f"probes answered with {answer[9:12].decode()}"] += 1
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    await every(PROBE_EVERY_S, probe, target.counts)


async def _scrapes(target: Target) -> None:
    """Scrape as Prometheus does: on a kept connection, with a token that is reviewed."""
    access = ClusterAccess(
        server=Server("https", LOOPBACK, target.port),
        ssl_context=tls_context(ca_pem=None, verify=False),
        headers=(("Authorization", f"Bearer {target.token}"),),
    )
    async with ApiClient(access) as client:

        async def scrape() -> None:
            await client.request("GET", "/metrics")
            target.counts["scrapes"] += 1

        await every(SCRAPE_EVERY_S, scrape, target.counts)
