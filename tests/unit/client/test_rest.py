"""The verbs: what is sent, what is decoded, and what happens when the server says not now."""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubesched.client.access import ClusterAccess, tls_context
from kubesched.client.credentials import TokenFileCredentials
from kubesched.client.exec_plugin import ExecConfig, ExecCredentials
from kubesched.client.meta import BadObject
from kubesched.client.rest import STRATEGIC_MERGE_PATCH, ApiClient, with_query
from kubesched.client.watch import WatchEvent
from kubesched.errors import (
    ApiError,
    ClientError,
    ConflictError,
    ConnectionFailedError,
    ForbiddenError,
    GoneError,
    KubeconfigError,
    TooManyRequestsError,
    UnauthorizedError,
    WithdrawnError,
)
from tests.support.servers import (
    Exchange,
    Handler,
    Script,
    ScriptedServer,
    answer,
    event_line,
    failure,
    watch_answer,
)
from tests.support.waiting import eventually

from .conftest import Run
from .objects import Thing, gone, thing, thing_list

Test = Callable[[ScriptedServer, ApiClient], Awaitable[None]]


async def _with_client(
    handler: Handler,
    test: Test,
    *,
    access: Callable[[ScriptedServer], ClusterAccess] | None = None,
    **options: Any,
) -> None:
    async with ScriptedServer(handler) as server:
        reached = access(server) if access else server.access
        async with ApiClient(reached, **options) as client:
            await test(server, client)


class _Traced:
    """Traces every request to one path."""

    def __init__(self) -> None:
        self.header = "traceparent: 00-aa-bb-01\r\n"
        self.ended: list[int] = []

    def begin_request(self, method: str, path: str) -> _Traced | None:
        return self if path == "/traced" else None

    def end(self, code: int) -> None:
        self.ended.append(code)


class TestTracing:
    def test_a_traced_request_has_its_header_and_its_end_is_told(self, run: Run) -> None:
        tracer = _Traced()
        script = (
            Script()
            .on("GET", "/traced", answer(thing("a")))
            .on("GET", "/other", answer(thing("b")))
        )

        async def test(server: ScriptedServer, client: ApiClient) -> None:
            await client.request("GET", "/traced")
            await client.request("GET", "/other")
            with pytest.raises(ApiError):
                await client.request("POST", "/traced")
            headers = [each.headers.get("traceparent") for each in server.requests]
            assert headers == ["00-aa-bb-01", None, "00-aa-bb-01"]

        run(_with_client(script, test, tracer=tracer))
        assert tracer.ended[0] == 200
        assert tracer.ended[1] >= 400

    def test_a_request_without_an_answer(self, run: Run) -> None:
        tracer = _Traced()

        async def hang_up(exchange: Exchange) -> None:
            exchange.writer.transport.abort()

        async def test(server: ScriptedServer, client: ApiClient) -> None:
            with pytest.raises(ConnectionFailedError):
                await client.request("POST", "/traced")

        run(_with_client(hang_up, test, tracer=tracer))
        assert tracer.ended[-1] == 0


class TestVerbs:
    def test_get_decodes(self, run: Run) -> None:
        script = Script().on("GET", "/api/v1/things/a", answer(thing("a", replicas=3)))

        async def test(server: ScriptedServer, client: ApiClient) -> None:
            got = await client.get("/api/v1/things/a", type=Thing, params={"pretty": False})
            assert got.spec.replicas == 3
            assert server.requests[0].query == {"pretty": "false"}

        run(_with_client(script, test))

    def test_post_encodes_and_does_not_mind_what_is_answered(self, run: Run) -> None:
        # A binding is answered with a Status, not with the binding.
        script = Script().on("POST", "/bind", answer({"kind": "Status"}, status=201))

        async def test(server: ScriptedServer, client: ApiClient) -> None:
            await client.post("/bind", msgspec.convert(thing("a"), Thing))
            await client.post("/bind", b'{"raw":1}')
            await client.post("/bind", {"a": [1]})
            assert [exchange.json for exchange in server.requests][1:] == [{"raw": 1}, {"a": [1]}]
            assert server.requests[0].json["metadata"]["resourceVersion"] == "1"
            assert server.requests[0].headers["content-type"] == "application/json"

        run(_with_client(script, test))

    def test_put_patch_and_delete(self, run: Run) -> None:
        script = (
            Script()
            .on("PUT", "/t", answer(thing("put")))
            .on("PATCH", "/t", answer(thing("patched")))
            .on("DELETE", "/t", answer({"kind": "Status"}))
        )

        async def test(server: ScriptedServer, client: ApiClient) -> None:
            assert (await client.put("/t", {}, type=Thing)).metadata.name == "put"
            patched = await client.patch(
                "/t", {"x": 1}, content_type=STRATEGIC_MERGE_PATCH, type=Thing
            )
            assert patched.metadata.name == "patched"
            await client.patch("/t", {})
            await client.delete("/t")
            await client.delete("/t", {"preconditions": {"uid": "u"}})
            types = [exchange.headers.get("content-type") for exchange in server.requests]
            assert types == [
                "application/json",
                "application/strategic-merge-patch+json",
                "application/merge-patch+json",
                None,
                "application/json",
            ]
            assert server.requests[4].json == {"preconditions": {"uid": "u"}}

        run(_with_client(script, test))

    def test_an_answer_of_another_shape_is_an_error(self, run_once: Run) -> None:
        script = Script().on("GET", "/t", answer({"metadata": {}}))

        async def test(server: ScriptedServer, client: ApiClient) -> None:
            with pytest.raises(ClientError, match=r"GET /t: the answer is not a Thing: .*name"):
                await client.get("/t", Thing)

        run_once(_with_client(script, test))

    def test_refusals_are_raised(self, run_once: Run) -> None:
        script = (
            Script()
            .on("POST", "/bind", failure(409, "Conflict", "pod is already assigned"))
            .on("GET", "/t", failure(403, "Forbidden", "no"))
        )

        async def test(server: ScriptedServer, client: ApiClient) -> None:
            with pytest.raises(ConflictError, match=r"^pod is already assigned$"):
                await client.post("/bind", {})
            with pytest.raises(ForbiddenError):
                await client.get("/t", Thing)
            assert len(server.requests) == 2

        run_once(_with_client(script, test))

    def test_queries_are_quoted_and_none_left_out(self) -> None:
        query = with_query("/p", {"fieldSelector": "a!=b,c=d e", "limit": 5, "x": None, "w": True})

        assert query == "/p?fieldSelector=a%21%3Db%2Cc%3Dd+e&limit=5&w=true"
        assert with_query("/p", {"x": None}) == "/p"


class TestComeBackLater:
    @pytest.mark.parametrize("code", [429, 503, 500])
    def test_it_is_tried_again(self, run: Run, code: int, caplog: pytest.LogCaptureFixture) -> None:
        busy = failure(code, "Busy", "busy", Retry_After="0.02")
        script = Script().on("POST", "/t", busy, busy, answer())

        async def test(server: ScriptedServer, client: ApiClient) -> None:
            started = time.monotonic()
            await client.post("/t", {"same": "body"})
            assert time.monotonic() - started >= 0.04
            assert [exchange.json for exchange in server.requests] == [{"same": "body"}] * 3

        with caplog.at_level(logging.DEBUG, "kubesched.client"):
            run(_with_client(script, test))
        assert f"POST /t: {code}, trying again in 0.02 s (retry 1 of 10)" in caplog.text

    def test_without_the_header_it_is_not(self, run_once: Run) -> None:
        script = Script().on("GET", "/t", failure(503, "Down", "down"))

        async def test(server: ScriptedServer, client: ApiClient) -> None:
            with pytest.raises(ApiError, match="down"):
                await client.get("/t", Thing)
            assert len(server.requests) == 1

        run_once(_with_client(script, test))

    def test_there_is_an_end_to_it(self, run_once: Run) -> None:
        script = Script().on("GET", "/t", failure(429, "Busy", "busy", Retry_After="0"))

        async def test(server: ScriptedServer, client: ApiClient) -> None:
            with pytest.raises(TooManyRequestsError):
                await client.get("/t", Thing)
            assert len(server.requests) == 11

        run_once(_with_client(script, test))

    def test_a_wait_beyond_the_time_out_is_not_begun(self, run_once: Run) -> None:
        script = Script().on("GET", "/t", failure(429, "Busy", "busy", Retry_After="60"))

        async def test(server: ScriptedServer, client: ApiClient) -> None:
            with pytest.raises(TooManyRequestsError) as error:
                await client.get("/t", Thing, timeout_s=5)
            assert error.value.retry_after_s == 60

        run_once(_with_client(script, test))

    def test_other_refusals_are_final_even_with_the_header(self, run_once: Run) -> None:
        script = Script().on("GET", "/t", failure(404, "NotFound", "no", Retry_After="0"))

        async def test(server: ScriptedServer, client: ApiClient) -> None:
            with pytest.raises(ApiError):
                await client.get("/t", Thing)
            assert len(server.requests) == 1

        run_once(_with_client(script, test))


class TestCredentials:
    @staticmethod
    def _only(good: str) -> Handler:
        async def handler(exchange: Exchange) -> bytes:
            if exchange.headers.get("authorization") == f"Bearer {good}":
                return answer(thing("a"))
            return failure(401, "Unauthorized", "Unauthorized")

        return handler

    def test_an_expired_token_is_read_again_and_the_request_repeated(
        self, run: Run, tmp_path: Path
    ) -> None:
        file = tmp_path / "token"
        file.write_text("old")

        def access(server: ScriptedServer) -> ClusterAccess:
            credentials = TokenFileCredentials(file, first_token="old")
            return ClusterAccess(server=server.access.server, credentials=credentials)

        async def test(server: ScriptedServer, client: ApiClient) -> None:
            with pytest.raises(UnauthorizedError):
                await client.get("/t", Thing)
            assert len(server.requests) == 1  # the file has nothing new: no use in asking twice
            file.write_text("new")
            assert (await client.get("/t", Thing)).metadata.name == "a"
            shown = [exchange.headers["authorization"] for exchange in server.requests]
            assert shown == ["Bearer old", "Bearer old", "Bearer new"]

        run(_with_client(self._only("new"), test, access=access))

    def test_an_exec_plugin_runs_again_after_a_401(self, run: Run, tmp_path: Path) -> None:
        script = tmp_path / "plugin"
        script.write_text(
            f"#!/bin/sh\necho run >> {tmp_path}/log\n"
            'echo "{\\"apiVersion\\":\\"client.authentication.k8s.io/v1\\",'
            f'\\"status\\":{{\\"token\\":\\"t$(($(wc -l < {tmp_path}/log)))\\"}}}}"\n'
        )
        script.chmod(0o755)
        config = ExecConfig(
            command=str(script),
            api_version="client.authentication.k8s.io/v1",
            interactive_mode="Never",
        )

        def access(server: ScriptedServer) -> ClusterAccess:
            return ClusterAccess(
                server=server.access.server, credentials=ExecCredentials(config, where="test")
            )

        async def test(server: ScriptedServer, client: ApiClient) -> None:
            answers = await asyncio.gather(*(client.get("/t", Thing) for _ in range(5)))
            assert {item.metadata.name for item in answers} == {"a"}

        run(_with_client(self._only("t2"), test, access=access))
        assert (tmp_path / "log").read_text() == "run\nrun\n"

    def test_broken_credentials_are_an_error_of_the_request(self, run_once: Run) -> None:
        config = ExecConfig(command="/no/such/plugin", api_version="x", interactive_mode="Never")

        def access(server: ScriptedServer) -> ClusterAccess:
            return ClusterAccess(
                server=server.access.server, credentials=ExecCredentials(config, where="test")
            )

        async def test(server: ScriptedServer, client: ApiClient) -> None:
            with pytest.raises(KubeconfigError, match="executable not found"):
                await client.get("/t", Thing)
            assert server.requests == []

        run_once(_with_client(self._only("x"), test, access=access))

    def test_a_new_client_certificate_makes_new_connections(
        self, run: Run, server_tls: ssl.SSLContext, authority_pem: str
    ) -> None:
        class Rotating:
            generation = 0

            async def authorization_header(self) -> str | None:
                return None

            def invalidate(self, header: str | None) -> bool:
                return False

        credentials = Rotating()

        async def ok(_: Exchange) -> bytes:
            return answer(thing("a"))

        async def main() -> None:
            async with ScriptedServer(ok, tls=server_tls) as server:
                access = server.tls_access(
                    tls_context(ca_pem=authority_pem), credentials=credentials
                )
                async with ApiClient(access) as client:
                    await client.get("/t", Thing)
                    await client.get("/t", Thing)
                    assert server.connections == 1
                    credentials.generation += 1
                    await client.get("/t", Thing)
                    assert server.connections == 2

        run(main())

    def test_a_late_refusal_of_old_credentials_leaves_the_new_ones_alone(self, run: Run) -> None:
        class Counting:
            """A new token for each refusal."""

            generation = 0
            number = 1

            async def authorization_header(self) -> str | None:
                return f"Bearer t{self.number}"

            def invalidate(self, header: str | None) -> bool:
                self.number += 1
                return True

        credentials = Counting()

        async def refuse_old(exchange: Exchange) -> bytes:
            if exchange.headers["authorization"] == "Bearer t1":
                if exchange.path == "/late":  # refused when the other has the new token
                    await asyncio.sleep(0.05)
                return failure(401, "Unauthorized", "expired")
            return answer(thing("a"))

        def access(server: ScriptedServer) -> ClusterAccess:
            return ClusterAccess(server=server.access.server, credentials=credentials)

        async def test(server: ScriptedServer, client: ApiClient) -> None:
            await asyncio.gather(client.get("/late", Thing), client.get("/soon", Thing))
            assert credentials.number == 2

        run(_with_client(refuse_old, test, access=access))

    def test_a_refused_client_certificate_is_replaced_and_the_request_repeated(
        self, run: Run
    ) -> None:
        class Certificates:
            """No header; a new certificate after a refusal."""

            generation = 0

            async def authorization_header(self) -> str | None:
                return None

            def invalidate(self, header: str | None) -> bool:
                self.generation += 1
                return True

        async def first_connection_is_old(exchange: Exchange) -> bytes:
            if exchange.connection == 0:
                return failure(401, "Unauthorized", "certificate has expired")
            return answer(thing("a"))

        def access(server: ScriptedServer) -> ClusterAccess:
            return ClusterAccess(server=server.access.server, credentials=Certificates())

        async def test(server: ScriptedServer, client: ApiClient) -> None:
            assert (await client.get("/t", Thing)).metadata.name == "a"

        run(_with_client(first_connection_is_old, test, access=access))


class TestLimits:
    def test_the_rate_limit_is_kept(self, run: Run) -> None:
        script = Script().on("POST", "/t", answer())

        async def test(server: ScriptedServer, client: ApiClient) -> None:
            started = time.monotonic()
            await asyncio.gather(*(client.post("/t", {}) for _ in range(12)))
            # Two at once, ten more at 100 a second; the timer may be early by a hair.
            assert 0.09 <= time.monotonic() - started < 2

        run(_with_client(script, test, qps=100, burst=2))

    def test_a_request_that_is_not_wanted_when_its_turn_comes_is_not_sent(self, run: Run) -> None:
        script = Script().on("POST", "/t", answer()).on("DELETE", "/t", answer())

        async def test(server: ScriptedServer, client: ApiClient) -> None:
            wanted = True
            first = client.post("/t", {})
            later = asyncio.ensure_future(client.delete("/t", still_wanted=lambda: wanted))
            await first
            wanted = False
            with pytest.raises(WithdrawnError, match="DELETE /t: not sent, no longer wanted"):
                await later
            assert [each.method for each in server.requests] == ["POST"]
            wanted = True
            await client.delete("/t", still_wanted=lambda: wanted)
            with pytest.raises(WithdrawnError, match="POST /t: not sent, no longer wanted"):
                await client.post("/t", {}, still_wanted=lambda: False)
            assert [each.method for each in server.requests] == ["POST", "DELETE"]

        run(_with_client(script, test, qps=20, burst=1))

    def test_observers_hear_of_every_answer(self, run_once: Run) -> None:
        heard: list[tuple[str, int, bool, bool]] = []
        limited: list[str] = []

        class Observer:
            def on_answer(
                self,
                method: str,
                code: int,
                duration_s: float | None,
                *,
                sizes: tuple[int, int] = (0, 0),
            ) -> None:
                assert duration_s is not None
                assert duration_s >= 0
                heard.append((method, code, sizes[0] > 0, sizes[1] > 0))

            def on_limited(self, method: str, waited_s: float) -> None:
                assert waited_s >= 0
                limited.append(method)

        script = Script().on("GET", "/t", answer(thing("a")), failure(404, "NotFound", "no"))
        script.on("POST", "/t", answer(thing("a")))

        async def test(server: ScriptedServer, client: ApiClient) -> None:
            await client.get("/t", Thing)
            with pytest.raises(ApiError):
                await client.get("/t", Thing)
            await client.post("/t", {"some": "thing"})
            await server.stop()
            with pytest.raises(ClientError):
                await client.get("/t", Thing)

        run_once(_with_client(script, test, observer=Observer(), qps=100, burst=10))
        assert heard == [
            ("GET", 200, False, True),
            ("GET", 404, False, True),
            ("POST", 200, True, True),
            ("GET", 0, False, False),
        ]
        assert limited == ["GET", "GET", "POST", "GET"]


class TestLists:
    def test_pages_follow_each_other(self, run: Run) -> None:
        script = Script().on(
            "GET",
            "/things",
            answer(thing_list(thing("a"), thing("b"), version=7, next_page="t1")),
            answer(thing_list(thing("c"), version=7, next_page="t2/+=")),
            answer(thing_list(version=7)),
        )

        async def test(server: ScriptedServer, client: ApiClient) -> None:
            pages = [
                page
                async for page in client.list_pages(
                    "/things",
                    Thing,
                    limit=2,
                    max_page_bytes=0,
                    resource_version="0",
                    field_selector="a=b",
                )
            ]
            names = [[item.metadata.name for item in page.items] for page in pages]
            assert names == [["a", "b"], ["c"], []]
            assert [page.first for page in pages] == [True, False, False]
            assert pages[-1].resource_version == "7"
            assert [exchange.query for exchange in server.requests] == [
                {"fieldSelector": "a=b", "limit": "2", "resourceVersion": "0"},
                {"fieldSelector": "a=b", "limit": "2", "continue": "t1"},
                {"fieldSelector": "a=b", "limit": "2", "continue": "t2/+="},
            ]

        run(_with_client(script, test))

    def test_pages_grow_until_they_are_large(self, run: Run) -> None:
        first = thing_list(thing("a"), thing("b"), version=7, next_page="t1")
        size = len(msgspec.json.encode(first))
        script = Script().on(
            "GET",
            "/things",
            answer(first),
            answer(thing_list(thing("c" * 10 * size), version=7, next_page="t2")),
            answer(thing_list(version=7, next_page="t3")),
            answer(thing_list(version=7)),
        )

        async def test(server: ScriptedServer, client: ApiClient) -> None:
            pages = client.list_pages("/things", Thing, limit=2, max_page_bytes=5 * size)
            assert [len(page.items) async for page in pages] == [2, 1, 0, 0]
            assert [exchange.query["limit"] for exchange in server.requests] == [
                "2",
                "10",  # two objects filled a fifth of a page
                "2",  # one object was larger than a page: as many as asked for
                "2",
            ]

        run(_with_client(script, test))

    def test_the_next_page_comes_while_one_is_read(self, run: Run) -> None:
        script = Script().on(
            "GET",
            "/things",
            answer(thing_list(thing("a"), version=7, next_page="t1")),
            answer(thing_list(thing("b"), version=7, next_page="t2")),
            answer(thing_list(thing("c"), version=7)),
        )

        async def test(server: ScriptedServer, client: ApiClient) -> None:
            pages = client.list_pages("/things", Thing, limit=1)
            async with aclosing(pages):
                await anext(pages)
                await eventually(lambda: len(server.requests) == 2)
            # A caller that has seen enough leaves nothing behind: no third request comes.
            await asyncio.sleep(0.02)
            assert len(server.requests) == 2

        run(_with_client(script, test))

    def test_an_expired_continuation_becomes_a_whole_list(self, run: Run) -> None:
        script = Script().on(
            "GET",
            "/things",
            answer(thing_list(thing("a"), version=7, next_page="t1")),
            answer(gone(), status=410),
            answer(thing_list(thing("a"), thing("b"), version=9)),
        )

        async def test(server: ScriptedServer, client: ApiClient) -> None:
            pages = [page async for page in client.list_pages("/things", Thing, limit=1)]
            assert [(page.first, len(page.items)) for page in pages] == [(True, 1), (True, 2)]
            assert server.requests[2].query == {}

        run(_with_client(script, test))

    def test_a_first_page_that_is_gone_is_an_error(self, run_once: Run) -> None:
        script = Script().on("GET", "/things", answer(gone(), status=410))

        async def test(server: ScriptedServer, client: ApiClient) -> None:
            with pytest.raises(GoneError):
                _ = [page async for page in client.list_pages("/things", Thing)]

        run_once(_with_client(script, test))

    def test_bad_objects_are_reported(self, run_once: Run) -> None:
        script = Script().on(
            "GET", "/things", answer(thing_list(thing("a"), thing("b", replicas="x")))
        )
        bad: list[BadObject] = []

        async def test(server: ScriptedServer, client: ApiClient) -> None:
            pages = [
                page async for page in client.list_pages("/things", Thing, on_bad_object=bad.append)
            ]
            assert len(pages[0].items) == 1
            assert [item.name for item in bad] == ["b"]

        run_once(_with_client(script, test))

    def test_what_is_no_list_is_an_error(self, run_once: Run) -> None:
        script = Script().on("GET", "/things", answer("<html>login</html>"))

        async def test(server: ScriptedServer, client: ApiClient) -> None:
            with pytest.raises(ClientError, match="GET /things: the answer is not a list"):
                _ = [page async for page in client.list_pages("/things", Thing)]

        run_once(_with_client(script, test))


class TestWatches:
    def test_events_come_and_the_end_is_no_error(self, run: Run) -> None:
        script = Script().on(
            "GET",
            "/things",
            watch_answer(
                event_line("ADDED", thing("a", version=5)),
                event_line("DELETED", thing("a", version=6)),
            ),
        )

        async def test(server: ScriptedServer, client: ApiClient) -> None:
            events = []
            async with client.watch(
                "/things", Thing, resource_version="4", timeout_s=300, field_selector="x=y"
            ) as stream:
                async for batch in stream:
                    events += [event.type for event in batch if isinstance(event, WatchEvent)]
                assert stream.resource_version == "6"
            assert events == ["ADDED", "DELETED"]
            assert server.requests[0].query == {
                "watch": "true",
                "allowWatchBookmarks": "true",
                "resourceVersion": "4",
                "timeoutSeconds": "300",
                "fieldSelector": "x=y",
            }

        run(_with_client(script, test))

    def test_a_refused_watch_is_an_error(self, run: Run) -> None:
        script = Script().on("GET", "/things", failure(403, "Forbidden", "you may not"))

        async def test(server: ScriptedServer, client: ApiClient) -> None:
            with pytest.raises(ForbiddenError, match="you may not"):
                async with client.watch("/things", Thing, resource_version="4", timeout_s=300):
                    pytest.fail("it was refused")

        run(_with_client(script, test))

    def test_watches_are_not_rate_limited(self, run_once: Run) -> None:
        script = Script().on("GET", "/things", watch_answer())

        async def test(server: ScriptedServer, client: ApiClient) -> None:
            for _ in range(3):
                async with client.watch("/things", Thing, resource_version="4", timeout_s=300):
                    pass

        run_once(_with_client(script, test, qps=0.001, burst=1))
