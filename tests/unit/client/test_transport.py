"""The pool: which connection a request gets, and what happens when connections misbehave."""

from __future__ import annotations

import asyncio
import gc
import select
import socket
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubesched.client.access import ClusterAccess, Server, tls_context
from kubesched.client.connection import Response
from kubesched.client.transport import Transport
from kubesched.errors import ClientError, ConnectionFailedError, RequestTimeoutError
from tests.support.servers import (
    CHUNKED_HEAD,
    LAST_CHUNK,
    Exchange,
    Handler,
    ScriptedServer,
    answer,
    chunk,
    splits,
)
from tests.support.waiting import eventually, settle

from .conftest import Run


async def _with_pool(
    handler: Handler,
    test: Callable[[ScriptedServer, Transport], Awaitable[None]],
    **options: float,
) -> None:
    async with ScriptedServer(handler) as server:
        pool = Transport(server.access, **options)  # type: ignore[arg-type]  # numbers of all kinds
        try:
            await test(server, pool)
        finally:
            await pool.aclose()
        await eventually(lambda: server.open_connections == 0)


async def _ok(_: Exchange) -> bytes:
    return answer({"fine": True})


class TestKeepAlive:
    def test_requests_one_after_the_other_share_a_connection(self, run: Run) -> None:
        async def test(server: ScriptedServer, pool: Transport) -> None:
            for _ in range(5):
                response = await pool.request("GET", "/")
                assert (response.status, response.body) == (200, b'{"fine":true}')
            assert server.connections == 1

        run(_with_pool(_ok, test))

    def test_concurrent_requests_get_connections_up_to_the_limit(self, run: Run) -> None:
        running = most = 0

        async def slow(_: Exchange) -> bytes:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.01)
            running -= 1
            return answer()

        async def test(server: ScriptedServer, pool: Transport) -> None:
            await asyncio.gather(*(pool.request("GET", "/") for _ in range(20)))
            assert server.connections == 4
            assert most == 4

        run(_with_pool(slow, test, max_connections=4))

    def test_who_asked_first_is_served_first(self, run: Run) -> None:
        async def test(server: ScriptedServer, pool: Transport) -> None:
            await asyncio.gather(*(pool.request("GET", f"/{number}") for number in range(10)))
            assert [exchange.path for exchange in server.requests] == [f"/{n}" for n in range(10)]

        run(_with_pool(_ok, test, max_connections=1))

    def test_connection_close_is_obeyed(self, run: Run) -> None:
        async def closing(exchange: Exchange) -> bytes:
            return answer(headers={"Connection": "close"})

        async def test(server: ScriptedServer, pool: Transport) -> None:
            for _ in range(3):
                await pool.request("POST", "/", body=b"x")
            assert server.connections == 3

        run(_with_pool(closing, test))

    def test_an_idle_connection_is_closed_after_a_while(self, run: Run) -> None:
        async def test(server: ScriptedServer, pool: Transport) -> None:
            await asyncio.gather(*(pool.request("GET", "/") for _ in range(3)))
            assert server.connections == 3
            await eventually(lambda: server.open_connections == 0)
            await pool.request("GET", "/")
            assert server.connections == 4

        run(_with_pool(_ok, test, idle_timeout_s=0.2))

    def test_after_a_renewal_no_old_connection_is_used_for_a_new_request(self, run: Run) -> None:
        go_on = asyncio.Event()

        async def handler(exchange: Exchange) -> bytes:
            if exchange.path == "/busy":
                await go_on.wait()
            return answer()

        async def test(server: ScriptedServer, pool: Transport) -> None:
            busy = asyncio.create_task(pool.request("GET", "/busy"))
            await eventually(lambda: len(server.requests) == 1)
            await pool.request("GET", "/idle")
            pool.renew()
            go_on.set()
            assert (await busy).status == 200
            await pool.request("GET", "/new")
            await pool.request("GET", "/new")
            used = [exchange.connection for exchange in server.requests]
            assert used == [0, 1, 2, 2]

        run(_with_pool(handler, test))


class TestStaleConnections:
    def test_a_connection_closed_while_idle_is_not_used(self, run: Run) -> None:
        async def test(server: ScriptedServer, pool: Transport) -> None:
            await pool.request("POST", "/", body=b"x")
            (connection,) = pool._pool._idle
            server.requests[0].hang_up()
            await eventually(lambda: connection.closed)
            await pool.request("POST", "/", body=b"x")
            assert server.connections == 2

        run(_with_pool(_ok, test))

    def test_an_end_that_the_loop_has_not_seen_is_found_by_asking_the_kernel(
        self, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("kubesched.client.pool._CHECK_AFTER_S", 0.0)

        async def test(server: ScriptedServer, pool: Transport) -> None:
            await pool.request("POST", "/", body=b"x")
            (connection,) = pool._pool._idle
            connection.transport.pause_reading()  # the loop will not look at the socket
            ours = connection.transport.get_extra_info("socket").fileno()
            server.requests[0].hang_up()
            await eventually(lambda: bool(select.select([ours], [], [], 0)[0]))
            assert not connection.closed
            await pool.request("POST", "/", body=b"x")
            assert len(server.requests) == 2
            assert server.connections == 2

        run(_with_pool(_ok, test))

    @pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
    def test_an_idempotent_request_is_repeated_on_a_new_connection(
        self, run: Run, method: str
    ) -> None:
        async def closes_on_second(exchange: Exchange) -> bytes | None:
            if exchange.number == 1 and exchange.connection == 0:
                exchange.hang_up()
                return None
            return answer()

        async def test(server: ScriptedServer, pool: Transport) -> None:
            await pool.request(method, "/")
            response = await pool.request(method, "/")
            assert response.status == 200
            assert [exchange.connection for exchange in server.requests] == [0, 0, 1]

        run(_with_pool(closes_on_second, test))

    def test_a_post_that_the_server_may_have_read_is_not_repeated(self, run: Run) -> None:
        async def closes_on_second(exchange: Exchange) -> bytes | None:
            if exchange.number == 1:
                exchange.hang_up()
                return None
            return answer()

        async def test(server: ScriptedServer, pool: Transport) -> None:
            await pool.request("POST", "/bind", body=b"1")
            with pytest.raises(
                ConnectionFailedError, match="closed before an answer came"
            ) as error:
                await pool.request("POST", "/bind", body=b"2")
            assert str(error.value).startswith(f"POST /bind: 127.0.0.1:{server.port}: ")
            assert len(server.requests) == 2

        run(_with_pool(closes_on_second, test))

    def test_a_post_that_was_thrown_away_unread_is_repeated(self, run: Run) -> None:
        async def resets_on_second(exchange: Exchange) -> bytes | None:
            if exchange.number == 1 and exchange.connection == 0:
                exchange.reset()
                return None
            return answer()

        async def test(server: ScriptedServer, pool: Transport) -> None:
            await pool.request("POST", "/", body=b"1")
            await pool.request("POST", "/", body=b"2")
            assert [exchange.connection for exchange in server.requests] == [0, 0, 1]

        run(_with_pool(resets_on_second, test))

    def test_a_new_connection_that_breaks_is_an_error_at_once(self, run: Run) -> None:
        async def closes(exchange: Exchange) -> None:
            exchange.hang_up()

        async def test(server: ScriptedServer, pool: Transport) -> None:
            with pytest.raises(ConnectionFailedError, match="closed before an answer"):
                await pool.request("GET", "/")
            assert len(server.requests) == 1

        run(_with_pool(closes, test))

    def test_it_is_repeated_once_and_not_for_ever(self, run: Run) -> None:
        dying = False

        async def dies(exchange: Exchange) -> bytes | None:
            if dying:
                exchange.hang_up()
                return None
            await asyncio.sleep(0.01)
            return answer()

        async def test(server: ScriptedServer, pool: Transport) -> None:
            nonlocal dying
            await asyncio.gather(*(pool.request("GET", "/") for _ in range(5)))
            dying = True
            with pytest.raises(ConnectionFailedError):
                await pool.request("GET", "/")
            assert len(server.requests) == 5 + 2

        run(_with_pool(dies, test))

    def test_an_answer_that_breaks_off_is_not_repeated(self, run: Run) -> None:
        async def half_an_answer(exchange: Exchange) -> bytes | None:
            if exchange.number == 1:
                await exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
                exchange.hang_up()
                return None
            return answer()

        async def test(server: ScriptedServer, pool: Transport) -> None:
            await pool.request("GET", "/")
            with pytest.raises(ConnectionFailedError, match="broke in the middle of an answer"):
                await pool.request("GET", "/")
            assert len(server.requests) == 2

        run(_with_pool(half_an_answer, test))

    def test_a_half_closed_connection_gives_its_answer_and_is_not_used_again(
        self, run: Run
    ) -> None:
        async def half_closes(exchange: Exchange) -> None:
            await exchange.send(answer({"last": "words"}))
            exchange.half_close()

        async def test(server: ScriptedServer, pool: Transport) -> None:
            assert (await pool.request("GET", "/")).body == b'{"last":"words"}'
            await eventually(lambda: not pool._pool._idle)
            assert (await pool.request("POST", "/", body=b"x")).status == 200
            assert server.connections == 2

        run(_with_pool(half_closes, test))

    def test_a_server_that_speaks_unasked_loses_the_connection(self, run: Run) -> None:
        async def speaks_twice(exchange: Exchange) -> bytes:
            return answer({"n": exchange.number}) + answer("too late", status=408)

        async def test(server: ScriptedServer, pool: Transport) -> None:
            for _ in range(3):
                response = await pool.request("POST", "/", body=b"x")
                assert response.body == b'{"n":0}'
            assert server.connections == 3

        run(_with_pool(speaks_twice, test))


class TestAnswers:
    @settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        body=st.binary(max_size=300),
        sizes=st.lists(st.integers(1, 50), max_size=10),
        cuts=st.lists(st.integers(0, 10_000), max_size=12),
    )
    def test_a_chunked_body_may_be_cut_anywhere(
        self, run_once: Run, body: bytes, sizes: list[int], cuts: list[int]
    ) -> None:
        wire = CHUNKED_HEAD
        rest = body
        for size in sizes:
            if rest:
                wire, rest = wire + chunk(rest[:size]), rest[size:]
        wire += (chunk(rest) if rest else b"") + LAST_CHUNK

        async def in_pieces(exchange: Exchange) -> None:
            for piece in splits(wire, cuts):
                await exchange.send(piece)
                await asyncio.sleep(0)

        async def test(server: ScriptedServer, pool: Transport) -> None:
            assert (await pool.request("GET", "/")).body == body

        run_once(_with_pool(in_pieces, test))

    def test_a_body_without_length_lasts_until_the_end_of_the_connection(self, run: Run) -> None:
        async def until_close(exchange: Exchange) -> None:
            await exchange.send(b"HTTP/1.1 200 OK\r\n\r\nall ")
            await asyncio.sleep(0.005)
            await exchange.send(b"of it")
            exchange.hang_up()

        async def test(server: ScriptedServer, pool: Transport) -> None:
            assert (await pool.request("GET", "/")).body == b"all of it"

        run(_with_pool(until_close, test))

    def test_a_status_without_body_needs_no_length(self, run: Run) -> None:
        async def no_content(exchange: Exchange) -> bytes:
            return b"HTTP/1.1 204 No Content\r\n\r\n"

        async def test(server: ScriptedServer, pool: Transport) -> None:
            for _ in range(2):
                assert (await pool.request("GET", "/")).status == 204
            assert server.connections == 1

        run(_with_pool(no_content, test))

    def test_an_announcement_is_not_the_answer(self, run: Run) -> None:
        async def announces(exchange: Exchange) -> bytes:
            return b"HTTP/1.1 100 Continue\r\nX-Early: yes\r\n\r\n" + answer({"real": 1})

        async def test(server: ScriptedServer, pool: Transport) -> None:
            response = await pool.request("GET", "/")
            assert (response.status, response.body) == (200, b'{"real":1}')
            assert response.header("X-Early") is None

        run(_with_pool(announces, test))

    def test_headers_are_found_whatever_their_case(self) -> None:
        head = [b"HTTP/1.1 200 OK\r\nretry-AF", b"TER: 3\r\nRetry-After: 4\r\n\r\nbody"]
        response = Response(200, head, b"body")

        assert response.header("Retry-After") == "3"
        assert response.header("Date") is None

    @pytest.mark.parametrize(
        "garbage", [b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"]
    )
    def test_what_is_not_http_is_said_to_be_so(self, run: Run, garbage: bytes) -> None:
        async def babbles(exchange: Exchange) -> bytes:
            return garbage

        async def test(server: ScriptedServer, pool: Transport) -> None:
            with pytest.raises(ConnectionFailedError, match=r"the answer is not HTTP/1.1"):
                await pool.request("GET", "/")

        run(_with_pool(babbles, test))

    def test_an_answer_beyond_the_limit_is_refused(self, run: Run) -> None:
        async def large(exchange: Exchange) -> bytes:
            return answer(b"x" * 5000)

        async def test(server: ScriptedServer, pool: Transport) -> None:
            with pytest.raises(ClientError, match="larger than 1000 bytes"):
                await pool.request("GET", "/")

        run(_with_pool(large, test, max_body_bytes=1000))

    @pytest.mark.parametrize(
        "line",
        [
            pytest.param(b"X-Flood: " + b"x" * 1000 + b"\r\n", id="many headers"),
            pytest.param(b"x" * 1000, id="one header without end"),
        ],
    )
    def test_a_head_without_end_is_refused(self, run: Run, line: bytes) -> None:
        async def floods(exchange: Exchange) -> None:
            await exchange.send(b"HTTP/1.1 200 OK\r\nX-First: ")
            while not exchange.writer.transport.is_closing():
                await exchange.send(line * 100)

        async def test(server: ScriptedServer, pool: Transport) -> None:
            with pytest.raises(ClientError, match="head is larger than 1048576 bytes"):
                await pool.request("GET", "/")

        run(_with_pool(floods, test))

    def test_a_large_body_goes_both_ways(self, run: Run) -> None:
        async def echo(exchange: Exchange) -> bytes:
            return answer(exchange.body)

        async def test(server: ScriptedServer, pool: Transport) -> None:
            body = bytes(range(256)) * 20_000
            assert (await pool.request("PUT", "/", body=body)).body == body

        run(_with_pool(echo, test))


class TestRequests:
    def test_the_request_carries_what_was_asked(self, run: Run) -> None:
        async def test(server: ScriptedServer, pool: Transport) -> None:
            await pool.request(
                "PATCH",
                "/a/b?c=d",
                body=b'{"x":1}',
                content_type="application/merge-patch+json",
                headers="Authorization: Bearer t\r\n",
            )
            (exchange,) = server.requests
            assert (exchange.method, exchange.target) == ("PATCH", "/a/b?c=d")
            assert exchange.body == b'{"x":1}'
            assert exchange.headers == {
                "host": f"127.0.0.1:{server.port}",
                "user-agent": "kubesched",
                "authorization": "Bearer t",
                "accept": "application/json",
                "content-type": "application/merge-patch+json",
                "content-length": "7",
            }

        run(_with_pool(_ok, test))

    @pytest.mark.parametrize("path", ["/a b", "/a\r\nX: y", "/ä", "", "/a\x00"])
    def test_a_path_that_would_break_the_request_is_refused(self, run_once: Run, path: str) -> None:
        async def test(server: ScriptedServer, pool: Transport) -> None:
            with pytest.raises(ValueError, match="not a path that can be requested"):
                await pool.request("GET", path)

        run_once(_with_pool(_ok, test))


class TestTime:
    def test_a_slow_server_is_given_up(self, run: Run) -> None:
        async def slow(exchange: Exchange) -> bytes:
            if exchange.path == "/slow":
                await asyncio.sleep(3600)
            return answer()

        async def test(server: ScriptedServer, pool: Transport) -> None:
            await pool.request("GET", "/quick")
            with pytest.raises(RequestTimeoutError, match=r"GET /slow: .*no answer in time"):
                await pool.request("GET", "/slow", timeout_s=0.05)
            await eventually(lambda: not pool._pool._open)

        run(_with_pool(slow, test))

    def test_the_wait_for_a_free_connection_counts(self, run: Run) -> None:
        async def never(_: Exchange) -> None:
            await asyncio.sleep(3600)

        async def test(server: ScriptedServer, pool: Transport) -> None:
            busy = asyncio.ensure_future(pool.request("GET", "/1"))
            await eventually(lambda: len(server.requests) == 1)
            with pytest.raises(RequestTimeoutError, match="all 1 connections were busy"):
                await pool.request("GET", "/2", timeout_s=0.05)
            busy.cancel()
            with pytest.raises(asyncio.CancelledError):
                await busy

        run(_with_pool(never, test, max_connections=1))

    def test_after_a_time_out_the_next_in_line_gets_a_connection(self, run: Run) -> None:
        async def first_never(exchange: Exchange) -> bytes:
            if exchange.path == "/never":
                await asyncio.sleep(3600)
            return answer()

        async def test(server: ScriptedServer, pool: Transport) -> None:
            late, good = await asyncio.gather(
                pool.request("GET", "/never", timeout_s=0.05),
                pool.request("GET", "/good", timeout_s=5),
                return_exceptions=True,
            )
            assert isinstance(late, RequestTimeoutError)
            assert isinstance(good, Response)

        run(_with_pool(first_never, test, max_connections=1))

    def test_each_request_has_its_own_deadline(self, run: Run) -> None:
        async def never(_: Exchange) -> None:
            await asyncio.sleep(3600)

        async def test(server: ScriptedServer, pool: Transport) -> None:
            given_up: list[str] = []

            async def request(path: str, timeout_s: float) -> None:
                with pytest.raises(RequestTimeoutError):
                    await pool.request("GET", path, timeout_s=timeout_s)
                given_up.append(path)

            await asyncio.gather(request("/2", 0.4), request("/3", 0.7), request("/1", 0.1))
            assert given_up == ["/1", "/2", "/3"]

        run(_with_pool(never, test))

    def test_a_handshake_that_never_ends_is_given_up(self, run: Run) -> None:
        async def main() -> None:
            with socket.create_server(("127.0.0.1", 0)) as silent:  # connects, and nobody speaks
                access = ClusterAccess(
                    server=Server("https", "127.0.0.1", silent.getsockname()[1]),
                    ssl_context=tls_context(ca_pem=None),
                )
                pool = Transport(access, connect_timeout_s=0.05)
                with pytest.raises(RequestTimeoutError, match="no connection in time"):
                    await pool.request("GET", "/")
                await pool.aclose()

        run(main())


class TestEnding:
    def test_a_cancelled_request_frees_its_place(self, run: Run) -> None:
        async def sometimes(exchange: Exchange) -> bytes:
            if exchange.path == "/never":
                await asyncio.sleep(3600)
            return answer()

        async def test(server: ScriptedServer, pool: Transport) -> None:
            task = asyncio.ensure_future(pool.request("GET", "/never"))
            await eventually(lambda: len(server.requests) == 1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await pool.request("GET", "/")).status == 200

        run(_with_pool(sometimes, test, max_connections=1))

    def test_who_leaves_the_line_just_when_called_passes_the_connection_on(self, run: Run) -> None:
        async def test(server: ScriptedServer, pool: Transport) -> None:
            await pool.request("GET", "/warm")
            connection = pool._pool.take_idle(0.0)
            assert connection is not None
            first = asyncio.ensure_future(pool.request("GET", "/first"))
            second = asyncio.ensure_future(pool.request("GET", "/second"))
            await settle()
            pool._pool.give_back(connection)  # calls the first …
            first.cancel()  # … who leaves before hearing it
            assert (await second).status == 200
            with pytest.raises(asyncio.CancelledError):
                await first
            assert server.connections == 1

        run(_with_pool(_ok, test, max_connections=1))

    def test_closing_fails_what_is_under_way_and_what_comes_later(self, run: Run) -> None:
        async def never(_: Exchange) -> None:
            await asyncio.sleep(3600)

        async def test(server: ScriptedServer, pool: Transport) -> None:
            tasks = [asyncio.ensure_future(pool.request("GET", "/")) for _ in range(3)]
            await eventually(lambda: len(server.requests) == 2)
            await pool.aclose()
            for outcome in await asyncio.gather(*tasks, return_exceptions=True):
                assert isinstance(outcome, ConnectionFailedError)
            with pytest.raises(ConnectionFailedError, match="the client is closed"):
                await pool.request("GET", "/")

        run(_with_pool(never, test, max_connections=2))

    def test_nobody_listening_is_said_in_one_line(self, run: Run) -> None:
        async def main() -> None:
            async with ScriptedServer(_ok) as server:
                access = server.access
            pool = Transport(access)
            with pytest.raises(ConnectionFailedError) as error:
                await pool.request("GET", "/x")
            await pool.aclose()
            assert str(error.value) == (
                f"GET /x: 127.0.0.1:{server.port}: connection refused (is the server running?)"
            )

        run(main())

    def test_many_requests_leave_nothing_behind(self, run: Run) -> None:
        async def test(server: ScriptedServer, pool: Transport) -> None:
            for _ in range(3):
                await asyncio.gather(*(pool.request("GET", "/") for _ in range(200)))
            gc.collect()
            before = len(gc.get_objects())
            for _ in range(3):
                await asyncio.gather(*(pool.request("GET", "/") for _ in range(200)))
            server.requests.clear()
            gc.collect()
            assert len(gc.get_objects()) - before < 500
            assert not pool._pool._line

        run(_with_pool(_ok, test, max_connections=8))
