"""The built-in workloads: scheduler_perf's families, pending pods, and gangs.

    name + nodes + pods ──> numbers (the other parameters follow) ──> operations

The families have scheduler_perf's names, operations and parameters, at the sizes with a published
threshold. At another size, parameters that depend on nodes or pods are scaled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kubesched.bench import families, gangs, pending
from kubesched.bench.families import Numbers
from kubesched.bench.operations import BenchWorkload, Operation
from kubesched.errors import UsageError

QUICK_NODES = 500
QUICK_PODS = 1000

#: CPUs of a node for pods of 100m, which most are
_PODS_A_NODE = 40


def _fill_nodes(numbers: Numbers) -> int:
    return _PODS_A_NODE * numbers["nodes"] - numbers.get("init", 0)


def _one_a_node(numbers: Numbers) -> int:
    """The number of pods that fit if no two share a node."""
    return numbers["nodes"] - numbers.get("init", 0)


def _fill_mixed(numbers: Numbers) -> int:
    return _PODS_A_NODE * numbers["nodes"] - 5 * numbers["init"]


def _beside_four(numbers: Numbers) -> int:
    """Four pods of 900m leave 400m per node, of which a tenth stays free for preemption."""
    return numbers["nodes"] * 4 * 9 // 10


def _preempting(numbers: Numbers) -> int:
    return numbers["nodes"]


def _own_sizes(numbers: Numbers) -> int:
    """Up to 500m each, and up to as many MiB as there are pods."""
    return numbers["nodes"] * min(8, 32 * 1024 // (100 + numbers["pods"]))


def _unlimited(_: Numbers) -> int:
    return 50_000


@dataclass(frozen=True, kw_only=True)
class BuiltIn:
    """A workload before its size is chosen."""

    name: str
    build: Callable[[Numbers], tuple[Operation, ...]]
    nodes: int
    pods: int
    #: parameters that scale with the nodes, or, with a single node, with the pods
    others: Mapping[str, int] = field(default_factory=dict)
    threshold: float = 0.0
    most_pods: Callable[[Numbers], int] = _fill_nodes
    #: whether the number of nodes is fixed
    nodes_are_fixed: bool = False
    feature_gates: Mapping[str, bool] = field(default_factory=dict)

    @property
    def summary(self) -> str:
        """The first line of its description."""
        return (self.build.__doc__ or "").partition("\n")[0]

    def numbers(self, nodes: int, pods: int) -> Numbers:
        """Scale the other parameters."""
        factor = pods / self.pods if self.nodes_are_fixed else nodes / self.nodes
        scaled = {name: max(1, round(number * factor)) for name, number in self.others.items()}
        return {"nodes": nodes, "pods": pods, **scaled}

    def workload(self, nodes: int | None = None, pods: int | None = None) -> BenchWorkload:
        """Build it, at the published size by default; raises UsageError if it cannot fit."""
        nodes = self.nodes if nodes is None or self.nodes_are_fixed else nodes
        numbers = self.numbers(nodes, self.pods if pods is None else pods)
        most = self.most_pods(numbers)
        if numbers["pods"] > most:
            raise UsageError(
                f"{self.name}: {numbers['pods']} pods do not fit {nodes} nodes, at most {most} do; "
                "ask for more with --nodes"
            )
        published = (nodes, numbers["pods"]) == (self.nodes, self.pods)
        return BenchWorkload(
            name=self.name,
            operations=self.build(numbers),
            threshold=self.threshold if published else 0.0,
            feature_gates=self.feature_gates,
        )

    def quick(self, nodes: int | None, pods: int | None) -> BenchWorkload:
        """Build it small enough for seconds, unless a size is given."""
        nodes = min(self.nodes, QUICK_NODES) if nodes is None else nodes
        if pods is None:
            most = self.most_pods(self.numbers(nodes, min(self.pods, QUICK_PODS)))
            pods = max(1, min(self.pods, QUICK_PODS, most))
        return self.workload(nodes, pods)


_FAMILIES = (
    BuiltIn(
        name="SchedulingBasic",
        build=families.basic,
        nodes=5000,
        pods=10_000,
        others={"init": 1000},
        threshold=270,
    ),
    BuiltIn(
        name="SchedulingNodeAffinity",
        build=families.node_affinity,
        nodes=5000,
        pods=10_000,
        others={"init": 5000},
        threshold=220,
    ),
    BuiltIn(
        name="TopologySpreading",
        build=families.topology_spreading,
        nodes=5000,
        pods=5000,
        others={"init": 5000},
        threshold=85,
    ),
    BuiltIn(
        name="PreferredTopologySpreading",
        build=families.preferred_topology_spreading,
        nodes=5000,
        pods=5000,
        others={"init": 5000},
        threshold=125,
    ),
    BuiltIn(
        name="SchedulingPodAffinity",
        build=families.pod_affinity,
        nodes=5000,
        pods=5000,
        others={"init": 5000},
        threshold=35,
    ),
    BuiltIn(
        name="SchedulingPodAntiAffinity",
        build=families.pod_anti_affinity,
        nodes=5000,
        pods=2000,
        others={"init": 1000},
        threshold=60,
        most_pods=_one_a_node,
    ),
    BuiltIn(
        name="SchedulingPodMatchingAntiAffinity",
        build=families.matching_anti_affinity,
        nodes=5000,
        pods=5000,
        others={"init": 1000},
        threshold=540,
        most_pods=lambda numbers: _PODS_A_NODE * _one_a_node(numbers),
    ),
    BuiltIn(
        name="SchedulingPreferredPodAffinity",
        build=families.preferred_pod_affinity,
        nodes=5000,
        pods=5000,
        others={"init": 5000},
        threshold=90,
    ),
    BuiltIn(
        name="SchedulingPreferredPodAntiAffinity",
        build=families.preferred_pod_anti_affinity,
        nodes=5000,
        pods=5000,
        others={"init": 5000},
        threshold=90,
    ),
    BuiltIn(
        name="SchedulingRequiredPodAntiAffinityWithNSSelector",
        build=families.required_anti_affinity_ns_selector,
        nodes=6000,
        pods=2000,
        others={"init": 4000, "init_each": 40},
        threshold=24,
        most_pods=_one_a_node,
    ),
    BuiltIn(
        name="SchedulingPreferredAntiAffinityWithNSSelector",
        build=families.preferred_anti_affinity_ns_selector,
        nodes=5000,
        pods=2000,
        others={"init": 4000, "init_each": 40},
        threshold=55,
    ),
    BuiltIn(
        name="SchedulingRequiredPodAffinityWithNSSelector",
        build=families.required_affinity_ns_selector,
        nodes=5000,
        pods=2000,
        others={"init": 5000, "init_each": 50},
        threshold=35,
    ),
    BuiltIn(
        name="SchedulingPreferredAffinityWithNSSelector",
        build=families.preferred_affinity_ns_selector,
        nodes=5000,
        pods=5000,
        others={"init": 5000, "init_each": 50},
        threshold=90,
    ),
    BuiltIn(
        name="MixedSchedulingBasePod",
        build=families.mixed_base_pod,
        nodes=5000,
        pods=5000,
        others={"init": 2000},
        threshold=140,
        most_pods=_fill_mixed,
    ),
    BuiltIn(
        name="SchedulingDaemonset",
        build=families.daemonset,
        nodes=15_000,
        pods=30_000,
        threshold=390,
        most_pods=_unlimited,
    ),
    BuiltIn(
        name="Unschedulable",
        build=families.unschedulable,
        nodes=5000,
        pods=10_000,
        others={"init": 100},
        threshold=170,
    ),
    BuiltIn(
        name="SchedulingWithMixedChurn",
        build=families.mixed_churn,
        nodes=5000,
        pods=10_000,
        threshold=265,
    ),
    BuiltIn(
        name="PreemptionAsync",
        build=families.preemption_async,
        nodes=5000,
        pods=5000,
        others={"init": 20_000},
        threshold=160,
        most_pods=_beside_four,
    ),
    BuiltIn(
        name="PreemptionBasic",
        build=families.preemption_basic,
        nodes=1000,
        pods=1000,
        others={"init": 4000},
        most_pods=_preempting,
    ),
    BuiltIn(
        name="SchedulingSecrets",
        build=families.secrets,
        nodes=5000,
        pods=10_000,
        others={"init": 1000},
        threshold=260,
    ),
    BuiltIn(
        name="SchedulingCSIPVs",
        build=families.csi_volumes,
        nodes=5000,
        pods=5000,
        others={"init": 5000},
        threshold=48,
        most_pods=lambda numbers: 39 * numbers["nodes"] - numbers["init"],
    ),
    BuiltIn(
        name="SchedulingInTreePVs",
        build=families.in_tree_volumes,
        nodes=5000,
        pods=2000,
        others={"init": 1000},
        threshold=90,
        most_pods=lambda numbers: 39 * numbers["nodes"] - numbers["init"],
    ),
    BuiltIn(
        name="SchedulingMigratedInTreePVs",
        build=families.migrated_volumes,
        nodes=5000,
        pods=5000,
        others={"init": 5000},
        threshold=35,
        most_pods=lambda numbers: 39 * numbers["nodes"] - numbers["init"],
    ),
    BuiltIn(
        name="SchedulingWithNodeInclusionPolicy",
        build=families.node_inclusion_policy,
        nodes=4000,
        pods=4000,
        others={"tainted": 1000},
        threshold=68,
    ),
    BuiltIn(
        name="SchedulingGatedPodsWithPodAffinityImpactForThroughput",
        build=families.gated_with_affinity,
        nodes=1,
        pods=20_000,
        others={"gated": 10_000},
        threshold=110,
        most_pods=_unlimited,
        nodes_are_fixed=True,
    ),
    BuiltIn(
        name="SchedulingWhileGated",
        build=families.while_gated,
        nodes=1,
        pods=20_000,
        others={"gated": 10_000, "deleting": 20_000},
        threshold=130,
        most_pods=_unlimited,
        nodes_are_fixed=True,
    ),
)

_PENDING = tuple(
    BuiltIn(name=name, build=build, nodes=5000, pods=3000, most_pods=most)
    for name, build, most in (
        ("PendingBasic", pending.basic, _fill_nodes),
        ("PendingOwnSizes", pending.own_sizes, _own_sizes),
        ("PendingNodeAffinity", pending.node_affinity, lambda n: _fill_nodes(n) // 5),
        ("PendingHardSpread", pending.hard_spread, _fill_nodes),
        ("PendingSoftSpread", pending.soft_spread, _fill_nodes),
        ("PendingZoneAffinity", pending.zone_affinity, lambda n: _fill_nodes(n) // 5),
        ("PendingHostAntiAffinity", pending.host_anti_affinity, _fill_nodes),
        ("PendingPreferredAffinity", pending.preferred_affinity, _fill_nodes),
    )
)

_SINGLE = BuiltIn(
    name="SinglePod", build=pending.single_pod, nodes=5000, pods=200, most_pods=_fill_nodes
)

_GANGS = tuple(
    BuiltIn(name=name, build=build, nodes=1000, pods=pods, feature_gates=gangs.FEATURE_GATES)
    for name, build, pods in (
        ("GangsOf8", gangs.of_8, 500 * 8),
        ("GangsOf256", gangs.of_256, 20 * 256),
    )
)

BUILT_IN: Mapping[str, BuiltIn] = {
    each.name: each for each in (*_FAMILIES, *_PENDING, _SINGLE, *_GANGS)
}

#: Groups of workloads.
GROUPS: Mapping[str, tuple[str, ...]] = {
    "all": tuple(BUILT_IN),
    "families": tuple(each.name for each in _FAMILIES),
    "pending": tuple(each.name for each in _PENDING),
    "gangs": tuple(each.name for each in _GANGS),
}


def named(names: list[str]) -> list[BuiltIn]:
    """Look up workloads and groups; raises UsageError for an unknown name."""
    lower = {name.lower(): name for name in (*BUILT_IN, *GROUPS)}
    found: dict[str, BuiltIn] = {}
    for name in names:
        known = lower.get(name.lower())
        if known is None:
            raise UsageError(f"there is no workload {name!r}; 'kubesched bench --list' shows all")
        for each in GROUPS.get(known, (known,)):
            found[each] = BUILT_IN[each]
    return list(found.values())
