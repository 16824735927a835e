"""Log lines: klog's text, and JSON."""

from __future__ import annotations

import io
import json
import logging
import os
import re
from collections.abc import Iterator

import pytest

from kubesched import logs
from kubesched.logs import LoggingOptions
from kubesched.logs.formats import KlogFormatter

_LINE = re.compile(
    r"(?P<severity>[IWEF])(?P<month>\d\d)(?P<day>\d\d) "
    r"\d\d:\d\d:\d\d\.\d{6} +(?P<process>\d+) (?P<file>[\w.]+):(?P<line>\d+)\] (?P<message>.*)"
)


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    logs.shutdown()
    root.handlers = handlers
    root.setLevel(level)
    logging.getLogger("asyncio").setLevel(logging.NOTSET)


def configured(form: str = logs.TEXT, verbosity: int = 10) -> io.StringIO:
    stream = io.StringIO()
    logs.configure(LoggingOptions(format=form, verbosity=verbosity), error_stream=stream)
    return stream


# --- text -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("level", "severity"),
    [
        (1, "I"),
        (logging.DEBUG, "I"),
        (logging.INFO, "I"),
        (logging.WARNING, "W"),
        (logging.ERROR, "E"),
        (logging.CRITICAL, "F"),
    ],
)
def test_a_line_has_severity_time_process_and_place(level: int, severity: str) -> None:
    stream = configured()
    logs.set_verbosity(100)
    logging.getLogger("kubesched.x").log(level, "pod=%s node=%d", "a/b", 7)
    found = _LINE.fullmatch(stream.getvalue().rstrip("\n"))

    assert found is not None
    assert found["severity"] == severity
    assert found["process"] == str(os.getpid())
    assert found["file"] == "test_formats.py"
    assert found["message"] == "pod=a/b node=7"


def test_the_time_is_local_to_the_microsecond() -> None:
    formatter = KlogFormatter()
    record = logging.LogRecord("x", logging.INFO, "/a/b/c.py", 12, "text", None, None)
    record.process = 42
    lines = []
    for moment in (1767268800.25, 1767268800.5, 1767268801.000001):
        record.created = moment
        lines.append(formatter.format(record))

    assert [line[14:] for line in lines] == [
        ".250000      42 c.py:12] text",
        ".500000      42 c.py:12] text",
        ".000001      42 c.py:12] text",
    ]
    assert lines[0][:14] == lines[1][:14]
    assert int(lines[2][12:14]) == (int(lines[0][12:14]) + 1) % 60


def test_a_structured_line() -> None:
    stream = configured()
    log = logs.get_logger("kubesched.x")
    log.v(2, "Successfully bound pod to node", pod=logs.ref("ns", "p"), node="n1", feasibleNodes=3)
    found = _LINE.fullmatch(stream.getvalue().rstrip("\n"))

    assert found is not None
    assert found["message"] == (
        '"Successfully bound pod to node" pod="ns/p" node="n1" feasibleNodes=3'
    )
    assert found["file"] == "test_formats.py", "the caller, and not the logger"


def test_an_error_comes_first() -> None:
    stream = configured()
    logs.get_logger("x").error("Error scheduling pod; retrying", ValueError("a bug"), pod="ns/p")

    assert stream.getvalue().startswith("E")
    assert stream.getvalue().endswith('"Error scheduling pod; retrying" err="a bug" pod="ns/p"\n')


def test_severities_of_structured_lines() -> None:
    stream = configured()
    log = logs.get_logger("x")
    log.info("a")
    log.warning("b")
    log.error("c")
    log.v(0, "d")

    assert [line[0] for line in stream.getvalue().splitlines()] == ["I", "W", "E", "I"]


def test_per_cent_signs_are_nothing_special() -> None:
    stream = configured()
    logs.get_logger("x").info("100%d", share="5%")

    assert stream.getvalue().endswith('"100%d" share="5%"\n')


def test_what_is_not_shown_is_not_even_made() -> None:
    stream = configured(verbosity=1)

    class Untouchable:
        def __str__(self) -> str:
            raise AssertionError

    logs.get_logger("x").v(2, "message", value=Untouchable())
    assert stream.getvalue() == ""


def test_a_traceback_follows_its_line() -> None:
    stream = configured()
    try:
        int("a bug")
    except ValueError as error:
        caught = str(error)
        logging.getLogger("x").exception("it broke")
    first, second, *_, last = stream.getvalue().splitlines()

    assert first.endswith("] it broke")
    assert (second, last) == ("Traceback (most recent call last):", f"ValueError: {caught}")


# --- JSON -------------------------------------------------------------------------------------


def test_a_json_line_has_the_keys_of_kubernetes() -> None:
    stream = configured(logs.JSON)
    logs.get_logger("x").v(3, "Attempting to schedule pod", pod=logs.ref("ns", "p"), nodes=5)
    (line,) = stream.getvalue().splitlines()
    said = json.loads(line)

    assert list(said) == ["ts", "caller", "msg", "v", "pod", "nodes"]
    assert re.fullmatch(r"logs/test_formats\.py:\d+", said["caller"])
    assert re.search(r'"ts":\d{13}(\.\d+)?,', line), "milliseconds"
    assert said["msg"] == "Attempting to schedule pod"
    assert (said["v"], said["pod"], said["nodes"]) == (3, {"name": "p", "namespace": "ns"}, 5)


def test_a_json_error_has_no_verbosity_and_its_error_last() -> None:
    stream = configured(logs.JSON)
    logs.get_logger("x").error("Error updating pod", OSError("no"), pod=logs.ref("", "p"))
    said = json.loads(stream.getvalue())

    assert list(said) == ["ts", "caller", "msg", "pod", "err"]
    assert (said["pod"], said["err"]) == ({"name": "p"}, "no")


def test_plain_lines_are_json_too() -> None:
    stream = configured(logs.JSON)
    log = logging.getLogger("x")
    log.info("a %s", '"b"\nc')
    log.warning("w")
    log.debug("d")
    log.error("e")
    said = [json.loads(line) for line in stream.getvalue().splitlines()]

    assert [each["msg"] for each in said] == ['a "b"\nc', "w", "d", "e"]
    assert [each.get("v") for each in said] == [0, 0, 2, None]


def test_a_traceback_in_json_is_one_line() -> None:
    stream = configured(logs.JSON)
    try:
        int("a bug")
    except ValueError:
        logging.getLogger("x").exception("it broke")
    (line,) = stream.getvalue().splitlines()

    assert json.loads(line)["stacktrace"].startswith("Traceback (most recent call last):\n")


def test_json_shows_what_it_does_not_know_as_text() -> None:
    stream = configured(logs.JSON)
    values = {"error": ValueError("x"), "set": {"b", "a"}, "deep": [ValueError("y")], "none": None}
    logs.get_logger("x").info("m", **values)
    said = json.loads(stream.getvalue())

    assert {key: said[key] for key in values} == {
        "error": "x",
        "set": ["a", "b"],
        "deep": ["y"],
        "none": None,
    }


@pytest.mark.parametrize("form", [logs.TEXT, logs.JSON])
def test_bytes_that_are_no_text_are_logged_all_the_same(form: str) -> None:
    stream = configured(form)
    logs.get_logger("x").info("m", file=b"a\xff".decode(errors="surrogateescape"))
    (line,) = stream.getvalue().splitlines()

    assert line.endswith((r'file="a\xff"', r'"file":"a\udcff"}'))
