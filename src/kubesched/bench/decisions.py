"""Decisions per second of the engine alone: no HTTP, no API server, one process.

    python -m kubesched.bench.decisions NODES EXISTING PODS ROUNDS [WORKLOAD …]

    cluster of nodes and pods ──> pod after pod: compile, filter, score, assume ──> seconds each

One cluster size per process, so that peak memory belongs to that size; each result is a line of
JSON. A placed pod is assumed, and a preemptor is nominated, so that the next decision sees it; both
are undone at the end of a round.
"""

from __future__ import annotations

import gc
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
from msgspec import Struct

from kubesched import garbage
from kubesched.api.core import Pod
from kubesched.api.names import DEFAULT_SCHEDULER
from kubesched.bench import decision_devices, decision_pods
from kubesched.bench.decision_pods import (
    FULL,
    LAYERED,
    ON_FULL_NODES,
    ON_LAYERED_NODES,
    WITH_A_TAINT,
    Make,
)
from kubesched.bench.statistics import percentile
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import PodInfo
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.framework.cycle_state import CycleState
from kubesched.scheduler.dry_run import DryRun

#: Workloads whose pods claim devices.
WITH_DEVICES: Mapping[str, Make] = {
    "one-device": decision_devices.one_device,
    "four-devices": decision_devices.four_devices,
    "device-part": decision_devices.device_part,
}
WORKLOADS: Mapping[str, Make] = {**decision_pods.WORKLOADS, **WITH_DEVICES}


class Point(Struct, frozen=True, kw_only=True, rename="camel"):
    """One workload on one cluster: the best round."""

    workload: str
    nodes: int
    existing: int
    pods: int
    #: how many found a node, or victims
    decided: int
    per_second: float
    p50_us: float
    p99_us: float
    #: time to build the cluster from its objects
    build_s: float
    peak_mib: float


def roomy_cluster(node_count: int, existing: int) -> Cluster:
    """A cluster of large nodes with some small pods of other applications."""
    cluster = Cluster()
    for number in range(node_count):
        cluster.put_node(decision_pods.make_node(number))
    for number in range(existing):
        cluster.put_pod(decision_pods.existing_pod(number, node_count))
    return cluster


def full_cluster(node_count: int, _existing: int) -> Cluster:
    """A cluster of full nodes, all of whose pods may be preempted."""
    return _filled(node_count, FULL * node_count, decision_pods.filling_pod)


def layered_cluster(node_count: int, _existing: int) -> Cluster:
    """A cluster of nodes full of pods of several priorities."""
    return _filled(node_count, LAYERED * node_count, decision_pods.layered_pod)


def _filled(node_count: int, pod_count: int, make: Callable[[int, int], Pod]) -> Cluster:
    cluster = Cluster()
    for number in range(node_count):
        cluster.put_node(decision_pods.make_node(number, cpu="4", memory="32Gi"))
    for number in range(pod_count):
        cluster.put_pod(make(number, node_count))
    return cluster


class Round(Struct, frozen=True):
    """The durations of one round."""

    seconds: list[float]
    decided: int


def decide(cluster: Cluster, make: Make, count: int) -> Round:
    """Decide for `count` pods in sequence; a decision includes its assumption."""
    gates = FeatureGates.of({})
    engine = DryRun(cluster, SchedulerConfiguration.default(gates), gates, seed=1)
    framework, cycle = engine.framework_of(DEFAULT_SCHEDULER), engine.cycle
    pods = [make(number) for number in range(count)]
    seconds: list[float] = []
    placed: list[Pod] = []
    reserved: list[tuple[CycleState, PodInfo, str]] = []
    decided = 0
    for pod in pods:
        start = time.perf_counter()
        info = cluster.compiler.pending(pod)
        decision = cycle.schedule(framework, info)
        if decision.node_name:
            cluster.assume(info, decision.node_name)
            placed.append(pod)
            if pod.spec.resource_claims:
                reserved.append((decision.state, info, decision.node_name))
                framework.reserve(*reserved[-1])
        elif decision.nominated_node:
            cluster.nominator.nominate(info, decision.nominated_node)
        seconds.append(time.perf_counter() - start)
        decided += bool(decision.node_name or decision.nominated_node)
    for each in reserved:
        framework.unreserve(*each)
    for pod in placed:
        cluster.forget(pod.metadata.uid)
    for pod in pods:
        cluster.nominator.clear(pod.metadata.uid)
    return Round(seconds, decided)


def measure(
    names: Sequence[str], *, nodes: int, existing: int, pods: int, rounds: int
) -> Iterator[Point]:
    """Measure workloads on a cluster of one size."""
    clusters: dict[Callable[[int, int], Cluster], list[str]] = {}
    for name in names:
        clusters.setdefault(_cluster_of(name), []).append(name)
    for build, chosen in clusters.items():
        yield from _on(build, chosen, nodes=nodes, existing=existing, pods=pods, rounds=rounds)
        gc.unfreeze()


def _cluster_of(name: str) -> Callable[[int, int], Cluster]:
    """Return what builds the cluster of a workload."""
    if name in ON_LAYERED_NODES:
        return layered_cluster
    return full_cluster if name in ON_FULL_NODES else roomy_cluster


def _on(
    build: Callable[[int, int], Cluster],
    names: Sequence[str],
    *,
    nodes: int,
    existing: int,
    pods: int,
    rounds: int,
) -> Iterator[Point]:
    started = time.perf_counter()
    cluster = build(nodes, existing)
    if "csi-volumes" in names:
        decision_pods.put_volumes(cluster.storage, nodes=nodes, pods=pods)
    if WITH_DEVICES.keys() & set(names):
        decision_devices.put_devices(cluster.devices, nodes=nodes, pods=pods)
    build_s = time.perf_counter() - started
    # As the scheduler itself does after its first lists.
    garbage.freeze()
    for name in names:
        # Not in a transaction, which would note how to undo each of the decisions.
        if name in WITH_A_TAINT:
            cluster.put_node(decision_pods.tainted_node())
        best = min(
            (decide(cluster, WORKLOADS[name], pods) for _ in range(rounds)),
            key=lambda each: sum(each.seconds),
        )
        if name in WITH_A_TAINT:
            cluster.remove_node(decision_pods.tainted_node().metadata.name)
        yield Point(
            workload=name,
            nodes=nodes,
            existing=cluster.pod_count,
            pods=pods,
            decided=best.decided,
            per_second=len(best.seconds) / sum(best.seconds),
            p50_us=(percentile(best.seconds, 50) or 0.0) * 1e6,
            p99_us=(percentile(best.seconds, 99) or 0.0) * 1e6,
            build_s=build_s,
            peak_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        )


def main(arguments: Sequence[str]) -> None:
    """Measure one size, a line of JSON a workload."""
    nodes, existing, pods, rounds = map(int, arguments[:4])
    names = list(arguments[4:]) or list(WORKLOADS)
    for point in measure(names, nodes=nodes, existing=existing, pods=pods, rounds=rounds):
        print(msgspec.json.encode(point).decode(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
