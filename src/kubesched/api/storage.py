"""Storage: volumes, claims, classes, and the CSI objects about nodes and capacity.

    pod ── claimName ──> PersistentVolumeClaim ── volumeName ──> PersistentVolume ── csi ──> disk
                                └─ storageClassName ──> StorageClass ── provisioner ──> CSIDriver

Only fields that placement reads; these structs are never written back.
"""

from __future__ import annotations

from kubesched.api.core import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    AzureFileVolumeSource,
    CinderVolumeSource,
    GCEPersistentDiskVolumeSource,
    NodeSelector,
    PortworxVolumeSource,
    QuantityText,
    ResourceList,
    ResourceRequirements,
    VsphereVolumeSource,
)
from kubesched.api.meta import ApiStruct, LabelSelector, ObjectMeta

# --- access modes, phases, binding modes --------------------------------------------------------

READ_WRITE_ONCE_POD = "ReadWriteOncePod"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"

# --- annotations --------------------------------------------------------------------------------

#: The legacy class annotation of a claim or a volume; it has precedence over the field.
ANNOTATION_CLASS = "volume.beta.kubernetes.io/storage-class"
#: Set by the volume controller once a claim is fully bound.
ANNOTATION_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
#: Set on a claim or a volume that a controller bound, not its author.
ANNOTATION_BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
#: The node that a claim's volume is to be provisioned for.
ANNOTATION_SELECTED_NODE = "volume.kubernetes.io/selected-node"
#: In-tree drivers migrated to CSI on a node, comma-separated.
ANNOTATION_MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"


# --- volumes ------------------------------------------------------------------------------------


class ClaimReference(ApiStruct, frozen=True):
    """The claim that a volume is bound to, or reserved for."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    resource_version: str = ""


class CSIPersistentVolumeSource(ApiStruct, frozen=True):
    """A volume of a CSI driver."""

    driver: str = ""
    volume_handle: str = ""


class VolumeNodeAffinity(ApiStruct, frozen=True):
    """Nodes that can use a volume."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(ApiStruct, frozen=True):
    """The desired state of a volume."""

    capacity: ResourceList | None = None
    access_modes: tuple[str, ...] = ()
    claim_ref: ClaimReference | None = None
    storage_class_name: str = ""
    #: None means Filesystem
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    csi: CSIPersistentVolumeSource | None = None
    # Sources migrated to CSI drivers.
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    azure_file: AzureFileVolumeSource | None = None
    cinder: CinderVolumeSource | None = None
    vsphere_volume: VsphereVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None


class PersistentVolumeStatus(ApiStruct, frozen=True):
    """The observed state of a volume."""

    phase: str = ""


class PersistentVolume(ApiStruct, frozen=True):
    """A volume."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()

    @property
    def storage_class(self) -> str:
        """The name of the volume's class, "" if it has none."""
        annotated = _annotated_class(self.metadata)
        return self.spec.storage_class_name if annotated is None else annotated


# --- claims -------------------------------------------------------------------------------------


class PersistentVolumeClaimSpec(ApiStruct, frozen=True):
    """The desired state of a claim."""

    access_modes: tuple[str, ...] = ()
    resources: ResourceRequirements | None = None
    storage_class_name: str | None = None
    #: None means Filesystem
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    #: the volume that it is bound to, or that its author requests
    volume_name: str = ""
    selector: LabelSelector | None = None


class PersistentVolumeClaimStatus(ApiStruct, frozen=True):
    """The observed state of a claim."""

    phase: str = ""


class PersistentVolumeClaim(ApiStruct, frozen=True):
    """A claim to a volume."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()

    @property
    def storage_class(self) -> str:
        """The name of the claim's class, "" if it has none."""
        annotated = _annotated_class(self.metadata)
        return self.spec.storage_class_name or "" if annotated is None else annotated


def _annotated_class(meta: ObjectMeta) -> str | None:
    return meta.annotations.get(ANNOTATION_CLASS) if meta.annotations else None


# --- classes ------------------------------------------------------------------------------------


class TopologySelectorLabelRequirement(ApiStruct, frozen=True):
    """A label and its allowed values."""

    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(ApiStruct, frozen=True):
    """Label requirements that must all match."""

    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ()


class StorageClass(ApiStruct, frozen=True):
    """How volumes are provisioned for claims."""

    metadata: ObjectMeta = ObjectMeta()
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()


# --- CSI ----------------------------------------------------------------------------------------


class VolumeNodeResources(ApiStruct, frozen=True):
    """Volume limit of a driver on a node."""

    #: None means any number
    count: int | None = None


class CSINodeDriver(ApiStruct, frozen=True):
    """A driver on a node."""

    name: str = ""
    allocatable: VolumeNodeResources | None = None
    topology_keys: tuple[str, ...] = ()


class CSINodeSpec(ApiStruct, frozen=True):
    """The drivers on a node."""

    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(ApiStruct, frozen=True):
    """The CSI drivers of a node; named after the node."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(ApiStruct, frozen=True):
    """Capabilities of a driver."""

    #: whether it publishes storage capacities, which the scheduler must then check
    storage_capacity: bool | None = None
    #: whether nodes without the driver reject pods that need it
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(ApiStruct, frozen=True):
    """A driver."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(ApiStruct, frozen=True):
    """Free capacity of a class on some nodes."""

    metadata: ObjectMeta = ObjectMeta()
    node_topology: LabelSelector | None = None
    storage_class_name: str = ""
    capacity: QuantityText | None = None
    maximum_volume_size: QuantityText | None = None


class VolumeAttachmentSource(ApiStruct, frozen=True):
    """The volume of an attachment."""

    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(ApiStruct, frozen=True):
    """A volume that is, or is to be, attached to a node."""

    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachment(ApiStruct, frozen=True):
    """An attachment."""

    metadata: ObjectMeta = ObjectMeta()
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
