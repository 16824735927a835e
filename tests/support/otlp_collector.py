"""A collector of spans on loopback: OTLP over gRPC, as an operator's collector speaks it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc

from tests.support.waiting import until


class Collector:
    """Keeps every span that is sent to it; a context manager."""

    def __init__(self, port: int = 0) -> None:
        self.requests: list[Any] = []
        #: while it is cleared, requests are not answered
        self.answers = threading.Event()
        self.answers.set()
        self._server: Any = grpc.server(ThreadPoolExecutor(max_workers=2))
        add: Any = trace_service_pb2_grpc.add_TraceServiceServicer_to_server
        add(self, self._server)
        self.port: int = self._server.add_insecure_port(f"127.0.0.1:{port}")

    def Export(self, request: Any, _context: Any) -> Any:  # noqa: N802 (the service's name)
        self.requests.append(request)
        self.answers.wait(20)
        return trace_service_pb2.ExportTraceServiceResponse()

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.answers.set()
        self._server.stop(0).wait()

    @property
    def endpoint(self) -> str:
        return f"127.0.0.1:{self.port}"

    def spans(self) -> list[Any]:
        return [
            span
            for request in list(self.requests)
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def wait_for(self, count: int) -> list[Any]:
        """Wait until so many spans have come."""
        until(lambda: len(self.spans()) >= count, seconds=20)
        return self.spans()
