"""Log lines as klog writes them."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator

import pytest

from kubesched.cli import logs

_LINE = re.compile(
    r"(?P<severity>[IWEF])(?P<month>\d\d)(?P<day>\d\d) "
    r"\d\d:\d\d:\d\d\.\d{6} +(?P<process>\d+) (?P<file>[\w.]+):(?P<line>\d+)\] (?P<message>.*)"
)


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    root.handlers = handlers
    root.setLevel(level)
    logging.getLogger("asyncio").setLevel(logging.NOTSET)


@pytest.mark.parametrize(
    ("level", "severity"),
    [
        (logging.DEBUG, "I"),
        (logging.INFO, "I"),
        (logging.WARNING, "W"),
        (logging.ERROR, "E"),
        (logging.CRITICAL, "F"),
    ],
)
def test_a_line_has_severity_time_process_and_place(
    capsys: pytest.CaptureFixture[str], level: int, severity: str
) -> None:
    logs.configure(5)
    logging.getLogger("kubesched.x").log(level, "pod=%s node=%d", "a/b", 7)
    found = _LINE.fullmatch(capsys.readouterr().err.rstrip("\n"))
    assert found is not None
    assert found["severity"] == severity
    assert found["process"] == str(os.getpid())
    assert found["file"] == "test_logs.py"
    assert found["message"] == "pod=a/b node=7"


def test_the_time_is_local_to_the_microsecond() -> None:
    record = logging.LogRecord("x", logging.INFO, "/a/b/c.py", 12, "text", None, None)
    record.created, record.process = 1767268800.25, 42
    line = logs.KlogFormatter().format(record)
    assert line.endswith(".250000      42 c.py:12] text")


def test_a_traceback_follows_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(0)
    try:
        int("a bug")
    except ValueError as error:
        caught = str(error)
        logging.getLogger("x").exception("it broke")
    first, second, *_, last = capsys.readouterr().err.splitlines()
    assert first.endswith("] it broke")
    assert (second, last) == ("Traceback (most recent call last):", f"ValueError: {caught}")


@pytest.mark.parametrize(
    ("verbosity", "shown"),
    [
        (logs.ERRORS_ONLY, ["error"]),
        (0, ["info", "warning", "error"]),
        (1, ["info", "warning", "error"]),
        (2, ["debug", "info", "warning", "error"]),
        (10, ["debug", "info", "warning", "error"]),
    ],
)
def test_verbosity(capsys: pytest.CaptureFixture[str], verbosity: int, shown: list[str]) -> None:
    logs.configure(verbosity)
    log = logging.getLogger("kubesched.x")
    for level in ("debug", "info", "warning", "error"):
        getattr(log, level)(level)
    assert [line.rpartition("] ")[2] for line in capsys.readouterr().err.splitlines()] == shown


def test_configuring_twice_logs_once(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(0)
    logs.configure(0)
    logging.getLogger("x").info("once")
    assert len(capsys.readouterr().err.splitlines()) == 1
