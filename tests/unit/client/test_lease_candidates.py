"""A candidate makes itself known, answers pings, and is heard every five minutes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kubesched.client.lease_candidates import RENEWAL_S, LeaseCandidate, finalized
from kubesched.client.rest import ApiClient
from kubesched.clock import VirtualClock
from tests.support.servers import (
    CHUNKED_HEAD,
    Exchange,
    JsonObject,
    ScriptedServer,
    answer,
    chunk,
    event_line,
)
from tests.support.waiting import eventually

from .conftest import Run

START = 1_700_000_000.0
START_TEXT = "2023-11-14T22:13:20.000000Z"
COLLECTION = "/apis/coordination.k8s.io/v1beta1/namespaces/kube-system/leasecandidates"


class Registry:
    """The API server, as far as one candidate knows it."""

    def __init__(self) -> None:
        self.candidate: JsonObject | None = None
        self._version = 1
        self._watchers: list[Exchange] = []
        self.writes: list[tuple[str, JsonObject]] = []
        #: answers to the next writes, instead of what would be right
        self.failures: list[int] = []
        self.selectors: set[str] = set()

    async def __call__(self, exchange: Exchange) -> bytes | None:
        if exchange.method == "GET" and exchange.path == COLLECTION:
            return await self._list_or_watch(exchange)
        if exchange.method == "GET":
            return answer(self.candidate or {}, status=200 if self.candidate else 404)
        body: JsonObject = json.loads(exchange.body)
        self.writes.append((exchange.method, body))
        if self.failures:
            status = self.failures.pop(0)
            return answer({"kind": "Status", "code": status, "message": "no"}, status=status)
        await self.put(body)
        return answer(self.candidate or {}, status=201)

    async def _list_or_watch(self, exchange: Exchange) -> bytes | None:
        self.selectors.add(exchange.query["fieldSelector"])
        if "watch" not in exchange.query:
            items = [] if self.candidate is None else [self.candidate]
            return answer({"metadata": {"resourceVersion": str(self._version)}, "items": items})
        await exchange.send(CHUNKED_HEAD)
        self._watchers.append(exchange)
        if self.candidate is not None and self._version > int(exchange.query["resourceVersion"]):
            await exchange.send(chunk(event_line("ADDED", self.candidate)))
        await asyncio.sleep(3600)
        return None

    async def put(self, candidate: JsonObject) -> None:
        """Change the candidate, and let everybody who watches know."""
        kind = "ADDED" if self.candidate is None else "MODIFIED"
        self._version += 1
        meta = {**candidate["metadata"], "uid": "u1", "resourceVersion": str(self._version)}
        self.candidate = {**candidate, "metadata": meta}
        for each in self._watchers:
            await each.send(chunk(event_line(kind, self.candidate)))

    async def ping(self, time: str) -> None:
        assert self.candidate is not None
        await self.put({**self.candidate, "spec": {**self.candidate["spec"], "pingTime": time}})


class Lab:
    def __init__(self, client: ApiClient) -> None:
        self.clock = VirtualClock(START)
        self.candidate = LeaseCandidate(
            client,
            identity="host_1",
            lease_name="kube-scheduler",
            binary_version="1.37.1",
            emulation_version="1.37.0",
            clock=self.clock,
            sleep=self.sleep,
        )
        self.pauses: list[float] = []
        #: set when five minutes are over
        self.over = asyncio.Event()

    def has_synced(self) -> bool:
        return self.candidate.has_synced

    @property
    def knows_itself(self) -> bool:
        """Whether the watch has brought what was created."""
        return self.candidate._informer.get("host_1", namespace="kube-system") is not None

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        if seconds >= RENEWAL_S:
            await self.over.wait()
            self.over.clear()


@asynccontextmanager
async def standing(registry: Registry) -> AsyncIterator[Lab]:
    """A candidate at work."""
    async with ScriptedServer(registry) as server, ApiClient(server.access) as client:
        it = Lab(client)
        running = asyncio.create_task(it.candidate.run())
        try:
            yield it
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


def test_it_makes_itself_known(run: Run) -> None:
    async def main() -> None:
        registry = Registry()
        async with standing(registry) as it:
            assert not it.has_synced()
            await eventually(lambda: registry.candidate is not None)
            assert it.has_synced()
        assert registry.writes == [
            (
                "POST",
                {
                    "apiVersion": "coordination.k8s.io/v1beta1",
                    "kind": "LeaseCandidate",
                    "metadata": {"name": "host_1", "namespace": "kube-system"},
                    "spec": {
                        "leaseName": "kube-scheduler",
                        "binaryVersion": "1.37.1",
                        "emulationVersion": "1.37.0",
                        "strategy": "OldestEmulationVersion",
                        "renewTime": START_TEXT,
                    },
                },
            )
        ]
        assert registry.selectors == {"metadata.name=host_1"}

    run(main())


def test_it_answers_pings(run_once: Run) -> None:
    async def main() -> None:
        registry = Registry()
        async with standing(registry) as it:
            await eventually(lambda: it.knows_itself)
            it.clock.advance(7)
            await registry.ping("2023-11-14T22:13:25.000000Z")
            await eventually(lambda: len(registry.writes) == 2)
            method, body = registry.writes[1]
            assert method == "PUT"
            assert body["spec"]["renewTime"] == "2023-11-14T22:13:27.000000Z"
            assert body["spec"]["pingTime"] == "2023-11-14T22:13:25.000000Z"
            assert body["spec"]["binaryVersion"] == "1.37.1"
            # A ping that was answered is none.
            await registry.ping("2023-11-14T22:13:26.000000Z")
            await asyncio.sleep(0.05)  # an answer would have come by then
            assert len(registry.writes) == 2

    run_once(main())


def test_it_is_heard_every_five_minutes(run_once: Run) -> None:
    async def main() -> None:
        registry = Registry()
        async with standing(registry) as it:
            # The watch may bring what was created before the answer to that has been read.
            await eventually(lambda: it.knows_itself and bool(it.pauses))
            for number in (1, 2):
                assert it.pauses == [RENEWAL_S] * number
                it.over.set()
                await eventually(lambda: len(registry.writes) == len(it.pauses) == number + 1)  # noqa: B023 (asked now)
            assert [method for method, _ in registry.writes] == ["POST", "PUT", "PUT"]

    run_once(main())


def test_failures_are_tried_again_after_longer_and_longer_pauses(run_once: Run) -> None:
    async def main() -> None:
        registry = Registry()
        registry.failures = [403, 403, 403]
        async with standing(registry) as it:
            await eventually(lambda: registry.candidate is not None)
            pauses = [each for each in it.pauses if each < RENEWAL_S]
            assert pauses == [0.005, 0.01, 0.02]

    run_once(main())


def test_one_that_is_known_already_is_renewed(run_once: Run) -> None:
    async def main() -> None:
        registry = Registry()
        await registry.put(
            {"metadata": {"name": "host_1", "namespace": "kube-system"}, "spec": {"leaseName": "x"}}
        )
        async with standing(registry):
            await eventually(lambda: len(registry.writes) == 1)
            method, body = registry.writes[0]
            assert method == "PUT"
            assert body["spec"] == {"leaseName": "x", "renewTime": START_TEXT}

    run_once(main())


@pytest.mark.parametrize(
    ("version", "want"),
    [
        ("v1.37.1", "1.37.1"),
        ("1.37", "1.37.0"),
        ("v1.37.1-alpha.1+abc", "1.37.1"),
        ("1.37.0+k3s1", "1.37.0"),
    ],
)
def test_versions(version: str, want: Any) -> None:
    assert finalized(version) == want
