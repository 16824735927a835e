"""Metrics, configuration and debug flags."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from kubesched.server import pages
from kubesched.server.sources import MetricsPage
from tests.support.serving import request


def test_metrics_are_rendered_when_asked_for() -> None:
    values = iter([b"a 1\n", b"a 2\n"])
    handle = pages.metrics(MetricsPage(lambda: next(values)), started=12.9)

    assert [handle(request()).body, handle(request()).body] == [b"a 1\n", b"a 2\n"]


def test_metrics_say_what_they_are() -> None:
    answer = pages.metrics(MetricsPage(lambda: b""), started=12.9)(request())

    assert answer.content_type == ("text/plain; version=0.0.4; charset=utf-8; escaping=underscores")
    assert answer.headers == (("process-start-time-unix", "12"),)


def test_delete_resets_metrics() -> None:
    resets: list[str] = []
    handle = pages.metrics(MetricsPage(lambda: b"a 1\n", lambda: resets.append("x")), started=0)

    assert handle(request(method="DELETE")).body == b"metrics reset\n"
    assert handle(request()).body == b"a 1\n"
    assert resets == ["x"]


def test_metrics_that_cannot_be_reset_are_shown() -> None:
    handle = pages.metrics(MetricsPage(lambda: b"a 1\n"), started=0)

    assert handle(request(method="DELETE")).body == b"a 1\n"


def test_metrics_may_come_in_pieces() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"a 1\n"

    answer = pages.metrics(MetricsPage(pieces), started=12.9)(request())

    assert answer.pieces is not None
    assert answer.body == b""
    assert answer.content_type.startswith("text/plain; version=0.0.4")
    assert answer.headers == (("process-start-time-unix", "12"),)


def test_a_page_without_metrics_is_empty() -> None:
    answer = pages.metrics(MetricsPage(lambda: None), started=0)(request())

    assert (answer.code, answer.body) == (200, b"")


def test_the_configuration() -> None:
    answer = pages.configz(lambda: b'{"parallelism":16}')(request())

    assert answer.body == b'{"componentconfig":{"parallelism":16}}'
    assert answer.content_type == "application/json"


OUT_OF_RANGE = "value out of range"


@pytest.mark.parametrize(
    ("body", "code", "text"),
    [
        ("3", 200, "successfully set klog.logging.verbosity to 3"),
        ("0", 200, "successfully set klog.logging.verbosity to 0"),
        ("x", 400, 'strconv.ParseUint: parsing "x": invalid syntax'),
        ("", 400, 'strconv.ParseUint: parsing "": invalid syntax'),
        ("-1", 400, 'strconv.ParseUint: parsing "-1": invalid syntax'),
        ("+1", 400, 'strconv.ParseUint: parsing "+1": invalid syntax'),
        ("٣", 400, 'strconv.ParseUint: parsing "٣": invalid syntax'),
        ("99999999999", 400, f'strconv.ParseUint: parsing "99999999999": {OUT_OF_RANGE}'),
        (
            "4294967295",
            400,
            (
                "failed set klog.logging.verbosity 4294967295: "
                f'strconv.ParseInt: parsing "4294967295": {OUT_OF_RANGE}'
            ),
        ),
        ("1" * 5000, 400, "error reading request body: http: request body too large"),
    ],
)
def test_verbosity_is_put(body: str, code: int, text: str) -> None:
    levels: list[int] = []
    flag = pages.VerbosityFlag(levels.append)
    answer = asyncio.run(flag(request(method="PUT", body=body.encode())))

    assert (answer.code, answer.body.decode()) == (code, f"{text}\n")
    assert levels == ([int(body)] if code == 200 else [])


def test_verbosity_is_not_got() -> None:
    answer = asyncio.run(pages.VerbosityFlag(lambda _: None)(request()))

    assert (answer.code, answer.body) == (406, b"unsupported http method\n")
