"""Cost of plugins at 5,000 nodes: decisions per second of the engine with and without them.

    python -m examples.cost [NODES [PODS [ROUNDS]]]

One process, one cluster: in each round every profile decides for the same pods, and is compared
with the profile without plugins of the same round. CPU time is measured, since other programs may
run. Bindings are not included, so a plugin's share of a real scheduler's work is smaller.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Sequence
from statistics import median

from examples.cheapest_node.plugin import CheapestNode
from examples.pack_gpus.plugin import PackGpus
from examples.quiet_after_restart.plugin import QuietAfterRestart
from examples.quiet_racks.plugin import QuietRacks
from examples.yardstick import Arrays
from kubesched.framework.node_by_node import (
    CachedNodeScore,
    NodeScore,
    NodeView,
    NodeWithPods,
    PodView,
    SignatureView,
)
from kubesched.framework.plugin import Plugin
from kubesched.framework.runtime import Framework
from kubesched.scheduler.cycle import SchedulingCycle
from kubesched.testing import Workbench
from kubesched.testing.objects import make_pod

GPU = "nvidia.com/gpu"


class Cached(CachedNodeScore):
    """One node at a time, and depends on pods; scores are cached."""

    name = "Cached"

    def score_node(self, pod: SignatureView, node: NodeView) -> int:
        """Return the same for all nodes."""
        return 50 if node.free("cpu") >= pod.requested("cpu") else 0


class Uncached(NodeScore):
    """One node at a time, in every cycle."""

    name = "Uncached"

    def score_node(self, pod: PodView, node: NodeWithPods) -> int:
        """Return the same for all nodes."""
        return 50 if node.zone != pod.name else 0


#: Kinds of plugins, and how many times fewer pods are enough to measure the slow ones.
PROFILES: dict[str, tuple[type[Plugin] | None, int]] = {
    "no plugin": (None, 1),
    "no plugin, again": (None, 1),
    "Arrays: cached, arrays": (Arrays, 1),
    "PackGpus: the same, other decisions": (PackGpus, 1),
    "CheapestNode: cached, reads NODE": (CheapestNode, 1),
    "Cached: cached, reads PODS": (Cached, 1),
    "QuietRacks: arrays in every cycle": (QuietRacks, 1),
    "Uncached: score in every cycle": (Uncached, 15),
    "QuietAfterRestart: filter in every cycle": (QuietAfterRestart, 15),
}


def framework_with(base: Workbench, plugin: type[Plugin] | None) -> Framework:
    """Return the default profile with a plugin, on the cluster of a workbench."""
    bench = Workbench()
    bench.cluster = base.cluster
    if plugin is not None:
        bench.use(plugin)
    return bench.framework


def decisions_per_second(base: Workbench, framework: Framework, count: int) -> float:
    """Decide for pods, each seeing those before it; then take them off again."""
    cluster, cycle = base.cluster, SchedulingCycle(base.cluster, seed=1)
    pods = [make_pod(f"p{i}", cpu="100m", memory="64Mi", resources={GPU: 1}) for i in range(count)]
    started = time.process_time()
    for pod in pods:
        info = cluster.compiler.pending(pod)
        decision = cycle.schedule(framework, info)
        cluster.assume(info, decision.node_name)
    seconds = time.process_time() - started
    for pod in pods:
        cluster.forget(pod.metadata.uid)
    return count / seconds


def main(arguments: Sequence[str]) -> None:
    """Measure, and print a table."""
    nodes, pods, rounds = (
        int(each) for each in (*arguments, *("5000", "1500", "9")[len(arguments) :])
    )
    base = Workbench()
    base.nodes(nodes, cpu=64, memory="256Gi", resources={GPU: 8}, zones=3)
    frameworks = {name: framework_with(base, plugin) for name, (plugin, _) in PROFILES.items()}
    gc.collect()
    gc.freeze()
    found: dict[str, list[float]] = {name: [] for name in PROFILES}
    for _ in range(rounds):
        for name, (_, fewer) in PROFILES.items():
            rate = decisions_per_second(base, frameworks[name], pods // fewer)
            found[name].append(rate)
    alone = found["no plugin"]
    print(f"{nodes} nodes, {pods} pods, {rounds} rounds\n")
    print(f"{'plugin':42} {'decisions/s':>11} {'more':>10} {'cost':>7}")
    for name, rates in found.items():
        more_us = median(1e6 / rate - 1e6 / base for rate, base in zip(rates, alone, strict=True))
        cost = median(1 - rate / base for rate, base in zip(rates, alone, strict=True))
        print(f"{name:42} {median(rates):11.0f} {more_us:7.1f} µs {cost:7.1%}")


if __name__ == "__main__":
    main(sys.argv[1:])
