"""How the pods of each workload are spread over zones and nodes.

A workload is the owner of pods, or their app label. DaemonSets, and workloads of a single pod, do
not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from kubesched.api.core import Pod
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.node_order import zone_of
from kubesched.simulate.report import Spread, SpreadChange, WorkloadSpread
from kubesched.snapshot.world import is_bound_to_its_node

TEMPLATE_HASH = "pod-template-hash"
APP_LABELS = ("app.kubernetes.io/name", "app", "k8s-app")


def spread_of(cluster: Cluster, pods: Iterable[Pod]) -> dict[str, WorkloadSpread]:
    """Return how pods that have a node are spread, by workload."""
    zones = {
        name: "/".join(filter(None, zone_of(cluster.table.node_at(row))))
        for name in cluster.table.names()
        if (row := cluster.table.row_of(name)) is not None
    }
    on_nodes: dict[str, Counter[str]] = {}
    for pod in pods:
        workload = workload_of(pod)
        if workload and pod.spec.node_name in zones:
            on_nodes.setdefault(workload, Counter())[pod.spec.node_name] += 1
    every_zone = set(zones.values()) - {""}
    return {
        workload: _measured(counts, zones, every_zone)
        for workload, counts in sorted(on_nodes.items())
        if counts.total() > 1
    }


def _measured(
    counts: Counter[str], zones: Mapping[str, str], every_zone: set[str]
) -> WorkloadSpread:
    in_zones: Counter[str] = Counter(dict.fromkeys(every_zone, 0))
    for node_name, count in counts.items():
        if zones[node_name]:
            in_zones[zones[node_name]] += count
    by_zone = in_zones.values()
    return WorkloadSpread(
        pods=counts.total(),
        zones=sum(count > 0 for count in by_zone),
        zone_skew=max(by_zone, default=0) - min(by_zone, default=0),
        nodes=len(counts),
        most_on_a_node=max(counts.values()),
    )


def summed(spreads: Mapping[str, WorkloadSpread]) -> Spread:
    """Return the spread of all workloads in a few numbers."""
    each = spreads.values()
    skews = [one.zone_skew for one in each]
    return Spread(
        workloads=len(spreads),
        in_one_zone=sum(one.zones == 1 for one in each),
        on_one_node=sum(one.nodes == 1 for one in each),
        mean_zone_skew=round(sum(skews) / len(skews), 2) if skews else 0.0,
        highest_zone_skew=max(skews, default=0),
    )


def changes(
    before: Mapping[str, WorkloadSpread], after: Mapping[str, WorkloadSpread]
) -> tuple[SpreadChange, ...]:
    """Return the workloads that are spread differently, the largest changes first."""
    nothing = WorkloadSpread()
    found = [
        SpreadChange(name, before.get(name, nothing), after.get(name, nothing))
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    ]
    return tuple(sorted(found, key=lambda each: -_how_much(each)))


def _how_much(change: SpreadChange) -> int:
    before, after = change.before, change.after
    return abs(after.zone_skew - before.zone_skew) + abs(after.nodes - before.nodes)


def workload_of(pod: Pod) -> str:
    """Return the workload of a pod, "" if unknown or irrelevant."""
    if is_bound_to_its_node(pod):
        return ""
    meta = pod.metadata
    labels = meta.labels or {}
    owner = owner_of(pod)
    if owner is not None:
        return f"{meta.namespace}/{owner[1]}"
    app = next((labels[label] for label in APP_LABELS if labels.get(label)), "")
    return f"{meta.namespace}/{app}" if app else ""


def owner_of(pod: Pod) -> tuple[str, str] | None:
    """Return kind and name of what made a pod; all ReplicaSets of a Deployment are that one."""
    meta = pod.metadata
    if not meta.owner_references:
        return None
    owner = meta.owner_references[0]
    name = owner.name.removesuffix(f"-{(meta.labels or {}).get(TEMPLATE_HASH, '-')}")
    return ("Deployment" if name != owner.name else owner.kind), name
