"""Small builders of API objects, and a laboratory to schedule them in.

    node("n1", cpu="4", zone="a"), pod("p1", cpu="100m", node="n1") ──> Lab ──> feasible nodes,
                                                                            messages, scores

Everything they return is a frozen API struct. A pod's uid is its name unless said otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

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
from kubesched.cluster.arrays import IndexArray
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.object_store import HasMeta, ObjectStore
from kubesched.cluster.pod_info import PodInfo, RequestRules
from kubesched.config.args import PluginArgs
from kubesched.config.defaults import complete_profile
from kubesched.config.features import FeatureGates
from kubesched.config.profiles import PluginConfig, PluginRef, Plugins, PluginSet, Profile
from kubesched.framework.building import build_framework
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.plugin import Filter, Plugin, RowFilter, RowScore
from kubesched.framework.runtime import Framework
from kubesched.framework.scoring import PluginScores
from kubesched.framework.stand_ins import NoEvictor
from kubesched.framework.status import Status
from kubesched.kinds import KINDS
from kubesched.plugins.in_tree import IN_TREE
from tests.support.evaluating import feasible_rows, total_scores

MI = 1 << 20
GI = 1 << 30

DEFAULT_GATES = FeatureGates.of()


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


# --- cluster and framework --------------------------------------------------------------------


class RecordingBinder:
    """A binder that only remembers what it was asked to bind."""

    def __init__(self) -> None:
        self.bound: list[tuple[str, str]] = []
        #: what to raise instead of binding
        self.failure: Exception | None = None

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        if self.failure is not None:
            raise self.failure
        self.bound.append((pod.full_name, node_name))


class RecordingEvictor(NoEvictor):
    """An evictor that only remembers whom it was asked to evict."""

    def __init__(self) -> None:
        #: preemptor, node, victims
        self.evicted: list[tuple[str, str, list[str]]] = []
        #: uids of pods for which evictions are still under way
        self.under_way: set[str] = set()

    def evict(self, preemptor: PodInfo, node_name: str, victims: Sequence[PodInfo]) -> None:
        self.evicted.append((preemptor.uid, node_name, [victim.uid for victim in victims]))

    def preemptors(self) -> set[str]:
        return self.under_way


def cluster_of(*objects: Node | Pod, rules: RequestRules | None = None) -> Cluster:
    """Make a cluster of nodes, and of pods that name their node."""
    cluster = Cluster(rules)
    for each in objects:
        if isinstance(each, Node):
            cluster.put_node(each)
        else:
            cluster.put_pod(each)
    return cluster


def framework_of(
    cluster: Cluster,
    *,
    plugins: Sequence[type[Plugin]] = (),
    only: Sequence[str] | None = None,
    args: Mapping[str, PluginArgs] | None = None,
    gates: FeatureGates = DEFAULT_GATES,
    binder: RecordingBinder | None = None,
    evictor: RecordingEvictor | None = None,
) -> Framework:
    """Make the default profile's framework, with more `plugins` at all points they implement.

    `only` replaces the default plugins by the named ones and those without which there is no
    profile.
    """
    added = tuple(PluginRef(name=each.name) for each in plugins)
    chosen = PluginSet(enabled=added)
    if only is not None:
        needed = ("PrioritySort", *only, "DefaultBinder")
        kept = tuple(PluginRef(name=name) for name in dict.fromkeys(needed))
        chosen = PluginSet(enabled=(*kept, *added), disabled=(PluginRef(name="*"),))
    profile = complete_profile(
        Profile(scheduler_name=names.DEFAULT_SCHEDULER, plugins=Plugins(multi_point=chosen)),
        given_args=tuple(PluginConfig(name=name, args=each) for name, each in (args or {}).items()),
        gates=gates,
    )
    return build_framework(
        profile,
        registry=IN_TREE.with_plugins(plugins),
        gates=gates,
        cluster=cluster,
        binder=binder or RecordingBinder(),
        evictor=evictor or RecordingEvictor(),
    )


def store_of(cluster: Cluster, obj: HasMeta) -> ObjectStore[Any, Any]:
    """Return where a cluster keeps objects like this one."""
    store = KINDS[type(obj).__name__].store
    assert store is not None
    return store(cluster)


class Lab:
    """A cluster and a framework, and questions to them by node name."""

    def __init__(
        self,
        *objects: Node | Pod,
        plugins: Sequence[type[Plugin]] = (),
        only: Sequence[str] | None = None,
        args: Mapping[str, PluginArgs] | None = None,
        gates: FeatureGates = DEFAULT_GATES,
    ) -> None:
        self.cluster = cluster_of(*objects, rules=RequestRules.of(gates))
        self.binder = RecordingBinder()
        self.evictor = RecordingEvictor()
        self.framework = framework_of(
            self.cluster,
            plugins=plugins,
            only=only,
            args=args,
            gates=gates,
            binder=self.binder,
            evictor=self.evictor,
        )

    def pending(self, unbound: Pod) -> PodInfo:
        """Compile a pod that wants a node."""
        return self.cluster.compiler.pending(unbound)

    def names(self, rows: IndexArray) -> list[str]:
        """Return the names of the nodes at rows."""
        return [self.cluster.table.name_at(row) for row in rows.tolist()]

    def find(self, unbound: Pod, state: CycleState | None = None) -> list[str] | Diagnosis:
        """Return the names of feasible nodes, in order, or the diagnosis."""
        found = feasible_rows(
            self.framework.evaluator, state or CycleState(), self.pending(unbound)
        )
        return found if isinstance(found, Diagnosis) else self.names(found)

    def feasible(self, unbound: Pod) -> list[str]:
        """Return the names of feasible nodes, in order."""
        found = self.find(unbound)
        return [] if isinstance(found, Diagnosis) else found

    def diagnosis(self, unbound: Pod) -> Diagnosis:
        """Return why the pod fits nowhere."""
        found = self.find(unbound)
        assert isinstance(found, Diagnosis), f"{unbound.metadata.name} fits on {found}"
        return found

    def message(self, unbound: Pod) -> str:
        """Return the text that tells why the pod fits nowhere."""
        return self.diagnosis(unbound).message()

    def left_by_masks(self, name: str, unbound: Pod) -> list[str]:
        """Return the nodes that are in none of the masks of nodes that a plugin rejects."""
        plugin, table = self.framework.plugins.instances[name], self.cluster.table
        assert isinstance(plugin, Filter)
        verdict = plugin.filter(CycleState(), self.pending(unbound), NodeRows.all_of(table))
        rejected = np.logical_or.reduce([np.zeros(table.size, dtype=np.bool_), *verdict.masks()])
        return [name for name in table.names() if not rejected[table.row_of(name)]]

    def plugin_scores(self, unbound: Pod) -> dict[str, PluginScores]:
        """Return what each plugin that does not skip thinks of the feasible nodes."""
        info, state = self.pending(unbound), CycleState()
        rows = feasible_rows(self.framework.evaluator, state, info)
        assert not isinstance(rows, Diagnosis), rows.message()
        found = self.framework.evaluator.plugin_scores(state, info, rows)
        return {each.plugin: each for each in found}

    def scores(self, plugin: str, unbound: Pod, *, raw: bool = False) -> dict[str, int]:
        """Return one plugin's scores of the feasible nodes, normalised unless `raw`."""
        scores = self.plugin_scores(unbound)[plugin]
        values = scores.raw if raw else scores.normalized
        return dict(zip(self.feasible(unbound), values.tolist(), strict=True))

    def totals(self, unbound: Pod) -> dict[str, int]:
        """Return the weighted sums for the feasible nodes."""
        info, state = self.pending(unbound), CycleState()
        rows = feasible_rows(self.framework.evaluator, state, info)
        assert not isinstance(rows, Diagnosis), rows.message()
        totals = total_scores(self.framework.evaluator, state, info, rows)
        return dict(zip(self.names(rows), totals.tolist(), strict=True))

    def plugin(self, name: str) -> Any:
        """Return the instance of a plugin."""
        return self.framework.plugins.instances[name]

    def rejections(self, plugin: str, unbound: Pod) -> dict[str, Status]:
        """Return what a row-local filter says about each node that it turns away."""
        row_filter = self.plugin(plugin)
        assert isinstance(row_filter, RowFilter)
        table = self.cluster.table
        verdict = row_filter.filter(self.pending(unbound).shape, NodeRows.all_of(table))
        return {
            table.name_at(row): status
            for row in np.flatnonzero(table.valid[: table.size]).tolist()
            if (status := verdict.status_of(row)) is not None
        }

    def raw_scores(self, plugin: str, unbound: Pod) -> dict[str, int]:
        """Return a row-local plugin's raw scores of all nodes, feasible or not."""
        row_score = self.plugin(plugin)
        assert isinstance(row_score, RowScore)
        table = self.cluster.table
        scores = row_score.score(self.pending(unbound).shape, NodeRows.all_of(table))
        return {
            table.name_at(row): int(scores[row])
            for row in np.flatnonzero(table.valid[: table.size]).tolist()
        }
