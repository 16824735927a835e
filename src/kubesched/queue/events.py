"""Cluster events: a resource and an action on it, and how registrations match them."""

from __future__ import annotations

from enum import IntFlag, StrEnum
from functools import cache
from typing import Final

from msgspec import Struct


class Resource(StrEnum):
    """Kinds of objects that in-tree plugins register for; values are part of metric labels."""

    #: the union of the three below
    POD = "Pod"
    ASSIGNED_POD = "AssignedPod"
    #: a pending pod, other than the parked one
    UNSCHEDULED_POD = "UnscheduledPod"
    #: the parked pod itself
    TARGET_POD = "TargetPod"
    NODE = "Node"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    STORAGE_CLASS = "storage.k8s.io/StorageClass"
    CSI_NODE = "storage.k8s.io/CSINode"
    CSI_DRIVER = "storage.k8s.io/CSIDriver"
    CSI_STORAGE_CAPACITY = "storage.k8s.io/CSIStorageCapacity"
    VOLUME_ATTACHMENT = "storage.k8s.io/VolumeAttachment"
    POD_GROUP = "scheduling.k8s.io/PodGroup"
    COMPOSITE_POD_GROUP = "scheduling.k8s.io/CompositePodGroup"
    RESOURCE_CLAIM = "resource.k8s.io/ResourceClaim"
    RESOURCE_SLICE = "resource.k8s.io/ResourceSlice"
    DEVICE_CLASS = "resource.k8s.io/DeviceClass"
    DEVICE_TAINT_RULE = "resource.k8s.io/DeviceTaintRule"
    ANY = "*"


class Action(IntFlag):
    """What changed in an object. The order of the bits is part of the matching rule."""

    ADD = 1 << 0
    DELETE = 1 << 1
    UPDATE_NODE_ALLOCATABLE = 1 << 2
    UPDATE_NODE_LABEL = 1 << 3
    UPDATE_NODE_TAINT = 1 << 4
    UPDATE_NODE_CONDITION = 1 << 5
    UPDATE_NODE_ANNOTATION = 1 << 6
    UPDATE_NODE_DECLARED_FEATURE = 1 << 7
    UPDATE_NODE_PREEMPTION_POLICY = 1 << 8
    UPDATE_POD_LABEL = 1 << 9
    UPDATE_POD_SCALE_DOWN = 1 << 10
    UPDATE_POD_SCALE_UP = 1 << 11
    UPDATE_POD_TOLERATION = 1 << 12
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 1 << 13
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 1 << 14
    UPDATE = (1 << 15) - (1 << 2)
    ALL = (1 << 15) - 1


class ClusterEvent(Struct, frozen=True):
    """An event, or the pattern of events that a plugin registers for."""

    #: a `Resource`, or a kind's group and name
    resource: str
    action: Action
    #: set for events that are not an action on a resource
    custom_label: str = ""

    @property
    def label(self) -> str:
        """The event's name in metrics and logs."""
        return _label(self)

    @property
    def is_wildcard(self) -> bool:
        """Whether it wakes every parked pod, without hints."""
        return self.resource == Resource.ANY and self.action == Action.ALL

    def matches(self, registered: ClusterEvent) -> bool:
        """Return whether this event matches a registration."""
        if registered.is_wildcard:
            return True
        same_resource = registered.resource in (self.resource, Resource.ANY) or (
            registered.resource == Resource.POD and self.resource in _POD_RESOURCES
        )
        # A specific update matches a general registration, never the other way round.
        return (
            same_resource
            and bool(registered.action & self.action)
            and self.action <= registered.action
        )


@cache
def _label(event: ClusterEvent) -> str:
    return event.custom_label or f"{event.resource}{_ACTION_LABELS.get(event.action, '')}"


_POD_RESOURCES: Final = (Resource.ASSIGNED_POD, Resource.UNSCHEDULED_POD, Resource.TARGET_POD)
_ACTION_LABELS: Final = {
    Action.ADD: "Add",
    Action.DELETE: "Delete",
    Action.UPDATE_NODE_ALLOCATABLE: "UpdateNodeAllocatable",
    Action.UPDATE_NODE_LABEL: "UpdateNodeLabel",
    Action.UPDATE_NODE_TAINT: "UpdateNodeTaint",
    Action.UPDATE_NODE_CONDITION: "UpdateNodeCondition",
    Action.UPDATE_NODE_ANNOTATION: "UpdateNodeAnnotation",
    Action.UPDATE_NODE_DECLARED_FEATURE: "UpdateNodeDeclaredFeature",
    Action.UPDATE_NODE_PREEMPTION_POLICY: "UpdateNodePreemptionPolicy",
    Action.UPDATE_POD_LABEL: "UpdatePodLabel",
    Action.UPDATE_POD_SCALE_DOWN: "UpdatePodScaleDown",
    Action.UPDATE_POD_SCALE_UP: "UpdatePodScaleUp",
    Action.UPDATE_POD_TOLERATION: "UpdatePodToleration",
    Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED: "UpdatePodSchedulingGatesEliminated",
    Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM: "UpdatePodGeneratedResourceClaim",
    Action.UPDATE: "Update",
    Action.ALL: "All",
}


def custom(label: str) -> ClusterEvent:
    """Return an event that is not an action on a resource."""
    return ClusterEvent(Resource.ANY, Action.ALL, label)


# Events that are not an action on a resource, by kube-scheduler's names.
UNSCHEDULABLE_TIMEOUT: Final = custom("UnschedulableTimeout")
FORCE_ACTIVATE: Final = custom("ForceActivate")
SCHEDULE_ATTEMPT_FAILURE: Final = custom("ScheduleAttemptFailure")
BACKOFF_COMPLETE: Final = custom("BackoffComplete")
POP_FROM_BACKOFF: Final = custom("PopFromBackoffQ")

NODE_ADD: Final = ClusterEvent(Resource.NODE, Action.ADD)
NODE_DELETE: Final = ClusterEvent(Resource.NODE, Action.DELETE)
ASSIGNED_POD_ADD: Final = ClusterEvent(Resource.ASSIGNED_POD, Action.ADD)
ASSIGNED_POD_DELETE: Final = ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE)
UNSCHEDULED_POD_ADD: Final = ClusterEvent(Resource.UNSCHEDULED_POD, Action.ADD)
UNSCHEDULED_POD_UPDATE: Final = ClusterEvent(Resource.UNSCHEDULED_POD, Action.UPDATE)
