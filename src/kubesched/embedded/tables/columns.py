"""The columns of each kind, as ``kubectl get`` shows them.

As many cells as columns, in their order: see ``core``, ``devices``, ``groups``, ``pods``,
``storage`` and ``workloads``. Kinds that are not here have the columns Name and Age.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

JsonObject = dict[str, Any]


class TableColumn(NamedTuple):
    """One column; those of priority 1 are shown with ``-o wide``."""

    name: str
    type: str = "string"
    priority: int = 0
    format: str = ""

    def definition(self) -> JsonObject:
        """Return it as an entry of columnDefinitions."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": "",
            "priority": self.priority,
        }


def _columns(text: str) -> tuple[TableColumn, ...]:
    """Read columns from their names: ``*`` marks the wide ones, ``#`` numbers, ``?`` booleans."""
    columns: list[TableColumn] = []
    for part in text.split(","):
        name = part.strip()
        kind = "integer" if "#" in name else "boolean" if "?" in name else "string"
        plain = name.strip("*#?")
        form = "name" if plain == "Name" else ""
        columns.append(TableColumn(plain, kind, int("*" in name), form))
    return tuple(columns)


_TEMPLATE: Final = "Containers*, Images*, Selector*"
NAME_AND_AGE: Final = _columns("Name, Age")
COLUMNS: Final[Mapping[str, tuple[TableColumn, ...]]] = {
    kind: _columns(text)
    for kind, text in {
        "Pod": "Name, Ready, Status, Restarts, Age, IP*, Node*, Nominated Node*, Readiness Gates*",
        "Node": "Name, Status, Roles, Age, Version, Internal-IP*, External-IP*, OS-Image*, "
        "Kernel-Version*, Container-Runtime*",
        "Namespace": "Name, Status, Age",
        "Event": "Last Seen, Type, Reason, Object, Subobject*, Source*, Message, First Seen*, "
        "Count*, Name*",
        "Job": f"Name, Status, Completions, Duration, Age, {_TEMPLATE}",
        "Service": "Name, Type, Cluster-IP, External-IP, Port(s), Age, Selector*",
        "ConfigMap": "Name, Data, Age",
        "Secret": "Name, Type, Data, Age",
        "Deployment": f"Name, Ready, Up-to-date, Available, Age, {_TEMPLATE}",
        "ReplicaSet": f"Name, #Desired, #Current, #Ready, Age, {_TEMPLATE}",
        "ReplicationController": f"Name, #Desired, #Current, #Ready, Age, {_TEMPLATE}",
        "StatefulSet": "Name, Ready, Age, Containers*, Images*",
        "DaemonSet": "Name, #Desired, #Current, #Ready, #Up-to-date, #Available, Node Selector, "
        f"Age, {_TEMPLATE}",
        "PersistentVolume": "Name, Capacity, Access Modes, Reclaim Policy, Status, Claim, "
        "StorageClass, VolumeAttributesClass, Reason, Age, VolumeMode*",
        "PersistentVolumeClaim": "Name, Status, Volume, Capacity, Access Modes, StorageClass, "
        "VolumeAttributesClass, Age, VolumeMode*",
        "StorageClass": "Name, Provisioner, ReclaimPolicy, VolumeBindingMode, "
        "AllowVolumeExpansion, Age",
        "CSINode": "Name, #Drivers, Age",
        "CSIDriver": "Name, ?AttachRequired, ?PodInfoOnMount, ?StorageCapacity, TokenRequests, "
        "?RequiresRepublish, Modes, Age",
        "CSIStorageCapacity": "Name, StorageClassName, Capacity",
        "VolumeAttachment": "Name, Attacher, PV, Node, ?Attached, Age",
        "PodDisruptionBudget": "Name, Min Available, Max Unavailable, #Allowed Disruptions, Age",
        "PriorityClass": "Name, #Value, ?Global-Default, Age, PreemptionPolicy",
        "Lease": "Name, Holder, Age",
        "CompositePodGroup": "Name, Policy, Workload, Age",
        "DeviceTaintRule": "Name, Key, Value, Effect, TimeAdded, Age",
        "PodGroup": "Name, Policy, Workload, Status, Age",
        "ResourceClaim": "Name, State, Age",
        "ResourceSlice": "Name, Node, Driver, Pool, Age",
    }.items()
}
