"""The log of a process: what is logged, and changes of the verbosity at run time."""

from __future__ import annotations

import logging

import pytest

from kubesched import logs
from kubesched.logs import LoggingOptions

from .log_streams import Streams, say_everything


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
