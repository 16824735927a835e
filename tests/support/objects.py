"""Small builders of API objects: node("n1", cpu="4", zone="a"), pod("p1", cpu="100m", node="n1").

Everything they return is a frozen API struct. A pod's uid is its name unless said otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from kubesched.api import names
from kubesched.api.core import (
    Affinity,
    Container,
    ContainerImage,
    ContainerPort,
    ContainerStatus,
    ImageVolumeSource,
    Node,
    NodeAffinity,
    NodeCondition,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    NodeSpec,
    NodeStatus,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSchedulingGate,
    PodSpec,
    PodStatus,
    PreferredSchedulingTerm,
    ResourceList,
    ResourceRequirements,
    Taint,
    Toleration,
    TopologySpreadConstraint,
    Volume,
    WeightedPodAffinityTerm,
)
from kubesched.api.meta import LabelSelector, ObjectMeta
from kubesched.api.policy import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
)

MI = 1 << 20
GI = 1 << 30


# --- nodes ------------------------------------------------------------------------------------


def node(
    name: str = "n1",
    *,
    cpu: str = "4",
    memory: str = "8Gi",
    pods: int = 110,
    resources: ResourceList | None = None,
    zone: str | None = None,
    region: str | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    taints: Iterable[Taint | str] = (),
    unschedulable: bool = False,
    images: Mapping[str, int] | None = None,
    features: Sequence[str] = (),
    conditions: Mapping[str, str] | None = None,
) -> Node:
    """Make a node; `resources` adds to, or replaces, what it offers."""
    all_labels = dict(labels or {})
    if zone is not None:
        all_labels[names.LABEL_ZONE] = zone
    if region is not None:
        all_labels[names.LABEL_REGION] = region
    allocatable = {"cpu": cpu, "memory": memory, "pods": str(pods), **(resources or {})}
    return Node(
        metadata=ObjectMeta(
            name=name,
            uid=name,
            labels=all_labels or None,
            annotations=dict(annotations) if annotations else None,
        ),
        spec=NodeSpec(
            unschedulable=unschedulable,
            taints=tuple(taint(each) if isinstance(each, str) else each for each in taints),
        ),
        status=NodeStatus(
            allocatable=allocatable,
            images=tuple(
                ContainerImage(names=(image,), size_bytes=size)
                for image, size in (images or {}).items()
            ),
            declared_features=tuple(features),
            conditions=tuple(
                NodeCondition(type=kind, status=status)
                for kind, status in (conditions or {}).items()
            ),
        ),
    )


def taint(text: str) -> Taint:
    """Read ``key=value:Effect``, ``key:Effect``."""
    rest, _, effect = text.rpartition(":")
    key, _, value = rest.partition("=")
    return Taint(key=key, value=value, effect=effect)


# --- pods -------------------------------------------------------------------------------------


def pod(
    name: str = "p1",
    *,
    namespace: str = "default",
    uid: str | None = None,
    node: str = "",
    cpu: str | None = None,
    memory: str | None = None,
    requests: ResourceList | None = None,
    image: str = "",
    ports: Iterable[ContainerPort | int] = (),
    containers: Sequence[Container] | None = None,
    init_containers: Sequence[Container] = (),
    pod_level: ResourceList | None = None,
    overhead: ResourceList | None = None,
    image_volumes: Sequence[str] = (),
    labels: Mapping[str, str] | None = None,
    priority: int | None = None,
    tolerations: Sequence[Toleration] = (),
    node_selector: dict[str, str] | None = None,
    node_affinity: NodeAffinity | None = None,
    near: PodAffinity | None = None,
    away_from: PodAffinity | None = None,
    spread: Sequence[TopologySpreadConstraint] = (),
    gates: Sequence[str] = (),
    host_network: bool = False,
    host_users: bool | None = None,
    nominated: str = "",
    resized_to: ResourceList | None = None,
) -> Pod:
    """Make a pod with one container, unless `containers` says otherwise.

    `near` is its pod affinity, `away_from` its anti-affinity. `resized_to` is what the kubelet
    reports that the first container has been given.
    """
    if containers is None:
        containers = [
            container("main", cpu=cpu, memory=memory, requests=requests, image=image, ports=ports)
        ]
    affinity = Affinity(node_affinity=node_affinity, pod_affinity=near, pod_anti_affinity=away_from)
    statuses: tuple[ContainerStatus, ...] = ()
    if resized_to is not None:
        actual = ResourceRequirements(requests=resized_to)
        statuses = (ContainerStatus(name=containers[0].name, resources=actual),)
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=name if uid is None else uid,
            labels=dict(labels) if labels else None,
        ),
        spec=PodSpec(
            scheduler_name=names.DEFAULT_SCHEDULER,
            node_name=node,
            priority=priority,
            scheduling_gates=tuple(PodSchedulingGate(name=gate) for gate in gates),
            node_selector=node_selector,
            affinity=affinity if affinity != Affinity() else None,
            topology_spread_constraints=tuple(spread),
            tolerations=tuple(tolerations),
            containers=tuple(containers),
            init_containers=tuple(init_containers),
            resources=ResourceRequirements(requests=pod_level) if pod_level else None,
            overhead=overhead,
            volumes=tuple(
                Volume(name=f"v{number}", image=ImageVolumeSource(reference=reference))
                for number, reference in enumerate(image_volumes)
            ),
            host_network=host_network,
            host_users=host_users,
        ),
        status=PodStatus(nominated_node_name=nominated, container_statuses=statuses),
    )


def container(
    name: str = "main",
    *,
    cpu: str | None = None,
    memory: str | None = None,
    requests: ResourceList | None = None,
    image: str = "",
    ports: Iterable[ContainerPort | int] = (),
    sidecar: bool = False,
) -> Container:
    """Make a container; a port that is a number is a TCP host port on all addresses."""
    wanted: ResourceList = dict(requests or {})
    if cpu is not None:
        wanted["cpu"] = cpu
    if memory is not None:
        wanted["memory"] = memory
    return Container(
        name=name,
        image=image,
        resources=ResourceRequirements(requests=wanted) if wanted else None,
        ports=tuple(host_port(each) if isinstance(each, int) else each for each in ports),
        restart_policy="Always" if sidecar else None,
    )


def host_port(port: int, *, protocol: str = "", address: str = "") -> ContainerPort:
    """Make a port that a container takes on its node."""
    return ContainerPort(container_port=port, host_port=port, host_ip=address, protocol=protocol)


def on_node(unbound: Pod, node_name: str) -> Pod:
    """Return the pod as it looks once it is bound."""
    return msgspec.structs.replace(
        unbound, spec=msgspec.structs.replace(unbound.spec, node_name=node_name)
    )


# --- node affinity ----------------------------------------------------------------------------


def requirement(key: str, operator: str, *values: str) -> NodeSelectorRequirement:
    """Make a condition on a label or field."""
    return NodeSelectorRequirement(key=key, operator=operator, values=values)


def term(
    *expressions: NodeSelectorRequirement, fields: Sequence[NodeSelectorRequirement] = ()
) -> NodeSelectorTerm:
    """Make a term of a node selector."""
    return NodeSelectorTerm(match_expressions=expressions, match_fields=tuple(fields))


def named(*node_names: str, operator: str = "In") -> NodeSelectorTerm:
    """Make a term that is about the node's name."""
    return term(fields=[requirement(names.FIELD_NODE_NAME, operator, *node_names)])


def requires(*terms: NodeSelectorTerm) -> NodeAffinity:
    """Make a required node affinity: at least one of the terms must hold."""
    return NodeAffinity(
        required_during_scheduling_ignored_during_execution=NodeSelector(node_selector_terms=terms)
    )


def prefers(*weighted: tuple[int, NodeSelectorTerm]) -> NodeAffinity:
    """Make a preferred node affinity."""
    return NodeAffinity(
        preferred_during_scheduling_ignored_during_execution=tuple(
            PreferredSchedulingTerm(weight=weight, preference=each) for weight, each in weighted
        )
    )


# --- other pods -------------------------------------------------------------------------------


def pod_term(topology_key: str, **match_labels: str) -> PodAffinityTerm:
    """Make a term about pods with these labels, in the same domain of a topology."""
    return PodAffinityTerm(
        topology_key=topology_key, label_selector=LabelSelector(match_labels=match_labels)
    )


def must(*terms: PodAffinityTerm) -> PodAffinity:
    """Make a required pod affinity or anti-affinity."""
    return PodAffinity(required_during_scheduling_ignored_during_execution=terms)


def should(*weighted: tuple[int, PodAffinityTerm]) -> PodAffinity:
    """Make a preferred pod affinity or anti-affinity."""
    return PodAffinity(
        preferred_during_scheduling_ignored_during_execution=tuple(
            WeightedPodAffinityTerm(weight=weight, pod_affinity_term=each)
            for weight, each in weighted
        )
    )


def spread_over(
    topology_key: str, *, max_skew: int = 1, soft: bool = False, **match_labels: str
) -> TopologySpreadConstraint:
    """Make a constraint on how evenly pods with these labels are spread."""
    return TopologySpreadConstraint(
        max_skew=max_skew,
        topology_key=topology_key,
        when_unsatisfiable="ScheduleAnyway" if soft else "DoNotSchedule",
        label_selector=LabelSelector(match_labels=match_labels),
    )


# --- disruption budgets -----------------------------------------------------------------------


def budget(
    name: str = "b",
    *,
    allowed: int,
    match: Mapping[str, str] | None = None,
    selector: LabelSelector | None = None,
    namespace: str = "default",
    disrupted: Sequence[str] = (),
) -> PodDisruptionBudget:
    """Make a disruption budget; `match` are labels that its selector asks for."""
    if match is not None:
        selector = LabelSelector(match_labels=dict(match))
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=name, namespace=namespace),
        spec=PodDisruptionBudgetSpec(selector=selector),
        status=PodDisruptionBudgetStatus(
            disruptions_allowed=allowed, disrupted_pods=dict.fromkeys(disrupted)
        ),
    )
