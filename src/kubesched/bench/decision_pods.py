"""Nodes and pods for the benchmark of decisions: typed objects, ten zones, fifty applications."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from kubesched.api import names
from kubesched.api.core import (
    Affinity,
    Container,
    Node,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    NodeSpec,
    NodeStatus,
    PersistentVolumeClaimVolumeSource,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    PreferredSchedulingTerm,
    ResourceRequirements,
    Taint,
    TopologySpreadConstraint,
    Volume,
    WeightedPodAffinityTerm,
)
from kubesched.api.meta import LabelSelector, ObjectMeta
from kubesched.api.storage import (
    ANNOTATION_BIND_COMPLETED,
    ClaimReference,
    CSINode,
    CSINodeDriver,
    CSINodeSpec,
    CSIPersistentVolumeSource,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    VolumeNodeResources,
)
from kubesched.bench.objects import HOSTNAME, IMAGE, ZONE
from kubesched.cluster.storage import Storage

ZONES = 10
APPS = 50
#: pods per node in a full cluster, for preemption
FULL = 4
#: the same, of several priorities
LAYERED = 20
PRIORITIES = 10
DRIVER = "bench.csi.example"

Make = Callable[[int], Pod]


def make_node(number: int, *, cpu: str = "32", memory: str = "128Gi") -> Node:
    """A node in one of the zones."""
    name = f"node-{number}"
    return Node(
        metadata=ObjectMeta(name=name, labels={HOSTNAME: name, ZONE: f"zone-{number % ZONES}"}),
        status=NodeStatus(allocatable={"cpu": cpu, "memory": memory, "pods": "110"}),
    )


def tainted_node() -> Node:
    """The first node, with a taint that pods avoid."""
    taint = Taint(key="slow", effect=names.PREFER_NO_SCHEDULE)
    return replace(make_node(0), spec=NodeSpec(taints=(taint,)))


def make_pod(
    number: int,
    *,
    cpu: str = "100m",
    memory: str = "500Mi",
    app: str = "",
    affinity: Affinity | None = None,
    spread: TopologySpreadConstraint | None = None,
    node_name: str = "",
    priority: int = 0,
) -> Pod:
    """A pod of one of the applications."""
    requests = ResourceRequirements(requests={"cpu": cpu, "memory": memory})
    return Pod(
        metadata=ObjectMeta(
            name=f"pod-{number}",
            namespace="bench",
            uid=f"uid-{number}",
            labels={"app": app or _app_of(number, APPS)},
        ),
        spec=PodSpec(
            scheduler_name="default-scheduler",
            containers=(Container(name="c", image=IMAGE, resources=requests),),
            affinity=affinity,
            topology_spread_constraints=(spread,) if spread else (),
            node_name=node_name,
            priority=priority,
        ),
    )


def existing_pod(number: int, node_count: int) -> Pod:
    """A small pod of another application, already placed."""
    node_name = f"node-{number % node_count}"
    return make_pod(
        -1 - number, app=f"old-{number % 1000}", cpu="10m", memory="10Mi", node_name=node_name
    )


def filling_pod(number: int, node_count: int) -> Pod:
    """One of the pods that fill a node of 4 CPUs."""
    return make_pod(-1 - number, app="filling", cpu="900m", node_name=f"node-{number % node_count}")


def layered_pod(number: int, node_count: int) -> Pod:
    """One of twenty pods that fill a node of 4 CPUs, two of each priority.

    Applications are evenly spread over zones, and a node has twenty of them.
    """
    layer, node_number = divmod(number, node_count)
    return make_pod(
        -1 - number,
        app=f"app-{(node_number + 17 * layer) % APPS}",
        cpu="200m",
        node_name=f"node-{node_number}",
        priority=layer % PRIORITIES,
    )


def _app_of(number: int, apps: int) -> str:
    return f"app-{number % apps}"


def _selector_of(number: int, apps: int) -> LabelSelector:
    return LabelSelector(match_labels={"app": _app_of(number, apps)})


def basic(number: int) -> Pod:
    """All pods alike."""
    return make_pod(number, app="basic")


def own_sizes(number: int) -> Pod:
    """Every pod its own request sizes: no two share a signature."""
    return make_pod(number, cpu=f"{100 + number % 400}m", memory=f"{500 + number}Mi")


def node_affinity(number: int) -> Pod:
    """Required affinity to two of the zones."""
    zones = NodeSelectorRequirement(key=ZONE, operator="In", values=("zone-1", "zone-2"))
    selector = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=(zones,)),))
    required = NodeAffinity(required_during_scheduling_ignored_during_execution=selector)
    return make_pod(number, affinity=Affinity(node_affinity=required))


def preferred_node_affinity(number: int) -> Pod:
    """Rather on the nodes of one zone, else on those of another."""
    weighted = tuple(
        PreferredSchedulingTerm(
            weight=weight,
            preference=NodeSelectorTerm(
                match_expressions=(
                    NodeSelectorRequirement(key=ZONE, operator="In", values=(zone,)),
                )
            ),
        )
        for weight, zone in ((100, "zone-1"), (40, "zone-2"))
    )
    preferred = NodeAffinity(preferred_during_scheduling_ignored_during_execution=weighted)
    return make_pod(number, affinity=Affinity(node_affinity=preferred))


def hard_spread(number: int, apps: int = APPS) -> Pod:
    """Each application evenly over the zones."""
    return _spread(number, apps, "DoNotSchedule")


def soft_spread(number: int) -> Pod:
    """Each application rather evenly over the zones."""
    return _spread(number, APPS, "ScheduleAnyway")


def _spread(number: int, apps: int, when_unsatisfiable: str) -> Pod:
    constraint = TopologySpreadConstraint(
        max_skew=5,
        topology_key=ZONE,
        when_unsatisfiable=when_unsatisfiable,
        label_selector=_selector_of(number, apps),
    )
    return make_pod(number, app=_app_of(number, apps), spread=constraint)


def zone_affinity(number: int, apps: int = APPS) -> Pod:
    """Each application in one zone."""
    term = PodAffinityTerm(topology_key=ZONE, label_selector=_selector_of(number, apps))
    required = PodAffinity(required_during_scheduling_ignored_during_execution=(term,))
    affinity = Affinity(pod_affinity=required)
    return make_pod(number, app=_app_of(number, apps), affinity=affinity)


def host_anti_affinity(number: int, apps: int = APPS) -> Pod:
    """Each application at most once on a node."""
    term = PodAffinityTerm(topology_key=HOSTNAME, label_selector=_selector_of(number, apps))
    required = PodAffinity(required_during_scheduling_ignored_during_execution=(term,))
    affinity = Affinity(pod_anti_affinity=required)
    return make_pod(number, app=_app_of(number, apps), affinity=affinity)


def preferred_zone_affinity(number: int) -> Pod:
    """Each application rather in one zone."""
    term = PodAffinityTerm(topology_key=ZONE, label_selector=_selector_of(number, APPS))
    weighted = WeightedPodAffinityTerm(weight=100, pod_affinity_term=term)
    preferred = PodAffinity(preferred_during_scheduling_ignored_during_execution=(weighted,))
    return make_pod(number, affinity=Affinity(pod_affinity=preferred))


def unschedulable(number: int) -> Pod:
    """Pods that are unschedulable and cannot preempt; their message included."""
    return make_pod(number, cpu="64")


def preempting(number: int) -> Pod:
    """Pods that must preempt: finds victims, evicts none."""
    return make_pod(number, cpu="3", priority=10)


def _preempting(pod: Pod) -> Pod:
    """Return a pod that must preempt pods of several priorities."""
    requests = ResourceRequirements(requests={"cpu": "500m", "memory": "500Mi"})
    containers = (Container(name="c", image=IMAGE, resources=requests),)
    return replace(pod, spec=replace(pod.spec, containers=containers, priority=PRIORITIES))


def layered_preempting(number: int) -> Pod:
    """Pods that must preempt some of twenty pods."""
    return _preempting(make_pod(number))


def preempting_with_spread(number: int) -> Pod:
    """The same, evenly over the zones."""
    return _preempting(hard_spread(number))


def preempting_with_affinity(number: int) -> Pod:
    """The same, each in a zone with others of its application."""
    return _preempting(zone_affinity(number))


def preempting_with_anti_affinity(number: int) -> Pod:
    """The same, each on a node without others of its application."""
    return _preempting(host_anti_affinity(number))


def csi_volumes(number: int) -> Pod:
    """Pods each with a bound volume of a CSI driver, with a limit of 39 per node."""
    pod = make_pod(number, app="csi")
    source = PersistentVolumeClaimVolumeSource(claim_name=f"claim-{number}")
    volume = Volume(name="data", persistent_volume_claim=source)
    return replace(pod, spec=replace(pod.spec, volumes=(volume,)))


def put_volumes(storage: Storage, *, nodes: int, pods: int) -> None:
    """Add the objects for `csi_volumes`: a volume and a claim per pod, limits per node."""
    for number in range(nodes):
        limit = CSINodeDriver(name=DRIVER, allocatable=VolumeNodeResources(count=39))
        meta = ObjectMeta(name=f"node-{number}")
        storage.csi_nodes.put(CSINode(metadata=meta, spec=CSINodeSpec(drivers=(limit,))))
    for number in range(pods):
        storage.volumes.put(
            PersistentVolume(
                metadata=ObjectMeta(name=f"volume-{number}", resource_version="1"),
                spec=PersistentVolumeSpec(
                    capacity={"storage": "1Gi"},
                    csi=CSIPersistentVolumeSource(driver=DRIVER, volume_handle=f"disk-{number}"),
                    claim_ref=ClaimReference(namespace="bench", name=f"claim-{number}"),
                ),
            )
        )
        storage.claims.put(
            PersistentVolumeClaim(
                metadata=ObjectMeta(
                    name=f"claim-{number}",
                    namespace="bench",
                    resource_version="1",
                    annotations={ANNOTATION_BIND_COMPLETED: "yes"},
                ),
                spec=PersistentVolumeClaimSpec(volume_name=f"volume-{number}"),
            )
        )


WORKLOADS: Mapping[str, Make] = {
    "basic": basic,
    "own-sizes": own_sizes,
    "node-affinity": node_affinity,
    "preferred-node-affinity": preferred_node_affinity,
    "hard-spread": hard_spread,
    "soft-spread": soft_spread,
    "zone-affinity": zone_affinity,
    "tainted-zone-affinity": zone_affinity,
    "host-anti-affinity": host_anti_affinity,
    "preferred-affinity": preferred_zone_affinity,
    "csi-volumes": csi_volumes,
    "unschedulable": unschedulable,
    "preemption": preempting,
    "layered-preemption": layered_preempting,
    "preemption-hard-spread": preempting_with_spread,
    "preemption-zone-affinity": preempting_with_affinity,
    "preemption-host-anti-affinity": preempting_with_anti_affinity,
}

#: Workloads with a tainted node.
WITH_A_TAINT = frozenset({"tainted-zone-affinity"})
#: Workloads with full nodes.
ON_FULL_NODES = frozenset({"preemption"})
#: Workloads whose nodes are full of pods of several priorities.
ON_LAYERED_NODES = frozenset(
    {
        "layered-preemption",
        "preemption-hard-spread",
        "preemption-zone-affinity",
        "preemption-host-anti-affinity",
    }
)
