"""Informers: list, watch, resume, list again, and never lose or repeat a change."""

from __future__ import annotations

import asyncio
import logging
import random
import re
from collections.abc import Callable

import pytest

from kubesched.client.backoff import ReflectorBackoff
from kubesched.client.meta import BadObject
from tests.support.servers import (
    CHUNKED_HEAD,
    Exchange,
    JsonObject,
    answer,
    chunk,
    event_line,
    failure,
    watch_answer,
)
from tests.support.waiting import eventually

from .conftest import Run
from .objects import Thing, bookmark, gone, thing, thing_list
from .running_informer import Api, Diary, _short, listed, running


class TestMeasuring:
    def test_batches_are_timed_and_what_waits_is_counted(self, run: Run) -> None:
        api = Api()
        # One more than what is processed before others may have the event loop.
        api.lists = [listed(*(thing(f"t{each}", version=1) for each in range(501)), version=10)]
        api.watches = [watch_answer(event_line("ADDED", thing("last", version=11)), hold=True)]
        waiting: list[int] = []
        seconds: list[float] = []

        async def main() -> None:
            async with running(api, on_processed=seconds.append) as fixture:

                class Counting(Diary):
                    def on_add(self, obj: Thing, initial: bool) -> None:
                        super().on_add(obj, initial)
                        if obj.metadata.name in {"t0", "t500"}:
                            waiting.append(fixture.informer.queued_count)

                fixture.informer.add_handler(Counting())
                await eventually(lambda: len(fixture.entries) == 502)
                await eventually(lambda: len(seconds) == 3)

        run(main())
        assert waiting == [1, 0]
        assert all(each > 0 for each in seconds)


class TestListAndWatch:
    def test_first_what_is_there_then_what_changes(self, run: Run) -> None:
        api = Api()
        api.lists = [listed(thing("a", version=1), thing("b", version=2), version=10)]
        api.watches = [
            watch_answer(
                event_line("ADDED", thing("c", version=11)),
                event_line("MODIFIED", thing("a", version=12)),
                event_line("DELETED", thing("b", version=13)),
                hold=True,
            )
        ]

        async def main() -> None:
            async with running(api, field_selector="status.phase!=Failed") as fixture:
                assert not fixture.informer.has_synced
                await fixture.informer.synced.wait()
                await fixture.hears(
                    "initial a@1", "initial b@2", "add c@11", "update a@1 -> a@12", "delete b@13"
                )
                assert {key[1] for key in fixture.informer.objects} == {"a", "c"}
                assert fixture.informer.resource_version == "13"
                found = fixture.informer.get("a", namespace="ns")
                assert found is not None
                assert _short(found) == "a@12"
                first, second = fixture.queries()
                assert first == {"fieldSelector": "status.phase!=Failed", "limit": "500"}
                assert second["fieldSelector"] == "status.phase!=Failed"
                assert second["resourceVersion"] == "10"
                assert second["allowWatchBookmarks"] == "true"
                assert 300 <= int(second["timeoutSeconds"]) <= 600

        run(main())

    def test_pages_are_delivered_as_they_come(self, run: Run) -> None:
        api = Api()
        more = asyncio.Event()

        async def second_page(_: Exchange) -> bytes:
            await more.wait()
            return listed(thing("b"), version=5)

        api.lists = [listed(thing("a"), version=5, next_page="t"), second_page]

        async def main() -> None:
            async with running(api, page_size=1) as fixture:
                await fixture.hears("initial a@1")
                assert not fixture.informer.has_synced
                more.set()
                await fixture.informer.synced.wait()
                await fixture.hears("initial a@1", "initial b@1")

        run(main())

    def test_one_namespace_only(self, run_once: Run) -> None:
        api = Api()
        api.lists = [listed(version=1)]

        async def main() -> None:
            async with running(api, namespace="kube-system") as fixture:
                await fixture.informer.synced.wait()
                assert fixture.server.requests[0].path == "/api/v1/namespaces/kube-system/things"

        run_once(main())

    def test_the_same_version_twice_is_heard_once(self, run: Run) -> None:
        api = Api()
        api.lists = [listed(thing("a", version=1), version=10)]
        again = event_line("MODIFIED", thing("a", version=1))
        new = event_line("MODIFIED", thing("a", version=11))
        api.watches = [watch_answer(again, new, new, hold=True)]

        async def main() -> None:
            async with running(api) as fixture:
                await fixture.hears("initial a@1", "update a@1 -> a@11")

        run(main())

    def test_deleted_and_made_again_between_two_events(self, run: Run) -> None:
        api = Api()
        api.lists = [listed(thing("a", uid="old"), version=10)]
        api.watches = [
            watch_answer(event_line("MODIFIED", thing("a", uid="new", version=11)), hold=True)
        ]

        async def main() -> None:
            async with running(api) as fixture:
                await fixture.hears("initial a@1", "delete a@1", "add a@11")

        run(main())


class TestResuming:
    def test_a_normal_end_resumes_where_it_was(self, run: Run) -> None:
        api = Api()
        api.lists = [listed(version=10)]
        api.watches = [
            watch_answer(event_line("ADDED", thing("a", version=11))),
            watch_answer(event_line("BOOKMARK", bookmark(50))),
            watch_answer(event_line("ADDED", thing("b", version=51)), hold=True),
        ]

        async def main() -> None:
            async with running(api) as fixture:
                await fixture.hears("add a@11", "add b@51")
                assert fixture.watched_from() == ["10", "11", "50"]
                assert fixture.lists == 1
                assert fixture.pauses == []

        run(main())

    @pytest.mark.parametrize("reset", [True, False])
    def test_a_broken_connection_resumes_after_a_pause(self, run: Run, reset: bool) -> None:
        api = Api()
        api.lists = [listed(version=10)]

        async def main() -> None:
            async def breaks(exchange: Exchange) -> None:
                added = event_line("ADDED", thing("a", version=11))
                await exchange.send(CHUNKED_HEAD + chunk(added))
                # A reset takes along what the other side has not read yet.
                await eventually(lambda: fixture.entries == ["add a@11"])
                if reset:
                    exchange.reset()
                else:
                    exchange.hang_up()

            api.watches = [breaks]
            async with running(api) as fixture:
                await eventually(lambda: len(fixture.watched_from()) == 2)
                assert fixture.watched_from() == ["10", "11"]
                assert fixture.lists == 1
                assert len(fixture.pauses) == 1

        run(main())

    def test_a_stalled_watch_is_made_anew(self, run: Run) -> None:
        api = Api()
        api.lists = [listed(version=10)]
        api.watches = [watch_answer(event_line("ADDED", thing("a", version=11)), hold=True)]

        async def main() -> None:
            async with running(api, stall_timeout_s=1.0) as fixture:
                await eventually(lambda: len(fixture.watched_from()) >= 2)
                assert fixture.watched_from()[:2] == ["10", "11"]
                assert fixture.lists == 1

        run(main())

    def test_a_watch_that_ends_at_once_is_not_asked_for_without_pause(self, run: Run) -> None:
        api = Api()
        api.lists = [listed(version=10)]
        api.watches = [watch_answer(), watch_answer(), watch_answer()]

        async def main() -> None:
            async with running(api) as fixture:
                await eventually(lambda: len(fixture.watched_from()) == 4)
                assert len(fixture.pauses) == 3
                assert fixture.lists == 1

        run(main())

    def test_a_server_that_goes_away_and_comes_back(
        self, run: Run, caplog: pytest.LogCaptureFixture
    ) -> None:
        api = Api()
        api.lists = [listed(version=10)]
        api.watches = [watch_answer(event_line("ADDED", thing("a", version=11)), hold=True)]

        async def main() -> None:
            async with running(api) as fixture:
                await fixture.hears("add a@11")
                await fixture.server.stop()
                await eventually(lambda: len(fixture.pauses) >= 4)
                api.watches = [watch_answer(event_line("ADDED", thing("b", version=12)), hold=True)]
                async with fixture.server:
                    await fixture.hears("add a@11", "add b@12")
                    assert fixture.watched_from() == ["10", "11"]

        with caplog.at_level(logging.INFO, "kubesched.client"):
            run(main())
        refused = [r for r in caplog.records if "connection refused" in r.getMessage()]
        assert len(refused) == 1, "one line for one trouble, however often it is tried"
        assert "listing and watching things works again" in caplog.text


class TestListingAgain:
    @pytest.mark.parametrize("how", ["event", "status"])
    def test_after_410_the_differences_are_delivered(self, run: Run, how: str) -> None:
        api = Api()
        api.lists = [
            listed(
                thing("same", version=1),
                thing("changed", version=2),
                thing("vanished", version=3),
                thing("remade", version=4, uid="old"),
                version=10,
            ),
            listed(
                thing("new", version=20),
                thing("same", version=1),
                thing("changed", version=21),
                thing("remade", version=22, uid="new"),
                version=30,
            ),
        ]
        expired = (
            watch_answer(event_line("ERROR", gone()))
            if how == "event"
            else answer(gone(), status=410)
        )
        api.watches = [expired]

        async def main() -> None:
            async with running(api) as fixture:
                await eventually(lambda: fixture.watched_from() == ["10", "30"])
                assert fixture.entries[4:] == [
                    "add new@20",
                    "update changed@2 -> changed@21",
                    "delete remade@4",
                    "add remade@22",
                    "delete vanished@3",
                ]

        run(main())

    def test_a_list_that_expires_on_the_way_starts_over(self, run: Run) -> None:
        api = Api()
        api.lists = [
            listed(thing("a"), thing("b"), version=10, next_page="t"),
            answer(gone(), status=410),
            listed(thing("b"), thing("c"), version=20),
        ]

        async def main() -> None:
            async with running(api) as fixture:
                await fixture.informer.synced.wait()
                await fixture.hears("initial a@1", "initial b@1", "initial c@1", "delete a@1")
                await eventually(lambda: fixture.watched_from() == ["20"])

        run(main())

    def test_errors_of_the_server_lead_to_a_list(self, run: Run) -> None:
        status = {"kind": "Status", "code": 504, "message": "Too large resource version: 9, 5"}
        api = Api()
        api.lists = [listed(thing("a"), version=10), listed(thing("a"), version=5)]
        api.watches = [watch_answer(event_line("ERROR", status))]

        async def main() -> None:
            async with running(api) as fixture:
                await eventually(lambda: fixture.watched_from() == ["10", "5"])

        run(main())

    def test_429_does_not(self, run: Run) -> None:
        status = {"kind": "Status", "code": 429, "message": "slow down"}
        api = Api()
        api.lists = [listed(thing("a"), version=10)]
        api.watches = [watch_answer(event_line("ERROR", status))]

        async def main() -> None:
            async with running(api) as fixture:
                await eventually(lambda: fixture.watched_from() == ["10", "10"])
                assert fixture.lists == 1

        run(main())


class TestTrouble:
    def test_it_is_logged_once_for_each_change(
        self, run: Run, caplog: pytest.LogCaptureFixture
    ) -> None:
        forbidden = failure(403, "Forbidden", "things is forbidden")
        unauthorized = failure(401, "Unauthorized", "Unauthorized")
        api = Api()
        api.lists = [forbidden, forbidden, forbidden, unauthorized, unauthorized]
        api.lists += [forbidden, listed(thing("a"), version=1)]
        api.watches = [watch_answer(event_line("BOOKMARK", bookmark(2)), hold=True)]

        async def main() -> None:
            async with running(api) as fixture:
                await eventually(lambda: fixture.informer.resource_version == "2")
                assert len(fixture.pauses) == 6

        with caplog.at_level(logging.INFO, "kubesched.client"):
            run(main())
        assert [record.getMessage() for record in caplog.records] == [
            "cannot list and watch things: things is forbidden; trying again",
            "cannot list and watch things: Unauthorized; trying again",
            "cannot list and watch things: things is forbidden; trying again",
            "listing and watching things works again",
        ]

    def test_the_pauses_grow_and_shrink_again(self) -> None:
        backoff = ReflectorBackoff(rng=random.Random(3))

        pauses = [backoff.next_s() for _ in range(10)]

        bases = [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30, 30, 30, 30]
        assert all(base <= pause < 2 * base for base, pause in zip(bases, pauses, strict=True))
        backoff.reset()
        assert backoff.next_s() < 1.6

    def test_lists_that_work_do_not_hide_watches_that_fail(self, run: Run) -> None:
        api = Api()
        api.lists = [listed(version=10) for _ in range(5)]
        api.watches = [failure(403, "Forbidden", "no watch") for _ in range(5)]

        async def main() -> None:
            async with running(api) as fixture:
                await eventually(lambda: len(fixture.pauses) == 5)
                assert fixture.pauses[4] >= 12.8

        run(main())

    def test_a_handler_without_memory_ends_it(self) -> None:
        class Failing(Diary):
            def on_add(self, obj: Thing, initial: bool) -> None:
                raise MemoryError

        api = Api()
        api.lists = [listed(thing("a"), version=10)]

        async def main() -> None:
            async with running(api) as fixture:
                fixture.informer.add_handler(Failing())
                await fixture.task

        with pytest.raises(MemoryError):
            asyncio.run(main())

    def test_a_handler_that_fails_is_logged_and_the_others_hear(
        self, run: Run, caplog: pytest.LogCaptureFixture
    ) -> None:
        class Failing(Diary):
            def on_add(self, obj: Thing, initial: bool) -> None:
                raise ValueError("a bug")

        api = Api()
        api.lists = [listed(thing("a"), version=10)]
        api.watches = [watch_answer(event_line("MODIFIED", thing("a", version=11)), hold=True)]
        late = Diary()

        async def main() -> None:
            async with running(api) as fixture:
                failing = Failing()
                fixture.informer.add_handler(failing)
                fixture.informer.add_handler(late)
                await fixture.hears("initial a@1", "update a@1 -> a@11")
                assert failing.entries == ["update a@1 -> a@11"]
                assert late.entries == fixture.entries

        run(main())
        (record,) = (r for r in caplog.records if r.exc_info)
        assert record.getMessage() == "things ns/a: a handler failed on added"

    def test_a_late_handler_first_hears_what_is_there(self, run_once: Run) -> None:
        api = Api()
        api.lists = [listed(thing("a"), thing("b"), version=10)]

        async def main() -> None:
            async with running(api) as fixture:
                await fixture.informer.synced.wait()
                late = Diary()
                fixture.informer.add_handler(late)
                assert late.entries == ["initial a@1", "initial b@1"]

        run_once(main())


class TestBadObjects:
    @staticmethod
    def _reports() -> tuple[list[str], Callable[[BadObject], None]]:
        reports: list[str] = []
        return reports, lambda bad: reports.append(f"{bad.event_type} {bad.name}")

    def test_the_old_version_stays_until_it_can_be_read_or_is_gone(self, run: Run) -> None:
        api = Api()
        api.lists = [listed(thing("a"), thing("b"), thing("c", replicas="x"), version=10)]
        api.watches = [
            watch_answer(
                event_line("MODIFIED", thing("a", version=11, replicas="x")),
                event_line("DELETED", thing("b", version=12, replicas="x")),
                event_line("ADDED", thing("d", version=13)),
                event_line("MODIFIED", thing("c", version=14)),
                hold=True,
            )
        ]
        reports, report = self._reports()

        async def main() -> None:
            async with running(api, on_bad_object=report) as fixture:
                await fixture.hears(
                    "initial a@1", "initial b@1", "delete b@1", "add d@13", "add c@14"
                )
                assert fixture.informer.get("a", namespace="ns") is not None

        run(main())
        assert reports == [" c", "MODIFIED a", "DELETED b"]

    def test_it_is_named_until_it_can_be_read_or_is_gone(self, run: Run) -> None:
        api = Api()
        api.lists = [listed(*(thing(name, replicas="x") for name in "abc"), version=10)]
        api.watches = [
            watch_answer(
                event_line("MODIFIED", thing("a", version=11)),
                event_line("DELETED", thing("b", version=12, replicas="x")),
                event_line("MODIFIED", thing("a", version=13, replicas="x")),
                event_line("MODIFIED", thing("c", version=14)),
                hold=True,
            )
        ]

        async def main() -> None:
            async with running(api) as fixture:
                await fixture.hears("add a@11", "add c@14")
                ((key, why),) = fixture.informer.unreadable.items()
                assert key == ("ns", "a")
                assert "Expected `int`" in why

        run(main())

    def test_a_new_list_names_what_it_holds(self, run: Run) -> None:
        api = Api()
        api.lists = [
            listed(*(thing(name, replicas="x") for name in "abc"), version=10),
            listed(thing("b", version=21), thing("c", version=15, replicas="x"), version=30),
        ]
        api.watches = [watch_answer(event_line("ERROR", gone()))]

        async def main() -> None:
            async with running(api) as fixture:
                await eventually(lambda: fixture.watched_from() == ["10", "30"])
                assert list(fixture.informer.unreadable) == [("ns", "c")]

        run(main())

    def test_an_object_with_nulls_is_read(self, run: Run) -> None:
        api = Api()
        api.lists = [listed(thing("a", replicas=None), version=10)]
        api.watches = [
            watch_answer(event_line("MODIFIED", thing("a", version=11, replicas=None)), hold=True)
        ]

        async def main() -> None:
            async with running(api) as fixture:
                await fixture.hears("initial a@1", "update a@1 -> a@11")
                assert not fixture.informer.unreadable

        run(main())

    def test_in_a_second_list_it_is_not_taken_for_vanished(self, run: Run) -> None:
        api = Api()
        api.lists = [
            listed(thing("a"), version=10),
            listed(thing("a", version=15, replicas="x"), version=20),
        ]
        api.watches = [watch_answer(event_line("ERROR", gone()))]

        async def main() -> None:
            async with running(api) as fixture:
                await eventually(lambda: fixture.watched_from() == ["10", "20"])
                assert fixture.entries == ["initial a@1"]

        run(main())

    def test_it_is_logged_if_nobody_asks(
        self, run_once: Run, caplog: pytest.LogCaptureFixture
    ) -> None:
        api = Api()
        api.lists = [listed(thing("a", replicas="x"), version=10)]

        async def main() -> None:
            async with running(api) as fixture:
                await fixture.informer.synced.wait()

        run_once(main())
        assert re.search("things: left out, because .*: Thing ns/a: Expected `int`", caplog.text)

    def test_a_failing_report_does_not_stop_the_news(self, run_once: Run) -> None:
        def fail(_: BadObject) -> None:
            raise RuntimeError("a bug")

        api = Api()
        api.lists = [listed(thing("a", replicas="x"), thing("b"), version=10)]

        async def main() -> None:
            async with running(api, on_bad_object=fail) as fixture:
                await fixture.hears("initial b@1")
                await fixture.informer.synced.wait()

        run_once(main())


class Follower:
    """A handler that keeps its own copy and checks that every change fits."""

    def __init__(self) -> None:
        self.state: dict[str, Thing] = {}

    def on_add(self, obj: Thing, initial: bool) -> None:
        assert obj.metadata.name not in self.state
        self.state[obj.metadata.name] = obj

    def on_update(self, old: Thing, new: Thing) -> None:
        assert self.state[old.metadata.name] == old
        assert old.metadata.uid == new.metadata.uid
        self.state[new.metadata.name] = new

    def on_delete(self, obj: Thing) -> None:
        assert self.state.pop(obj.metadata.name).metadata.uid == obj.metadata.uid


class History:
    """An API server with a past: it replays its log, has accidents and forgets old versions."""

    FIRST, LAST = 100, 500

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._oldest = self.FIRST
        self._log: list[tuple[int, str, JsonObject]] = []
        state: dict[str, JsonObject] = {}
        for version in range(self.FIRST + 1, self.LAST + 1):
            name = f"t{self._rng.randrange(12)}"
            if name in state and self._rng.random() < 0.4:
                uid = state.pop(name)["metadata"]["uid"]
                kind = "DELETED"
            else:
                kind = "MODIFIED" if name in state else "ADDED"
                uid = state[name]["metadata"]["uid"] if name in state else f"uid-{version}"
                state[name] = thing(name, version=version, uid=uid)
            self._log.append((version, kind, thing(name, version=version, uid=uid)))

    def state_at(self, version: int) -> dict[str, JsonObject]:
        state: dict[str, JsonObject] = {}
        for when, kind, obj in self._log:
            if when <= version:
                state.pop(obj["metadata"]["name"], None)
                if kind != "DELETED":
                    state[obj["metadata"]["name"]] = obj
        return state

    async def __call__(self, exchange: Exchange) -> bytes | None:
        rng = self._rng
        if "watch" not in exchange.query:
            return self._page(exchange)
        start = int(exchange.query["resourceVersion"])
        if start < self._oldest:
            return answer(gone(), status=410)
        await exchange.send(CHUNKED_HEAD)
        if start >= self.LAST:
            await asyncio.sleep(3600)
        lines = [event_line(kind, obj) for when, kind, obj in self._log if when > start]
        data = b"".join(chunk(line) for line in lines[: rng.randrange(1, 40)])
        accident = rng.random()
        if accident < 0.3:
            await exchange.send(data[: rng.randrange(len(data))])
            exchange.hang_up()
        elif accident < 0.5:
            await exchange.send(data[: rng.randrange(len(data))])
            exchange.reset()
        elif accident < 0.7:
            self._oldest = min(self.LAST, start + rng.randrange(80))
            await exchange.send(data + chunk(event_line("ERROR", gone())))
        else:
            await exchange.send(data + b"0\r\n\r\n")
        return None

    def _page(self, exchange: Exchange) -> bytes | None:
        """Answer with a page of the state at one moment, while its version is not forgotten."""
        rng = self._rng
        moment = min(self.LAST, self._oldest + rng.randrange(60))
        start = 0
        if token := exchange.query.get("continue"):
            moment, start = map(int, token.split("-"))
            if rng.random() < 0.1:
                self._oldest = min(self.LAST, self._oldest + rng.randrange(80))
            if moment < self._oldest:
                return answer(gone(), status=410)
        elif "limit" not in exchange.query:
            moment = min(self.LAST, self._oldest + 60)
        if rng.random() < 0.1:
            exchange.hang_up()
            return None
        things = list(self.state_at(moment).values())
        end = start + int(exchange.query.get("limit", len(things)))
        more = f"{moment}-{end}" if end < len(things) else ""
        return answer(thing_list(*things[start:end], version=moment, next_page=more))


@pytest.mark.parametrize("page_size", [1, 5, 500])
@pytest.mark.parametrize("seed", range(4))
def test_whatever_happens_the_follower_ends_with_the_servers_state(
    run: Run, seed: int, page_size: int, caplog: pytest.LogCaptureFixture
) -> None:
    history = History(seed)
    follower = Follower()

    async def main() -> None:
        async with running(history, page_size=page_size) as fixture:
            fixture.informer.add_handler(follower)
            await eventually(
                lambda: fixture.informer.resource_version == str(history.LAST), seconds=15
            )

    run(main())
    assert not [record for record in caplog.records if "a handler failed" in record.getMessage()]
    assert {
        name: (item.metadata.uid, item.metadata.resource_version)
        for name, item in follower.state.items()
    } == {
        name: (item["metadata"]["uid"], item["metadata"]["resourceVersion"])
        for name, item in history.state_at(history.LAST).items()
    }
