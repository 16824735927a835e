"""The recorder: it never holds up its caller, and what it promised it sends."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kubesched.client.events import EventRecorder
from kubesched.client.meta import ObjectReference
from kubesched.client.rest import ApiClient
from kubesched.clock import VirtualClock
from tests.support.servers import Exchange, Handler, ScriptedServer, answer, failure
from tests.support.waiting import eventually, settle

from .conftest import Run
from .virtual_sleep import VirtualSleep

START = 1_700_000_000.0


def _pod(name: str = "pod", *, namespace: str = "ns") -> ObjectReference:
    return ObjectReference(
        kind="Pod",
        namespace=namespace,
        name=name,
        uid=f"uid-{name}",
        api_version="v1",
        resource_version="7",
    )


async def _accept(_: Exchange) -> bytes:
    return answer(status=201)


class Fixture:
    """A recorder with virtual time, and the server that it talks to."""

    def __init__(
        self, server: ScriptedServer, recorder: EventRecorder, sleep: VirtualSleep
    ) -> None:
        self.server = server
        self.recorder = recorder
        self.sleep = sleep

    def fail(self, pod: ObjectReference, note: str = "no nodes") -> None:
        self.recorder.record(
            pod, "FailedScheduling", type="Warning", action="Scheduling", note=note
        )

    async def flush(self) -> None:
        assert await self.recorder.flush(5)

    def sent(self) -> list[tuple[str, str]]:
        return [(exchange.method, exchange.path) for exchange in self.server.requests]


@asynccontextmanager
async def recording(handler: Handler = _accept, **options: Any) -> AsyncIterator[Fixture]:
    clock = VirtualClock(START)
    sleep = VirtualSleep(clock)
    async with ScriptedServer(handler) as server, ApiClient(server.access) as client:
        recorder = EventRecorder(
            client,
            controller="default-scheduler",
            instance="default-scheduler-host",
            clock=clock,
            sleep=sleep,
            rng=random.Random(1),
            **options,
        )
        task = asyncio.create_task(recorder.run())
        try:
            yield Fixture(server, recorder, sleep)
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


class TestSending:
    def test_an_event_is_posted(self, run: Run) -> None:
        async def main() -> None:
            async with recording() as fixture:
                fixture.recorder.record(
                    _pod(),
                    "Preempted",
                    type="Normal",
                    action="Preempting",
                    note="Preempted by pod x on node y",
                    related=_pod("x"),
                )
                await fixture.flush()
                (exchange,) = fixture.server.requests
                assert exchange.method == "POST"
                assert exchange.path == "/apis/events.k8s.io/v1/namespaces/ns/events"
                event = exchange.json
                assert event["metadata"]["name"] == f"pod.{int(START * 1e9):x}"
                assert event["eventTime"] == "2023-11-14T22:13:20.000000Z"
                assert event["reportingController"] == "default-scheduler"
                assert event["reportingInstance"] == "default-scheduler-host"
                assert event["regarding"]["resourceVersion"] == "7"
                assert event["related"]["name"] == "x"
                assert (event["type"], event["reason"]) == ("Normal", "Preempted")

        run(main())

    def test_names_differ_even_if_no_time_passes(self, run_once: Run) -> None:
        async def main() -> None:
            async with recording() as fixture:
                for reason in ("One", "Two", "Three"):
                    fixture.recorder.record(
                        _pod(), reason, type="Normal", action="Binding", note=""
                    )
                await fixture.flush()
                names = {exchange.json["metadata"]["name"] for exchange in fixture.server.requests}
                assert len(names) == 3

        run_once(main())

    def test_events_recorded_before_the_start_are_sent_then(self, run_once: Run) -> None:
        async def main() -> None:
            async with ScriptedServer(_accept) as server, ApiClient(server.access) as client:
                recorder = EventRecorder(client, controller="c", instance="i")
                recorder.record(_pod(), "Scheduled", type="Normal", action="Binding", note="")
                assert not await recorder.flush(0.01)
                task = asyncio.create_task(recorder.run())
                assert await recorder.flush(5)
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
                assert len(server.requests) == 1

        run_once(main())

    def test_several_are_sent_at_once_but_not_too_many(self, run: Run) -> None:
        running = most = 0

        async def slow(_: Exchange) -> bytes:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.005)
            running -= 1
            return answer(status=201)

        async def main() -> None:
            async with recording(slow, workers=4) as fixture:
                for number in range(40):
                    fixture.fail(_pod(f"pod-{number}"))
                await fixture.flush()
                assert len(fixture.server.requests) == 40
                assert most == 4

        run(main())


class TestSeries:
    def test_the_second_is_a_patch_and_the_third_silent(self, run: Run) -> None:
        async def main() -> None:
            async with recording() as fixture:
                fixture.fail(_pod(), "first note")
                await fixture.flush()
                await fixture.sleep.advance(5)
                fixture.fail(_pod(), "second note")
                await fixture.flush()
                await fixture.sleep.advance(5)
                fixture.fail(_pod(), "third note")
                await fixture.flush()

                create, patch = fixture.server.requests
                name = create.json["metadata"]["name"]
                assert patch.method == "PATCH"
                assert patch.path == f"/apis/events.k8s.io/v1/namespaces/ns/events/{name}"
                assert patch.headers["content-type"] == "application/strategic-merge-patch+json"
                assert patch.json == {
                    "series": {"count": 2, "lastObservedTime": "2023-11-14T22:13:25.000000Z"}
                }

        run(main())

    def test_a_silent_series_is_finished_after_six_minutes(self, run: Run) -> None:
        async def main() -> None:
            async with recording() as fixture:
                for _ in range(5):
                    fixture.fail(_pod())
                await fixture.flush()
                assert len(fixture.server.requests) == 2
                await fixture.sleep.advance(360)
                await fixture.flush()
                assert len(fixture.server.requests) == 2
                await fixture.sleep.advance(60)
                await eventually(lambda: len(fixture.server.requests) == 3)
                assert fixture.server.requests[2].json["series"]["count"] == 5
                await fixture.sleep.advance(3600)
                await fixture.flush()
                assert len(fixture.server.requests) == 3

        run(main())

    def test_a_living_series_is_refreshed_every_half_hour(self, run: Run) -> None:
        async def main() -> None:
            async with recording() as fixture:
                for _ in range(61):
                    fixture.fail(_pod())
                    await fixture.sleep.advance(60)
                    await eventually(lambda: fixture.recorder.pending == 0)
                counts = [
                    exchange.json["series"]["count"]
                    for exchange in fixture.server.requests
                    if exchange.method == "PATCH"
                ]
                assert counts == [2, 30, 60]

        run(main())

    def test_a_series_whose_event_is_gone_is_created_with_its_count(self, run: Run) -> None:
        async def forgetful(exchange: Exchange) -> bytes:
            if exchange.method == "PATCH":
                return failure(404, "NotFound", "events is not found")
            return answer(status=201)

        async def main() -> None:
            async with recording(forgetful) as fixture:
                fixture.fail(_pod())
                await fixture.flush()
                fixture.fail(_pod())
                await fixture.flush()
                assert [method for method, _ in fixture.sent()] == ["POST", "PATCH", "POST"]
                assert fixture.server.requests[2].json["series"]["count"] == 2

        run(main())

    def test_a_patch_that_overtook_its_event_is_tried_again(self, run: Run) -> None:
        async def overtaken(exchange: Exchange) -> bytes:
            tried = [request.method for request in server_requests]
            if exchange.method == "PATCH" and tried.count("PATCH") == 1:
                return failure(404, "NotFound", "not yet")
            if exchange.method == "POST" and tried.count("POST") == 2:
                return failure(409, "AlreadyExists", "just now")
            return answer()

        server_requests: list[Exchange] = []

        async def main() -> None:
            async with recording(overtaken) as fixture:
                nonlocal server_requests
                server_requests = fixture.server.requests
                fixture.fail(_pod())
                await fixture.flush()
                fixture.fail(_pod())
                await eventually(lambda: fixture.sleep.waiting == 2)
                await fixture.sleep.advance(13)
                await fixture.flush()
                methods = [method for method, _ in fixture.sent()]
                assert methods == ["POST", "PATCH", "POST", "PATCH"]

        run(main())


class TestTrouble:
    def test_a_full_queue_drops_and_counts(
        self, run_once: Run, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def never(_: Exchange) -> None:
            await asyncio.sleep(3600)

        async def main() -> None:
            async with recording(never, queue_size=10) as fixture:
                for number in range(25):
                    fixture.fail(_pod(f"p{number}"))
                assert fixture.recorder.pending == 10
                assert fixture.recorder.dropped == 15
                assert not await fixture.recorder.flush(0.01)

        run_once(main())
        assert caplog.text.count("too many queued events") == 1

    @pytest.mark.parametrize(
        ("code", "reason", "logged"),
        [
            (403, "Forbidden", logging.ERROR),
            (404, "NotFound", logging.ERROR),
            (422, "Invalid", logging.ERROR),
            (500, "InternalError", logging.ERROR),
            (409, "AlreadyExists", logging.DEBUG),
        ],
    )
    def test_a_refusal_is_final(
        self,
        run_once: Run,
        code: int,
        reason: str,
        logged: int,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        async def refuse(exchange: Exchange) -> bytes:
            if exchange.method == "GET":
                return answer({"kind": "APIResourceList"})
            return failure(code, reason, "I say no")

        async def main() -> None:
            async with recording(refuse) as fixture:
                fixture.fail(_pod())
                await fixture.flush()
                assert [method for method, _ in fixture.sent()].count("POST") == 1

        with caplog.at_level(logging.DEBUG, "kubesched.client"):
            run_once(main())
        (record,) = (r for r in caplog.records if r.name == "kubesched.client.events")
        assert record.levelno == logged
        assert record.getMessage() == (
            "Server rejected event FailedScheduling of Pod ns/pod (will not retry!): I say no"
        )

    def test_without_a_connection_it_is_tried_twelve_times(
        self, run: Run, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def hang_up(exchange: Exchange) -> None:
            exchange.hang_up()

        async def main() -> None:
            async with recording(hang_up) as fixture:
                fixture.fail(_pod())
                recorder, sleep = fixture.recorder, fixture.sleep
                while recorder.pending:
                    await eventually(lambda: sleep.waiting == 2 or not recorder.pending)
                    await sleep.advance(1)
                assert len(fixture.server.requests) == 12
                pauses = [pause for pause in fixture.sleep.asked if pause != 60]
                assert len(pauses) == 11
                assert all(10 <= pause <= 12.5 for pause in pauses)
                assert len(set(pauses)) == 11

        run(main())
        assert "(retry limit exceeded!)" in caplog.text

    def test_the_same_trouble_is_logged_once(
        self, run_once: Run, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def refuse(_: Exchange) -> bytes:
            return failure(403, "Forbidden", "you may not create events")

        async def main() -> None:
            async with recording(refuse) as fixture:
                for number in range(50):
                    fixture.fail(_pod(f"p{number}"))
                await fixture.flush()

        run_once(main())
        assert caplog.text.count("you may not create events") == 1

    def test_events_that_wait_do_not_hold_up_others(self, run: Run) -> None:
        async def some(exchange: Exchange) -> bytes | None:
            if b'"bad' in exchange.body:
                exchange.hang_up()
                return None
            return answer(status=201)

        async def main() -> None:
            async with recording(some, workers=2) as fixture:
                for number in range(10):
                    fixture.fail(_pod(f"bad{number}"))
                for number in range(10):
                    fixture.fail(_pod(f"good{number}"))
                await eventually(lambda: fixture.recorder.pending == 10)
                assert sum(b'"good' in e.body for e in fixture.server.requests) == 10

        run(main())

    @pytest.mark.parametrize("kind", ["Danger", ""])
    def test_an_unknown_type_is_not_sent(
        self, run_once: Run, kind: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def main() -> None:
            async with recording() as fixture:
                fixture.recorder.record(_pod(), "X", type=kind, action="Y", note="")
                await settle()
                assert fixture.recorder.pending == 0

        run_once(main())
        assert "Unsupported event type" in caplog.text

    def test_nothing_that_is_passed_makes_it_raise(
        self, run_once: Run, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def main() -> None:
            async with recording() as fixture:
                nonsense: Any = None
                fixture.recorder.record(nonsense, "X", type="Normal", action="Y", note=nonsense)

        run_once(main())
        assert "Could not record event X" in caplog.text

    def test_ending_leaves_nothing_behind(self, run: Run) -> None:
        async def hang_up(exchange: Exchange) -> None:
            exchange.hang_up()

        async def main() -> None:
            async with recording(hang_up) as fixture:
                fixture.fail(_pod())
                await eventually(lambda: fixture.sleep.waiting == 2)

        run(main())  # the fixture fails if a task is left


class TestOldServers:
    def test_without_the_group_core_events_are_sent(self, run: Run) -> None:
        async def old(exchange: Exchange) -> bytes:
            if exchange.path.startswith("/apis/events.k8s.io"):
                return answer("404 page not found", status=404)
            return answer(status=201)

        async def main() -> None:
            async with recording(old, workers=1) as fixture:
                fixture.fail(_pod())
                fixture.fail(_pod("other"))
                await fixture.flush()
                fixture.fail(_pod())
                await fixture.flush()
                core = "/api/v1/namespaces/ns/events"
                name = fixture.server.requests[2].json["metadata"]["name"]
                assert fixture.sent() == [
                    ("POST", "/apis/events.k8s.io/v1/namespaces/ns/events"),
                    ("GET", "/apis/events.k8s.io/v1"),
                    ("POST", core),
                    ("POST", core),
                    ("PATCH", f"{core}/{name}"),
                ]
                event = fixture.server.requests[2].json
                assert event["involvedObject"]["name"] == "pod"
                assert event["message"] == "no nodes"
                assert fixture.server.requests[4].json["count"] == 2

        run(main())

    def test_a_namespace_that_is_gone_is_not_taken_for_that(self, run: Run) -> None:
        async def no_namespace(exchange: Exchange) -> bytes:
            if exchange.method == "GET":
                return answer({"kind": "APIResourceList"})
            return failure(404, "NotFound", 'namespaces "ns" not found')

        async def main() -> None:
            async with recording(no_namespace, workers=1) as fixture:
                fixture.fail(_pod())
                fixture.fail(_pod("other"))
                await fixture.flush()
                assert [method for method, _ in fixture.sent()] == ["POST", "GET", "POST"]

        run(main())

    def test_core_events_can_be_asked_for(self, run_once: Run) -> None:
        async def main() -> None:
            async with recording(core_v1=True) as fixture:
                fixture.recorder.record(
                    ObjectReference(kind="Lease", namespace="kube-system", name="kube-scheduler"),
                    "LeaderElection",
                    type="Normal",
                    action="",
                    note="me became leader",
                )
                await fixture.flush()
                assert fixture.sent() == [("POST", "/api/v1/namespaces/kube-system/events")]

        run_once(main())
