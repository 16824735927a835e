"""Schemas of requests: the types of the fields that the server reads.

Objects are plain JSON and keep every field. These structs name only the fields that the server
itself reads; ``msgspec`` checks an object against them in one pass, so that defaulting and
validation can rely on the types. The structs are discarded.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from kubesched.api import resource as devices
from kubesched.api import scheduling as groups
from kubesched.embedded.refusals import bad_request
from kubesched.embedded.resources import ServedResource

JsonObject = dict[str, Any]
T = TypeVar("T")

Amounts = dict[str, str | int | float]
Strings = dict[str, str]


class Schema(Struct, frozen=True, kw_only=True, rename="camel"):
    """Base: every field may be missing or null."""


class OwnerSchema(Schema, frozen=True):
    """One entry of ownerReferences."""

    api_version: str | None = None
    kind: str | None = None
    name: str | None = None
    uid: str | None = None
    controller: bool | None = None


class MetaSchema(Schema, frozen=True):
    """``metadata`` of any object."""

    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    generation: int | None = None
    labels: Strings | None = None
    annotations: Strings | None = None
    finalizers: list[str] | None = None
    owner_references: list[OwnerSchema] | None = None
    managed_fields: list[JsonObject] | None = None
    deletion_grace_period_seconds: int | None = None


class ResourcesSchema(Schema, frozen=True):
    """Requests and limits."""

    requests: Amounts | None = None
    limits: Amounts | None = None
    claims: list[JsonObject] | None = None


class PortSchema(Schema, frozen=True):
    """A port of a container."""

    name: str | None = None
    container_port: int | None = None
    host_port: int | None = None
    host_ip: str | None = msgspec.field(name="hostIP", default=None)
    protocol: str | None = None


class MountSchema(Schema, frozen=True):
    """A volume in a container."""

    name: str | None = None
    mount_path: str | None = None


class ContainerSchema(Schema, frozen=True):
    """A container of any kind."""

    name: str | None = None
    image: str | None = None
    image_pull_policy: str | None = None
    restart_policy: str | None = None
    resources: ResourcesSchema | None = None
    ports: list[PortSchema] | None = None
    volume_mounts: list[MountSchema] | None = None
    env: list[JsonObject] | None = None
    liveness_probe: JsonObject | None = None
    readiness_probe: JsonObject | None = None
    startup_probe: JsonObject | None = None


class NamedSchema(Schema, frozen=True):
    """A volume, a gate, a claim: anything with a name."""

    name: str | None = None


class TolerationSchema(Schema, frozen=True):
    """A toleration."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    toleration_seconds: int | None = None


class RequirementSchema(Schema, frozen=True):
    """One matchExpressions entry, of labels or of nodes."""

    key: str | None = None
    operator: str | None = None
    values: list[str] | None = None


class LabelSelectorSchema(Schema, frozen=True):
    """A label selector."""

    match_labels: Strings | None = None
    match_expressions: list[RequirementSchema] | None = None


class SpreadSchema(Schema, frozen=True):
    """A topology spread constraint."""

    max_skew: int | None = None
    topology_key: str | None = None
    when_unsatisfiable: str | None = None
    label_selector: LabelSelectorSchema | None = None
    match_label_keys: list[str] | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None


class NodeTermSchema(Schema, frozen=True):
    """One of several node selector terms."""

    match_expressions: list[RequirementSchema] | None = None
    match_fields: list[RequirementSchema] | None = None


class NodeSelectorSchema(Schema, frozen=True):
    """Required node selector terms."""

    node_selector_terms: list[NodeTermSchema] | None = None


class PreferredNodeSchema(Schema, frozen=True):
    """A preferred node selector term."""

    weight: int | None = None
    preference: NodeTermSchema | None = None


class NodeAffinitySchema(Schema, frozen=True):
    """Node affinity."""

    required_during_scheduling_ignored_during_execution: NodeSelectorSchema | None = None
    preferred_during_scheduling_ignored_during_execution: list[PreferredNodeSchema] | None = None


class PodTermSchema(Schema, frozen=True):
    """A term of pod (anti-)affinity."""

    label_selector: LabelSelectorSchema | None = None
    namespace_selector: LabelSelectorSchema | None = None
    namespaces: list[str] | None = None
    topology_key: str | None = None
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None


class PreferredPodSchema(Schema, frozen=True):
    """The same, with a weight."""

    weight: int | None = None
    pod_affinity_term: PodTermSchema | None = None


class PodAffinitySchema(Schema, frozen=True):
    """Pod affinity and anti-affinity."""

    required_during_scheduling_ignored_during_execution: list[PodTermSchema] | None = None
    preferred_during_scheduling_ignored_during_execution: list[PreferredPodSchema] | None = None


class AffinitySchema(Schema, frozen=True):
    """All affinity of a pod."""

    node_affinity: NodeAffinitySchema | None = None
    pod_affinity: PodAffinitySchema | None = None
    pod_anti_affinity: PodAffinitySchema | None = None


class SchedulingGroupSchema(Schema, frozen=True):
    """The group that a pod is scheduled with."""

    pod_group_name: str | None = None


class PodSpecSchema(Schema, frozen=True):
    """The fields read of a pod's spec."""

    containers: list[ContainerSchema] | None = None
    init_containers: list[ContainerSchema] | None = None
    ephemeral_containers: list[ContainerSchema] | None = None
    volumes: list[NamedSchema] | None = None
    scheduling_gates: list[NamedSchema] | None = None
    resource_claims: list[NamedSchema] | None = None
    scheduling_group: SchedulingGroupSchema | None = None
    tolerations: list[TolerationSchema] | None = None
    topology_spread_constraints: list[SpreadSchema] | None = None
    affinity: AffinitySchema | None = None
    node_selector: Strings | None = None
    overhead: Amounts | None = None
    resources: ResourcesSchema | None = None
    node_name: str | None = None
    scheduler_name: str | None = None
    priority_class_name: str | None = None
    priority: int | None = None
    preemption_policy: str | None = None
    restart_policy: str | None = None
    host_network: bool | None = None
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    security_context: JsonObject | None = None


class TaintSchema(Schema, frozen=True):
    """A taint."""

    key: str | None = None
    value: str | None = None
    effect: str | None = None


class NodeSpecSchema(Schema, frozen=True):
    """The fields read of a node's spec."""

    taints: list[TaintSchema] | None = None
    unschedulable: bool | None = None


class ConditionSchema(Schema, frozen=True):
    """A condition of any object."""

    type: str | None = None
    status: str | None = None
    reason: str | None = None
    message: str | None = None


class StatusSchema(Schema, frozen=True):
    """The fields read of any object's status."""

    phase: str | None = None
    conditions: list[ConditionSchema] | None = None
    capacity: Amounts | None = None
    allocatable: Amounts | None = None


class NodeSchema(Schema, frozen=True):
    """A node, besides its metadata."""

    spec: NodeSpecSchema | None = None
    status: StatusSchema | None = None


class PodStatusSchema(StatusSchema, frozen=True):
    """The fields read of a pod's status."""

    nominated_node_name: str | None = None
    qos_class: str | None = None
    container_statuses: list[JsonObject] | None = None


class PodSchema(Schema, frozen=True):
    """A pod, besides its metadata and its spec."""

    status: PodStatusSchema | None = None


class AnySchema(Schema, frozen=True):
    """Any other object, besides its metadata."""

    spec: JsonObject | None = None
    status: JsonObject | None = None
    data: Strings | None = None


class EventSchema(Schema, frozen=True):
    """An event in its core form, besides its metadata."""

    involved_object: JsonObject | None = None
    source: JsonObject | None = None
    series: JsonObject | None = None
    reason: str | None = None
    message: str | None = None
    type: str | None = None
    action: str | None = None
    count: int | None = None
    reporting_component: str | None = None
    reporting_instance: str | None = None


class PriorityClassSchema(Schema, frozen=True):
    """A priority class, besides its metadata."""

    value: int | None = None
    global_default: bool | None = None
    preemption_policy: str | None = None


class TargetSchema(Schema, frozen=True):
    """The target of a binding."""

    kind: str | None = None
    name: str | None = None


class BindingSchema(Schema, frozen=True):
    """A binding."""

    metadata: MetaSchema | None = None
    target: TargetSchema | None = None


class PreconditionsSchema(Schema, frozen=True):
    """Preconditions of a deletion."""

    uid: str | None = None
    resource_version: str | None = None


class DeleteOptions(Schema, frozen=True):
    """Options of a deletion."""

    grace_period_seconds: int | None = None
    propagation_policy: str | None = None
    orphan_dependents: bool | None = None
    preconditions: PreconditionsSchema | None = None
    dry_run: list[str] | None = None


class ClaimTemplateSpecSchema(Schema, frozen=True):
    """What claims made from a template have."""

    metadata: MetaSchema | None = None
    spec: devices.ResourceClaimSpec | None = None


class ClaimTemplateSchema(Schema, frozen=True):
    """A template of claims, besides its metadata."""

    spec: ClaimTemplateSpecSchema | None = None


class GroupTemplateSchema(Schema, frozen=True):
    """A template of groups in a workload."""

    name: str | None = None
    scheduling_policy: groups.PodGroupSchedulingPolicy | None = None


class WorkloadSpecSchema(Schema, frozen=True):
    """The templates of a workload."""

    pod_group_templates: list[GroupTemplateSchema] | None = None
    composite_pod_group_templates: list[JsonObject] | None = None


class WorkloadSchema(Schema, frozen=True):
    """A workload, besides its metadata."""

    spec: WorkloadSpecSchema | None = None


#: Kinds that the scheduler reads as a whole have the scheduler's own structs.
_SHAPES: Final[dict[str, type[Struct]]] = {
    "CompositePodGroup": groups.CompositePodGroup,
    "CoscheduledGroup": groups.CoscheduledGroup,
    "DeviceClass": devices.DeviceClass,
    "DeviceTaintRule": devices.DeviceTaintRule,
    "Event": EventSchema,
    "Node": NodeSchema,
    "Pod": PodSchema,
    "PodGroup": groups.PodGroup,
    "PriorityClass": PriorityClassSchema,
    "ResourceClaim": devices.ResourceClaim,
    "ResourceClaimTemplate": ClaimTemplateSchema,
    "ResourceSlice": devices.ResourceSlice,
    "Workload": WorkloadSchema,
}


def check(resource: ServedResource, obj: JsonObject) -> None:
    """Reject an object whose metadata, spec or status does not match its schema."""
    read(resource, obj.get("metadata"), MetaSchema)
    read(resource, obj, _SHAPES.get(resource.rules, AnySchema))


def read(resource: ServedResource, value: object, schema: type[T]) -> T:
    """Convert a value to a schema; reject it as kube-apiserver does if it does not match."""
    try:
        return msgspec.convert(value or {}, schema)
    except msgspec.ValidationError as error:
        raise bad_request(
            f'{resource.kind} in version "{resource.version}" cannot be handled as a '
            f"{resource.kind}: {error}"
        ) from None
