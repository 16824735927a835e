"""The shape that objects must have before anybody looks into them: a text where a text belongs.

Objects are plain JSON and keep every field. These structs name only the fields that the server
reads itself; ``msgspec`` checks an object against them in one pass, after which the code that
fills in defaults and validates can trust what it finds. Nothing of a struct is kept.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from kubesched.embedded.refusals import bad_request
from kubesched.embedded.resources import Resource

JsonObject = dict[str, Any]
T = TypeVar("T")

Amounts = dict[str, str | int | float]
Strings = dict[str, str]


class Shape(Struct, frozen=True, kw_only=True, rename="camel"):
    """Base: every field may be missing or null."""


class OwnerShape(Shape, frozen=True):
    """One entry of ownerReferences."""

    api_version: str | None = None
    kind: str | None = None
    name: str | None = None
    uid: str | None = None
    controller: bool | None = None


class MetaShape(Shape, frozen=True):
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
    owner_references: list[OwnerShape] | None = None
    managed_fields: list[JsonObject] | None = None
    deletion_grace_period_seconds: int | None = None


class ResourcesShape(Shape, frozen=True):
    """Requests and limits."""

    requests: Amounts | None = None
    limits: Amounts | None = None
    claims: list[JsonObject] | None = None


class PortShape(Shape, frozen=True):
    """A port of a container."""

    name: str | None = None
    container_port: int | None = None
    host_port: int | None = None
    host_ip: str | None = msgspec.field(name="hostIP", default=None)
    protocol: str | None = None


class MountShape(Shape, frozen=True):
    """A volume in a container."""

    name: str | None = None
    mount_path: str | None = None


class ContainerShape(Shape, frozen=True):
    """A container of any kind."""

    name: str | None = None
    image: str | None = None
    image_pull_policy: str | None = None
    restart_policy: str | None = None
    resources: ResourcesShape | None = None
    ports: list[PortShape] | None = None
    volume_mounts: list[MountShape] | None = None
    env: list[JsonObject] | None = None
    liveness_probe: JsonObject | None = None
    readiness_probe: JsonObject | None = None
    startup_probe: JsonObject | None = None


class NamedShape(Shape, frozen=True):
    """A volume, a gate, a claim: anything that is known by its name."""

    name: str | None = None


class TolerationShape(Shape, frozen=True):
    """A toleration."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    toleration_seconds: int | None = None


class RequirementShape(Shape, frozen=True):
    """One matchExpressions entry, of labels or of nodes."""

    key: str | None = None
    operator: str | None = None
    values: list[str] | None = None


class LabelSelectorShape(Shape, frozen=True):
    """A label selector."""

    match_labels: Strings | None = None
    match_expressions: list[RequirementShape] | None = None


class SpreadShape(Shape, frozen=True):
    """A topology spread constraint."""

    max_skew: int | None = None
    topology_key: str | None = None
    when_unsatisfiable: str | None = None
    label_selector: LabelSelectorShape | None = None
    match_label_keys: list[str] | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None


class NodeTermShape(Shape, frozen=True):
    """One of several node selector terms."""

    match_expressions: list[RequirementShape] | None = None
    match_fields: list[RequirementShape] | None = None


class NodeSelectorShape(Shape, frozen=True):
    """What a node must have."""

    node_selector_terms: list[NodeTermShape] | None = None


class PreferredNodeShape(Shape, frozen=True):
    """What a node should have."""

    weight: int | None = None
    preference: NodeTermShape | None = None


class NodeAffinityShape(Shape, frozen=True):
    """Node affinity."""

    required_during_scheduling_ignored_during_execution: NodeSelectorShape | None = None
    preferred_during_scheduling_ignored_during_execution: list[PreferredNodeShape] | None = None


class PodTermShape(Shape, frozen=True):
    """Near, or far from, which pods."""

    label_selector: LabelSelectorShape | None = None
    namespace_selector: LabelSelectorShape | None = None
    namespaces: list[str] | None = None
    topology_key: str | None = None
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None


class PreferredPodShape(Shape, frozen=True):
    """The same, with a weight."""

    weight: int | None = None
    pod_affinity_term: PodTermShape | None = None


class PodAffinityShape(Shape, frozen=True):
    """Pod affinity and anti-affinity."""

    required_during_scheduling_ignored_during_execution: list[PodTermShape] | None = None
    preferred_during_scheduling_ignored_during_execution: list[PreferredPodShape] | None = None


class AffinityShape(Shape, frozen=True):
    """All affinity of a pod."""

    node_affinity: NodeAffinityShape | None = None
    pod_affinity: PodAffinityShape | None = None
    pod_anti_affinity: PodAffinityShape | None = None


class PodSpecShape(Shape, frozen=True):
    """What is read of a pod's spec."""

    containers: list[ContainerShape] | None = None
    init_containers: list[ContainerShape] | None = None
    ephemeral_containers: list[ContainerShape] | None = None
    volumes: list[NamedShape] | None = None
    scheduling_gates: list[NamedShape] | None = None
    resource_claims: list[NamedShape] | None = None
    tolerations: list[TolerationShape] | None = None
    topology_spread_constraints: list[SpreadShape] | None = None
    affinity: AffinityShape | None = None
    node_selector: Strings | None = None
    overhead: Amounts | None = None
    resources: ResourcesShape | None = None
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


class TaintShape(Shape, frozen=True):
    """A taint."""

    key: str | None = None
    value: str | None = None
    effect: str | None = None


class NodeSpecShape(Shape, frozen=True):
    """What is read of a node's spec."""

    taints: list[TaintShape] | None = None
    unschedulable: bool | None = None


class ConditionShape(Shape, frozen=True):
    """A condition of any object."""

    type: str | None = None
    status: str | None = None
    reason: str | None = None
    message: str | None = None


class StatusShape(Shape, frozen=True):
    """What is read of the status of any object."""

    phase: str | None = None
    conditions: list[ConditionShape] | None = None
    capacity: Amounts | None = None
    allocatable: Amounts | None = None


class NodeShape(Shape, frozen=True):
    """A node, besides its metadata."""

    spec: NodeSpecShape | None = None
    status: StatusShape | None = None


class PodStatusShape(StatusShape, frozen=True):
    """What is read of a pod's status."""

    nominated_node_name: str | None = None
    qos_class: str | None = None
    container_statuses: list[JsonObject] | None = None


class PodShape(Shape, frozen=True):
    """A pod, besides its metadata and its spec."""

    status: PodStatusShape | None = None


class AnyShape(Shape, frozen=True):
    """Any other object, besides its metadata."""

    spec: JsonObject | None = None
    status: JsonObject | None = None
    data: Strings | None = None


class EventShape(Shape, frozen=True):
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


class PriorityClassShape(Shape, frozen=True):
    """A priority class, besides its metadata."""

    value: int | None = None
    global_default: bool | None = None
    preemption_policy: str | None = None


class TargetShape(Shape, frozen=True):
    """What a binding binds to."""

    kind: str | None = None
    name: str | None = None


class BindingShape(Shape, frozen=True):
    """A binding."""

    metadata: MetaShape | None = None
    target: TargetShape | None = None


class PreconditionsShape(Shape, frozen=True):
    """What must hold for a deletion."""

    uid: str | None = None
    resource_version: str | None = None


class DeleteOptions(Shape, frozen=True):
    """How to delete."""

    grace_period_seconds: int | None = None
    propagation_policy: str | None = None
    orphan_dependents: bool | None = None
    preconditions: PreconditionsShape | None = None
    dry_run: list[str] | None = None


_SHAPES: Final[dict[str, type[Shape]]] = {
    "Event": EventShape,
    "Node": NodeShape,
    "Pod": PodShape,
    "PriorityClass": PriorityClassShape,
}


def check(resource: Resource, obj: JsonObject) -> None:
    """Refuse an object whose metadata, spec or status is not of the right shape."""
    read(resource, obj.get("metadata"), MetaShape)
    read(resource, obj, _SHAPES.get(resource.kind, AnyShape))


def read(resource: Resource, value: object, shape: type[T]) -> T:
    """Return a value in a shape; refuse it as kube-apiserver does if it does not fit."""
    try:
        return msgspec.convert(value or {}, shape)
    except msgspec.ValidationError as error:
        raise bad_request(
            f'{resource.kind} in version "{resource.version}" cannot be handled as a '
            f"{resource.kind}: {error}"
        ) from None
