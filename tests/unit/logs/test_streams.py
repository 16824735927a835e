"""The streams of a log: one or two, buffered or not."""

from __future__ import annotations

import io
import json
import logging
import threading

import pytest

from kubesched import logs
from kubesched.logs import LoggingOptions
from tests.support.waiting import until

from .log_streams import Streams, say_everything


def test_everything_goes_to_stderr() -> None:
    streams = Streams(LoggingOptions())
    say_everything()

    assert (streams.out, streams.err) == ([], ["v0", "warning", "error"])


def test_split_text_has_warnings_among_the_errors() -> None:
    streams = Streams(LoggingOptions(split_stream=True))
    say_everything()

    assert (streams.out, streams.err) == (["v0"], ["warning", "error"])


def test_split_json_has_warnings_among_the_information() -> None:
    streams = Streams(LoggingOptions(format=logs.JSON, split_stream=True))
    say_everything()

    def messages(stream: io.StringIO) -> list[str]:
        return [json.loads(line)["msg"] for line in stream.getvalue().splitlines()]

    assert messages(streams.info) == ["v0", "warning"]
    assert messages(streams.error) == ["error"]


def buffered(size: int, *, every_s: float = 3600) -> Streams:
    return Streams(
        LoggingOptions(split_stream=True, info_buffer_bytes=size, flush_frequency_s=every_s)
    )


def test_a_buffer_is_written_when_it_is_full() -> None:
    streams = buffered(130)
    log = logging.getLogger("x")
    for each in range(3):
        log.info("line %d", each)

    assert streams.out == ["line 0", "line 1"], "a line is about 60 bytes long"
    logs.flush()
    assert streams.out == ["line 0", "line 1", "line 2"]


def test_a_line_larger_than_the_buffer_keeps_its_place() -> None:
    streams = buffered(100)
    log = logging.getLogger("x")
    log.info("small")
    log.info("large %s", "x" * 200)
    log.info("last")

    assert streams.out == ["small", f"large {'x' * 200}"]


def test_errors_do_not_wait() -> None:
    streams = buffered(10_000)
    logging.getLogger("x").error("now")

    assert streams.err == ["now"]


def test_a_buffer_is_written_from_time_to_time() -> None:
    streams = buffered(10_000, every_s=0.01)
    logging.getLogger("x").info("line")
    until(lambda: streams.out)

    assert streams.out == ["line"]


def test_the_end_leaves_nothing_behind() -> None:
    streams = buffered(10_000, every_s=0.01)
    logging.getLogger("x").info("line")
    logs.shutdown()

    assert streams.out == ["line"]
    for flusher in (each for each in threading.enumerate() if each.name == "log-flush"):
        flusher.join(5)
        assert not flusher.is_alive()


def test_a_line_that_cannot_be_written_does_not_stop_the_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    streams = Streams(LoggingOptions())
    logging.getLogger("x").info("%d", "no number")
    logging.getLogger("x").info("next")

    assert streams.err == ["next"]
