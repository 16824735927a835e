"""Priority classes, and groups of pods that are scheduled together."""

from __future__ import annotations

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
    """All pods are to be on nodes with the same value of a label."""

    key: str = ""


class SchedulingConstraints(ApiStruct, frozen=True):
    """What must hold of all nodes of a group together."""

    topology: tuple[TopologyConstraint, ...] = ()


class EmptyMode(ApiStruct, frozen=True):
    """A choice that has no parameters."""


class DisruptionMode(ApiStruct, frozen=True):
    """Whether pods of the group may be preempted one by one, or all of them only."""

    single: EmptyMode | None = None
    all: EmptyMode | None = None


class PodGroupSpec(ApiStruct, frozen=True):
    """What the author of a group wants."""

    parent_composite_pod_group_name: str | None = None
    scheduling_policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()
    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: DisruptionMode | None = None
    priority: int | None = None
    preemption_policy: str | None = None


class GroupCondition(ApiStruct, frozen=True):
    """How a group stands in one respect."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: str | None = None


class GroupStatus(ApiStruct, frozen=True):
    """How a group stands."""

    conditions: tuple[GroupCondition, ...] = ()


class PodGroup(ApiStruct, frozen=True):
    """Pods that are scheduled together."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodGroupSpec = PodGroupSpec()
    status: GroupStatus = GroupStatus()

    @property
    def min_count(self) -> int:
        """How many pods have to fit for any of them to be bound."""
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
    """What the author of a group of groups wants."""

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
        """How many groups have to fit for any of them to be scheduled."""
        gang = self.spec.scheduling_policy.gang
        return 1 if gang is None else gang.min_group_count
