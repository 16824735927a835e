"""Sends spans to a collector, with OTLP over gRPC, from a thread of its own.

The loop appends to a list, whose length is limited. A collector that is down or slow costs spans,
never memory or time of the loop: a batch that cannot be sent is dropped. The log has one line when
that begins, and one when spans are sent again.

OpenTelemetry's SDK is not used: it takes 26 µs of CPU for a span, from its creation to the encoded
message; the protocol's messages alone take a fifth.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from kubesched import KUBERNETES_VERSION, __version__, logs
from kubesched.errors import ConfigError
from kubesched.tracing.configuration import DEFAULT_ENDPOINT, TracingConfiguration
from kubesched.tracing.spans import SpanRecord

_log = logs.get_logger(__name__)

SERVICE_NAME: Final = "kube-scheduler"
#: Limit of spans that wait to be sent.
MOST_WAITING: Final = 8192
#: Spans that are sent at once, and seconds after which fewer are sent.
BATCH: Final = 512
PERIOD_S: Final = 5.0
_SEND_TIMEOUT_S: Final = 10.0
_ERROR_STATUS: Final = 2


class SpanExporter:
    """Sends spans in batches until it is closed."""

    def __init__(self, config: TracingConfiguration, *, period_s: float = PERIOD_S) -> None:
        """Raise ConfigError if the packages of the extra ``tracing`` are missing."""
        self._endpoint = config.endpoint or DEFAULT_ENDPOINT
        self._period_s = period_s
        self._otlp = OtlpConnection(self._endpoint)
        self._waiting: list[SpanRecord] = []
        #: spans that were not sent
        self.dropped = 0
        self._fails = False
        self._wake = threading.Event()
        self._is_closing = False
        self._thread = threading.Thread(target=self._run, name="tracing", daemon=True)

    def start(self) -> None:
        """Start to send."""
        self._thread.start()

    def add(self, span: SpanRecord) -> None:
        """Queue a span, or drop it if too many wait."""
        waiting = self._waiting
        if len(waiting) >= MOST_WAITING:
            self.dropped += 1
            return
        waiting.append(span)
        if len(waiting) == BATCH:
            self._wake.set()

    def close(self, timeout_s: float = 2.0) -> None:
        """Send what waits, for a limited time."""
        self._is_closing = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout_s)
        self._otlp.close()

    def _run(self) -> None:
        while not self._is_closing:
            self._wake.wait(self._period_s)
            self._wake.clear()
            self._send()
        self._send()

    def _send(self) -> None:
        # The loop appends to one list or the other: no span is lost in between.
        spans, self._waiting = self._waiting, []
        for start in range(0, len(spans), BATCH):
            batch = spans[start : start + BATCH]
            try:
                self._otlp.send(batch)
            except self._otlp.failures as failed:
                self.dropped += len(batch)
                self._failed(failed)
            else:
                self._sent()

    def _failed(self, why: Exception) -> None:
        if not self._fails:
            self._fails = True
            told = getattr(why, "details", lambda: str(why))()
            _log.warning(
                "Spans cannot be sent and are dropped until they can",
                endpoint=self._endpoint,
                err=told,
            )

    def _sent(self) -> None:
        if self._fails:
            self._fails = False
            _log.info("Spans are sent again", endpoint=self._endpoint, dropped=self.dropped)


class OtlpConnection:
    """The messages and the connection, from packages that are imported only here."""

    def __init__(self, endpoint: str) -> None:
        # The page forks, and its children never use this connection.
        os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")
        try:
            import grpc  # noqa: PLC0415 (of the extra)
            from opentelemetry.proto.collector.trace.v1 import (  # noqa: PLC0415
                trace_service_pb2,
                trace_service_pb2_grpc,
            )
            from opentelemetry.proto.common.v1 import common_pb2  # noqa: PLC0415
            from opentelemetry.proto.trace.v1 import trace_pb2  # noqa: PLC0415
        except ImportError as missing:
            raise ConfigError(
                f"--tracing-config-file needs packages that are not installed ({missing.name}): "
                f"pip install 'kubesched[tracing]'"
            ) from None
        #: what a request may fail with; ValueError once the channel is closed
        self.failures: tuple[type[Exception], ...] = (grpc.RpcError, ValueError)
        # Modules of generated code, of which only a part is typed.
        self._service: Any = trace_service_pb2
        self._common: Any = common_pb2
        self._trace: Any = trace_pb2
        self._channel: Any = grpc.insecure_channel(endpoint)
        stub: Any = trace_service_pb2_grpc.TraceServiceStub
        self._export: Any = stub(self._channel).Export
        attributes = {
            "service.name": SERVICE_NAME,
            "service.version": __version__,
            "service.instance.id": f"{socket.gethostname()}-{os.getpid()}",
            "k8s.version": KUBERNETES_VERSION,
        }
        # Most attributes repeat; making one takes as long as a span does.
        self._known_attribute = lru_cache(maxsize=4096)(self._attribute)
        self._resource = [self._attribute(key, value) for key, value in attributes.items()]

    def send(self, spans: list[SpanRecord]) -> None:
        """Send spans; raises one of `failures`."""
        request = self._service.ExportTraceServiceRequest()
        group = request.resource_spans.add()
        group.resource.attributes.extend(self._resource)
        scope = group.scope_spans.add()
        scope.scope.name, scope.scope.version = "kubesched", __version__
        scope.spans.extend(self._encoded(spans))
        self._export(request, timeout=_SEND_TIMEOUT_S)

    def _encoded(self, spans: list[SpanRecord]) -> Iterator[Any]:
        make, status, attribute = self._trace.Span, self._trace.Status, self._known_attribute
        for each in spans:
            yield make(
                name=each.name,
                trace_id=each.trace_id,
                span_id=each.span_id,
                parent_span_id=each.parent_id,
                start_time_unix_nano=each.start_ns,
                end_time_unix_nano=each.end_ns,
                kind=each.kind,
                flags=1,
                attributes=[attribute(key, value) for key, value in each.attributes],
                status=status(code=_ERROR_STATUS, message=each.error) if each.error else None,
            )

    def _attribute(self, key: str, value: str | int) -> Any:  # noqa: ANN401 (protobuf is untyped)
        common = self._common
        if isinstance(value, int):
            return common.KeyValue(key=key, value=common.AnyValue(int_value=value))
        return common.KeyValue(key=key, value=common.AnyValue(string_value=value))

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()
