"""The kinds of objects that decide where pods go, and how one of them is told from another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from kubesched.api.core import Namespace, Node, Pod
from kubesched.api.meta import ApiStruct, ObjectMeta
from kubesched.api.policy import PodDisruptionBudget
from kubesched.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from kubesched.api.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from kubesched.client import resources
from kubesched.client.resources import ResourcePath


class PriorityClass(ApiStruct, frozen=True):
    """A priority by name: what admission writes into pods that are not created yet."""

    metadata: ObjectMeta = ObjectMeta()
    value: int = 0
    global_default: bool = False
    preemption_policy: str = ""


class Kind(Struct, frozen=True):
    """One kind."""

    name: str
    type: type[Any]
    path: ResourcePath
    #: without them nothing can be said about a pod
    needed: bool = False


#: In the order in which they are read: what pods refer to is known before they come.
KINDS: Final[Mapping[str, Kind]] = {
    kind.name: kind
    for kind in (
        Kind("Node", Node, resources.NODES, needed=True),
        Kind("Namespace", Namespace, resources.NAMESPACES),
        Kind("PriorityClass", PriorityClass, resources.PRIORITY_CLASSES),
        Kind("Service", Service, resources.SERVICES),
        Kind("ReplicationController", ReplicationController, resources.REPLICATION_CONTROLLERS),
        Kind("ReplicaSet", ReplicaSet, resources.REPLICA_SETS),
        Kind("StatefulSet", StatefulSet, resources.STATEFUL_SETS),
        Kind("PodDisruptionBudget", PodDisruptionBudget, resources.POD_DISRUPTION_BUDGETS),
        Kind("StorageClass", StorageClass, resources.STORAGE_CLASSES),
        Kind("CSINode", CSINode, resources.CSI_NODES),
        Kind("CSIDriver", CSIDriver, resources.CSI_DRIVERS),
        Kind("CSIStorageCapacity", CSIStorageCapacity, resources.CSI_STORAGE_CAPACITIES),
        Kind("VolumeAttachment", VolumeAttachment, resources.VOLUME_ATTACHMENTS),
        Kind("PersistentVolume", PersistentVolume, resources.PERSISTENT_VOLUMES),
        Kind("PersistentVolumeClaim", PersistentVolumeClaim, resources.PERSISTENT_VOLUME_CLAIMS),
        Kind("Pod", Pod, resources.PODS, needed=True),
    )
}


def kind_of(api_version: object, name: object) -> Kind | None:
    """Return the kind of an object by what it says of itself; None if it decides nothing here.

    Versions do not matter, groups do: somebody else's "Service" is none of ours.
    """
    kind = KINDS.get(name) if isinstance(name, str) else None
    if kind is None or not isinstance(api_version, str):
        return None
    group = api_version.rpartition("/")[0]
    return kind if group == kind.path.group else None
