"""Gangs per second of the engine alone: the group cycle, and the assumption of its pods.

    python -m kubesched.bench.gang_decisions NODES ROUNDS [WORKLOAD …]

Members are compiled, the group is tried, and its pods are assumed, so that the next gang sees them;
all of it is undone at the end of a round. Each result is a line of JSON, in CPU time: what else
runs on the machine does not count.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kubesched import garbage
from kubesched.api.core import Node, Pod, PodSchedulingGroup
from kubesched.api.meta import ObjectMeta
from kubesched.api.names import DEFAULT_SCHEDULER
from kubesched.api.scheduling import (
    GangPolicy,
    PodGroup,
    PodGroupSchedulingPolicy,
    PodGroupSpec,
    SchedulingConstraints,
    TopologyConstraint,
)
from kubesched.bench import decision_pods
from kubesched.bench.statistics import percentile
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_groups import GroupKey, GroupKind
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.group import GroupInfo
from kubesched.scheduler.dry_run import DryRun
from kubesched.scheduler.group_cycle import GroupCycle

RACK = "example.com/rack"
RACK_SIZE = 50
NAMESPACE = "default"


class Gangs(Struct, frozen=True):
    """A workload: how many gangs, of how many pods, and whether each goes to one rack."""

    count: int
    size: int
    in_racks: bool = False


WORKLOADS: Mapping[str, Gangs] = {
    "gangs-of-8": Gangs(count=300, size=8),
    "gangs-of-8-in-racks": Gangs(count=50, size=8, in_racks=True),
    "gang-of-1000": Gangs(count=1, size=1000),
    "gang-of-5000": Gangs(count=1, size=5000),
}


class GangPoint(Struct, frozen=True, kw_only=True, rename="camel"):
    """One workload on one cluster: the best round."""

    workload: str
    nodes: int
    gangs: int
    size: int
    #: how many got nodes
    placed: int
    gangs_per_second: float
    p50_ms: float
    p99_ms: float


def node(number: int) -> Node:
    """A node in a rack."""
    made = decision_pods.make_node(number)
    labels = {**(made.metadata.labels or {}), RACK: f"rack-{number // RACK_SIZE:04}"}
    return replace(made, metadata=replace(made.metadata, labels=labels))


def gang(number: int, work: Gangs) -> tuple[PodGroup, list[Pod]]:
    """A group and its pods, all alike."""
    name = f"gang-{number}"
    topology = SchedulingConstraints(topology=(TopologyConstraint(key=RACK),))
    group = PodGroup(
        metadata=ObjectMeta(name=name, namespace=NAMESPACE, uid=name),
        spec=PodGroupSpec(
            scheduling_policy=PodGroupSchedulingPolicy(gang=GangPolicy(min_count=work.size)),
            scheduling_constraints=topology if work.in_racks else None,
        ),
    )
    members = []
    for index in range(work.size):
        pod = decision_pods.WORKLOADS["basic"](number * work.size + index)
        spec = replace(pod.spec, scheduling_group=PodSchedulingGroup(pod_group_name=name))
        meta = replace(pod.metadata, labels={"app": name}, namespace=NAMESPACE)
        members.append(replace(pod, metadata=meta, spec=spec))
    return group, members


def decide(cluster: Cluster, work: Gangs) -> tuple[list[float], int]:
    """Schedule gangs one after the other; return the seconds of each, and how many were placed."""
    gates = FeatureGates.of({"GenericWorkload": True, "TopologyAwareWorkloadScheduling": True})
    engine = DryRun(cluster, SchedulerConfiguration.default(gates), gates, seed=1)
    framework = engine.framework_of(DEFAULT_SCHEDULER)
    cycle = GroupCycle(cluster, engine.cycle, with_placements=work.in_racks)
    gangs = [gang(number, work) for number in range(work.count)]
    seconds: list[float] = []
    placed = 0
    for group, pods in gangs:
        start = time.thread_time()
        infos = tuple(cluster.compiler.pending(pod) for pod in pods)
        key = GroupKey(GroupKind.POD_GROUP, NAMESPACE, group.metadata.name)
        info = GroupInfo(key, group, infos)
        result = cycle.run(framework, info, CycleState())[key]
        if result.status.ok:
            for each in result.assigned():
                cluster.assume(each.pod, each.node_name)
        seconds.append(time.thread_time() - start)
        placed += result.status.ok
    for _, pods in gangs:
        for pod in pods:
            cluster.forget(pod.metadata.uid)
    return seconds, placed


def measure(names: Sequence[str], *, nodes: int, rounds: int) -> Iterator[GangPoint]:
    """Measure workloads on a cluster of one size."""
    cluster = Cluster()
    for number in range(nodes):
        cluster.put_node(node(number))
    garbage.freeze()
    for name in names:
        work = WORKLOADS[name]
        runs = (decide(cluster, work) for _ in range(rounds))
        seconds, placed = min(runs, key=lambda each: sum(each[0]))
        yield GangPoint(
            workload=name,
            nodes=nodes,
            gangs=work.count,
            size=work.size,
            placed=placed,
            gangs_per_second=len(seconds) / sum(seconds),
            p50_ms=(percentile(seconds, 50) or 0.0) * 1e3,
            p99_ms=(percentile(seconds, 99) or 0.0) * 1e3,
        )


def main(arguments: Sequence[str]) -> None:
    """Measure one size, a line of JSON a workload."""
    nodes, rounds = map(int, arguments[:2])
    names = list(arguments[2:]) or list(WORKLOADS)
    for point in measure(names, nodes=nodes, rounds=rounds):
        print(msgspec.json.encode(point).decode(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
