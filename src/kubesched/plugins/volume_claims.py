"""The claims of a pod: whether they may be used, and which of them have a volume.

pod ──> claims ── missing, lost, deleting, of another pod ──> a message
            └──> bound · unbound, to wait for the pod · unbound, to be bound at once
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from kubesched.api.core import Pod
from kubesched.api.storage import (
    ANNOTATION_BIND_COMPLETED,
    WAIT_FOR_FIRST_CONSUMER,
    PersistentVolumeClaim,
)
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_volumes import ClaimMount
from kubesched.cluster.storage import Storage
from kubesched.errors import ObjectError

LOST = "Lost"


class PodClaims(Struct, frozen=True):
    """A pod's claims, sorted by what is to be done about them; each in the pod's order."""

    bound: tuple[PersistentVolumeClaim, ...] = ()
    #: to be given a volume together with the pod's node
    delayed: tuple[PersistentVolumeClaim, ...] = ()
    #: to be bound by others, before the pod is scheduled
    immediate: tuple[PersistentVolumeClaim, ...] = ()


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Return whether a claim has its volume for good."""
    annotations = claim.metadata.annotations
    return bool(claim.spec.volume_name) and (
        annotations is not None and ANNOTATION_BIND_COMPLETED in annotations
    )


def usable_claims(pod: PodInfo, storage: Storage) -> list[PersistentVolumeClaim]:
    """Return the claims of a pod; raises ObjectError if one of them cannot be used as it is."""
    return [_usable(mount, pod.pod, storage) for mount in pod.volumes.mounts]


def _usable(mount: ClaimMount, pod: Pod, storage: Storage) -> PersistentVolumeClaim:
    name = mount.name
    claim = storage.claims.get(pod.metadata.namespace, name)
    if claim is None:
        if mount.ephemeral:
            raise ObjectError(
                "waiting for ephemeral volume controller to create the "
                f'persistentvolumeclaim "{name}"'
            )
        raise ObjectError(f'persistentvolumeclaim "{name}" not found')
    if claim.status.phase == LOST:
        raise ObjectError(
            f'persistentvolumeclaim "{name}" bound to non-existent '
            f'persistentvolume "{claim.spec.volume_name}"'
        )
    if claim.metadata.deletion_timestamp is not None:
        raise ObjectError(f'persistentvolumeclaim "{name}" is being deleted')
    if mount.ephemeral and not _is_made_for(claim, pod):
        namespace = pod.metadata.namespace
        raise ObjectError(
            f"PVC {namespace}/{name} was not created for pod "
            f"{namespace}/{pod.metadata.name} (pod is not owner)"
        )
    return claim


def _is_made_for(claim: PersistentVolumeClaim, pod: Pod) -> bool:
    owners = claim.metadata.owner_references
    controller = next((owner for owner in owners if owner.controller), None)
    return controller is not None and controller.uid == pod.metadata.uid


def sort_claims(claims: Iterable[PersistentVolumeClaim], storage: Storage) -> PodClaims:
    """Sort claims by what is to be done; raises ObjectError if a class has no binding mode."""
    bound, delayed, immediate = [], [], []
    for claim in claims:
        if is_fully_bound(claim):
            bound.append(claim)
        elif _waits_for_pod(claim, storage) and not claim.spec.volume_name:
            delayed.append(claim)
        else:
            immediate.append(claim)
    return PodClaims(tuple(bound), tuple(delayed), tuple(immediate))


def _waits_for_pod(claim: PersistentVolumeClaim, storage: Storage) -> bool:
    class_name = claim.storage_class
    known = storage.classes.get(class_name) if class_name else None
    if known is None:
        return False
    if known.volume_binding_mode is None:
        raise ObjectError(f'VolumeBindingMode not set for StorageClass "{class_name}"')
    return known.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
