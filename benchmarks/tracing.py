"""CPU of tracing: the same pods are bound with and without it, in turns.

    python benchmarks/tracing.py [--pods 2000] [--nodes 500] [--turns 6] [--rate 100000]

The API server (the embedded one) and the collector have processes of their own; what counts is the
CPU time of this process, which is the scheduler with its client, all threads included. Each turn is
a new scheduler, and the median over turns counts.

On a machine with other load the turns differ by more than tracing costs. So the work for one
attempt is measured by itself as well, where the best of many rounds counts.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from statistics import median
from types import SimpleNamespace
from typing import Any

import grpc
from msgspec.structs import replace
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc

from kubesched.app import App
from kubesched.client.access import ClusterAccess
from kubesched.clock import RealClock
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.embedded import EmbeddedCluster
from kubesched.framework.status import SUCCESS, Code
from kubesched.scheduler.engine import EngineOptions
from kubesched.tracing.configuration import TracingConfiguration
from kubesched.tracing.exporting import OtlpConnection, SpanExporter
from kubesched.tracing.spans import SpanRecord
from kubesched.tracing.tracer import AttemptTracer


class Collector:
    """Answers every request, and counts spans."""

    def __init__(self) -> None:
        self.spans = 0

    def Export(self, request: Any, _context: Any) -> Any:  # noqa: ANN401, N802 (of the service)
        self.spans += len(request.resource_spans[0].scope_spans[0].spans)
        return trace_service_pb2.ExportTraceServiceResponse()


def collect(told: Connection) -> None:
    """Run a collector until it is asked for the number of spans."""
    collector, server = Collector(), grpc.server(ThreadPoolExecutor(max_workers=1))
    add: Any = trace_service_pb2_grpc.add_TraceServiceServicer_to_server
    add(collector, server)
    told.send(server.add_insecure_port("127.0.0.1:0"))
    server.start()
    told.recv()
    told.send(collector.spans)
    server.stop(0)


def serve(told: Connection, nodes: int, pods: int) -> None:
    """Run API servers with pending pods, one for each turn."""

    async def main() -> None:
        while await asyncio.to_thread(told.recv):
            async with EmbeddedCluster(run_kubelet=False) as cluster:
                cluster.add_nodes(nodes)
                cluster.create_all([_pod(number) for number in range(pods)])
                told.send(cluster.url)
                await asyncio.to_thread(told.recv)

    asyncio.run(main())


def _pod(number: int) -> dict[str, Any]:
    requests = {"cpu": "10m", "memory": "16Mi"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"p{number}", "namespace": "default", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]},
    }


async def turn(url: str, pods: int, config: TracingConfiguration | None) -> float:
    """Bind all pods; return the CPU time per pod, in seconds."""
    bound, last = 0, asyncio.Event()

    def on_bound(*_: object) -> None:
        nonlocal bound
        bound += 1
        if bound == pods:
            last.set()

    gates = FeatureGates.of({})
    settings = SchedulerConfiguration.default(gates)
    settings = replace(settings, client_connection=replace(settings.client_connection, qps=0.0))
    started = time.process_time()
    exporter = None if config is None else SpanExporter(config)
    tracer = None
    if exporter is not None and config is not None:
        exporter.start()
        tracer = AttemptTracer(exporter.add, RealClock(), share=config.share)
    app = App(
        settings,
        gates,
        ClusterAccess.plain(url),
        tracer=tracer,
        options=EngineOptions(seed=1, on_bound=on_bound),
    )
    task = asyncio.create_task(app.run())
    await last.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    if exporter is not None:
        exporter.close()
    return (time.process_time() - started) / pods


_META: Any = SimpleNamespace(name="web-7d4b9c6f5-x2x8k", namespace="default", uid="7d4b9c6f")
_POD: Any = SimpleNamespace(attempts=1, info=SimpleNamespace(pod=SimpleNamespace(metadata=_META)))
_RESULT: Any = SimpleNamespace(
    status=SUCCESS, node_name="node-17", evaluated_nodes=500, feasible_nodes=500
)


def trace_one(tracer: AttemptTracer) -> None:
    """Tell a tracer of one attempt, as a scheduler with default plugins does."""
    tracer.deciding()
    for point in ("PreFilter", "Filter", "PreScore", "Score"):
        if tracer.is_sampled and point in ("Filter", "Score"):
            tracer.called("NodeResourcesFit", Code.SUCCESS, 1.0, 1.0001)
        if tracer.current() is not None:
            tracer.passed(point, Code.SUCCESS, 1.0, 1.0002)
    tracer.decided("default-scheduler", _POD, _RESULT)
    tracer.binding(_POD)
    request = tracer.begin_request("POST", "/api/v1/namespaces/default/pods/web/binding")
    if request is not None:
        _ = request.header
        request.end(201)
        tracer.called("DefaultBinder", Code.SUCCESS, 1.0, 1.001)
    if tracer.current() is not None:
        tracer.passed("Bind", Code.SUCCESS, 1.0, 1.001)
    tracer.bound(_POD, "node-17")


def best_us(work: Callable[[], object], *, times: int) -> float:
    """Return the CPU time of a piece of work in microseconds, in the best of many rounds."""
    found = float("inf")
    for _ in range(60):
        started = time.thread_time_ns()
        for _ in range(times):
            work()
        found = min(found, (time.thread_time_ns() - started) / times / 1000)
    return found


def show_costs(endpoint: str) -> None:
    """Print what one attempt costs by itself."""
    spans: list[SpanRecord] = []
    traced = AttemptTracer(spans.append, RealClock(), share=1.0)
    others = AttemptTracer(spans.append, RealClock(), share=1e-9)

    def trace_and_forget() -> None:
        trace_one(traced)
        spans.clear()

    loop_us = best_us(trace_and_forget, times=300)
    other_us = best_us(lambda: trace_one(others), times=300)
    trace_one(traced)
    attempts = 40
    encoder = OtlpConnection(endpoint)
    sent_us = best_us(lambda: encoder.send(spans * attempts), times=2) / attempts
    encoder.close()
    print(
        f"an attempt of {len(spans)} spans: {loop_us:.1f} µs in the loop, {sent_us:.1f} µs in the "
        f"thread; any other {other_us:.1f} µs"
    )


def main() -> None:
    """Compare, and print the ratio."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pods", type=int, default=2000)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--rate", type=int, default=100_000, help="attempts of a million")
    flags = parser.parse_args()
    spawn = multiprocessing.get_context("spawn")
    collector, collector_end = spawn.Pipe()
    server, server_end = spawn.Pipe()
    spawn.Process(target=collect, args=(collector_end,), daemon=True).start()
    serving = (server_end, flags.nodes, flags.pods)
    spawn.Process(target=serve, args=serving, daemon=True).start()
    endpoint = f"127.0.0.1:{collector.recv()}"
    traced = TracingConfiguration(endpoint=endpoint, sampling_rate_per_million=flags.rate)
    show_costs(endpoint)
    took: dict[str, list[float]] = {"off": [], "traced": []}
    for number in range(flags.turns + 1):
        for name, config in (("off", None), ("traced", traced)):
            server.send(True)
            cpu_s = asyncio.run(turn(server.recv(), flags.pods, config))
            server.send(True)
            if number:  # the first turn imports and warms up
                took[name].append(cpu_s)
    server.send(False)
    collector.send(True)
    for name, each in took.items():
        shown = " ".join(f"{cpu_s * 1e6:.0f}" for cpu_s in each)
        print(f"{name:8} {median(each) * 1e6:6.1f} µs CPU a pod (median of {shown})")
    ratios = [one / other for one, other in zip(took["traced"], took["off"], strict=True)]
    print(f"traced/off {median(ratios):.3f} (turns: {' '.join(f'{each:.3f}' for each in ratios)})")
    print(f"{collector.recv()} spans collected")


if __name__ == "__main__":
    main()
