"""Queueing hints of VolumeBinding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kubesched.api.storage import (
    ANNOTATION_MIGRATED_PLUGINS,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.storage import Storage
from kubesched.errors import ObjectError
from kubesched.plugins.volume_claims import sort_claims, usable_claims
from kubesched.plugins.volume_provisioning import volume_limit
from kubesched.queue.events import Action, ClusterEvent, Resource
from kubesched.queue.hints import Change, Registration


def after_class_change(pod: PodInfo, change: Change[StorageClass]) -> bool:  # noqa: ARG001
    """Return whether a class was added, or its allowed topologies changed."""
    old, new = change.old, change.new
    if old is None or new is None:
        return True
    return old.allowed_topologies != new.allowed_topologies


def after_claim_change(pod: PodInfo, change: Change[PersistentVolumeClaim]) -> bool:
    """Return whether a claim of the pod was added or updated."""
    claim = change.newest
    if claim is None:
        return True
    meta = claim.metadata
    return pod.volumes.uses_claim(meta.namespace, meta.name, or_ephemeral=True)


def after_csi_node_change(pod: PodInfo, change: Change[CSINode]) -> bool:  # noqa: ARG001
    """Return whether the migrated plugins of a node changed."""
    old, new = change.old, change.new
    return old is None or new is None or _migrated(old) != _migrated(new)


def after_driver_change(pod: PodInfo, change: Change[CSIDriver]) -> bool:
    """Return whether a driver of the pod's inline volumes stopped reporting storage capacity."""
    old, new = change.old, change.new
    if old is None or new is None:
        return True
    if not old.spec.storage_capacity or new.spec.storage_capacity:
        return False
    sources = (volume.csi for volume in pod.pod.spec.volumes)
    return any(csi is not None and csi.driver == new.metadata.name for csi in sources)


def after_capacity_change(pod: PodInfo, change: Change[CSIStorageCapacity]) -> bool:  # noqa: ARG001
    """Return whether a capacity allows larger volumes than before."""
    old, new = change.old, change.new
    if old is None or new is None:
        return True
    before, now = volume_limit(old), volume_limit(new)
    return now is not None and (before is None or now > before)


def _migrated(csi_node: CSINode) -> str:
    return (csi_node.metadata.annotations or {}).get(ANNOTATION_MIGRATED_PLUGINS, "")


def _on(resource: Resource, action: Action, hint: Any = None) -> Registration:  # noqa: ANN401 (each of another kind)
    return Registration(ClusterEvent(resource, action), hint)


_CHANGED: Final = Action.ADD | Action.UPDATE


def registrations(storage: Storage) -> Sequence[Registration]:
    """Return the registrations; hints read the current claims."""

    def after_volume_change(pod: PodInfo, change: Change[PersistentVolume]) -> bool:  # noqa: ARG001
        """Return whether the pod can choose a volume: its claims do not wait for the controller.

        Otherwise PreFilter would reject it again, with the same message, before any volume is
        evaluated; events of its claims wake it. kube-scheduler retries it after each volume event.
        """
        try:
            return not sort_claims(usable_claims(pod, storage), storage).immediate
        except ObjectError:
            return False

    return (
        _on(Resource.STORAGE_CLASS, _CHANGED, after_class_change),
        _on(Resource.PERSISTENT_VOLUME_CLAIM, _CHANGED, after_claim_change),
        _on(Resource.PERSISTENT_VOLUME, _CHANGED, after_volume_change),
        # Node labels determine reachable volumes, and where volumes can be provisioned.
        _on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
        _on(Resource.CSI_NODE, _CHANGED, after_csi_node_change),
        _on(Resource.CSI_DRIVER, Action.UPDATE, after_driver_change),
        _on(Resource.CSI_STORAGE_CAPACITY, _CHANGED, after_capacity_change),
    )
