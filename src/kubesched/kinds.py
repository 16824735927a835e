"""The table of kinds: one row for each kind of object that affects scheduling.

    ObjectKind ──> informers of the scheduler and of shadow   type, path, field_selector, gate
               ──> their handlers, replay, snapshots          store, causes_events
               ──> recordings                                 store, redactions
               ──> the embedded API server, tests of rights   path

A new kind is a struct, a store in the cluster, and a row here. Nodes and pods are stored as
columns, so they have their own handlers. Kinds that plugins watch become rows when the plugins are
loaded (`add`).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from enum import Enum, auto
from types import MappingProxyType
from typing import Any, Final

import msgspec
from msgspec import Struct

from kubesched.api import core, meta, policy, resource, scheduling, storage, workloads
from kubesched.api.scheduling import PriorityClass
from kubesched.client import resources
from kubesched.client.resources import ResourcePath, grouped
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.object_store import ObjectStore
from kubesched.config.features import FeatureGates
from kubesched.errors import PluginError


class Redaction(Enum):
    """How a redacted recording replaces a text field.

    In a list each item is replaced, in a map each key, unless the map holds labels.
    """

    #: unchanged
    KEEP = auto()
    #: dropped
    DROP = auto()
    #: a pseudonym
    NAME = auto()
    #: pseudonyms of the parts between dashes and slashes, for names that are joined from others
    JOINED_NAME = auto()
    #: a pseudonym in the order of the names, because the first volume by name is chosen
    VOLUME_NAME = auto()
    #: an image, with its default tag made explicit
    IMAGE = auto()
    #: an image as nodes list it, literally
    NODE_IMAGE = auto()
    #: an AWS volume id or address, whose format is validated
    AWS_DISK = auto()
    #: a label value of nodes, unchanged if it is a number
    NODE_VALUE = auto()
    #: labels, and labels of nodes
    LABELS = auto()
    NODE_LABELS = auto()
    #: a LabelSelector for nodes
    NODE_SELECTOR = auto()


#: struct → field → redaction; other fields are redacted recursively, or unchanged
Redactions = Mapping[type[Struct], Mapping[str, Redaction]]


class ObjectKind(Struct, frozen=True, kw_only=True):
    """One kind: a row of the table."""

    type: type[Any]
    path: ResourcePath
    #: restricts the list and watch to some objects
    field_selector: str | None = None
    #: returns the cluster's store; None for nodes and pods, and for kinds that are not watched
    store: Callable[[Cluster], ObjectStore[Any, Any]] | None = None
    #: whether the scheduler watches it; priority classes and claim templates are only read for
    #: hypothetical pods
    watched: bool = True
    #: whether changes cause cluster events; handlers of nodes and pods derive more precise ones
    causes_events: bool = False
    #: whether shadow, snapshots and explain require it
    needed: bool = False
    #: the feature gate that enables the watch, "": always
    gate: str = ""
    #: the plugin that enables the watch, where a profile has it; "": always
    plugin: str = ""
    #: the value of ``kind`` in objects, where that is the name of another struct
    object_kind: str = ""
    #: whether the API server may lack it
    optional: bool = False
    #: redaction of the objects' names and labels
    name_redaction: Redaction = Redaction.NAME
    label_redaction: Redaction = Redaction.LABELS
    #: redaction of other text fields
    redactions: Redactions = {}
    #: whether only plugins read it: a redacted recording has only the objects' metadata
    is_of_plugins: bool = False

    @property
    def name(self) -> str:
        """The name in this table."""
        return self.type.__name__

    @property
    def called(self) -> str:
        """The value of ``kind`` in objects."""
        return self.object_kind or self.name

    @property
    def event_resource(self) -> str:
        """The resource in its cluster events, as kube-scheduler names it."""
        return f"{self.path.group}/{self.called}" if self.path.group else self.called


_NAME: Final = Redaction.NAME
_JOINED: Final = Redaction.JOINED_NAME
_VOLUME: Final = Redaction.VOLUME_NAME
_NODE_VALUE: Final = Redaction.NODE_VALUE

_STORAGE: Final = "storage.k8s.io/v1"
_DEVICES: Final = "resource.k8s.io/v1"
_DRA: Final = "DynamicResourceAllocation"

#: In the order of the first lists: pods come after the objects that they refer to.
_ROWS: Final = (
    ObjectKind(
        type=core.Node,
        path=resources.NODES,
        needed=True,
        label_redaction=Redaction.NODE_LABELS,
        redactions={
            core.ContainerImage: {"names": Redaction.NODE_IMAGE},
            core.Taint: {"value": _NODE_VALUE},
            core.NodePodPreemptionPolicy: {"disable_resize_preemption": _NAME},
        },
    ),
    ObjectKind(
        type=core.Namespace,
        path=resources.core("namespaces", namespaced=False),
        store=lambda cluster: cluster.namespaces,
    ),
    ObjectKind(type=PriorityClass, path=resources.PRIORITY_CLASSES, watched=False),
    ObjectKind(
        type=workloads.Service,
        path=resources.core("services"),
        store=lambda cluster: cluster.workloads.services,
        redactions={workloads.PlainSelectorSpec: {"selector": Redaction.LABELS}},
    ),
    ObjectKind(
        type=workloads.ReplicationController,
        path=resources.core("replicationcontrollers"),
        store=lambda cluster: cluster.workloads.replication_controllers,
    ),
    ObjectKind(
        type=workloads.ReplicaSet,
        path=grouped("apps/v1", "replicasets"),
        store=lambda cluster: cluster.workloads.replica_sets,
        redactions={meta.LabelSelector: {"match_labels": Redaction.LABELS}},
    ),
    ObjectKind(
        type=workloads.StatefulSet,
        path=grouped("apps/v1", "statefulsets"),
        store=lambda cluster: cluster.workloads.stateful_sets,
    ),
    ObjectKind(
        type=policy.PodDisruptionBudget,
        path=grouped("policy/v1", "poddisruptionbudgets"),
        store=lambda cluster: cluster.budgets,
        redactions={policy.PodDisruptionBudgetStatus: {"disrupted_pods": _JOINED}},
    ),
    ObjectKind(
        type=storage.StorageClass,
        path=grouped(_STORAGE, "storageclasses", namespaced=False),
        store=lambda cluster: cluster.storage.classes,
        causes_events=True,
    ),
    ObjectKind(
        type=storage.CSINode,
        path=grouped(_STORAGE, "csinodes", namespaced=False),
        store=lambda cluster: cluster.storage.csi_nodes,
        causes_events=True,
    ),
    ObjectKind(
        type=storage.CSIDriver,
        path=grouped(_STORAGE, "csidrivers", namespaced=False),
        store=lambda cluster: cluster.storage.drivers,
        causes_events=True,
        # Names of drivers are public, and other objects refer to them in many ways.
        name_redaction=Redaction.KEEP,
    ),
    ObjectKind(
        type=storage.CSIStorageCapacity,
        path=grouped(_STORAGE, "csistoragecapacities"),
        store=lambda cluster: cluster.storage.capacities,
        causes_events=True,
        redactions={
            storage.CSIStorageCapacity: {
                "storage_class_name": _NAME,
                "node_topology": Redaction.NODE_SELECTOR,
            }
        },
    ),
    ObjectKind(
        type=storage.VolumeAttachment,
        path=grouped(_STORAGE, "volumeattachments", namespaced=False),
        store=lambda cluster: cluster.storage.attachments,
        causes_events=True,
        redactions={
            storage.VolumeAttachmentSpec: {"node_name": _NAME},
            storage.VolumeAttachmentSource: {"persistent_volume_name": _VOLUME},
        },
    ),
    ObjectKind(
        type=storage.PersistentVolume,
        path=resources.PERSISTENT_VOLUMES,
        store=lambda cluster: cluster.storage.volumes,
        causes_events=True,
        name_redaction=_VOLUME,
        redactions={
            storage.ClaimReference: {"namespace": _NAME, "name": _JOINED, "uid": _NAME},
            storage.CSIPersistentVolumeSource: {"volume_handle": _NAME},
            storage.PersistentVolumeSpec: {
                "storage_class_name": _NAME,
                "volume_attributes_class_name": _NAME,
            },
        },
    ),
    ObjectKind(
        type=storage.PersistentVolumeClaim,
        path=resources.PERSISTENT_VOLUME_CLAIMS,
        store=lambda cluster: cluster.storage.claims,
        causes_events=True,
        name_redaction=_JOINED,
        redactions={
            storage.PersistentVolumeClaimSpec: {
                "storage_class_name": _NAME,
                "volume_attributes_class_name": _NAME,
                "volume_name": _VOLUME,
            }
        },
    ),
    ObjectKind(
        type=resource.DeviceClass,
        path=grouped(_DEVICES, "deviceclasses", namespaced=False),
        store=lambda cluster: cluster.devices.classes,
        causes_events=True,
        gate=_DRA,
        optional=True,
        # Expressions read attributes, capacities and drivers, so these are not redacted.
        redactions={resource.OpaqueDeviceConfiguration: {"parameters": Redaction.DROP}},
    ),
    ObjectKind(
        type=resource.ResourceSlice,
        path=grouped(_DEVICES, "resourceslices", namespaced=False),
        store=lambda cluster: cluster.devices.slices,
        causes_events=True,
        gate=_DRA,
        optional=True,
        redactions={
            resource.ResourceSliceSpec: {"node_name": _NAME},
            resource.ResourcePool: {"name": _NAME},
            resource.Device: {"name": _NAME, "node_name": _NAME},
            resource.CounterSet: {"name": _NAME},
            resource.DeviceCounterConsumption: {"counter_set": _NAME},
            resource.DeviceTaint: {"value": _NODE_VALUE},
        },
    ),
    ObjectKind(
        type=resource.DeviceTaintRule,
        path=grouped(_DEVICES, "devicetaintrules", namespaced=False),
        store=lambda cluster: cluster.devices.taint_rules,
        causes_events=True,
        gate="DRADeviceTaintRules",
        optional=True,
        redactions={resource.DeviceTaintSelector: {"pool": _NAME, "device": _NAME}},
    ),
    ObjectKind(
        type=resource.ResourceClaim,
        path=resources.RESOURCE_CLAIMS,
        store=lambda cluster: cluster.devices.claims,
        causes_events=True,
        gate=_DRA,
        optional=True,
        name_redaction=_JOINED,
        redactions={
            resource.DeviceRequest: {"name": _JOINED},
            resource.ExactDeviceRequest: {"device_class_name": _NAME},
            resource.DeviceSubRequest: {"name": _JOINED, "device_class_name": _NAME},
            resource.DeviceConstraint: {"requests": _JOINED},
            resource.DeviceToleration: {"value": _NODE_VALUE},
            resource.DeviceClaimConfiguration: {"requests": _JOINED},
            resource.DeviceAllocationConfiguration: {"requests": _JOINED},
            resource.DeviceRequestAllocationResult: {
                "request": _JOINED,
                "pool": _NAME,
                "device": _NAME,
                "share_id": _NAME,
            },
            resource.ResourceClaimConsumerReference: {"name": _JOINED, "uid": _NAME},
            resource.DeviceCondition: {"message": Redaction.DROP},
            resource.NetworkDeviceData: {
                "interface_name": Redaction.DROP,
                "ips": Redaction.DROP,
                "hardware_address": Redaction.DROP,
            },
            resource.AllocatedDeviceStatus: {
                "pool": _NAME,
                "device": _NAME,
                "share_id": _NAME,
                "data": Redaction.DROP,
            },
        },
    ),
    ObjectKind(
        type=resource.ResourceClaimTemplate,
        path=grouped(_DEVICES, "resourceclaimtemplates"),
        watched=False,
        gate=_DRA,
        optional=True,
    ),
    ObjectKind(
        type=scheduling.CompositePodGroup,
        path=grouped("scheduling.k8s.io/v1alpha3", "compositepodgroups"),
        store=lambda cluster: cluster.groups.composites,
        causes_events=True,
        gate="CompositePodGroup",
        optional=True,
        redactions={
            scheduling.CompositePodGroupSpec: {"parent_composite_pod_group_name": _NAME},
            scheduling.GroupCondition: {"message": Redaction.DROP},
        },
    ),
    ObjectKind(
        type=scheduling.PodGroup,
        path=resources.POD_GROUPS,
        store=lambda cluster: cluster.groups.objects,
        causes_events=True,
        gate="GenericWorkload",
        optional=True,
        redactions={
            scheduling.PodGroupSpec: {"parent_composite_pod_group_name": _NAME},
            scheduling.PodGroupResourceClaim: {
                "name": _NAME,
                "resource_claim_name": _JOINED,
                "resource_claim_template_name": _NAME,
            },
            scheduling.PodGroupResourceClaimStatus: {
                "name": _NAME,
                "resource_claim_name": _JOINED,
            },
        },
    ),
    ObjectKind(
        type=scheduling.CoscheduledGroup,
        object_kind="PodGroup",
        path=resources.COSCHEDULED_GROUPS,
        store=lambda cluster: cluster.groups.coscheduled,
        causes_events=True,
        plugin="Coscheduling",
        optional=True,
        redactions={scheduling.CoscheduledGroupStatus: {"occupied_by": _JOINED}},
    ),
    ObjectKind(
        type=core.Pod,
        path=resources.PODS,
        # Terminated pods use no resources of their node.
        field_selector="status.phase!=Succeeded,status.phase!=Failed",
        needed=True,
        name_redaction=_JOINED,
        redactions={
            core.Container: {"name": _NAME, "image": Redaction.IMAGE},
            core.ContainerStatus: {"name": _NAME},
            core.ImageVolumeSource: {"reference": Redaction.IMAGE},
            core.PodSpec: {"node_name": _NAME, "node_selector": Redaction.NODE_LABELS},
            core.PodStatus: {"nominated_node_name": _NAME},
            core.PodCondition: {"message": Redaction.DROP},
            core.PodAffinityTerm: {"namespaces": _NAME},
            core.Toleration: {"value": _NODE_VALUE},
            core.PodSchedulingGate: {"name": _NAME},
            core.PodSchedulingGroup: {"pod_group_name": _NAME},
            core.ResourceClaimRef: {"name": _NAME, "request": _JOINED},
            core.PodResourceClaim: {
                "name": _NAME,
                "resource_claim_name": _JOINED,
                "resource_claim_template_name": _NAME,
            },
            core.PodResourceClaimStatus: {"name": _NAME, "resource_claim_name": _JOINED},
            core.PodExtendedResourceClaimStatus: {"resource_claim_name": _JOINED},
            core.NodeAllocatableResourceClaimStatus: {
                "resource_claim_name": _JOINED,
                "containers": _NAME,
            },
            core.ContainerExtendedResourceRequest: {
                "container_name": _NAME,
                "request_name": _JOINED,
            },
            core.Volume: {"name": _JOINED},
            core.PersistentVolumeClaimVolumeSource: {"claim_name": _JOINED},
            core.GCEPersistentDiskVolumeSource: {"pd_name": _NAME},
            core.AWSElasticBlockStoreVolumeSource: {"volume_id": Redaction.AWS_DISK},
            core.ISCSIVolumeSource: {"iqn": _NAME},
            core.RBDVolumeSource: {"monitors": _NAME, "pool": _NAME, "image": _NAME},
            core.AzureDiskVolumeSource: {"disk_name": _NAME, "disk_uri": _NAME},
            core.AzureFileVolumeSource: {
                "secret_name": _NAME,
                "secret_namespace": _NAME,
                "share_name": _NAME,
            },
            core.CinderVolumeSource: {"volume_id": _NAME},
            core.VsphereVolumeSource: {"volume_path": _NAME},
            core.PortworxVolumeSource: {"volume_id": _NAME},
        },
    ),
)

_TABLE: Final = {kind.name: kind for kind in _ROWS}
#: name → kind
KINDS: Final[Mapping[str, ObjectKind]] = MappingProxyType(_TABLE)


class Watched(Struct, frozen=True):
    """A kind that a plugin watches: its struct, and its path in the API."""

    type: type[Any]
    #: as in objects: ``example.com/v1``
    api_version: str
    plural: str
    namespaced: bool = True


def add(wanted: Watched) -> None:
    """Add a row for a kind that a plugin watches; raises PluginError if it is invalid."""
    struct, name = wanted.type, wanted.type.__name__
    path = ResourcePath(
        group=wanted.api_version.rpartition("/")[0],
        version=wanted.api_version.rpartition("/")[2],
        plural=wanted.plural,
        namespaced=wanted.namespaced,
    )
    try:
        struct(metadata=meta.ObjectMeta())
    except TypeError as refused:
        raise PluginError(
            f"{name}, which is watched, needs a field metadata, and defaults for all others: "
            f"{refused}"
        ) from None
    known = KINDS.get(name)
    if known is not None:
        if not known.is_of_plugins or known.path != path:
            raise PluginError(
                f"a kind {name} is watched already, as {known.path}: choose another name"
            )
        if _fields(known.type) != _fields(struct):
            raise PluginError(
                f"{name} has other fields now: informers read the former ones, so restart"
            )
        # A plugin's file was loaded again, or two plugins watch the same kind.
        return
    pods = _TABLE.pop(core.Pod.__name__)
    _TABLE[name] = ObjectKind(
        type=struct,
        path=path,
        store=lambda cluster: cluster.plugin_objects.store(name, namespaced=path.namespaced),
        causes_events=True,
        optional=True,
        is_of_plugins=True,
    )
    # Before pods, which are last: plugins may need these objects when pods arrive.
    _TABLE[pods.name] = pods


def _fields(struct: type[Any]) -> list[tuple[str, str]]:
    return [(each.encode_name, str(each.type)) for each in msgspec.structs.fields(struct)]


def remove(name: str) -> None:
    """Remove the row of a kind that plugins watch."""
    if KINDS[name].is_of_plugins:
        del _TABLE[name]


def watched(
    gates: FeatureGates | None = None, plugins: Container[str] = ()
) -> Iterator[ObjectKind]:
    """Return the kinds that the scheduler watches, with these gates and plugins or with all."""
    for kind in KINDS.values():
        of_gate = not kind.gate or gates is None or gates.enabled(kind.gate)
        of_plugin = not kind.plugin or gates is None or kind.plugin in plugins
        if kind.watched and of_gate and of_plugin:
            yield kind


def stores(cluster: Cluster) -> Iterator[tuple[ObjectKind, ObjectStore[Any, Any]]]:
    """Return the kinds that have a store in the cluster, each with its store."""
    for kind in KINDS.values():
        if kind.store is not None:
            yield kind, kind.store(cluster)


def kind_of(api_version: object, name: object) -> ObjectKind | None:
    """Return the kind of an object by its apiVersion and kind; None if it is not in the table.

    Versions are ignored, groups are not: a "Service" of another group is another kind.
    """
    if not isinstance(api_version, str):
        return None
    group = api_version.rpartition("/")[0]
    found = (each for each in KINDS.values() if (each.called, each.path.group) == (name, group))
    return next(found, None)
