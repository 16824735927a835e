"""Volumes and claims to try VolumeBinding on, and an API server that does what a test says.

VolumeLab(node("n1"), …).have(storage_class("wait"), claim("c"), volume("v")) ──> lab
lab.writer.then(lambda: …)      what others do while a pod waits for its volumes, step by step
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from kubesched.api import names
from kubesched.api.core import (
    Node,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    ResourceRequirements,
)
from kubesched.api.meta import LabelSelector, ObjectMeta, OwnerReference
from kubesched.api.storage import (
    ANNOTATION_BIND_COMPLETED,
    ANNOTATION_CLASS,
    ANNOTATION_MIGRATED_PLUGINS,
    ANNOTATION_SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
    ClaimReference,
    CSIDriver,
    CSIDriverSpec,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    StorageClass,
    TopologySelectorLabelRequirement,
    TopologySelectorTerm,
    VolumeNodeAffinity,
)
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.storage import ClaimKey, Storage
from kubesched.config.args import PluginArgs
from kubesched.config.defaults import complete_profile
from kubesched.config.features import FeatureGates
from kubesched.config.profiles import PluginConfig, PluginRef, Plugins, PluginSet, Profile
from kubesched.framework.building import build_framework
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.status import Status
from kubesched.plugins.in_tree import IN_TREE
from kubesched.plugins.volume_binding import VolumeBinding
from tests.support.evaluating import feasible_rows
from tests.support.objects import node, requirement, term
from tests.support.scheduling import DEFAULT_GATES, RecordingBinder, RecordingEvictor, cluster_of

#: The class of claims that wait for their pod, unless a test says otherwise.
WAITING = "wait"
DRIVER = "disk.example.com"

StorageObject = (
    PersistentVolume
    | PersistentVolumeClaim
    | StorageClass
    | CSINode
    | CSIDriver
    | CSIStorageCapacity
)


# --- objects ------------------------------------------------------------------------------------


def host(name: str, *, zone: str | None = None, **labels: str) -> Node:
    """Make a node that has its name as a label, as kubelets do."""
    return node(name, zone=zone, labels={names.LABEL_HOSTNAME: name, **labels})


def on_hosts(*hosts: str) -> NodeSelectorTerm:
    """Nodes by their host names."""
    return term(requirement(names.LABEL_HOSTNAME, "In", *hosts))


def in_zones(*zones: str) -> NodeSelectorTerm:
    """Nodes by their zones."""
    return term(requirement(names.LABEL_ZONE, "In", *zones))


def volume(
    name: str = "v",
    *,
    size: str = "1Gi",
    storage_class: str = WAITING,
    reach: Sequence[NodeSelectorTerm] | None = None,
    kept_for: str = "",
    kept_for_uid: str = "",
    phase: str = "Available",
    modes: Sequence[str] = ("ReadWriteOnce",),
    volume_mode: str | None = None,
    attributes_class: str | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    deleting: bool = False,
    version: str = "1",
    **sources: Any,
) -> PersistentVolume:
    """Make a volume; `reach` are the terms of its node affinity, `kept_for` names a claim."""
    affinity = None
    if reach is not None:
        affinity = VolumeNodeAffinity(required=NodeSelector(node_selector_terms=tuple(reach)))
    reference = None
    if kept_for:
        reference = ClaimReference(namespace="default", name=kept_for, uid=kept_for_uid)
    return PersistentVolume(
        metadata=ObjectMeta(
            name=name,
            resource_version=version,
            labels=dict(labels) if labels else None,
            annotations=dict(annotations) if annotations else None,
            deletion_timestamp="2026-01-01T00:00:00Z" if deleting else None,
        ),
        spec=PersistentVolumeSpec(
            capacity={"storage": size},
            access_modes=tuple(modes),
            claim_ref=reference,
            storage_class_name=storage_class,
            volume_mode=volume_mode,
            volume_attributes_class_name=attributes_class,
            node_affinity=affinity,
            **sources,
        ),
        status=PersistentVolumeStatus(phase=phase),
    )


def claim(
    name: str = "c",
    *,
    size: str | None = "1Gi",
    storage_class: str | None = WAITING,
    annotated_class: str | None = None,
    volume: str = "",
    bound: bool = False,
    selected: str | None = None,
    modes: Sequence[str] = ("ReadWriteOnce",),
    volume_mode: str | None = None,
    attributes_class: str | None = None,
    selector: LabelSelector | None = None,
    phase: str = "Pending",
    owner: str = "",
    deleting: bool = False,
    version: str = "1",
) -> PersistentVolumeClaim:
    """Make a claim, whose uid is its name; `bound` is whether it has its `volume` for good."""
    annotations = {
        key: value
        for key, value in {
            ANNOTATION_CLASS: annotated_class,
            ANNOTATION_BIND_COMPLETED: "yes" if bound else None,
            ANNOTATION_SELECTED_NODE: selected,
        }.items()
        if value is not None
    }
    owners = (OwnerReference(kind="Pod", uid=owner, controller=True),) if owner else ()
    return PersistentVolumeClaim(
        metadata=ObjectMeta(
            name=name,
            namespace="default",
            uid=name,
            resource_version=version,
            annotations=annotations or None,
            owner_references=owners,
            deletion_timestamp="2026-01-01T00:00:00Z" if deleting else None,
        ),
        spec=PersistentVolumeClaimSpec(
            access_modes=tuple(modes),
            resources=ResourceRequirements(requests={"storage": size}) if size else None,
            storage_class_name=storage_class,
            volume_mode=volume_mode,
            volume_attributes_class_name=attributes_class,
            volume_name=volume,
            selector=selector,
        ),
        status=PersistentVolumeClaimStatus(phase=phase),
    )


def storage_class(
    name: str = WAITING,
    *,
    provisioner: str = DRIVER,
    mode: str | None = WAIT_FOR_FIRST_CONSUMER,
    zones: Sequence[str] = (),
) -> StorageClass:
    """Make a class; `zones` are the only ones that it makes volumes in."""
    topologies: tuple[TopologySelectorTerm, ...] = ()
    if zones:
        key = names.LABEL_ZONE
        expression = TopologySelectorLabelRequirement(key=key, values=tuple(zones))
        topologies = (TopologySelectorTerm(match_label_expressions=(expression,)),)
    return StorageClass(
        metadata=ObjectMeta(name=name),
        provisioner=provisioner,
        volume_binding_mode=mode,
        allowed_topologies=topologies,
    )


def driver(name: str = DRIVER, *, storage_capacity: bool | None = True) -> CSIDriver:
    """Make a CSI driver; by default one that says how much space is left."""
    return CSIDriver(
        metadata=ObjectMeta(name=name), spec=CSIDriverSpec(storage_capacity=storage_capacity)
    )


def capacity(
    name: str = "space",
    *,
    size: str | None = "10Gi",
    largest: str | None = None,
    zone: str | None = None,
    storage_class: str = WAITING,
    nowhere: bool = False,
) -> CSIStorageCapacity:
    """Make a report of space that is left: in a zone, or without one everywhere."""
    topology = LabelSelector(match_labels={names.LABEL_ZONE: zone} if zone else None)
    return CSIStorageCapacity(
        metadata=ObjectMeta(name=name, namespace="kube-system"),
        node_topology=None if nowhere else topology,
        storage_class_name=storage_class,
        capacity=size,
        maximum_volume_size=largest,
    )


def csi_node(name: str, *, migrated: str = "") -> CSINode:
    """Make the CSI side of a node; `migrated` are in-tree drivers that CSI has taken over."""
    annotations = {ANNOTATION_MIGRATED_PLUGINS: migrated} if migrated else None
    return CSINode(metadata=ObjectMeta(name=name, annotations=annotations))


# --- an API server that does what it is told ----------------------------------------------------


class ScriptedWriter:
    """Writes at once, shows what it wrote when told to, and waits without any time passing."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._version = 100
        #: what was written, in order
        self.written: list[PersistentVolume | PersistentVolumeClaim] = []
        #: what to raise instead of writing, from the n-th write on
        self.failure: Exception | None = None
        self.writes_before_failure = 0
        self._steps: list[Callable[[], object]] = []
        #: what was asked of `poll`
        self.waited_for: set[ClaimKey] = set()
        self.timeout_s = 0.0

    def then(self, *steps: Callable[[], object]) -> None:
        """Say what happens while somebody waits; after the last step, time runs out."""
        self._steps += steps

    async def write_volume(self, volume: PersistentVolume) -> PersistentVolume:
        return replace(volume, metadata=self._write(volume))

    async def write_claim(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        return replace(claim, metadata=self._write(claim))

    def _write(self, obj: PersistentVolume | PersistentVolumeClaim) -> ObjectMeta:
        if self.failure is not None and len(self.written) >= self.writes_before_failure:
            raise self.failure
        self.written.append(obj)
        self._version += 1
        return replace(obj.metadata, resource_version=str(self._version))

    async def poll(
        self, check: Callable[[], bool], *, claims: Collection[ClaimKey], timeout_s: float
    ) -> bool:
        self.waited_for, self.timeout_s = set(claims), timeout_s
        while not check():
            if not self._steps:
                return False
            self._steps.pop(0)()
        return True


class VolumeLab:
    """A cluster with storage, and VolumeBinding with nobody else around."""

    def __init__(
        self,
        *objects: Node | Pod,
        gates: FeatureGates = DEFAULT_GATES,
        args: PluginArgs | None = None,
    ) -> None:
        self.cluster = cluster_of(*objects)
        self.storage = self.cluster.storage
        self.writer = ScriptedWriter(self.storage)
        #: stages that failed, in order
        self.failures: list[str] = []
        needed = ("PrioritySort", "VolumeBinding", "DefaultBinder")
        chosen = PluginSet(
            enabled=tuple(PluginRef(name=name) for name in needed),
            disabled=(PluginRef(name="*"),),
        )
        given = () if args is None else (PluginConfig(name="VolumeBinding", args=args),)
        self.framework = build_framework(
            complete_profile(
                Profile(
                    scheduler_name=names.DEFAULT_SCHEDULER, plugins=Plugins(multi_point=chosen)
                ),
                given_args=given,
                gates=gates,
            ),
            registry=IN_TREE,
            gates=gates,
            cluster=self.cluster,
            binder=RecordingBinder(),
            evictor=RecordingEvictor(),
            volume_writer=self.writer,
            on_volume_stage_failure=self.failures.append,
        )
        plugin = self.framework.plugins.instances["VolumeBinding"]
        assert isinstance(plugin, VolumeBinding)
        self.plugin = plugin

    def have(self, *objects: StorageObject) -> VolumeLab:
        """Let the watch bring objects."""
        for each in objects:
            match each:
                case PersistentVolume():
                    self.storage.volumes.put(each)
                case PersistentVolumeClaim():
                    self.storage.claims.put(each)
                case StorageClass():
                    self.storage.classes.put(each)
                case CSINode():
                    self.storage.csi_nodes.put(each)
                case CSIDriver():
                    self.storage.drivers.put(each)
                case CSIStorageCapacity():
                    self.storage.capacities.put(each)
        return self

    def pending(self, unbound: Pod) -> PodInfo:
        """Compile a pod that wants a node."""
        return self.cluster.compiler.pending(unbound)

    def pre_filter(self, unbound: Pod) -> Status:
        """Return what PreFilter says."""
        nodes = NodeRows.all_of(self.cluster.table)
        return self.plugin.pre_filter(CycleState(), self.pending(unbound), nodes).status

    def rejections(self, unbound: Pod) -> dict[str, tuple[str, ...]]:
        """Return the reasons of each node that is turned away, by its name."""
        state, info = CycleState(), self.pending(unbound)
        nodes = NodeRows.all_of(self.cluster.table)
        before = self.plugin.pre_filter(state, info, nodes).status
        assert before.ok, before
        verdict = self.plugin.filter(state, info, nodes)
        return {
            self.cluster.table.name_at(row): status.reasons
            for row in range(len(nodes))
            if (status := verdict.status_of(row)) is not None
        }

    def feasible(self, unbound: Pod) -> list[str]:
        """Return the names of the nodes on which the pod can have its volumes."""
        found = feasible_rows(self.framework.evaluator, CycleState(), self.pending(unbound))
        if isinstance(found, Diagnosis):
            return []
        return sorted(self.cluster.table.name_at(row) for row in found.tolist())

    def decide(self, unbound: Pod) -> tuple[CycleState, PodInfo]:
        """Let the filters have their say, so that the pod can be reserved."""
        state, info = CycleState(), self.pending(unbound)
        found = feasible_rows(self.framework.evaluator, state, info)
        assert not isinstance(found, Diagnosis), found.message()
        return state, info

    def reserve(self, unbound: Pod, node_name: str) -> tuple[CycleState, PodInfo]:
        """Place a pod on a node, as far as its binding."""
        state, info = self.decide(unbound)
        self.cluster.assume(info, node_name)
        status = self.framework.reserve(state, info, node_name)
        assert status.ok, status
        return state, info
