"""The table of kinds: everything there is to say about a kind of object that decides where pods go.

    ObjectKind ──> informers of the scheduler and of shadow   type, path, field_selector, gate
               ──> their handlers, replay, snapshots          store, causes_events
               ──> recordings                                 store, redactions
               ──> the embedded API server, tests of rights   path

A new kind is a struct, a store in the cluster, and a row here. Nodes and pods are not stored as
objects but as columns, so they have handlers of their own. Kinds that plugins watch become rows
when the plugins are loaded (`add`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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
    """What a recording without names has in place of a text.

    Of a list each item is replaced, of a map each key, unless the map has labels.
    """

    #: stays as it is
    KEEP = auto()
    #: left out
    DROP = auto()
    #: a pseudonym
    NAME = auto()
    #: pseudonyms of the parts between dashes and slashes: names that others are joined from
    JOINED_NAME = auto()
    #: a pseudonym in the order of the names, since the first volume by name is taken
    VOLUME_NAME = auto()
    #: an image, with the tag that is implied
    IMAGE = auto()
    #: an image as nodes list it, literally
    NODE_IMAGE = auto()
    #: an AWS volume id or an address, whose form is checked
    AWS_DISK = auto()
    #: a value of a label of nodes, which stays if it is a number
    NODE_VALUE = auto()
    #: labels, and labels of nodes
    LABELS = auto()
    NODE_LABELS = auto()
    #: a LabelSelector for nodes
    NODE_SELECTOR = auto()


#: struct → field → what stands in its place; fields that are not named are kept or gone through
Redactions = Mapping[type[Struct], Mapping[str, Redaction]]


class ObjectKind(Struct, frozen=True, kw_only=True):
    """One kind: a row of the table."""

    type: type[Any]
    path: ResourcePath
    #: which of the objects are of interest
    field_selector: str | None = None
    #: where the cluster keeps the objects; None for nodes and pods, and for what is not watched
    store: Callable[[Cluster], ObjectStore[Any, Any]] | None = None
    #: whether the scheduler watches it; priority classes are only read for pods not created yet
    watched: bool = True
    #: whether changes may help waiting pods; of nodes and pods their handlers tell more precisely
    causes_events: bool = False
    #: shadow, snapshots and explain cannot do without it
    needed: bool = False
    #: the feature gate that it is watched with, "": always
    gate: str = ""
    #: whether the scheduler works without it if the API server does not serve it
    optional: bool = False
    #: what a recording has in place of the objects' names and labels
    name_redaction: Redaction = Redaction.NAME
    label_redaction: Redaction = Redaction.LABELS
    #: what a recording has in place of other texts
    redactions: Redactions = {}
    #: whether only plugins read it: a recording without names has the objects' metadata alone
    is_of_plugins: bool = False

    @property
    def name(self) -> str:
        """What objects call it."""
        return self.type.__name__

    @property
    def event_resource(self) -> str:
        """The resource of the cluster events that it causes, by kube-scheduler's name."""
        return f"{self.path.group}/{self.name}" if self.path.group else self.name


_NAME: Final = Redaction.NAME
_JOINED: Final = Redaction.JOINED_NAME
_VOLUME: Final = Redaction.VOLUME_NAME
_NODE_VALUE: Final = Redaction.NODE_VALUE

_STORAGE: Final = "storage.k8s.io/v1"
_DEVICES: Final = "resource.k8s.io/v1"
_DRA: Final = "DynamicResourceAllocation"

#: In the order in which they are read: what pods refer to is known before they come.
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
        # What drivers are called is public, and other objects refer to them in many ways.
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
        # Expressions compare attributes and capacities, and name drivers: these are kept.
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
        },
    ),
    ObjectKind(
        type=core.Pod,
        path=resources.PODS,
        # Pods that are over take nothing from their node.
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
    """A kind of object that a plugin reads: its struct, and where the API server has it."""

    type: type[Any]
    #: as objects have it: ``example.com/v1``
    api_version: str
    plural: str
    namespaced: bool = True


def add(wanted: Watched) -> None:
    """Make a row of a kind that a plugin watches; raises PluginError if it cannot be one."""
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
        # A plugin's file was read again, or two plugins watch the same.
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
    # Last: what pods refer to is known before they come.
    _TABLE[pods.name] = pods


def _fields(struct: type[Any]) -> list[tuple[str, str]]:
    return [(each.encode_name, str(each.type)) for each in msgspec.structs.fields(struct)]


def remove(name: str) -> None:
    """Take the row of a kind out again that plugins watch."""
    if KINDS[name].is_of_plugins:
        del _TABLE[name]


def watched(gates: FeatureGates | None = None) -> Iterator[ObjectKind]:
    """Return the kinds that the scheduler watches: all of them, or those of some feature gates."""
    for kind in KINDS.values():
        if kind.watched and (not kind.gate or gates is None or gates.enabled(kind.gate)):
            yield kind


def stores(cluster: Cluster) -> Iterator[tuple[ObjectKind, ObjectStore[Any, Any]]]:
    """Return the kinds whose objects a cluster keeps, each with its store."""
    for kind in KINDS.values():
        if kind.store is not None:
            yield kind, kind.store(cluster)


def kind_of(api_version: object, name: object) -> ObjectKind | None:
    """Return the kind of an object by what it says of itself; None if it decides nothing here.

    Versions do not matter, groups do: a "Service" of another group is another kind.
    """
    kind = KINDS.get(name) if isinstance(name, str) else None
    if kind is None or not isinstance(api_version, str):
        return None
    group = api_version.rpartition("/")[0]
    return kind if group == kind.path.group else None
