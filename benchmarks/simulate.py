"""How long simulations take on a large cluster.

    python benchmarks/simulate.py [NODES [PODS]]

By default 5,000 nodes in three zones and 50,000 pods: headroom of a plain pod and of one with a
hard spread constraint, the loss of each node and of each zone in turn, and a day of 20,000 arrivals
in virtual time. Wall time and CPU time of this process, without loading the cluster. Targets:
headroom in under a second, the loss of each of 5,000 nodes in under a minute.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from kubesched.api.core import (
    Container,
    Node,
    NodeStatus,
    Pod,
    PodSpec,
    ResourceRequirements,
    TopologySpreadConstraint,
)
from kubesched.api.meta import LabelSelector, ObjectMeta
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.simulate import displacing
from kubesched.simulate.headroom import headroom
from kubesched.simulate.playing import Conditions, play
from kubesched.simulate.running import summary
from kubesched.simulate.timed_events import Arrival
from kubesched.snapshot.contents import Snapshot
from kubesched.snapshot.world import World

T = TypeVar("T")

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
ZONES = ("a", "b", "c")
APPS = 500
ARRIVALS = 20_000
DAY_S = 86_400.0


def make_node(number: int) -> Node:
    name = f"node-{number}"
    labels = {HOSTNAME: name, ZONE: ZONES[number % len(ZONES)]}
    return Node(
        metadata=ObjectMeta(name=name, uid=name, labels=labels),
        status=NodeStatus(allocatable={"cpu": "16", "memory": "64Gi", "pods": "110"}),
    )


def make_pod(number: int, *, node_name: str = "", spread: bool = False) -> Pod:
    app = f"app-{number % APPS}"
    constraint = TopologySpreadConstraint(
        max_skew=1,
        topology_key=ZONE,
        when_unsatisfiable="DoNotSchedule",
        label_selector=LabelSelector(match_labels={"app": app}),
    )
    # One of five applications is spread over zones, by a hard constraint.
    spread = spread or number % APPS % 5 == 0
    requests = ResourceRequirements(requests={"cpu": "1", "memory": "2Gi"})
    return Pod(
        metadata=ObjectMeta(
            name=f"pod-{number}", namespace="bench", uid=f"uid-{number}", labels={"app": app}
        ),
        spec=PodSpec(
            scheduler_name="default-scheduler",
            node_name=node_name,
            containers=(Container(name="c", resources=requests),),
            topology_spread_constraints=(constraint,) if spread else (),
        ),
    )


def make_snapshot(nodes: int, pods: int) -> Snapshot:
    snapshot = Snapshot(source="benchmark")
    for number in range(nodes):
        snapshot.add("Node", make_node(number))
    for number in range(pods):
        # An application's pods in all zones, its neighbours' elsewhere.
        row = (number + number // APPS) % nodes
        snapshot.add("Pod", make_pod(number, node_name=f"node-{row}"))
    return snapshot


def timed(what: str, act: Callable[[], T]) -> T:
    wall, cpu = time.perf_counter(), time.process_time()
    found = act()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"{what:52} {wall:8.2f} s wall {cpu:8.2f} s CPU", flush=True)
    return found


def main(nodes: int, pods: int) -> None:
    gates = FeatureGates.of({})
    config = SchedulerConfiguration.default(gates)
    snapshot = make_snapshot(nodes, pods)
    world = timed(
        f"load {nodes} nodes, {pods} pods", lambda: World.of_snapshot(snapshot, config, gates)
    )
    gc.collect()
    gc.freeze()
    plain, spread = make_pod(1), make_pod(2, spread=True)
    for name, pod in (("a pod", plain), ("a pod with a hard spread constraint", spread)):
        found = timed(f"headroom for {name}", partial(headroom, world, pod, limit=10**9))
        print(f"  {found.pods} more on {found.nodes} nodes")
    losses = timed(
        f"loss of each of {nodes} nodes in turn",
        lambda: displacing.lose_each(world, displacing.by_node(world)),
    )
    print(f"  {losses.harmless} without a pod left behind")
    losses = timed(
        "loss of each of 3 zones in turn",
        lambda: displacing.lose_each(world, displacing.by_zone(world)),
    )
    print(f"  {losses.harmless} without a pod left behind")
    arrivals = [
        Arrival(
            number * DAY_S / ARRIVALS,
            replace(
                make_pod(pods + number),
                metadata=replace(make_pod(pods + number).metadata, name=f"new-{number}"),
            ),
            lifetime_s=4 * 3600.0,
        )
        for number in range(ARRIVALS)
    ]
    conditions = Conditions(snapshot=snapshot, config=config, gates=gates, until_s=DAY_S)
    said = timed(f"a day with {ARRIVALS} arrivals", lambda: summary(play(conditions, arrivals)))
    print(f"  {said.placed} placed, {said.ended} ended, {said.pending} pending")


if __name__ == "__main__":
    sizes = [int(each) for each in sys.argv[1:]]
    main(sizes[0] if sizes else 5_000, sizes[1] if len(sizes) > 1 else 50_000)
