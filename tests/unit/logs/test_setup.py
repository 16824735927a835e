"""The log of a process: how much is shown, where it goes, and changing that while it runs."""

from __future__ import annotations

import io
import json
import logging
import threading
from collections.abc import Iterator

import pytest

from kubesched import logs
from kubesched.logs import LoggingOptions, ModuleVerbosity
from kubesched.logs.levels import verbosity_of
from tests.support.waiting import until


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    logs.shutdown()
    root.handlers = handlers
    root.setLevel(level)
    logging.getLogger("asyncio").setLevel(logging.NOTSET)


class Streams:
    """Both streams of a log."""

    def __init__(self, options: LoggingOptions) -> None:
        self.info, self.error = io.StringIO(), io.StringIO()
        logs.configure(options, info_stream=self.info, error_stream=self.error)

    @property
    def out(self) -> list[str]:
        return _messages(self.info)

    @property
    def err(self) -> list[str]:
        return _messages(self.error)


def _messages(stream: io.StringIO) -> list[str]:
    return [line.partition("] ")[2] for line in stream.getvalue().splitlines()]


def say_everything(name: str = "kubesched.x") -> None:
    log = logging.getLogger(name)
    for verbosity in range(12):
        log.log(logs.verbose(verbosity), "v%d", verbosity)
    log.warning("warning")
    log.error("error")


# --- verbosity --------------------------------------------------------------------------------


def test_levels_of_verbosity() -> None:
    levels = [logs.verbose(each) for each in range(11)]

    assert levels[0] == logging.INFO
    assert levels[2] == logging.DEBUG, "what debug() logs is a V(2)"
    assert levels == sorted(levels, reverse=True)
    assert len(set(levels)) == 11
    assert [verbosity_of(level) for level in levels] == list(range(11))
    assert logs.verbose(10**9) > logging.NOTSET


@pytest.mark.parametrize("verbosity", range(11))
def test_a_verbosity_shows_what_is_not_above_it(verbosity: int) -> None:
    streams = Streams(LoggingOptions(verbosity=verbosity))
    say_everything()

    assert streams.err == [*(f"v{each}" for each in range(verbosity + 1)), "warning", "error"]


def test_errors_only() -> None:
    streams = Streams(LoggingOptions(verbosity=logs.ERRORS_ONLY))
    say_everything()

    assert streams.err == ["error"]


def test_the_verbosity_changes_at_run_time() -> None:
    streams = Streams(LoggingOptions())
    log = logs.get_logger("kubesched.x")
    log.v(4, "before")
    logs.set_verbosity(4)
    log.v(4, "during")
    log.v(5, "too much")
    enabled = log.enabled(4), log.enabled(5)
    logs.set_verbosity(0)
    log.v(4, "after")

    assert streams.err == ['"during"']
    assert enabled == (True, False)
    assert logs.verbosity() == 0


def test_asyncio_does_not_chatter() -> None:
    streams = Streams(LoggingOptions(verbosity=10))
    logging.getLogger("asyncio").debug("Using selector: EpollSelector")

    assert streams.err == []


def test_configuring_twice_logs_once() -> None:
    first, second = Streams(LoggingOptions()), Streams(LoggingOptions())
    logging.getLogger("x").info("once")

    assert (first.err, second.err) == ([], ["once"])


# --- --vmodule --------------------------------------------------------------------------------


def log_from(file: str, verbosity: int, *, logger: str = "kubesched.some.module") -> None:
    """Log as if from another file."""
    log = logging.getLogger(logger)
    level = logs.verbose(verbosity)
    if log.isEnabledFor(level):
        path = f"/src/{file}.py"
        log.handle(log.makeRecord(logger, level, path, 1, f"{file} v{verbosity}", (), None))


def test_some_files_log_more() -> None:
    modules = (ModuleVerbosity("binding", 4), ModuleVerbosity("ex*", 2))
    streams = Streams(LoggingOptions(verbosity=1, vmodule=modules))
    for file in ("binding", "extenders", "cycle"):
        for verbosity in range(6):
            log_from(file, verbosity)

    assert streams.err == [
        *(f"binding v{each}" for each in range(5)),
        *(f"extenders v{each}" for each in range(3)),
        *(f"cycle v{each}" for each in range(2)),
    ]


def test_the_first_pattern_that_matches_counts() -> None:
    modules = (ModuleVerbosity("cycle", 1), ModuleVerbosity("c*", 5))
    streams = Streams(LoggingOptions(vmodule=modules))
    log_from("cycle", 2)
    log_from("cluster", 2)

    assert streams.err == ["cluster v2"]


def test_a_pattern_never_silences_what_everybody_shows() -> None:
    streams = Streams(LoggingOptions(verbosity=3, vmodule=(ModuleVerbosity("cycle", 1),)))
    log_from("cycle", 3)

    assert streams.err == ["cycle v3"]


def test_a_pattern_with_a_dot_is_about_modules() -> None:
    modules = (ModuleVerbosity("kubesched.scheduler.*", 3),)
    streams = Streams(LoggingOptions(vmodule=modules))
    log_from("cycle", 3, logger="kubesched.scheduler.cycle")
    log_from("cycle", 3, logger="kubesched.other.cycle")

    assert streams.err == ["cycle v3"]


def test_the_verbosity_changes_beside_patterns() -> None:
    streams = Streams(LoggingOptions(vmodule=(ModuleVerbosity("binding", 4),)))
    logs.set_verbosity(2)
    for file in ("binding", "cycle"):
        for verbosity in (2, 4, 5):
            log_from(file, verbosity)

    assert streams.err == ["binding v2", "binding v4", "cycle v2"]


@pytest.mark.parametrize(
    ("pattern", "file", "matches"),
    [
        ("cycle", "cycle", True),
        ("cycle", "cycles", False),
        ("c*e", "cycle", True),
        ("c?cle", "cycle", True),
        ("c?e", "cycle", False),
        ("[ab]*", "binding", True),
        ("[^ab]*", "binding", False),
        ("[a-c]*", "binding", True),
        (r"\*", "*", True),
        (r"\*", "x", False),
        ("[", "[", False),
        ("[]a]", "a", False),
        ("x\\", "x", False),
        ("[z-a]", "z", False),
        ("a+", "aa", False),
    ],
)
def test_patterns_are_those_of_go(pattern: str, file: str, *, matches: bool) -> None:
    streams = Streams(LoggingOptions(vmodule=(ModuleVerbosity(pattern, 1),)))
    log_from(file, 1)

    assert bool(streams.err) is matches


# --- streams ----------------------------------------------------------------------------------


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
