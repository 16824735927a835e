"""What the claims of pods stand for: the volume of a CSI driver, or one that it will make.

    claim ── volumeName ──> volume ──> driver and handle
      └── no volume yet ──> class ──> provisioner, and a handle that nothing else has

Answers are cached; the caller invalidates those of claims that changed. Volumes of plugins that CSI
drivers have taken over count as theirs, on nodes that have a CSINode.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import NamedTuple

from kubesched.api.core import Pod, Volume
from kubesched.api.storage import PersistentVolume, PersistentVolumeClaim
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_volumes import ClaimMount
from kubesched.cluster.storage import ClaimKey, Storage
from kubesched.errors import ObjectError
from kubesched.plugins import csi_migration


class VolumeId(NamedTuple):
    """The identity of a CSI volume."""

    driver: str
    handle: str


class MissingClaimError(ObjectError):
    """A claim that a new pod uses is not there."""


class ClaimVolumes:
    """What claims stand for: the volume of a driver, or one that the driver will make."""

    def __init__(self, storage: Storage, *, prefix: str = "") -> None:
        self._storage = storage
        #: keeps volumes that are not made yet apart from those that are
        self.prefix = prefix or secrets.token_hex(16)
        self._known: dict[ClaimKey, VolumeId | None] = {}

    def of_pod(
        self, pod: PodInfo, *, has_csi_node: bool, must_exist: bool = False
    ) -> set[VolumeId]:
        """Return the volumes of a pod; raises ObjectError if a claim or volume is missing."""
        found = set()
        for volume in pod.volumes.attachable:
            if isinstance(volume, ClaimMount):
                one = self._of_mount(pod.pod, volume, has_csi_node, must_exist)
            else:
                one = _of_inline(volume, pod.labels.namespace, has_csi_node=has_csi_node)
            if one is not None:
                found.add(one)
        return found

    def _of_mount(
        self, pod: Pod, mount: ClaimMount, has_csi_node: bool, must_exist: bool
    ) -> VolumeId | None:
        key = mount.key
        claim = self._storage.claims.observed(*key)
        if claim is None:
            if must_exist:
                where = f"{mount.namespace}/{mount.name}"
                raise MissingClaimError(
                    f'looking up PVC {where}: persistentvolumeclaim "{mount.name}" not found'
                )
            return None
        if mount.ephemeral:
            check_owner(claim, pod)
        if not has_csi_node:
            return self._of_claim(claim, has_csi_node=False)
        if key not in self._known:
            self._known[key] = self._of_claim(claim, has_csi_node=True)
        return self._known[key]

    def forget(self, claims: Iterable[ClaimKey]) -> None:
        """Invalidate the volumes of claims."""
        for key in claims:
            self._known.pop(key, None)

    def _of_claim(self, claim: PersistentVolumeClaim, *, has_csi_node: bool) -> VolumeId | None:
        volume = None
        if claim.spec.volume_name:
            volume = self._storage.volumes.observed(claim.spec.volume_name)
        if volume is None:
            return self._of_class(claim, has_csi_node=has_csi_node)
        return _of_volume(volume, has_csi_node=has_csi_node)

    def _of_class(self, claim: PersistentVolumeClaim, *, has_csi_node: bool) -> VolumeId | None:
        """Return the volume that will be made for a claim."""
        storage_class = self._storage.classes.get(claim.storage_class)
        if storage_class is None:
            return None
        driver = storage_class.provisioner
        successor = csi_migration.SUCCESSORS.get(driver)
        if successor is not None:
            if not csi_migration.is_counted(driver, has_csi_node=has_csi_node):
                return None
            driver = successor.driver
        if not driver:
            return None
        meta = claim.metadata
        return VolumeId(driver, f"{self.prefix}-{meta.namespace}/{meta.name}")


def _of_volume(volume: PersistentVolume, *, has_csi_node: bool) -> VolumeId | None:
    source = volume.spec.csi
    if source is None:
        plugin = csi_migration.plugin_of(volume)
        if plugin is None or not csi_migration.is_counted(plugin, has_csi_node=has_csi_node):
            return None
        try:
            source = csi_migration.csi_source(volume)
        except ObjectError:
            return None
    if not source.driver or not source.volume_handle:
        return None
    return VolumeId(source.driver, source.volume_handle)


def _of_inline(volume: Volume, namespace: str, *, has_csi_node: bool) -> VolumeId | None:
    plugin = csi_migration.plugin_of_inline(volume)
    if plugin is None or not csi_migration.is_counted(plugin, has_csi_node=has_csi_node):
        return None
    try:
        source = csi_migration.inline_source(volume, namespace)
    except ObjectError as failed:
        raise ObjectError(
            f"converting volume({volume.name}) from inline to csi: {failed}"
        ) from None
    return VolumeId(source.driver, source.volume_handle)


def check_owner(claim: PersistentVolumeClaim, pod: Pod) -> None:
    """Raise ObjectError unless a claim was made for a pod."""
    owners = claim.metadata.owner_references
    if not any(owner.controller and owner.uid == pod.metadata.uid for owner in owners):
        raise ObjectError(
            f"PVC {claim.metadata.namespace}/{claim.metadata.name} was not created for pod "
            f"{pod.metadata.namespace}/{pod.metadata.name} (pod is not owner)"
        )
