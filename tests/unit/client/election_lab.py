"""Candidates for one Lease, their API server, and what a test makes go wrong between them.

The API server is the embedded one. Between it and the candidates stands a gate, where a test makes
things go wrong. Time is virtual: it goes on when a test says so and every candidate waits.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

from kubesched.client import resources
from kubesched.client.leader_election import LeaderElector
from kubesched.client.rest import MERGE_PATCH, ApiClient
from kubesched.clock import VirtualClock
from kubesched.config.durations import Duration
from kubesched.config.types import LeaderElection
from kubesched.embedded import EmbeddedCluster
from kubesched.logs.formats import KlogFormatter
from tests.support.servers import Exchange, JsonObject, ScriptedServer, answer
from tests.support.waiting import eventually

START = 1_700_000_000.0
START_TEXT = "2023-11-14T22:13:20.000000Z"
PATH = resources.LEASES.item("kube-scheduler", namespace="kube-system")
LEASE_S, DEADLINE_S, RETRY_S = 15.0, 10.0, 2.0
#: The longest pause of a candidate that waits.
LONGEST_PAUSE_S = RETRY_S * 2.2
DEFAULTS = LeaderElection()


def durations(lease_s: float, deadline_s: float, retry_s: float) -> LeaderElection:
    return LeaderElection(
        lease_duration=Duration.of_seconds(lease_s),
        renew_deadline=Duration.of_seconds(deadline_s),
        retry_period=Duration.of_seconds(retry_s),
    )


class SteppedTime:
    """Time that passes in steps, from one waiting candidate to the next."""

    def __init__(self) -> None:
        self.clock = VirtualClock(START)
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []
        self._tasks: list[asyncio.Task[Any]] = []
        #: every pause that was asked for
        self.pauses: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.clock.monotonic() + seconds, waiter))
        await waiter

    async def start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Start a candidate's work, until it waits for time to pass or is done."""
        task = asyncio.create_task(work)
        self._tasks.append(task)
        await self._all_wait()
        return task

    async def _all_wait(self) -> None:
        def wait() -> bool:
            running = sum(not task.done() for task in self._tasks)
            return sum(not waiter.done() for _, waiter in self._sleepers) >= running

        await asyncio.sleep(0)
        await eventually(wait)

    async def advance(self, seconds: float) -> None:
        """Let time pass; whoever's pause ends on the way gets its turn."""
        end = self.clock.monotonic() + seconds
        while True:
            await self._all_wait()
            self._sleepers = [each for each in self._sleepers if not each[1].done()]
            due, waiter = min(self._sleepers, key=lambda each: each[0], default=(end + 1, None))
            if waiter is None or due > end:
                break
            self.clock.advance(max(0.0, due - self.clock.monotonic()))
            waiter.set_result(None)
        self.clock.advance(max(0.0, end - self.clock.monotonic()))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _nothing(_: Exchange) -> None:
    pass


class Counts:
    """What metrics would show."""

    def __init__(self) -> None:
        self.leading: list[bool] = []
        self.slow_paths = 0

    def on_leading(self, leading: bool) -> None:
        self.leading.append(leading)

    def on_slow_path(self) -> None:
        self.slow_paths += 1


class Lab:
    """Candidates, their API server, and the gate between."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster
        self.time = SteppedTime()
        self.clock = self.time.clock
        #: methods of the requests since it was last emptied
        self.requests: list[str] = []
        #: True: the connection breaks, and nothing has happened
        self.breaks: Callable[[Exchange], bool] = lambda _: False
        #: True: it happens, but the answer is lost
        self.loses_answer: Callable[[Exchange], bool] = lambda _: False
        #: before a request is served
        self.before: Callable[[Exchange], Awaitable[None]] = _nothing
        #: by method, how much time passes on the way to the server, each used once
        self.delays_s: dict[str, float] = {}
        #: the same for every request
        self.every_delay_s = 0.0
        #: True: there is no answer, ever
        self.hangs: Callable[[Exchange], bool] = lambda _: False
        self.gate = ScriptedServer(self.serve)
        #: the candidates' own; there once the gate is open
        self.client: ApiClient

    def candidate(
        self, identity: str = "us", config: LeaderElection = DEFAULTS, **options: Any
    ) -> LeaderElector:
        options = {
            "clock": self.clock,
            "sleep": self.time.sleep,
            "rng": random.Random(1),
            **options,
        }
        return LeaderElector(self.client, config, identity=identity, **options)

    async def leader(self, identity: str = "us", **options: Any) -> LeaderElector:
        """A candidate that leads already."""
        elector = self.candidate(identity, **options)
        await elector.acquire()
        self.requests.clear()
        return elector

    async def serve(self, exchange: Exchange) -> bytes | None:
        self.requests.append(exchange.method)
        if self.breaks(exchange):
            exchange.reset()
            return None
        if self.hangs(exchange):
            await asyncio.Event().wait()
        await self.before(exchange)
        self.clock.advance(self.delays_s.pop(exchange.method, self.every_delay_s))
        content_type = exchange.headers.get("content-type", "")
        status, body = await self._ask(
            exchange.method, exchange.target, exchange.body, content_type=content_type
        )
        if self.loses_answer(exchange):
            exchange.reset()
            return None
        return answer(body, status=status)

    async def _ask(
        self, method: str, target: str, body: bytes, *, content_type: str = "application/json"
    ) -> tuple[int, bytes]:
        """Ask the API server, past the gate."""
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body}

        async def send(message: MutableMapping[str, Any]) -> None:
            sent.append(message)

        path, _, query = target.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": query.encode(),
            "headers": [(b"content-type", content_type.encode())],
        }
        await self._cluster._app(scope, receive, send)
        return sent[0]["status"], b"".join(each.get("body", b"") for each in sent[1:])

    async def _admin(self, method: str, path: str, body: object = None, **options: Any) -> Any:
        data = b"" if body is None else json.dumps(body).encode()
        status, answered = await self._ask(method, path, data, **options)
        if status >= 300:
            raise RuntimeError(f"{method} {path}: {status} {answered.decode()}")
        return json.loads(answered)

    def api_server_is_away(self, away: bool = True) -> None:
        self.breaks = lambda _: away

    # --- the Lease, as somebody else sees and changes it

    async def lease(self) -> JsonObject:
        lease: JsonObject = await self._admin("GET", PATH)
        return lease

    async def spec(self) -> JsonObject:
        spec: JsonObject = (await self.lease())["spec"]
        return spec

    async def change(self, **spec: object) -> None:
        lease = await self.lease()
        lease["spec"] = {**lease["spec"], **spec}
        await self._admin("PUT", PATH, lease)

    async def annotate(self, key: str, value: str) -> None:
        patch = {"metadata": {"annotations": {key: value}}}
        await self._admin("PATCH", PATH, patch, content_type=MERGE_PATCH)

    async def delete(self) -> None:
        await self._admin("DELETE", PATH)

    def create(self, *, spec: JsonObject | None, **metadata: object) -> None:
        lease: JsonObject = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "kube-scheduler", "namespace": "kube-system", **metadata},
        }
        if spec is not None:
            lease["spec"] = spec
        self._cluster.create(lease)

    def held_by(self, holder: str, **spec: object) -> None:
        self.create(
            spec={
                "holderIdentity": holder,
                "leaseDurationSeconds": 15,
                "acquireTime": "2023-11-14T22:00:00.000000Z",
                "renewTime": "2023-11-14T22:00:00.000000Z",
                "leaseTransitions": 3,
                **spec,
            }
        )

    async def events(self) -> list[JsonObject]:
        events: list[JsonObject] = (
            await self._admin("GET", resources.CORE_EVENTS.collection("kube-system"))
        )["items"]
        return events


def shown(record: logging.LogRecord) -> str:
    """What a log shows of a record, behind its header."""
    return KlogFormatter().format(record).partition("] ")[2]


@asynccontextmanager
async def lab() -> AsyncIterator[Lab]:
    it = Lab(EmbeddedCluster())
    async with it.gate, ApiClient(it.gate.access) as it.client:
        try:
            yield it
        finally:
            await it.time.stop()
