"""Priority classes, and groups of pods that are scheduled together."""

from __future__ import annotations

from kubesched.api.core import ResourceList
from kubesched.api.meta import ApiStruct, ObjectMeta


class PriorityClass(ApiStruct, frozen=True):
    """A named priority, which admission resolves when a pod is created."""

    metadata: ObjectMeta = ObjectMeta()
    value: int = 0
    global_default: bool = False
    preemption_policy: str = ""


# --- pod groups -----------------------------------------------------------------------------------


class GangPolicy(ApiStruct, frozen=True):
    """Pods of the group are bound only if this many can be."""

    min_count: int = 0


class BasicPolicy(ApiStruct, frozen=True):
    """Pods of the group are bound as far as they fit."""


class PodGroupSchedulingPolicy(ApiStruct, frozen=True):
    """How the pods of a group are scheduled; exactly one is set."""

    basic: BasicPolicy | None = None
    gang: GangPolicy | None = None


class TopologyConstraint(ApiStruct, frozen=True):
    """Requires nodes with the same value of a label for all pods."""

    key: str = ""


class SchedulingConstraints(ApiStruct, frozen=True):
    """Constraints on the nodes of a group."""

    topology: tuple[TopologyConstraint, ...] = ()


class EmptyMode(ApiStruct, frozen=True):
    """A mode without parameters."""


class DisruptionMode(ApiStruct, frozen=True):
    """Whether pods of the group may be preempted one by one, or only all together."""

    single: EmptyMode | None = None
    all: EmptyMode | None = None


class PodGroupResourceClaim(ApiStruct, frozen=True):
    """A claim to devices that the pods of a group share, by name or made from a template."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodGroupResourceClaimStatus(ApiStruct, frozen=True):
    """The claim that was made from a template; None if none is needed."""

    name: str = ""
    resource_claim_name: str | None = None


class PodGroupSpec(ApiStruct, frozen=True):
    """The desired state of a group."""

    parent_composite_pod_group_name: str | None = None
    scheduling_policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()
    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: DisruptionMode | None = None
    priority: int | None = None
    preemption_policy: str | None = None
    resource_claims: tuple[PodGroupResourceClaim, ...] = ()


class GroupCondition(ApiStruct, frozen=True):
    """One aspect of a group's state."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: str | None = None


class GroupStatus(ApiStruct, frozen=True):
    """The observed state of a group."""

    conditions: tuple[GroupCondition, ...] = ()
    resource_claim_statuses: tuple[PodGroupResourceClaimStatus, ...] = ()


class PodGroup(ApiStruct, frozen=True):
    """Pods that are scheduled together."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodGroupSpec = PodGroupSpec()
    status: GroupStatus = GroupStatus()

    @property
    def min_count(self) -> int:
        """The number of pods that must fit for any of them to be bound."""
        gang = self.spec.scheduling_policy.gang
        return 1 if gang is None else gang.min_count


class CompositeGangPolicy(ApiStruct, frozen=True):
    """Groups are scheduled only if this many can be."""

    min_group_count: int = 0


class CompositeSchedulingPolicy(ApiStruct, frozen=True):
    """How the groups of a composite group are scheduled; exactly one is set."""

    basic: BasicPolicy | None = None
    gang: CompositeGangPolicy | None = None


class CompositePodGroupSpec(ApiStruct, frozen=True):
    """The desired state of a group of groups."""

    parent_composite_pod_group_name: str | None = None
    scheduling_policy: CompositeSchedulingPolicy = CompositeSchedulingPolicy()
    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: DisruptionMode | None = None
    priority: int | None = None
    preemption_policy: str | None = None


class CompositePodGroup(ApiStruct, frozen=True):
    """Groups that are scheduled together."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CompositePodGroupSpec = CompositePodGroupSpec()
    status: GroupStatus = GroupStatus()

    @property
    def min_count(self) -> int:
        """The number of groups that must fit for any of them to be scheduled."""
        gang = self.spec.scheduling_policy.gang
        return 1 if gang is None else gang.min_group_count


# --- the PodGroup of scheduler-plugins ------------------------------------------------------------


class CoscheduledGroupSpec(ApiStruct, frozen=True):
    """What the author of a group wants."""

    min_member: int = 0
    min_resources: ResourceList | None = None
    schedule_timeout_seconds: int | None = None


class CoscheduledGroupStatus(ApiStruct, frozen=True):
    """How a group stands."""

    phase: str = ""
    occupied_by: str = ""
    #: how many pods have a node, and how many of these are in which phase
    scheduled: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    schedule_start_time: str | None = None


class CoscheduledGroup(ApiStruct, frozen=True):
    """A PodGroup of ``scheduling.x-k8s.io``, which pods name by a label."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CoscheduledGroupSpec = CoscheduledGroupSpec()
    status: CoscheduledGroupStatus = CoscheduledGroupStatus()

    def as_pod_group(self, priority: int) -> PodGroup:
        """Return the PodGroup of ``scheduling.k8s.io`` that asks for the same."""
        gang = GangPolicy(min_count=self.spec.min_member)
        policy = PodGroupSchedulingPolicy(gang=gang)
        spec = PodGroupSpec(scheduling_policy=policy, priority=priority)
        return PodGroup(metadata=self.metadata, spec=spec)
