"""Spans are sent in batches; a collector that is down costs spans, and nothing else."""

from __future__ import annotations

import builtins
import logging
import threading
import time
from typing import Any

import pytest

from kubesched.errors import ConfigError
from kubesched.tracing.configuration import TracingConfiguration
from kubesched.tracing.exporting import BATCH, MOST_WAITING, SpanExporter
from kubesched.tracing.spans import CLIENT, SpanRecord
from tests.support.otlp_collector import Collector
from tests.support.waiting import until


def span(number: int = 0, **fields: Any) -> SpanRecord:
    given = {
        "name": f"s{number}",
        "trace_id": b"t" * 16,
        "span_id": number.to_bytes(8, "big"),
        "parent_id": b"",
        "start_ns": 10**18,
        "end_ns": 10**18 + 5000,
        **fields,
    }
    return SpanRecord(**given)


def exporter(endpoint: str, period_s: float = 0.02) -> SpanExporter:
    return SpanExporter(TracingConfiguration(endpoint=endpoint), period_s=period_s)


def has_arrived(sending: SpanExporter, collector: Collector) -> bool:
    sending.add(span(9))
    return bool(collector.spans())


def test_a_span_arrives_as_it_was_recorded() -> None:
    with Collector() as collector:
        sending = exporter(collector.endpoint)
        sending.start()
        sending.add(span(7, attributes=(("a", "b"), ("n", 3)), error="it broke", kind=CLIENT))
        (got,) = collector.wait_for(1)
        sending.close()

    assert (got.name, got.trace_id, got.span_id) == ("s7", b"t" * 16, (7).to_bytes(8, "big"))
    assert (got.start_time_unix_nano, got.end_time_unix_nano) == (10**18, 10**18 + 5000)
    assert [
        (each.key, each.value.string_value or each.value.int_value) for each in got.attributes
    ] == [
        ("a", "b"),
        ("n", 3),
    ]
    assert (got.status.code, got.status.message, got.kind, got.flags) == (2, "it broke", 3, 1)
    (resource,) = collector.requests[0].resource_spans
    about = {each.key: each.value.string_value for each in resource.resource.attributes}
    assert about["service.name"] == "kube-scheduler"


def test_what_waits_is_sent_at_the_end() -> None:
    with Collector() as collector:
        sending = exporter(collector.endpoint, period_s=600.0)
        sending.start()
        for number in range(3):
            sending.add(span(number))
        sending.close()

        assert len(collector.spans()) == 3
    assert sending.dropped == 0


def test_a_full_batch_does_not_wait_for_the_period() -> None:
    with Collector() as collector:
        sending = exporter(collector.endpoint, period_s=600.0)
        sending.start()
        for number in range(BATCH):
            sending.add(span(number))
        assert len(collector.wait_for(BATCH)) == BATCH
        sending.close()


def test_a_collector_that_is_down_is_told_once_and_costs_no_memory(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with Collector() as collector:
        port = collector.port
    sending = exporter(f"127.0.0.1:{port}")
    sending.start()
    with caplog.at_level(logging.INFO):
        for number in range(3):
            sending.add(span(number))
            until(lambda: sending.dropped > number, seconds=20)  # noqa: B023 (called at once)
        assert sending.dropped == 3
        assert [each.getMessage() for each in caplog.records].count(
            "Spans cannot be sent and are dropped until they can"
        ) == 1
        with Collector(port) as again:
            until(lambda: has_arrived(sending, again), seconds=20)
        sending.close()
    assert sum("Spans are sent again" in each.getMessage() for each in caplog.records) == 1


def test_a_collector_that_does_not_answer_blocks_neither_the_loop_nor_the_end() -> None:
    with Collector() as collector:
        collector.answers.clear()
        sending = exporter(collector.endpoint)
        sending.start()
        sending.add(span())
        collector.wait_for(1)
        started = time.monotonic()
        for number in range(MOST_WAITING + 100):
            sending.add(span(number))
        assert sending.dropped == 100
        sending.close(timeout_s=0.2)
        assert time.monotonic() - started < 5.0


def test_without_the_packages_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = builtins.__import__

    def missing(name: str, *rest: Any) -> Any:
        if name == "grpc":
            raise ImportError("no", name="grpc")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ConfigError, match=r"not installed \(grpc\): pip install 'kubesched\[trac"):
        exporter("127.0.0.1:1")


def test_the_thread_ends() -> None:
    with Collector() as collector:
        sending = exporter(collector.endpoint)
        sending.start()
        sending.close()
    until(lambda: "tracing" not in {each.name for each in threading.enumerate()}, seconds=30)
