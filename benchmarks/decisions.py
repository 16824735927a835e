"""Decisions per second of the engine alone: no HTTP, no API server, one process.

Each workload places pods one after the other on a cluster of a given size; a placed pod is assumed,
so that the next decision sees it, and taken off again at the end. Run with ``make bench``.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable, Iterator

from kubesched.api.core import (
    Affinity,
    Container,
    Node,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    NodeStatus,
    Pod,
    PodSpec,
    ResourceRequirements,
)
from kubesched.api.meta import ObjectMeta
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import PodInfo
from kubesched.config.defaults import default_profile
from kubesched.config.features import FeatureGates
from kubesched.framework.building import build_framework
from kubesched.plugins.in_tree import IN_TREE
from kubesched.scheduler.cycle import SchedulingCycle

ZONES = 10


class NoBinder:
    """Decisions only."""

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        raise NotImplementedError


def make_node(number: int) -> Node:
    return Node(
        metadata=ObjectMeta(
            name=f"node-{number}",
            labels={
                "kubernetes.io/hostname": f"node-{number}",
                "topology.kubernetes.io/zone": f"zone-{number % ZONES}",
            },
        ),
        status=NodeStatus(allocatable={"cpu": "32", "memory": "128Gi", "pods": "110"}),
    )


def make_pod(number: int, *, cpu: str, memory: str, affinity: Affinity | None = None) -> Pod:
    requests = ResourceRequirements(requests={"cpu": cpu, "memory": memory})
    return Pod(
        metadata=ObjectMeta(name=f"pod-{number}", namespace="bench", uid=f"uid-{number}"),
        spec=PodSpec(
            scheduler_name="default-scheduler",
            containers=(Container(name="c", image="pause", resources=requests),),
            affinity=affinity,
        ),
    )


def basic(number: int) -> Pod:
    """All pods alike."""
    return make_pod(number, cpu="100m", memory="500Mi")


def own_sizes(number: int) -> Pod:
    """Every pod its own request sizes: no two share a shape."""
    return make_pod(number, cpu=f"{100 + number % 400}m", memory=f"{500 + number}Mi")


def node_affinity(number: int) -> Pod:
    """Required affinity to two of the zones."""
    zones = NodeSelectorRequirement(
        key="topology.kubernetes.io/zone", operator="In", values=("zone-1", "zone-2")
    )
    selector = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=(zones,)),))
    required = NodeAffinity(required_during_scheduling_ignored_during_execution=selector)
    return make_pod(number, cpu="100m", memory="500Mi", affinity=Affinity(node_affinity=required))


def unschedulable(number: int) -> Pod:
    """Pods that fit nowhere, message included."""
    return make_pod(number, cpu="64", memory="500Mi")


WORKLOADS: dict[str, Callable[[int], Pod]] = {
    "basic": basic,
    "own sizes": own_sizes,
    "node affinity": node_affinity,
    "unschedulable": unschedulable,
}


def measure(cluster: Cluster, make: Callable[[int], Pod], count: int) -> Iterator[float]:
    """Yield the seconds that each decision took, its assumption included."""
    gates = FeatureGates.of({})
    framework = build_framework(
        default_profile(gates), registry=IN_TREE, gates=gates, cluster=cluster, binder=NoBinder()
    )
    cycle = SchedulingCycle(cluster, seed=1)
    pods = [make(number) for number in range(count)]
    for pod in pods:
        start = time.perf_counter()
        info = cluster.compiler.pending(pod)
        decision = cycle.schedule(framework, info)
        if decision.node_name:
            cluster.assume(info, decision.node_name)
        yield time.perf_counter() - start
    for pod in pods:
        cluster.forget(pod.metadata.uid)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=[1000, 5000])
    parser.add_argument("--pods", type=int, default=3000)
    arguments = parser.parse_args()
    print(f"{'workload':<16}{'nodes':>8}{'pods/s':>10}{'p50 µs':>9}{'p99 µs':>9}")
    for node_count in arguments.nodes:
        cluster = Cluster()
        for number in range(node_count):
            cluster.put_node(make_node(number))
        for name, make in WORKLOADS.items():
            times = sorted(measure(cluster, make, arguments.pods))
            p50, p99 = times[len(times) // 2] * 1e6, times[len(times) * 99 // 100] * 1e6
            rate = len(times) / sum(times)
            print(f"{name:<16}{node_count:>8}{rate:>10.0f}{p50:>9.0f}{p99:>9.0f}", flush=True)
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory {peak_mb:.0f} MB")


if __name__ == "__main__":
    main()
