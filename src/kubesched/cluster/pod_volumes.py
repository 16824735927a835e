"""The volumes of a pod that matter to scheduling, compiled once.

Most volumes (tokens, configuration, scratch space) do not matter. Those that do are claims, disks
that are used without a claim, and among these the disks that cannot be shared.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Final

from msgspec import Struct

from kubesched.api.core import Pod, RBDVolumeSource, Volume

#: Identifies a disk: its kind and its name.
DiskKey = tuple[str, ...]


class ClaimMount(Struct, frozen=True, gc=False):
    """A pod's use of a claim."""

    #: name of the volume in the pod
    volume: str
    namespace: str
    #: name of the claim
    name: str
    #: whether the claim is an ephemeral volume's, which the pod must then own
    ephemeral: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name of the claim."""
        return self.namespace, self.name


class Disk(Struct, frozen=True, gc=False):
    """A disk that pods of a node can share for reading at most."""

    #: all identities of the disk
    keys: tuple[DiskKey, ...]
    read_only: bool

    def conflicts(self, other: Disk) -> bool:
        """Return whether a node cannot mount both."""
        shared = any(key in other.keys for key in self.keys)
        return shared and not (self.read_only and other.read_only)


class PodVolumes(Struct, frozen=True, dict=True):
    """The volumes of a pod that matter, in the pod's order."""

    #: claims, and disks without a claim that may be migrated to a CSI driver
    attachable: tuple[ClaimMount | Volume, ...] = ()
    disks: tuple[Disk, ...] = ()

    @cached_property
    def mounts(self) -> tuple[ClaimMount, ...]:
        """All claims, ephemeral ones included."""
        return tuple([each for each in self.attachable if isinstance(each, ClaimMount)])

    @cached_property
    def named_claims(self) -> tuple[ClaimMount, ...]:
        """The claims that the pod names."""
        return tuple([each for each in self.mounts if not each.ephemeral])

    def uses_claim(self, namespace: str, name: str, *, or_ephemeral: bool = False) -> bool:
        """Return whether the pod names a claim; with `or_ephemeral`, also whether it is made for
        the
        pod.
        """
        return any(
            each.name == name and each.namespace == namespace
            for each in (self.mounts if or_ephemeral else self.named_claims)
        )


NO_VOLUMES: Final = PodVolumes()


def compile_volumes(pod: Pod) -> PodVolumes:
    """Compile the volumes of a pod."""
    attachable: list[ClaimMount | Volume] = []
    disks: list[Disk] = []
    for volume in pod.spec.volumes:
        mount = _mount(pod, volume)
        if mount is not None:
            attachable.append(mount)
            continue
        if is_migratable(volume):
            attachable.append(volume)
        disk = _disk(volume)
        if disk is not None:
            disks.append(disk)
    if not attachable and not disks:
        return NO_VOLUMES
    return PodVolumes(tuple(attachable), tuple(disks))


def ephemeral_claim_name(pod: Pod, volume_name: str) -> str:
    """Return the name of the claim for a pod's ephemeral volume."""
    return f"{pod.metadata.name}-{volume_name}"


def is_migratable(volume: Volume) -> bool:
    """Return whether a volume is of an in-tree kind that is migrated to a CSI driver."""
    return (
        volume.gce_persistent_disk is not None
        or volume.aws_elastic_block_store is not None
        or volume.azure_disk is not None
        or volume.azure_file is not None
        or volume.cinder is not None
        or volume.vsphere_volume is not None
        or volume.portworx_volume is not None
    )


def any_conflict(first: Iterable[Disk], second: Iterable[Disk]) -> bool:
    """Return whether a node cannot mount all disks of two pods."""
    second = list(second)
    return any(disk.conflicts(other) for disk in first for other in second)


def _mount(pod: Pod, volume: Volume) -> ClaimMount | None:
    namespace = pod.metadata.namespace
    if volume.persistent_volume_claim is not None:
        return ClaimMount(volume.name, namespace, volume.persistent_volume_claim.claim_name)
    if volume.ephemeral is not None:
        name = ephemeral_claim_name(pod, volume.name)
        return ClaimMount(volume.name, namespace, name, ephemeral=True)
    return None


def _disk(volume: Volume) -> Disk | None:
    if (gce := volume.gce_persistent_disk) is not None:
        return Disk((("gce", gce.pd_name),), gce.read_only)
    if (aws := volume.aws_elastic_block_store) is not None:
        # Not shared, not even for reading.
        return Disk((("aws", aws.volume_id),), read_only=False)
    if (iscsi := volume.iscsi) is not None:
        return Disk((("iscsi", iscsi.iqn),), iscsi.read_only)
    if volume.rbd is not None:
        return Disk(_rbd_keys(volume.rbd), volume.rbd.read_only)
    return None


def _rbd_keys(rbd: RBDVolumeSource) -> tuple[DiskKey, ...]:
    # Two RBD images are the same if they have a monitor in common.
    return tuple(("rbd", monitor, rbd.pool, rbd.image) for monitor in dict.fromkeys(rbd.monitors))
