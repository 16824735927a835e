"""``--vmodule``: verbosity per file."""

from __future__ import annotations

import logging

import pytest

from kubesched import logs
from kubesched.logs import LoggingOptions, ModuleVerbosity

from .log_streams import Streams


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
