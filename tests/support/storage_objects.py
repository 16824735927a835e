"""Small builders of storage objects, and of the volumes that pods have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from kubesched.api.core import (
    AWSElasticBlockStoreVolumeSource,
    EphemeralVolumeSource,
    GCEPersistentDiskVolumeSource,
    ISCSIVolumeSource,
    PersistentVolumeClaimVolumeSource,
    Pod,
    RBDVolumeSource,
    Volume,
)
from kubesched.api.meta import ObjectMeta, OwnerReference
from kubesched.api.storage import (
    WAIT_FOR_FIRST_CONSUMER,
    CSIDriver,
    CSIDriverSpec,
    CSINode,
    CSINodeDriver,
    CSINodeSpec,
    CSIPersistentVolumeSource,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    StorageClass,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
    VolumeNodeResources,
)

DRIVER = "disk.example.com"


# --- volumes of pods ----------------------------------------------------------------------------


def with_volumes(plain: Pod, *volumes: Volume) -> Pod:
    """Return a pod that has these volumes as well."""
    return replace(plain, spec=replace(plain.spec, volumes=(*plain.spec.volumes, *volumes)))


def using(plain: Pod, *claims: str) -> Pod:
    """Return a pod that uses claims."""
    return with_volumes(plain, *(claim_volume(name) for name in claims))


def claim_volume(claim_name: str) -> Volume:
    """Make a volume by its claim."""
    source = PersistentVolumeClaimVolumeSource(claim_name=claim_name)
    return Volume(name=claim_name, persistent_volume_claim=source)


def ephemeral_volume(name: str) -> Volume:
    """Make a volume whose claim is made for the pod."""
    return Volume(name=name, ephemeral=EphemeralVolumeSource())


def gce_disk(name: str, *, read_only: bool = False) -> Volume:
    """Make a volume that is a disk of Google's."""
    disk = GCEPersistentDiskVolumeSource(pd_name=name, read_only=read_only)
    return Volume(name=name, gce_persistent_disk=disk)


def aws_disk(volume_id: str, *, read_only: bool = False) -> Volume:
    """Make a volume that is a disk of Amazon's."""
    disk = AWSElasticBlockStoreVolumeSource(volume_id=volume_id, read_only=read_only)
    return Volume(name="aws", aws_elastic_block_store=disk)


def iscsi_disk(iqn: str, *, read_only: bool = False) -> Volume:
    """Make a volume that is an iSCSI disk."""
    return Volume(name="iscsi", iscsi=ISCSIVolumeSource(iqn=iqn, read_only=read_only))


def rbd_image(image: str, *monitors: str, pool: str = "rbd", read_only: bool = False) -> Volume:
    """Make a volume that is a Ceph image."""
    source = RBDVolumeSource(image=image, monitors=monitors, pool=pool, read_only=read_only)
    return Volume(name="rbd", rbd=source)


# --- objects ------------------------------------------------------------------------------------


def claim(
    name: str,
    *,
    namespace: str = "default",
    volume: str = "",
    storage_class: str | None = None,
    modes: Sequence[str] = ("ReadWriteOnce",),
    version: str = "1",
    owner: str = "",
) -> PersistentVolumeClaim:
    """Make a claim; `owner` is the uid of the pod that it was made for."""
    owners = (OwnerReference(kind="Pod", uid=owner, controller=True),) if owner else ()
    return PersistentVolumeClaim(
        metadata=ObjectMeta(
            name=name, namespace=namespace, resource_version=version, owner_references=owners
        ),
        spec=PersistentVolumeClaimSpec(
            volume_name=volume, storage_class_name=storage_class, access_modes=tuple(modes)
        ),
    )


def persistent_volume(
    name: str,
    *,
    driver: str = DRIVER,
    handle: str | None = None,
    storage_class: str = "",
    labels: Mapping[str, str] | None = None,
    version: str = "1",
) -> PersistentVolume:
    """Make a volume of a CSI driver; its handle is its name unless said otherwise."""
    source = CSIPersistentVolumeSource(
        driver=driver, volume_handle=name if handle is None else handle
    )
    return PersistentVolume(
        metadata=ObjectMeta(
            name=name, resource_version=version, labels=dict(labels) if labels else None
        ),
        spec=PersistentVolumeSpec(csi=source, storage_class_name=storage_class),
    )


def storage_class(
    name: str, *, provisioner: str = DRIVER, mode: str | None = WAIT_FOR_FIRST_CONSUMER
) -> StorageClass:
    """Make a class."""
    return StorageClass(
        metadata=ObjectMeta(name=name), provisioner=provisioner, volume_binding_mode=mode
    )


def csi_node(name: str, limits: Mapping[str, int | None] | None = None) -> CSINode:
    """Make a CSINode: driver → how many volumes, None for any number."""
    return CSINode(
        metadata=ObjectMeta(name=name),
        spec=CSINodeSpec(
            drivers=tuple(
                CSINodeDriver(
                    name=driver,
                    allocatable=None if limit is None else VolumeNodeResources(count=limit),
                )
                for driver, limit in (limits or {}).items()
            )
        ),
    )


def csi_driver(name: str = DRIVER, *, needed: bool | None = None) -> CSIDriver:
    """Make a driver; `needed` nodes must have it."""
    spec = CSIDriverSpec(prevent_pod_scheduling_if_missing=needed)
    return CSIDriver(metadata=ObjectMeta(name=name), spec=spec)


def attachment(
    name: str, *, node: str, volume: str | None, attacher: str = DRIVER
) -> VolumeAttachment:
    """Make an attachment."""
    return VolumeAttachment(
        metadata=ObjectMeta(name=name),
        spec=VolumeAttachmentSpec(
            attacher=attacher,
            node_name=node,
            source=VolumeAttachmentSource(persistent_volume_name=volume),
        ),
    )
