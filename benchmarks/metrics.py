"""Cost of metrics: recording one pod's scheduling, and rendering a scrape.

    python benchmarks/metrics.py [--pods 100000] [--profiles 1] [--nodes 5000]

All records of one scheduled pod must stay far below the time of its scheduling cycle; a scrape must
not block the event loop. The same records and series are also measured with ``prometheus_client``,
for comparison.

The framework's own records are also measured in place: the same pods are placed on the same cluster
with and without an observer. The best of a few rounds counts for each pod, so that other load
matters little.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Iterator
from statistics import fmean

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector
from rich.console import Console
from rich.table import Table

from kubesched.api.core import Container, Pod, PodSpec, ResourceRequirements
from kubesched.api.meta import ObjectMeta
from kubesched.bench.decision_pods import WORKLOADS
from kubesched.bench.decisions import roomy_cluster
from kubesched.cluster.cluster import Cluster
from kubesched.config.defaults import default_profile
from kubesched.config.features import FeatureGates
from kubesched.framework.building import build_framework
from kubesched.framework.observing import Observer
from kubesched.framework.runtime import Framework
from kubesched.metrics.pod_resources import render_pod_resources
from kubesched.metrics.recorder import Metrics
from kubesched.plugins.in_tree import IN_TREE
from kubesched.scheduler.cycle import SchedulingCycle

BEST_OF = 5
PLACED = 400
PLUGINS = 12
EXTENSION_POINTS = (
    *("PreEnqueue", "PreFilter", "Filter", "PreScore", "Score"),
    *("Reserve", "Permit", "PreBind", "Bind", "PostBind"),
)
EVENTS = ("UnscheduledPodAdd", "NodeAdd", "AssignedPodDelete")


def record_with_ours(metrics: Metrics, profile: str) -> Callable[[], None]:
    """Return a function that records one scheduled pod, with all series looked up beforehand."""
    attempts = metrics.schedule_attempts.labels("scheduled", profile)
    attempt = metrics.scheduling_attempt_duration.labels("scheduled", profile).observe
    algorithm = metrics.scheduling_algorithm_duration.observe
    sli = metrics.pod_scheduling_sli_duration.labels("1").observe
    tries = metrics.pod_scheduling_attempts.observe
    points = [
        metrics.framework_extension_point_duration.labels(point, "Success", profile).observe
        for point in EXTENSION_POINTS
    ]
    evaluations = [
        metrics.plugin_evaluation.labels(f"Plugin{number}", "Filter", profile)
        for number in range(PLUGINS)
    ]
    incoming = [metrics.queue_incoming_pods.labels("active", event) for event in EVENTS]
    length = [0, 0]
    metrics.pending_pods.labels("active").set_function(lambda: length[0])
    metrics.pending_pods.labels("backoff").set_function(lambda: length[1])

    def record() -> None:
        attempts.value += 1
        attempt(0.0042)
        algorithm(0.00021)
        sli(0.0057)
        tries(1)
        for observe in points:
            observe(0.000031)
        for evaluation in evaluations:
            evaluation.value += 1
        for counter in incoming:
            counter.value += 1

    return record


def populate(metrics: Metrics, profiles: int) -> None:
    """Create the series that a scheduler has after a day: about as many as kube-scheduler's."""
    for number in range(profiles):
        profile = f"profile-{number}"
        record_with_ours(metrics, profile)()
        for result in ("unschedulable", "error"):
            metrics.schedule_attempts.labels(result, profile).inc()
            metrics.scheduling_attempt_duration.labels(result, profile).observe(0.002)
    for plugin in range(PLUGINS + 8):
        for point in EXTENSION_POINTS[1:6]:
            metrics.plugin_execution_duration.labels(f"Plugin{plugin}", point, "Success").observe(0)
        for event in EVENTS:
            metrics.queueing_hint_execution_duration.labels(
                f"Plugin{plugin}", event, "Queue"
            ).observe(0.0001)
    for verb in ("GET", "POST", "PATCH", "PUT"):
        metrics.rest_client_request_duration.labels(verb, "10.0.0.1:6443").observe(0.01)
        metrics.rest_client_requests.labels("200", verb, "10.0.0.1:6443").inc()


class Parsed(Collector):
    """The same series, as ``prometheus_client`` knows them."""

    def __init__(self, text: str) -> None:
        self._families = list(text_string_to_metric_families(text))

    def collect(self) -> Iterator[Metric]:
        yield from self._families


def pods(count: int) -> list[Pod]:
    resources = ResourceRequirements(
        requests={"cpu": "100m", "memory": "128Mi"}, limits={"cpu": "1", "memory": "1Gi"}
    )
    spec = PodSpec(
        scheduler_name="default-scheduler",
        node_name="node-1",
        priority=0,
        containers=(Container(name="c", resources=resources),),
    )
    return [
        Pod(metadata=ObjectMeta(name=f"pod-{number}", namespace="default"), spec=spec)
        for number in range(count)
    ]


def best(work: Callable[[], object], repetitions: int = 1) -> float:
    """Return the seconds of one repetition in the best of a few runs."""
    times = []
    for _ in range(BEST_OF):
        start = time.perf_counter()
        for _ in range(repetitions):
            work()
        times.append(time.perf_counter() - start)
    return min(times) / repetitions


def longest_piece(many: list[Pod]) -> float:
    """Return the seconds that the slowest chunk of /metrics/resources blocks the event loop."""
    slowest = 0.0
    pieces = render_pod_resources(many)
    while True:
        start = time.perf_counter()
        if next(pieces, None) is None:
            return slowest
        slowest = max(slowest, time.perf_counter() - start)


def framework_on(cluster: Cluster, observer: Observer | None) -> Framework:
    gates = FeatureGates.of()
    return build_framework(
        default_profile(gates),
        registry=IN_TREE,
        gates=gates,
        cluster=cluster,
        observer=observer,
    )


def place(cluster: Cluster, framework: Framework, count: int = PLACED) -> list[float]:
    """Place pods; return the seconds of each from the queue's gate to PostBind."""
    cycle = SchedulingCycle(cluster, seed=1)
    wanted = [WORKLOADS["basic"](number) for number in range(count)]
    seconds = []
    for pod in wanted:
        start = time.perf_counter()
        info = cluster.compiler.pending(pod)
        framework.gate(info)
        decision = cycle.schedule(framework, info)
        state, node = decision.state, decision.node_name
        cluster.assume(info, node)
        framework.reserve(state, info, node)
        framework.permit(state, info, node)
        framework.pre_bind_pre_flight(state, info, node)
        framework.without_pre_bind.zeros += 1
        framework.post_bind(state, info, node)
        seconds.append(time.perf_counter() - start)
    for pod in wanted:
        cluster.forget(pod.metadata.uid)
    return seconds


def observed_and_not(nodes: int) -> tuple[float, float]:
    """Return the seconds of a cycle with an observer, and without."""
    cluster = roomy_cluster(nodes, nodes)
    gc.collect()
    gc.freeze()
    metrics = Metrics(FeatureGates.of())
    rounds: tuple[list[list[float]], list[list[float]]] = ([], [])
    for _ in range(BEST_OF):
        observer = Observer(metrics, "default-scheduler", timer=time.monotonic)
        rounds[0].append(place(cluster, framework_on(cluster, observer)))
        rounds[1].append(place(cluster, framework_on(cluster, None)))
    observed, alone = (fmean(map(min, zip(*each, strict=True))) for each in rounds)
    return observed, alone


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=100_000)
    parser.add_argument("--profiles", type=int, default=1)
    parser.add_argument("--nodes", type=int, default=5_000)
    arguments = parser.parse_args()

    metrics = Metrics(FeatureGates.of())
    table = Table("what", "takes")
    record = record_with_ours(metrics, "default-scheduler")
    table.add_row("all records of one pod", f"{best(record, 20_000) * 1e6:.2f} µs")
    observed, alone = observed_and_not(arguments.nodes)
    share = (observed - alone) / alone
    table.add_row(
        f"a cycle on {arguments.nodes} nodes, without and with observer",
        f"{alone * 1e6:.1f} µs, {observed * 1e6:.1f} µs (+{share:.1%})",
    )
    populate(metrics, arguments.profiles)
    text = metrics.render().decode()
    lines = text.count("\n")
    table.add_row(f"/metrics, {lines} lines", f"{best(metrics.render, 10) * 1e3:.2f} ms")
    registry = CollectorRegistry()
    registry.register(Parsed(text))
    theirs = best(lambda: generate_latest(registry))
    table.add_row("… the same by prometheus_client", f"{theirs * 1e3:.2f} ms")
    many = pods(arguments.pods)
    whole = best(lambda: list(render_pod_resources(many)))
    table.add_row(f"/metrics/resources, {arguments.pods} pods", f"{whole:.2f} s")
    table.add_row("… its longest piece", f"{longest_piece(many) * 1e3:.2f} ms")
    Console().print(table)


if __name__ == "__main__":
    main()
