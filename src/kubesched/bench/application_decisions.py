"""Decisions of the engine alone where many applications have selectors of their own.

    python -m kubesched.bench.application_decisions NODES APPLICATIONS PODS ROUNDS [WORKLOAD …]

Consecutive pods belong to different applications, each of which has a pod on some node already.
With a label of its own, as StatefulSets and indexed Jobs give each pod, no two pods have the same
labels. A placed pod is assumed; all of it is undone at the end of a round. Each result is a line of
JSON, in CPU time: what else runs on the machine does not count.
"""

from __future__ import annotations

import gc
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kubesched import garbage
from kubesched.api.core import Pod
from kubesched.api.names import DEFAULT_SCHEDULER
from kubesched.bench import decision_pods
from kubesched.bench.decision_pods import Make
from kubesched.bench.statistics import percentile
from kubesched.cluster.cluster import Cluster
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.scheduler.dry_run import DryRun

OWN_LABEL = "statefulset.kubernetes.io/pod-name"
#: Distinguishes pods that exist from those that are decided.
EXISTING = 1_000_000_000

#: (number, applications) → pod
MakeOfApps = Callable[[int, int], Pod]


def with_own_label(make: MakeOfApps, number: int, apps: int) -> Pod:
    """A pod with one more label, which no other pod has."""
    pod = make(number, apps)
    labels = {**(pod.metadata.labels or {}), OWN_LABEL: pod.metadata.name}
    return replace(pod, metadata=replace(pod.metadata, labels=labels))


_SELECTORS: Mapping[str, MakeOfApps] = {
    "hard-spread": decision_pods.hard_spread,
    "zone-affinity": decision_pods.zone_affinity,
    "host-anti-affinity": decision_pods.host_anti_affinity,
}
WORKLOADS: Mapping[str, MakeOfApps] = {
    **_SELECTORS,
    **{f"{name}-own-labels": partial(with_own_label, make) for name, make in _SELECTORS.items()},
}


class ApplicationPoint(Struct, frozen=True, kw_only=True, rename="camel"):
    """One workload on one cluster: the first round, and the best of all."""

    workload: str
    nodes: int
    applications: int
    pods: int
    #: how many found a node
    decided: int
    #: of the first round, in which each application's first pod is compiled
    first_us: float
    #: of the best round
    mean_us: float
    p50_us: float
    p99_us: float
    #: what each decision of the first round adds to the resident memory, beside the pod's object
    pod_kib: float
    peak_mib: float


class TimedDecisions(Struct, frozen=True):
    """The CPU time of the decisions of one round."""

    seconds: list[float]
    decided: int
    pod_kib: float

    @property
    def mean_us(self) -> float:
        """The mean, in microseconds."""
        return sum(self.seconds) / len(self.seconds) * 1e6


def cluster_of(nodes: int, applications: int, make: Make) -> Cluster:
    """A cluster of large nodes with one pod of each application."""
    cluster = Cluster()
    for number in range(nodes):
        cluster.put_node(decision_pods.make_node(number))
    for number in range(applications):
        # A multiple of any number of applications, so that the application stays.
        pod = make(EXISTING // applications * applications + number)
        spec = replace(pod.spec, node_name=f"node-{number % nodes}")
        cluster.put_pod(replace(pod, spec=spec))
    return cluster


def decide(engine: DryRun, cluster: Cluster, make: Make, count: int) -> TimedDecisions:
    """Decide for `count` pods in sequence; a decision includes its assumption."""
    framework, cycle = engine.framework_of(DEFAULT_SCHEDULER), engine.cycle
    pods = [make(number) for number in range(count)]
    seconds: list[float] = []
    decided = 0
    before = resident_kib()
    for pod in pods:
        start = time.thread_time()
        info = cluster.compiler.pending(pod)
        decision = cycle.schedule(framework, info)
        if decision.node_name:
            cluster.assume(info, decision.node_name)
            decided += 1
        seconds.append(time.thread_time() - start)
    pod_kib = (resident_kib() - before) / count
    for pod in pods:
        cluster.forget(pod.metadata.uid)
    return TimedDecisions(seconds, decided, pod_kib)


def resident_kib() -> float:
    """The memory of this process, without garbage."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1024


def measure(
    names: Sequence[str], *, nodes: int, applications: int, pods: int, rounds: int
) -> Iterator[ApplicationPoint]:
    """Measure workloads, each on a cluster of its own, with one engine for all rounds."""
    gates = FeatureGates.of({})
    for name in names:
        make: Make = partial(_of_apps, WORKLOADS[name], applications)
        cluster = cluster_of(nodes, applications, make)
        # As the scheduler itself does after its first lists.
        garbage.freeze()
        engine = DryRun(cluster, SchedulerConfiguration.default(gates), gates, seed=1)
        made = [decide(engine, cluster, make, pods) for _ in range(rounds)]
        gc.unfreeze()
        best = min(made, key=lambda each: each.mean_us)
        yield ApplicationPoint(
            workload=name,
            nodes=nodes,
            applications=applications,
            pods=pods,
            decided=best.decided,
            first_us=made[0].mean_us,
            mean_us=best.mean_us,
            p50_us=(percentile(best.seconds, 50) or 0.0) * 1e6,
            p99_us=(percentile(best.seconds, 99) or 0.0) * 1e6,
            pod_kib=made[0].pod_kib,
            peak_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        )


def _of_apps(make: MakeOfApps, applications: int, number: int) -> Pod:
    return make(number, applications)


def main(arguments: Sequence[str]) -> None:
    """Measure one size, a line of JSON a workload."""
    nodes, applications, pods, rounds = map(int, arguments[:4])
    names = list(arguments[4:]) or list(WORKLOADS)
    for point in measure(names, nodes=nodes, applications=applications, pods=pods, rounds=rounds):
        print(msgspec.json.encode(point).decode(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
