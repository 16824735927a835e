"""The objects of the core group that placement reads: pods, nodes, namespaces."""

from __future__ import annotations

from msgspec import field
from msgspec.structs import force_setattr

from kubesched.api.meta import ApiStruct, LabelSelector, ObjectMeta

#: A quantity on the wire; parsed by ``api.quantity``.
QuantityText = str | int | float
ResourceList = dict[str, QuantityText]


# --- pod spec ---------------------------------------------------------------------------------


class ResourceClaimRef(ApiStruct, frozen=True):
    """A container's use of one of its pod's resource claims."""

    name: str = ""
    request: str = ""


class ResourceRequirements(ApiStruct, frozen=True):
    """Requests and limits of a container or a pod."""

    requests: ResourceList | None = None
    limits: ResourceList | None = None
    claims: tuple[ResourceClaimRef, ...] = ()


class ContainerPort(ApiStruct, frozen=True):
    """A port; only those with a host port concern the scheduler."""

    container_port: int = 0
    host_port: int = 0
    host_ip: str = field(default="", name="hostIP")
    protocol: str = ""


class ContainerRestartRule(ApiStruct, frozen=True):
    """An action for certain exit codes of a container."""

    action: str = ""


class VolumeMount(ApiStruct, frozen=True):
    """A mount of a volume; only its special options matter here."""

    bind_mount_options: tuple[str, ...] = ()


class Container(ApiStruct, frozen=True):
    """A container, or an init container, which ``restartPolicy: Always`` makes a sidecar."""

    name: str = ""
    image: str = ""
    ports: tuple[ContainerPort, ...] = ()
    resources: ResourceRequirements | None = None
    restart_policy: str | None = None
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()
    #: only those with options: the others do not affect scheduling, and every container has some
    volume_mounts: tuple[VolumeMount, ...] = ()

    def __post_init__(self) -> None:
        if self.volume_mounts:
            special = tuple(each for each in self.volume_mounts if each.bind_mount_options)
            force_setattr(self, "volume_mounts", special)


class NodeSelectorRequirement(ApiStruct, frozen=True):
    """A condition on one node label or field."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(ApiStruct, frozen=True):
    """Conditions that must all hold; a term without any matches no node."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(ApiStruct, frozen=True):
    """Terms of which at least one must hold."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(ApiStruct, frozen=True):
    """A term that adds its weight to the score of the nodes it matches."""

    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(ApiStruct, frozen=True):
    """Nodes that a pod requires or prefers."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: (
        tuple[PreferredSchedulingTerm, ...] | None
    ) = None


class PodAffinityTerm(ApiStruct, frozen=True):
    """Pods to be near to, or away from, within a topology domain."""

    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(ApiStruct, frozen=True):
    """A preferred affinity term with its weight."""

    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(ApiStruct, frozen=True):
    """Required and preferred terms; anti-affinity has the same form."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()


class Affinity(ApiStruct, frozen=True):
    """All affinity of a pod."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(ApiStruct, frozen=True):
    """Taints that a pod tolerates."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class TopologySpreadConstraint(ApiStruct, frozen=True):
    """A limit of the skew of matching pods over the domains of a topology key."""

    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()


class PodSchedulingGate(ApiStruct, frozen=True):
    """A gate: the pod is not scheduled before its owner removes it."""

    name: str = ""


class ImageVolumeSource(ApiStruct, frozen=True):
    """A volume made of an OCI image."""

    reference: str = ""


class PersistentVolumeClaimVolumeSource(ApiStruct, frozen=True):
    """A volume by its claim."""

    claim_name: str = ""
    read_only: bool = False


class EphemeralVolumeSource(ApiStruct, frozen=True):
    """A volume with a claim made for this pod alone; its template is not read here."""


class CSIVolumeSource(ApiStruct, frozen=True):
    """A volume that a CSI driver makes for the pod, without a claim."""

    driver: str = ""


class GCEPersistentDiskVolumeSource(ApiStruct, frozen=True):
    """A Google Compute Engine disk."""

    pd_name: str = ""
    read_only: bool = False


class AWSElasticBlockStoreVolumeSource(ApiStruct, frozen=True):
    """An Amazon EBS volume."""

    volume_id: str = field(default="", name="volumeID")
    read_only: bool = False


class ISCSIVolumeSource(ApiStruct, frozen=True):
    """A disk by its iSCSI qualified name."""

    iqn: str = ""
    read_only: bool = False


class RBDVolumeSource(ApiStruct, frozen=True):
    """A Ceph image."""

    monitors: tuple[str, ...] = ()
    pool: str = "rbd"
    image: str = ""
    read_only: bool = False


class AzureDiskVolumeSource(ApiStruct, frozen=True):
    """An Azure disk."""

    disk_name: str = ""
    disk_uri: str = field(default="", name="diskURI")
    kind: str | None = None


class AzureFileVolumeSource(ApiStruct, frozen=True):
    """An Azure file share; volumes, unlike pods, name the secret's namespace."""

    secret_name: str = ""
    secret_namespace: str | None = None
    share_name: str = ""


class CinderVolumeSource(ApiStruct, frozen=True):
    """An OpenStack Cinder volume."""

    volume_id: str = field(default="", name="volumeID")


class VsphereVolumeSource(ApiStruct, frozen=True):
    """A vSphere disk."""

    volume_path: str = ""


class PortworxVolumeSource(ApiStruct, frozen=True):
    """A Portworx volume."""

    volume_id: str = field(default="", name="volumeID")


class Volume(ApiStruct, frozen=True):
    """A volume of a pod, with the sources that matter here."""

    name: str = ""
    image: ImageVolumeSource | None = None
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    csi: CSIVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    iscsi: ISCSIVolumeSource | None = None
    rbd: RBDVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    azure_file: AzureFileVolumeSource | None = None
    cinder: CinderVolumeSource | None = None
    vsphere_volume: VsphereVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None


class PodResourceClaim(ApiStruct, frozen=True):
    """A claim for devices that the pod needs: by name, or created for it from a template."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGroup(ApiStruct, frozen=True):
    """The group that a pod is scheduled with."""

    pod_group_name: str | None = None


class PodSpec(ApiStruct, frozen=True):
    """The desired state of a pod."""

    scheduler_name: str = ""
    node_name: str = ""
    priority: int | None = None
    preemption_policy: str | None = None
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    scheduling_group: PodSchedulingGroup | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    overhead: ResourceList | None = None
    resources: ResourceRequirements | None = None
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    ephemeral_containers: tuple[Container, ...] = ()
    volumes: tuple[Volume, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    host_network: bool = False
    host_users: bool | None = None
    termination_grace_period_seconds: int | None = None


# --- pod status -------------------------------------------------------------------------------


class PodCondition(ApiStruct, frozen=True):
    """One aspect of a pod's state."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_probe_time: str | None = None
    last_transition_time: str | None = None


class ContainerStatus(ApiStruct, frozen=True):
    """Resources that the kubelet reports for a container, which a resize may have changed."""

    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList | None = None


class PodResourceClaimStatus(ApiStruct, frozen=True):
    """The claim that was made from a template; None if the pod needs none."""

    name: str = ""
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(ApiStruct, frozen=True):
    """Which request of a claim serves an extended resource of a container."""

    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class PodExtendedResourceClaimStatus(ApiStruct, frozen=True):
    """The claim that the scheduler made for the extended resources of a pod."""

    request_mappings: tuple[ContainerExtendedResourceRequest, ...] = ()
    resource_claim_name: str = ""


class NodeAllocatableMappedResources(ApiStruct, frozen=True):
    """How much of a resource of the node the devices of a claim are."""

    name: str = ""
    quantity: QuantityText | None = None


class NodeAllocatableOverheadResources(ApiStruct, frozen=True):
    """How much of a resource of the node the use of a claim's devices costs."""

    name: str = ""
    per_pod: QuantityText | None = None
    per_container: QuantityText | None = None


class NodeAllocatableResourceClaimStatus(ApiStruct, frozen=True):
    """What a claim takes of its node's own resources, and the containers that use it."""

    resource_claim_name: str = ""
    containers: tuple[str, ...] = ()
    mapping: tuple[NodeAllocatableMappedResources, ...] = ()
    overhead: tuple[NodeAllocatableOverheadResources, ...] = ()


class PodStatus(ApiStruct, frozen=True):
    """The observed state of a pod."""

    phase: str = ""
    conditions: tuple[PodCondition, ...] = ()
    nominated_node_name: str = ""
    start_time: str | None = None
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList | None = None
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None
    node_allocatable_resource_claim_statuses: tuple[NodeAllocatableResourceClaimStatus, ...] = ()


class Pod(ApiStruct, frozen=True):
    """A pod."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


# --- nodes and namespaces ---------------------------------------------------------------------


class Taint(ApiStruct, frozen=True):
    """Repels pods that do not tolerate it."""

    key: str = ""
    value: str = ""
    effect: str = ""

    def __str__(self) -> str:
        value = f"={self.value}" if self.value else ""
        return f"{self.key}{value}:{self.effect}"


class NodePodPreemptionPolicy(ApiStruct, frozen=True):
    """The components that forbid preemption for resizes on a node."""

    disable_resize_preemption: tuple[str, ...] = ()


class NodeSpec(ApiStruct, frozen=True):
    """The desired state of a node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    pod_preemption_policy: NodePodPreemptionPolicy | None = None


class ContainerImage(ApiStruct, frozen=True):
    """An image on the node; the kubelet may report one without names."""

    names: tuple[str, ...] | None = None
    size_bytes: int = 0


class NodeCondition(ApiStruct, frozen=True):
    """One aspect of a node's health."""

    type: str = ""
    status: str = ""


class NodeStatus(ApiStruct, frozen=True):
    """The observed state of a node."""

    allocatable: ResourceList | None = None
    images: tuple[ContainerImage, ...] = ()
    conditions: tuple[NodeCondition, ...] = ()
    declared_features: tuple[str, ...] = ()


class Node(ApiStruct, frozen=True):
    """A node."""

    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class Namespace(ApiStruct, frozen=True):
    """A namespace; only its labels matter here."""

    metadata: ObjectMeta = ObjectMeta()
