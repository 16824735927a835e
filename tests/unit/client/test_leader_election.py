"""One candidate leads at a time, as long as it is sure of it and does something.

The API server is the embedded one. Between it and the candidates stands a gate, where a test makes
things go wrong. Time is virtual: it goes on when a test says so and every candidate waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, MutableMapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import pytest
import uvloop
from hypothesis import given, settings, strategies

from kubesched.client import resources
from kubesched.client.access import ClusterAccess
from kubesched.client.events import EventRecorder
from kubesched.client.leader_election import LeaderElector, make_identity
from kubesched.client.rest import MERGE_PATCH, ApiClient
from kubesched.clock import RealClock, VirtualClock
from kubesched.config.durations import Duration
from kubesched.config.types import LeaderElection
from kubesched.embedded import EmbeddedCluster
from kubesched.errors import ClientError, ConfigError, LeadershipLostError
from kubesched.progress import Progress

from .conftest import Run, _run
from .servers import Exchange, JsonObject, ScriptedServer, answer, eventually, seeded

T = TypeVar("T")

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


@pytest.fixture
def run_once() -> Run:
    """Run on the quicker event loop only: nothing depends on it where time is virtual."""

    def runner(main: Coroutine[Any, Any, T]) -> T:
        return _run(main, uvloop.new_event_loop)

    return runner


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
            "rng": seeded(1),
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


@asynccontextmanager
async def lab() -> AsyncIterator[Lab]:
    it = Lab(EmbeddedCluster())
    async with it.gate, ApiClient(it.gate.access) as it.client:
        try:
            yield it
        finally:
            await it.time.stop()


class TestConfiguration:
    @pytest.mark.parametrize(
        ("lease_s", "deadline_s", "retry_s", "complaint"),
        [
            (10, 10, 2, "leaseDuration must be greater than renewDeadline"),
            (15, 2.4, 2, "renewDeadline must be greater than retryPeriod*JitterFactor"),
            (15, 10, 9, "renewDeadline must be greater than retryPeriod*JitterFactor"),
            (0, -1, -2, "leaseDuration must be greater than zero"),
            (1, 0, -1, "renewDeadline must be greater than zero"),
            (15, 10, 0, "retryPeriod must be greater than zero"),
            (0.9, 0.5, 0.1, "leaseDuration must be at least 1s, a Lease counts seconds: 900ms"),
        ],
    )
    def test_durations_must_fit_together(
        self, lease_s: float, deadline_s: float, retry_s: float, complaint: str
    ) -> None:
        client = ApiClient(ClusterAccess.plain("http://127.0.0.1:1"))
        with pytest.raises(ConfigError) as refused:
            LeaderElector(client, durations(lease_s, deadline_s, retry_s), identity="us")
        assert str(refused.value) == complaint

    def test_the_deadline_must_exceed_the_jittered_period_by_no_more_than_a_hair(self) -> None:
        client = ApiClient(ClusterAccess.plain("http://127.0.0.1:1"))
        LeaderElector(client, durations(15, 2.400000001, 2), identity="us")

    def test_an_identity_is_needed(self) -> None:
        client = ApiClient(ClusterAccess.plain("http://127.0.0.1:1"))
        with pytest.raises(ConfigError, match="Lock identity is empty"):
            LeaderElector(client, DEFAULTS, identity="")

    def test_an_identity_is_host_name_and_uuid(self) -> None:
        uuid = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
        assert re.fullmatch(f"{re.escape(socket.gethostname())}_{uuid}", make_identity())
        assert make_identity() != make_identity()


class TestAcquiring:
    def test_a_missing_lease_is_created(self, run: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                elector = it.candidate("host_1")
                await elector.acquire()

                assert await it.spec() == {
                    "holderIdentity": "host_1",
                    "leaseDurationSeconds": 15,
                    "acquireTime": START_TEXT,
                    "renewTime": START_TEXT,
                    "leaseTransitions": 0,
                }
                assert it.requests == ["GET", "POST"]
                assert elector.leading
                assert elector.leader == "host_1"

        run(main())

    @pytest.mark.parametrize("renewed", ["1999-01-01T00:00:00.000000Z", "2099-01-01T00:00:00Z"])
    def test_a_lease_expires_by_our_own_observation(self, run_once: Run, renewed: str) -> None:
        async def main() -> None:
            async with lab() as it:
                it.held_by("other", renewTime=renewed)
                elector = it.candidate()
                acquiring = await it.time.start(elector.acquire())
                await it.time.advance(LEASE_S - 0.001)
                assert (await it.spec())["holderIdentity"] == "other"
                assert not elector.may_act()

                await it.time.advance(LONGEST_PAUSE_S)
                await acquiring
                spec = await it.spec()
                assert spec["holderIdentity"] == "us"
                assert spec["leaseTransitions"] == 4
                assert spec["acquireTime"] == spec["renewTime"]
                assert spec["acquireTime"] > "2023-11-14T22:13:35"

        run_once(main())

    def test_the_holders_own_duration_counts(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                it.held_by("other", leaseDurationSeconds=60)
                acquiring = await it.time.start(it.candidate().acquire())
                await it.time.advance(59)
                assert not acquiring.done()
                await it.time.advance(1 + LONGEST_PAUSE_S)
                await acquiring

        run_once(main())

    def test_a_holder_that_shows_life_keeps_its_lease(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                it.held_by("other")
                acquiring = await it.time.start(it.candidate().acquire())
                for second in range(10):
                    await it.time.advance(LEASE_S - LONGEST_PAUSE_S)
                    await it.change(renewTime=f"1999-01-01T00:00:{second:02d}.000000Z")
                assert not acquiring.done()

        run_once(main())

    def test_what_others_write_around_the_record_is_no_sign_of_life(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                it.held_by("other")
                acquiring = await it.time.start(it.candidate().acquire())
                for second in range(20):
                    await it.annotate("seen", str(second))
                    await it.time.advance(1)
                await acquiring
                assert (await it.spec())["holderIdentity"] == "us"

        run_once(main())

    def test_a_released_lease_is_taken_at_once(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                it.held_by("")
                await it.candidate().acquire()
                spec = await it.spec()
                assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("us", 4)
                assert spec["acquireTime"] == START_TEXT

        run_once(main())

    @pytest.mark.parametrize("spec", [None, {}])
    def test_a_lease_that_says_nothing_is_taken_at_once(
        self, run_once: Run, spec: JsonObject | None
    ) -> None:
        async def main() -> None:
            async with lab() as it:
                it.create(spec=spec)
                await it.candidate().acquire()
                assert (await it.spec())["holderIdentity"] == "us"
                assert (await it.spec())["leaseTransitions"] == 1

        run_once(main())

    def test_what_others_keep_in_the_lease_survives(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                theirs = {"strategy": "OldestEmulationVersion", "preferredHolder": "someone"}
                it.create(
                    spec={"holderIdentity": "", **theirs},
                    labels={"team": "a"},
                    annotations={"note": "b"},
                    finalizers=["example.com/keep"],
                )
                elector = await it.leader()
                holding = await it.time.start(elector.hold())
                await it.time.advance(10)
                lease = await it.lease()
                assert {key: lease["spec"][key] for key in theirs} == theirs
                assert lease["metadata"]["labels"] == {"team": "a"}
                assert lease["metadata"]["annotations"] == {"note": "b"}
                assert lease["metadata"]["finalizers"] == ["example.com/keep"]
                holding.cancel()
                await elector.release()
                assert {key: (await it.spec())[key] for key in theirs} == theirs

        run_once(main())

    def test_candidates_come_back_after_one_to_two_point_two_periods(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                it.held_by("other", leaseDurationSeconds=100_000)
                await it.time.start(it.candidate().acquire())
                await it.time.advance(300)
                assert all(RETRY_S <= pause <= LONGEST_PAUSE_S for pause in it.time.pauses)
                assert min(it.time.pauses) < 1.2 * RETRY_S
                assert max(it.time.pauses) > 2 * RETRY_S

        run_once(main())

    def test_of_two_that_come_together_one_is_refused(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                it.held_by("")
                both = [it.candidate("a"), it.candidate("b")]
                tasks = [asyncio.create_task(each.acquire()) for each in both]
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                await it.time.start(asyncio.sleep(0))
                assert sum(each.may_act() for each in both) == 1
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

        run_once(main())

    def test_an_api_server_that_is_away_is_waited_for(
        self, run_once: Run, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def main() -> None:
            async with lab() as it:
                it.api_server_is_away()
                acquiring = await it.time.start(it.candidate().acquire())
                await it.time.advance(600)
                assert not acquiring.done()
                it.api_server_is_away(False)
                await it.time.advance(LONGEST_PAUSE_S)
                await acquiring

        with caplog.at_level(logging.INFO):
            run_once(main())
        complaints = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
        assert len(complaints) == 1, "one line for one trouble"
        assert complaints[0].startswith(
            "Error retrieving lease lock: lock=kube-system/kube-scheduler err="
        )

    @pytest.mark.parametrize("method", ["POST", "PUT"])
    def test_a_write_whose_answer_was_lost_is_found(self, run_once: Run, method: str) -> None:
        async def main() -> None:
            async with lab() as it:
                if method == "PUT":
                    it.held_by("")
                lost = iter([True])
                it.loses_answer = lambda each: each.method == method and next(lost, False)
                elector = it.candidate()
                acquiring = await it.time.start(elector.acquire())
                await it.time.advance(LONGEST_PAUSE_S)
                await acquiring
                spec = await it.spec()
                assert spec["leaseTransitions"] == (4 if method == "PUT" else 0)
                assert spec["acquireTime"] == START_TEXT

        run_once(main())

    def test_an_answer_that_comes_too_late_makes_no_leader(self, run_once: Run) -> None:
        """The event loop was blocked while the server answered: the Lease may be gone again."""

        async def main() -> None:
            async with lab() as it:
                it.delays_s["POST"] = DEADLINE_S
                elector = it.candidate()
                acquiring = await it.time.start(elector.acquire())
                assert not acquiring.done()
                assert not elector.leading
                assert not elector.may_act()

                await it.time.advance(LONGEST_PAUSE_S)
                await acquiring
                assert elector.may_act()

        run_once(main())


class TestHolding:
    def test_each_period_one_put_and_nothing_else(self, run: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                counts = Counts()
                elector = await it.leader(observer=counts)
                it.clock.advance(1)
                await it.time.start(elector.hold())
                assert it.requests == ["PUT"], "the first renewal does not wait"
                await it.time.advance(5 * RETRY_S)
                assert it.requests == ["PUT"] * 6
                spec = await it.spec()
                assert spec["acquireTime"] == START_TEXT
                assert spec["renewTime"] == "2023-11-14T22:13:31.000000Z"
                assert spec["leaseTransitions"] == 0
                assert counts.slow_paths == 0

        run(main())

    def test_after_somebody_elses_write_the_lease_is_read_again(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                counts = Counts()
                elector = await it.leader(observer=counts)
                await it.time.start(elector.hold())
                it.requests.clear()
                await it.annotate("note", "mine")
                await it.time.advance(RETRY_S)
                assert it.requests == ["PUT", "GET", "PUT"]
                assert counts.slow_paths == 1
                lease = await it.lease()
                assert lease["metadata"]["annotations"] == {"note": "mine"}
                assert lease["spec"]["acquireTime"] == START_TEXT
                assert lease["spec"]["leaseTransitions"] == 0
                it.requests.clear()
                await it.time.advance(RETRY_S)
                assert it.requests == ["PUT"], "fast again"

        run_once(main())

    def test_without_an_api_server_it_is_over_after_the_deadline(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                elector = await it.leader()
                holding = await it.time.start(elector.hold())
                it.api_server_is_away()
                await it.time.advance(RETRY_S)  # the first attempt that fails
                await it.time.advance(DEADLINE_S - 0.001)
                assert not holding.done()
                await it.time.advance(0.001)
                with pytest.raises(LeadershipLostError) as lost:
                    await holding
                assert str(lost.value).startswith(
                    "lost the leadership, lease kube-system/kube-scheduler: not renewed within 10s"
                )
                assert isinstance(lost.value, ClientError)
                assert not elector.leading
                assert not elector.may_act()

        run_once(main())

    def test_between_deadline_and_loss_nothing_is_done_but_renewing(self, run_once: Run) -> None:
        """Attempts go on for renewDeadline; acting ended renewDeadline after the last renewal."""

        async def main() -> None:
            async with lab() as it:
                elector = await it.leader(config=durations(15, 10, 3))
                holding = await it.time.start(elector.hold())
                it.api_server_is_away()
                await it.time.advance(DEADLINE_S)  # attempts at 3, 6, 9
                assert not elector.may_act()
                it.api_server_is_away(False)
                await it.time.advance(2)  # and at 12
                assert elector.may_act()
                assert not holding.done()

        run_once(main())

    def test_an_outage_shorter_than_the_deadline_costs_nothing(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                elector = await it.leader()
                holding = await it.time.start(elector.hold())
                it.api_server_is_away()
                await it.time.advance(DEADLINE_S - 0.5)
                it.api_server_is_away(False)
                await it.time.advance(RETRY_S)
                assert elector.may_act()
                await it.time.advance(60)
                assert not holding.done()
                assert (await it.spec())["leaseTransitions"] == 0

        run_once(main())

    @pytest.mark.parametrize("seconds", [15, None])
    def test_a_leader_that_finds_another_holder_has_lost_at_once(
        self, run_once: Run, seconds: int | None
    ) -> None:
        """Even if that one's lease is worth nothing: it may have acted meanwhile."""

        async def main() -> None:
            async with lab() as it:
                elector = await it.leader()
                holding = await it.time.start(elector.hold())
                await it.change(holderIdentity="other", leaseDurationSeconds=seconds)
                await it.time.advance(RETRY_S)
                with pytest.raises(LeadershipLostError, match="other holds it"):
                    await holding
                assert not elector.may_act()
                assert (await it.spec())["holderIdentity"] == "other"

        run_once(main())

    def test_a_lease_that_was_cleared_is_taken_back(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                elector = await it.leader()
                holding = await it.time.start(elector.hold())
                await it.change(holderIdentity="")
                await it.time.advance(RETRY_S)
                assert not holding.done()
                spec = await it.spec()
                assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("us", 1)

        run_once(main())

    def test_a_lease_that_was_deleted_is_created_again(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                elector = await it.leader()
                holding = await it.time.start(elector.hold())
                await it.delete()
                await it.time.advance(RETRY_S)
                assert not holding.done()
                assert (await it.spec())["holderIdentity"] == "us"

        run_once(main())

    def test_a_renewal_whose_answer_was_lost_is_done_again(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                counts = Counts()
                elector = await it.leader(observer=counts)
                it.clock.advance(1)
                lost = iter([True])
                it.loses_answer = lambda each: each.method == "PUT" and next(lost, False)
                holding = await it.time.start(elector.hold())
                await it.time.advance(RETRY_S)
                assert not holding.done()
                assert counts.slow_paths == 1
                assert elector.may_act()

        run_once(main())

    def test_a_server_that_never_answers_cannot_hold_up_the_deadline(self, run: Run) -> None:
        """In real time: the server takes every request and is silent."""

        async def main() -> None:
            async with lab() as it:
                elector = LeaderElector(it.client, durations(1, 0.4, 0.1), identity="us")
                await elector.acquire()
                it.hangs = lambda _: True
                started = RealClock().monotonic()
                with pytest.raises(LeadershipLostError, match="no answer in time"):
                    await elector.hold()
                assert 0.4 <= RealClock().monotonic() - started < 0.9

        run(main())

    def test_slow_answers_bring_the_next_renewal_forward(self, run_once: Run) -> None:
        """Else a lease would be overdue by the time that its turn comes."""

        async def main() -> None:
            async with lab() as it:
                elector = await it.leader(config=durations(15, 10, 8))
                it.every_delay_s = 4
                holding = await it.time.start(elector.hold())
                await it.time.advance(60)
                assert not holding.done()
                assert max(it.time.pauses) == pytest.approx(5)

        run_once(main())

    def test_a_duration_that_is_no_whole_seconds_can_be_held(self, run_once: Run) -> None:
        """The Lease says 2 s, and so others take it after 2 s, not after 2.9 s."""

        async def main() -> None:
            async with lab() as it:
                elector = await it.leader(config=durations(2.9, 2.5, 2))
                assert (await it.spec())["leaseDurationSeconds"] == 2
                holding = await it.time.start(elector.hold())
                await it.time.advance(30)
                assert not holding.done()
                assert elector.may_act()
                it.clock.advance(2)
                assert not elector.may_act()

        run_once(main())


class TestProgress:
    """A leader that does nothing any more makes room."""

    def test_without_progress_nothing_is_renewed_and_leadership_ends(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                progress = Progress(it.clock, limit_s=5)
                progress.beat()
                elector = await it.leader(is_progressing=progress.is_progressing)
                holding = await it.time.start(elector.hold())
                await it.time.advance(5)
                renewals = len(it.requests)
                assert renewals == 3  # at 0, 2 and 4
                await it.time.advance(1 + DEADLINE_S)  # attempts from 6 to 16
                with pytest.raises(LeadershipLostError, match="scheduling loop makes no progress"):
                    await holding
                assert len(it.requests) == renewals
                assert not elector.may_act()

        run_once(main())

    def test_another_candidate_takes_over_from_a_stuck_leader(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                progress = Progress(it.clock, limit_s=5)
                progress.beat()
                stuck = await it.leader("stuck", is_progressing=progress.is_progressing)
                holding = await it.time.start(stuck.hold())
                other = it.candidate("other")
                acquiring = await it.time.start(other.acquire())
                for _ in range(400):
                    await it.time.advance(0.1)
                    assert not (stuck.may_act() and other.may_act())
                    if acquiring.done():
                        break
                assert other.leading
                with pytest.raises(LeadershipLostError):
                    await holding

        run_once(main())

    def test_a_loop_that_recovers_keeps_the_leadership(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                progress = Progress(it.clock, limit_s=5)
                progress.beat()
                elector = await it.leader(is_progressing=progress.is_progressing)
                holding = await it.time.start(elector.hold())
                await it.time.advance(12)
                progress.beat()
                await it.time.advance(4)
                assert not holding.done()
                assert elector.may_act()

        run_once(main())


class TestMayAct:
    """The clock alone decides, whatever a task has or has not found out."""

    def test_only_a_leader_may_act(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                elector = it.candidate()
                assert not elector.may_act()
                await elector.acquire()
                assert elector.may_act()

        run_once(main())

    def test_it_ends_with_the_deadline_by_itself(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                elector = await it.leader()
                now = it.clock.monotonic()
                assert elector.may_act(now + DEADLINE_S - 0.001)
                assert not elector.may_act(now + DEADLINE_S)
                it.clock.advance(DEADLINE_S)
                assert not elector.may_act()

        run_once(main())

    def test_it_counts_from_when_the_renewal_was_sent(self, run_once: Run) -> None:
        """Others may have seen a renewal long before its answer reached us."""

        async def main() -> None:
            async with lab() as it:
                it.delays_s["POST"] = 4
                elector = await it.leader()
                assert elector.may_act(START + DEADLINE_S - 0.001)
                assert not elector.may_act(START + DEADLINE_S)

        run_once(main())

    def test_a_refused_renewal_does_not_prolong_it(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                elector = await it.leader()
                it.breaks = lambda each: each.method == "PUT"
                await it.time.start(elector.hold())
                await it.time.advance(DEADLINE_S - 0.5)
                assert elector.may_act(START + DEADLINE_S - 0.001)
                assert not elector.may_act(START + DEADLINE_S)

        run_once(main())

    def test_a_loop_that_was_blocked_too_long_has_lost_before_it_asks(self, run_once: Run) -> None:
        """Time passes and no task gets a turn: that is what blocking looks like from inside."""

        async def main() -> None:
            async with lab() as it:
                elector = await it.leader()
                holding = await it.time.start(elector.hold())
                it.requests.clear()
                it.clock.advance(DEADLINE_S)  # nobody's turn comes
                assert not elector.may_act()
                await it.time.advance(0)
                with pytest.raises(LeadershipLostError, match=r"10\.0 s: the process was held up"):
                    await holding
                assert it.requests == []

        run_once(main())

    def test_a_loop_that_was_blocked_during_a_renewal_has_lost(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                elector = await it.leader()
                it.delays_s["PUT"] = DEADLINE_S
                holding = await it.time.start(elector.hold())
                with pytest.raises(LeadershipLostError, match="the process was held up"):
                    await holding
                assert it.requests == ["PUT"]

        run_once(main())

    def test_a_loop_that_was_blocked_for_less_goes_on(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                elector = await it.leader()
                holding = await it.time.start(elector.hold())
                it.clock.advance(DEADLINE_S - 0.001)
                assert elector.may_act()
                await it.time.advance(0)
                assert not holding.done()
                assert elector.may_act(it.clock.monotonic() + DEADLINE_S - 0.001)

        run_once(main())

    @settings(max_examples=25)
    @given(data=strategies.data())
    def test_two_never_may_act_at_once(self, data: strategies.DataObject) -> None:
        """Outages, lost answers, processes that are held up and foreign writes, in any order."""

        async def main() -> None:
            async with lab() as it:
                it.held_by("")
                late_s: dict[str, float] = {}
                electors = [_late_candidate(it, name, late_s) for name in ("a", "b")]
                acting: set[int] = set()

                def look() -> None:
                    acting.add(sum(each.may_act() for each in electors))

                async def look_first(_: Exchange) -> None:
                    look()

                it.before = look_first
                for each in electors:
                    await it.time.start(_forever(each, it.time.sleep))
                for _ in range(data.draw(strategies.integers(1, 12))):
                    trouble = data.draw(strategies.sampled_from(_TROUBLES))
                    seconds = data.draw(strategies.floats(0, 20))
                    await _cause(it, trouble, seconds, late_s)
                    await it.time.advance(data.draw(strategies.floats(0, 20)))
                    look()
                assert acting <= {0, 1}

        _run(main(), uvloop.new_event_loop)


_TROUBLES = ("outage", "lost answers", "peace", "all held up", "a held up", "b held up", "noted")


def _late_candidate(it: Lab, identity: str, late_s: dict[str, float]) -> LeaderElector:
    """A candidate whose next pause takes longer than it asked for: its process is held up."""

    async def sleep(seconds: float) -> None:
        await it.time.sleep(seconds + late_s.pop(identity, 0.0))

    return it.candidate(identity, sleep=sleep)


async def _cause(it: Lab, trouble: str, seconds: float, late_s: dict[str, float]) -> None:
    match trouble:
        case "outage":
            it.api_server_is_away()
        case "lost answers":
            it.loses_answer = lambda each: each.method == "PUT"
        case "peace":
            it.api_server_is_away(False)
            it.loses_answer = lambda _: False
        case "all held up":
            it.clock.advance(seconds)
        case "a held up" | "b held up":
            late_s[trouble[0]] = seconds
        case "noted":
            await it.annotate("note", str(it.clock.monotonic()))


async def _forever(elector: LeaderElector, sleep: Callable[[float], Any]) -> None:
    """A process that begins again whenever it has lost."""
    while True:
        await elector.acquire()
        with contextlib.suppress(LeadershipLostError):
            await elector.hold()
        await sleep(1.0)


class TestReleasing:
    def test_a_released_lease_is_free(self, run: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                it.held_by("")
                elector = await it.leader()
                it.clock.advance(3)
                await elector.release()
                assert await it.spec() == {
                    "holderIdentity": "",
                    "leaseDurationSeconds": 1,
                    "acquireTime": "2023-11-14T22:13:23.000000Z",
                    "renewTime": "2023-11-14T22:13:23.000000Z",
                    "leaseTransitions": 4,
                }
                assert not elector.may_act()
                assert not elector.leading
                assert elector.leader == ""

        run(main())

    def test_the_next_candidate_does_not_wait_for_the_lease_to_expire(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                first = await it.leader("first")
                second = it.candidate("second")
                acquiring = await it.time.start(second.acquire())
                await first.release()
                await it.time.advance(LONGEST_PAUSE_S)
                await acquiring
                assert (await it.spec())["leaseTransitions"] == 1

        run_once(main())

    def test_nothing_is_done_any_more_before_the_release_is_sent(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                elector = await it.leader()
                acting: list[bool] = []

                async def look(_: Exchange) -> None:
                    acting.append(elector.may_act())

                it.before = look
                await elector.release()
                assert acting == [False, False]

        run_once(main())

    def test_another_holders_lease_is_left_alone(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                elector = await it.leader()
                await it.change(holderIdentity="other")
                before = await it.lease()
                await elector.release()
                assert await it.lease() == before

        run_once(main())

    def test_who_never_wrote_does_not_ask(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                it.held_by("other")
                elector = it.candidate()
                acquiring = await it.time.start(elector.acquire())
                acquiring.cancel()
                it.requests.clear()
                await elector.release()
                assert it.requests == []

        run_once(main())

    def test_a_write_that_was_never_answered_is_taken_back(self, run_once: Run) -> None:
        """Stopped while acquiring: the server may know us as the holder, and we do not."""

        async def main() -> None:
            async with lab() as it:
                it.loses_answer = lambda each: each.method == "POST"
                elector = it.candidate()
                acquiring = await it.time.start(elector.acquire())
                acquiring.cancel()
                assert (await it.spec())["holderIdentity"] == "us"
                await elector.release()
                assert (await it.spec())["holderIdentity"] == ""

        run_once(main())

    def test_after_a_loss_what_is_still_ours_is_given_back(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                elector = await it.leader(is_progressing=lambda: False)
                holding = await it.time.start(elector.hold())
                await it.time.advance(DEADLINE_S)
                with pytest.raises(LeadershipLostError):
                    await holding
                await elector.release()
                assert (await it.spec())["holderIdentity"] == ""

        run_once(main())

    def test_a_writer_in_between_is_no_obstacle(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                elector = await it.leader()
                others = iter(["quicker"])

                async def write_first(exchange: Exchange) -> None:
                    if exchange.method == "PUT" and (note := next(others, "")):
                        await it.annotate("note", note)

                it.before = write_first
                await elector.release()
                assert it.requests == ["GET", "PUT", "GET", "PUT"]
                assert (await it.spec())["holderIdentity"] == ""

        run_once(main())

    def test_without_an_api_server_it_is_left_to_expire(
        self, run_once: Run, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def main() -> None:
            async with lab() as it:
                elector = await it.leader()
                it.api_server_is_away()
                await elector.release()
                assert not elector.may_act()

        run_once(main())
        assert "Failed to release lease: lock=kube-system/kube-scheduler err=" in caplog.text

    def test_a_server_that_never_answers_does_not_hold_up_the_end(
        self, run_once: Run, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def main() -> None:
            async with lab() as it:
                elector = LeaderElector(it.client, durations(1, 0.2, 0.1), identity="us")
                await elector.acquire()
                it.hangs = lambda _: True
                async with asyncio.timeout(0.8):
                    await elector.release()

        run_once(main())
        assert "no answer in time" in caplog.text


class TestTelling:
    def test_new_leaders_are_told_once(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                it.held_by("first")
                told: list[str] = []
                elector = it.candidate(on_new_leader=told.append)
                acquiring = await it.time.start(elector.acquire())
                await it.time.advance(10)
                await it.change(holderIdentity="second")
                await it.time.advance(10)
                await it.change(holderIdentity="")
                await it.time.advance(LONGEST_PAUSE_S)
                await acquiring
                await it.time.start(elector.hold())
                await it.time.advance(10)
                assert told == ["first", "second", "us"]

        run_once(main())

    def test_metrics_hear_who_leads(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                counts = Counts()
                elector = it.candidate(observer=counts)
                assert counts.leading == [False]
                await elector.acquire()
                assert counts.leading == [False, True]
                await elector.release()
                await elector.release()
                assert counts.leading == [False, True, False]

        run_once(main())

    def test_events_about_the_lease(self, run_once: Run) -> None:
        async def main() -> None:
            async with lab() as it:
                recorder = EventRecorder(
                    it.client, controller="default-scheduler", instance="", core_v1=True
                )
                recording = asyncio.create_task(recorder.run())
                elector = await it.leader("host_1", events=recorder)
                await elector.release()
                await elector.release()
                assert await recorder.flush(5)
                recording.cancel()
                await asyncio.gather(recording, return_exceptions=True)

                events = await it.events()
                notes = [each["message"] for each in events]
                assert notes == ["host_1 became leader", "host_1 stopped leading"]
                uid = (await it.lease())["metadata"]["uid"]
                for event in events:
                    assert (event["type"], event["reason"]) == ("Normal", "LeaderElection")
                    assert event["source"] == {"component": "default-scheduler"}
                    about = event["involvedObject"]
                    assert about.pop("resourceVersion")
                    assert about == {
                        "kind": "Lease",
                        "apiVersion": "coordination.k8s.io/v1",
                        "namespace": "kube-system",
                        "name": "kube-scheduler",
                        "uid": uid,
                    }

        run_once(main())

    def test_lines_that_operators_look_for(
        self, run_once: Run, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def main() -> None:
            async with lab() as it:
                elector = await it.leader()
                holding = await it.time.start(elector.hold())
                await it.change(holderIdentity="other")
                await it.time.advance(RETRY_S)
                with pytest.raises(LeadershipLostError):
                    await holding

        with caplog.at_level(logging.INFO, logger="kubesched.client.leader_election"):
            run_once(main())
        ours = [r for r in caplog.records if r.name == "kubesched.client.leader_election"]
        lock = "lock=kube-system/kube-scheduler"
        assert [(each.levelname, each.getMessage()) for each in ours] == [
            ("INFO", f"Attempting to acquire leader lease... {lock}"),
            ("INFO", f"New leader elected: {lock} identity=us"),
            ("INFO", f"Successfully acquired lease: {lock}"),
            ("INFO", f"New leader elected: {lock} identity=other"),
            ("INFO", f"Failed to renew lease: {lock} err=other holds it"),
            ("ERROR", "Leaderelection lost"),
        ]
