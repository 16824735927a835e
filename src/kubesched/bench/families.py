"""scheduler_perf's families: what each one creates, in which order, with which numbers."""

from __future__ import annotations

from collections.abc import Mapping

from kubesched.bench import objects
from kubesched.bench.objects import HOSTNAME, ZONE, same
from kubesched.bench.operations import (
    AllocateOnNodes,
    Barrier,
    Churn,
    CreateNamespaces,
    CreateNodes,
    CreatePods,
    DeletePods,
    JsonObject,
    LabelNodes,
    Operation,
    Template,
)

#: ``nodes``, ``pods`` (the measured ones) and other parameters of a family.
Numbers = Mapping[str, int]
Operations = tuple[Operation, ...]

_BOTH = ["sched-1", "sched-0"]
_TEAM = {"team": "devops"}
_ONE_ZONE = LabelNodes(key=ZONE, values=("zone1",))
_THREE_ZONES = LabelNodes(key=ZONE, values=("moon-1", "moon-2", "moon-3"))
_NAMED_NODE = "scheduler-perf-node"


def _nodes(numbers: Numbers, preparation: LabelNodes | None = None) -> CreateNodes:
    return CreateNodes(count=numbers["nodes"], template=objects.base_node, preparation=preparation)


def _measured(numbers: Numbers, template: Template, *, namespace: str = "") -> CreatePods:
    return CreatePods(
        count=numbers["pods"], template=template, namespace=namespace, collect_metrics=True
    )


def _init(numbers: Numbers, template: Template, *, namespace: str = "") -> CreatePods:
    return CreatePods(count=numbers["init"], template=template, namespace=namespace)


def _two_namespaces(
    numbers: Numbers, template: Template, preparation: LabelNodes | None = None
) -> Operations:
    return (
        _nodes(numbers, preparation),
        CreateNamespaces(prefix="sched", count=2),
        _init(numbers, template, namespace="sched-0"),
        _measured(numbers, template, namespace="sched-1"),
    )


def _affine(
    color: str, *, topology: str = HOSTNAME, anti: bool = False, preferred: bool = False
) -> Template:
    labels = {"color": color}
    affinity = objects.pod_affinity(
        labels, topology=topology, namespaces=_BOTH, anti=anti, preferred=preferred
    )
    return same(objects.pod(labels=labels, affinity=affinity))


_AFFINE = _affine("blue", topology=ZONE)
_ANTI_AFFINE = _affine("green", anti=True)
_PREFERRED_AFFINE = _affine("red", preferred=True)
_PREFERRED_ANTI_AFFINE = _affine("yellow", preferred=True, anti=True)


def basic(numbers: Numbers) -> Operations:
    """Pods all alike."""
    return (
        _nodes(numbers),
        _init(numbers, objects.base_pod),
        _measured(numbers, objects.base_pod),
    )


def node_affinity(numbers: Numbers) -> Operations:
    """Required affinity to nodes of two zones, one of which exists."""
    affinity = objects.node_affinity(key=ZONE, values=["zone1", "zone2"])
    template = same(objects.pod("node-affinity-", affinity=affinity))
    return (_nodes(numbers, _ONE_ZONE), _init(numbers, template), _measured(numbers, template))


def topology_spreading(numbers: Numbers) -> Operations:
    """A hard spread over three zones."""
    return _spreading(numbers, hard=True)


def preferred_topology_spreading(numbers: Numbers) -> Operations:
    """A soft spread over three zones."""
    return _spreading(numbers, hard=False)


def _spreading(numbers: Numbers, *, hard: bool) -> Operations:
    labels = {"color": "blue"}
    constraint = objects.spread(labels, hard=hard)
    template = objects.pod("spreading-", labels=labels, topologySpreadConstraints=[constraint])
    return (
        _nodes(numbers, _THREE_ZONES),
        _init(numbers, objects.base_pod),
        _measured(numbers, same(template)),
    )


def node_inclusion_policy(numbers: Numbers) -> Operations:
    """A hard spread over nodes that leaves tainted ones out of the count."""
    labels = {"foo": "bar"}
    constraint = {
        **objects.spread(labels, topology=HOSTNAME, hard=True, max_skew=1),
        "nodeAffinityPolicy": "Honor",
        "nodeTaintsPolicy": "Honor",
    }
    taint = {"key": "foo", "effect": "NoSchedule"}
    tainted = same(objects.node(prefix="taint-node-", taints=[taint]))
    pods = objects.pod("spreading-", labels=labels, topologySpreadConstraints=[constraint])
    return (
        _nodes(numbers),
        CreateNodes(count=numbers["tainted"], template=tainted),
        _measured(numbers, same(pods)),
    )


def pod_affinity(numbers: Numbers) -> Operations:
    """Required affinity to each other within a zone, over two namespaces."""
    return _two_namespaces(numbers, _AFFINE, _ONE_ZONE)


def pod_anti_affinity(numbers: Numbers) -> Operations:
    """No two on a node, over two namespaces."""
    return _two_namespaces(numbers, _ANTI_AFFINE)


def matching_anti_affinity(numbers: Numbers) -> Operations:
    """Pods that match the anti-affinity of existing pods."""
    return (
        _nodes(numbers),
        CreateNamespaces(prefix="sched", count=2),
        _init(numbers, _ANTI_AFFINE, namespace="sched-0"),
        _measured(numbers, same(objects.pod(labels={"color": "green"})), namespace="sched-1"),
    )


def preferred_pod_affinity(numbers: Numbers) -> Operations:
    """Rather together on a node, over two namespaces."""
    return _two_namespaces(numbers, _PREFERRED_AFFINE)


def preferred_pod_anti_affinity(numbers: Numbers) -> Operations:
    """Rather not together on a node, over two namespaces."""
    return _two_namespaces(numbers, _PREFERRED_ANTI_AFFINE)


def required_anti_affinity_ns_selector(numbers: Numbers) -> Operations:
    """No two on a node, over all namespaces of a team."""
    return _by_team(numbers, "green", topology=HOSTNAME, anti=True)


def preferred_anti_affinity_ns_selector(numbers: Numbers) -> Operations:
    """Rather not together on a node, over all namespaces of a team."""
    return _by_team(numbers, "green", topology=HOSTNAME, anti=True, preferred=True)


def required_affinity_ns_selector(numbers: Numbers) -> Operations:
    """Together in a zone, over all namespaces of a team."""
    return _by_team(numbers, "blue", topology=ZONE)


def preferred_affinity_ns_selector(numbers: Numbers) -> Operations:
    """Rather together on a node, over all namespaces of a team."""
    return _by_team(numbers, "red", topology=HOSTNAME, preferred=True)


def _by_team(
    numbers: Numbers, color: str, *, topology: str, anti: bool = False, preferred: bool = False
) -> Operations:
    labels = {"color": color}
    affinity = objects.pod_affinity(
        labels, topology=topology, namespace_labels=_TEAM, anti=anti, preferred=preferred
    )
    template = same(objects.pod(labels=labels, affinity=affinity))
    namespace = same(objects.namespace(_TEAM))
    each = numbers["init_each"]
    count = max(1, numbers["init"] // each)
    return (
        _nodes(numbers, _ONE_ZONE if topology == ZONE else None),
        CreateNamespaces(prefix="init-ns", count=count, template=namespace),
        CreateNamespaces(prefix="measure-ns", count=1, template=namespace),
        *(
            CreatePods(count=each, template=template, namespace=f"init-ns-{number}")
            for number in range(count)
        ),
        _measured(numbers, template, namespace="measure-ns-0"),
    )


def mixed_base_pod(numbers: Numbers) -> Operations:
    """Plain pods among pods with every kind of affinity."""
    return (
        _nodes(numbers, _ONE_ZONE),
        CreateNamespaces(prefix="sched", count=1),
        *(
            _init(numbers, template, namespace="sched-0")
            for template in (
                objects.base_pod,
                _AFFINE,
                _ANTI_AFFINE,
                _PREFERRED_AFFINE,
                _PREFERRED_ANTI_AFFINE,
            )
        ),
        _measured(numbers, objects.base_pod),
    )


def daemonset(numbers: Numbers) -> Operations:
    """Pods that name their node, among many nodes."""
    affinity = objects.node_affinity(key="metadata.name", values=[_NAMED_NODE], fields=True)
    pods = objects.pod("daemonset-", cpu="", affinity=affinity)
    return (_large_node(), _nodes(numbers), _measured(numbers, same(pods)))


def _large_node() -> CreateNodes:
    return CreateNodes(count=1, template=same(objects.node(name=_NAMED_NODE, pods="90000")))


def unschedulable(numbers: Numbers) -> Operations:
    """Plain pods, while five unschedulable pods per second arrive."""
    return (
        _nodes(numbers),
        _init(numbers, objects.base_pod),
        Churn(mode="create", templates=(_TOO_LARGE,), interval_s=0.2),
        _measured(numbers, objects.base_pod),
    )


_TOO_LARGE = same(objects.pod("pod-h-", cpu="9", priority=10))
_HIGH_PRIORITY = same(objects.pod("pod-high-priority-", cpu="3", priority=10))
_LOW_PRIORITY = same(objects.pod(cpu="900m", terminationGracePeriodSeconds=0))


def mixed_churn(numbers: Numbers) -> Operations:
    """Plain pods, while a node, a service and an unschedulable pod come and go."""
    churning = objects.node(prefix="node-churn-", pods="0")
    return (
        _nodes(numbers),
        Churn(
            mode="recreate",
            number=1,
            templates=(same(churning), _TOO_LARGE, same(objects.service("service-churn-"))),
            interval_s=1.0,
        ),
        _measured(numbers, objects.base_pod),
    )


def preemption_async(numbers: Numbers) -> Operations:
    """Plain pods, while five preempting pods per second arrive."""
    return (
        _nodes(numbers),
        _init(numbers, _LOW_PRIORITY),
        Churn(mode="create", templates=(_HIGH_PRIORITY,), interval_s=0.2),
        _measured(numbers, objects.base_pod),
    )


def preemption_basic(numbers: Numbers) -> Operations:
    """Pods that all must preempt."""
    return (
        _nodes(numbers),
        _init(numbers, _LOW_PRIORITY),
        _measured(numbers, _HIGH_PRIORITY),
    )


def secrets(numbers: Numbers) -> Operations:
    """Pods with a volume of a secret."""
    volume = {"name": "secret", "secret": {"secretName": "secret"}}
    template = same(objects.pod("secret-volume-", volumes=[volume]))
    return (_nodes(numbers), _init(numbers, template), _measured(numbers, template))


def csi_volumes(numbers: Numbers) -> Operations:
    """Pods each with a bound volume of a CSI driver."""
    nodes = CreateNodes(
        count=numbers["nodes"],
        template=objects.base_node,
        preparation=AllocateOnNodes(
            allocatable={objects.EBS_LIMIT: "39"},
            csi_drivers={objects.EBS_DRIVER: {"count": 39}},
        ),
    )
    return (nodes, *_with_volumes(numbers, {"csi": {"driver": objects.EBS_DRIVER}}))


def migrated_volumes(numbers: Numbers) -> Operations:
    """Pods each with a bound volume of an in-tree kind that is migrated to CSI."""
    nodes = CreateNodes(
        count=numbers["nodes"],
        template=objects.base_node,
        preparation=AllocateOnNodes(
            allocatable={objects.EBS_LIMIT: "39"},
            csi_drivers={objects.EBS_DRIVER: {"count": 39}},
            migrated_plugins=("kubernetes.io/aws-ebs",),
        ),
    )
    return (nodes, *_with_volumes(numbers, _IN_TREE))


def in_tree_volumes(numbers: Numbers) -> Operations:
    """Pods each with a bound volume of an in-tree kind."""
    return (_nodes(numbers), *_with_volumes(numbers, _IN_TREE))


_IN_TREE = {"awsElasticBlockStore": {"volumeID": "<volume-id>"}}


def _with_volumes(numbers: Numbers, source: JsonObject) -> Operations:
    volume, claim = same(objects.volume(source)), same(objects.claim())
    return tuple(
        CreatePods(
            count=numbers[which],
            template=objects.base_pod,
            volume=volume,
            claim=claim,
            collect_metrics=which == "pods",
        )
        for which in ("init", "pods")
    )


def while_gated(numbers: Numbers) -> Operations:
    """Plain pods, while many are gated and others are deleted."""
    light = same(objects.pod("light-pod-", cpu="", terminationGracePeriodSeconds=0))
    gated = objects.pod("gated-pod-", cpu="", schedulingGates=[{"name": "test.k8s.io/hold"}])
    return (
        _large_node(),
        CreatePods(count=numbers["gated"], template=same(gated), skip_wait=True),
        Barrier(stage="Attempted"),
        CreatePods(count=numbers["deleting"], template=light),
        DeletePods(namespace="namespace-3", per_second=50, skip_wait=True),
        _measured(numbers, light),
    )


def gated_with_affinity(numbers: Numbers) -> Operations:
    """Plain pods, while many gated pods have affinity to them."""
    labels = {"app": "scheduler-perf"}
    gated = objects.pod(
        cpu="",
        labels=labels,
        affinity=objects.pod_affinity(labels, topology=HOSTNAME),
        schedulingGates=[{"name": "scheduling-gate-1"}],
    )
    return (
        _large_node(),
        CreatePods(count=numbers["gated"], template=same(gated), skip_wait=True),
        Barrier(stage="Attempted"),
        _measured(numbers, same(objects.pod(cpu="", labels=labels))),
    )
