"""The kinds of objects that a recording holds, by the names that entries call them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubesched.api.core import Namespace, Node, Pod
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

#: In the order of a checkpoint: what others refer to comes before them.
KINDS: Final[Mapping[str, type[Any]]] = {
    kind.__name__: kind
    for kind in (
        Namespace,
        Node,
        Service,
        ReplicationController,
        ReplicaSet,
        StatefulSet,
        PodDisruptionBudget,
        StorageClass,
        CSINode,
        CSIDriver,
        CSIStorageCapacity,
        VolumeAttachment,
        PersistentVolume,
        PersistentVolumeClaim,
        Pod,
    )
}

WORKLOADS: Final = ("Service", "ReplicationController", "ReplicaSet", "StatefulSet")
BUDGET: Final = "PodDisruptionBudget"
VOLUME: Final = "PersistentVolume"
CLAIM: Final = "PersistentVolumeClaim"
#: kind → attribute of the cluster's storage that holds its objects
STORES: Final[Mapping[str, str]] = {
    "StorageClass": "classes",
    "CSINode": "csi_nodes",
    "CSIDriver": "drivers",
    "CSIStorageCapacity": "capacities",
    "VolumeAttachment": "attachments",
    VOLUME: "volumes",
    CLAIM: "claims",
}
