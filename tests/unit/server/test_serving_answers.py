"""What comes back over the wire, whole or in pieces."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from email.utils import parsedate_to_datetime

import pytest

from kubesched.server.sources import MetricsPage, Sources
from tests.support.serving import Reply, served

from .conftest import Run


def test_an_exception_is_a_500_without_its_text(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> bytes:
        raise RuntimeError("the secret cause")

    async def main() -> list[Reply]:
        async with served(Sources(metrics=MetricsPage(broken))) as target:
            return [await target.ask("/metrics"), await target.ask("/healthz")]

    reply, next_one = run(main())

    assert reply.code == 500
    assert reply.text == (
        "This request caused an error in the server. Look in the logs for details.\n"
    )
    assert "the secret cause" in caplog.text
    assert next_one.code == 200


def test_answers_carry_the_date(run_once: Run) -> None:
    async def main() -> Reply:
        async with served() as target:
            return await target.ask("/healthz")

    date = parsedate_to_datetime(run_once(main()).headers["date"])

    assert abs(date.timestamp() - time.time()) < 10


def test_head_has_no_body(run: Run) -> None:
    async def main() -> Reply:
        async with served() as target:
            return await target.ask("/healthz", "HEAD")

    reply = run(main())

    assert (reply.code, reply.headers["content-length"], reply.text) == (200, "2", "")


def test_verbosity_is_set_over_the_wire(run: Run) -> None:
    levels: list[int] = []

    async def main() -> Reply:
        sources = Sources(profiling=True, set_verbosity=levels.append)
        async with served(sources) as target:
            return await target.ask("/debug/flags/v", "PUT", body=b"4")

    assert run(main()).text == "successfully set klog.logging.verbosity to 4\n"
    assert levels == [4]


def test_requests_are_logged_for_those_who_want_it(
    run_once: Run, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "kubesched.server.app")

    async def main() -> None:
        async with served() as target:
            await target.ask("/metrics?a=b", token="very-secret")

    run_once(main())

    assert 'verb="GET" URI="/metrics?a=b"' in caplog.text
    assert "resp=200" in caplog.text
    assert "very-secret" not in caplog.text


# --- pages in pieces

END = "0\r\n\r\n"


def test_a_page_comes_in_pieces_and_others_are_served_in_between(run: Run) -> None:
    begun, others_served = asyncio.Event(), asyncio.Event()

    async def pieces() -> AsyncIterator[bytes]:
        yield b"a 1\n"
        yield b""
        begun.set()
        await others_served.wait()
        yield b"b 2\n"

    async def main() -> Reply:
        async with served(Sources(resource_metrics=MetricsPage(pieces))) as target:
            asking = asyncio.create_task(target.ask("/metrics/resources"))
            await begun.wait()
            assert (await target.ask("/healthz")).code == 200
            assert not asking.done()
            others_served.set()
            return await asking

    reply = run(main())

    assert reply.code == 200
    assert reply.headers["transfer-encoding"] == "chunked"
    assert "content-length" not in reply.headers
    assert reply.text == f"4\r\na 1\n\r\n4\r\nb 2\n\r\n{END}"


def test_the_head_of_a_page_in_pieces_costs_nothing(run: Run) -> None:
    asked_for = False

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal asked_for
        asked_for = True
        yield b"a 1\n"

    async def main() -> Reply:
        async with served(Sources(resource_metrics=MetricsPage(pieces))) as target:
            return await target.ask("/metrics/resources", "HEAD")

    reply = run(main())

    assert (reply.code, reply.text) == (200, "")
    assert not asked_for


def test_a_page_that_fails_half_way_is_not_complete(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"a 1\n"
        raise RuntimeError("the cause")

    async def main() -> list[Reply]:
        async with served(Sources(resource_metrics=MetricsPage(pieces))) as target:
            return [await target.ask("/metrics/resources"), await target.ask("/healthz")]

    reply, next_one = run(main())

    assert reply.text == "4\r\na 1\n\r\n"
    assert "/metrics/resources" in caplog.text
    assert "the cause" in caplog.text
    assert next_one.code == 200


def test_a_page_without_end_does_not_hold_up_the_end(
    run_once: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kubesched.server.serving.GRACE_S", 0.2)
    begun = asyncio.Event()

    async def pieces() -> AsyncIterator[bytes]:
        while True:
            yield b"a 1\n"
            begun.set()
            await asyncio.sleep(0.01)

    async def main() -> tuple[Reply, float]:
        async with served(Sources(resource_metrics=MetricsPage(pieces))) as target:
            asking = asyncio.create_task(target.ask("/metrics/resources"))
            await begun.wait()
            began = time.monotonic()
        return await asking, time.monotonic() - began

    reply, taken = run_once(main())

    assert reply.code == 200
    assert not reply.text.endswith(END)
    assert taken < 3
