"""Coscheduling: gangs for clusters without the gate GenericWorkload.

Pods name a PodGroup of scheduler-plugins (``scheduling.x-k8s.io``) by a label. Such a group is
scheduled as a gang of ``minMember`` pods, in the same cycle as any other group of pods:

    QueueSort           by priority, then by the age of the group or the pod
    PreEnqueue          gates pods until there are ``minMember`` of them
    PlacementFeasible   the group did not fail just before, if the arguments ask for that;
                        ``minResources`` are free; enough members were placed
    Permit, Unreserve   pods wait for the others; if one of them fails, none is bound

The plugin is not among kube-scheduler's own. Its label, arguments and texts are those of
scheduler-plugins, so a profile that was written for it works here.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

import msgspec

from kubesched.api import names, quantity
from kubesched.api.core import Pod, ResourceList
from kubesched.api.scheduling import CoscheduledGroup
from kubesched.clock import Clock
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_groups import GroupKey, GroupKind, GroupMembers, key_of_group
from kubesched.cluster.pod_info import PodInfo
from kubesched.config.profiles import Profile
from kubesched.errors import ConfigError, QuantityError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.group import GroupInfo, Progress
from kubesched.framework.plugin import (
    Permit,
    PlacementFeasible,
    PreEnqueue,
    QueueSort,
    Reserve,
)
from kubesched.framework.registry import PluginContext
from kubesched.framework.status import SUCCESS, Code, Status, unresolvable, unschedulable
from kubesched.framework.waiting import WaitingPod, WaitingPods
from kubesched.queue.events import Action, ClusterEvent, Resource
from kubesched.queue.hints import Change, Registration, Registrations
from kubesched.queue.queued_group import QueuedGroup
from kubesched.queue.queued_pod import QueuedEntity

GROUPS: Final = "scheduling.x-k8s.io/PodGroup"
NOT_FOUND: Final = unschedulable("PodGroup not found")
WAITING: Final = Status(Code.WAIT)
#: The type meta of an object is no argument.
_TYPE_FIELDS: Final = ("apiVersion", "kind")


class CoschedulingArgs(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """Arguments in a profile."""

    #: how long pods wait for the others, unless their group says so
    permit_waiting_time_seconds: int = 60
    #: how long a group that failed is not tried again
    pod_group_backoff_seconds: int = 0
    #: of scheduler-plugins: without effect, as all members are tried at once
    pod_group_reject_percentage: int = 10

    def __post_init__(self) -> None:
        for field in ("permit_waiting_time_seconds", "pod_group_backoff_seconds"):
            if getattr(self, field) < 0:
                raise ValueError(f"{field} must not be negative")


class Coscheduling(QueueSort, PreEnqueue, PlacementFeasible, Reserve, Permit):
    """Lets gangs of scheduler-plugins be bound as a whole, or not at all."""

    name = "Coscheduling"
    repeats_skip = True
    Args = CoschedulingArgs

    def __init__(
        self, args: CoschedulingArgs, cluster: Cluster, waiting: WaitingPods, clock: Clock
    ) -> None:
        self._args = args
        self._table = cluster.table
        self._groups = cluster.groups
        self._waiting = waiting
        self._clock = clock
        #: group → the state of the last attempt at it, and when that was
        self._attempts: dict[GroupKey, tuple[CycleState, float]] = {}

    @classmethod
    def create(cls, context: PluginContext) -> Coscheduling:
        """Make the plugin; from then on the label counts in pods of the profile."""
        args = _arguments(context.profile)
        context.cluster.group_by_label(context.profile.scheduler_name)
        return cls(args, context.cluster, context.waiting, context.clock)

    def _key_of(self, pod: Pod) -> GroupKey | None:
        key = self._groups.of(pod)
        return key if key is not None and key.kind is GroupKind.COSCHEDULED else None

    def _get(self, key: GroupKey) -> CoscheduledGroup | None:
        return self._groups.coscheduled.get(key.namespace, key.name)

    # --- order, and when to try again -------------------------------------------------------

    def sort_key(self, pod: QueuedEntity) -> tuple[float, ...]:
        """Order by priority, then by age; a group that failed counts from then on."""
        since = pod.initial_attempt_at or pod.queued_at
        if isinstance(pod, QueuedGroup) and pod.group.kind is GroupKind.COSCHEDULED:
            group = self._get(pod.group)
            created = None if group is None else group.metadata.creation_timestamp
            failed = pod.unschedulable_count or pod.consecutive_errors
            since = pod.queued_at if failed or created is None else _seconds(created)
        return -pod.priority, since

    def events_to_register(self) -> Registrations:
        """A pod that may make the gang complete, or a group that came or changed."""
        pods = (Resource.UNSCHEDULED_POD, Resource.ASSIGNED_POD)
        changed = ClusterEvent(GROUPS, Action.ADD | Action.UPDATE)
        return [
            *(Registration(ClusterEvent(each, Action.ADD), hint=self._after_pod) for each in pods),
            Registration(changed, hint=self._after_group),
        ]

    def _after_pod(self, pod: PodInfo, change: Change[Pod]) -> bool:
        own = self._key_of(pod.pod)
        return own is not None and change.new is not None and own == self._key_of(change.new)

    def _after_group(self, pod: PodInfo, change: Change[CoscheduledGroup]) -> bool:
        return change.new is None or self._key_of(pod.pod) == key_of_group(change.new)

    # --- enough pods, enough room -----------------------------------------------------------

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """Keep a pod out as long as its group has too few."""
        key = self._key_of(pod.pod)
        group = None if key is None else self._get(key)
        if key is None or group is None:
            return SUCCESS  # without its group it does not get here
        count, needed = self._groups.members(key).count, group.spec.min_member
        if count >= needed:
            return SUCCESS
        return unresolvable(
            f"pre-filter pod {pod.pod.metadata.name} cannot find enough sibling pods, "
            f"current pods number: {count}, minMember of group: {needed}"
        )

    def placement_feasible(
        self,
        state: CycleState,
        group: GroupInfo,
        progress: Progress,
    ) -> Status:
        """Compare what was placed, and what may be placed yet, with what the group needs."""
        if group.key.kind is not GroupKind.COSCHEDULED:
            return SUCCESS
        remaining, scheduled = progress
        if remaining == len(group.pods):
            problem = self._why_resting(state, group) or self._why_not_yet(group.key)
            if problem:
                return unschedulable(problem)
        needed = group.group.min_count
        if scheduled >= needed:
            return SUCCESS
        counts = f"{scheduled} scheduled, {remaining} remaining"
        if remaining + scheduled < needed:
            return unschedulable(f"minMember ({needed}) cannot be satisfied: {counts}")
        return Status(Code.WAIT, (f"minMember ({needed}) is not yet satisfied: {counts}",))

    def _why_resting(self, state: CycleState, group: GroupInfo) -> str:
        """Return that the attempt before this one failed just now, "" if it did not.

        An attempt at pods of a group that has enough is no sequel to a failure.
        """
        rest_s, attempt = float(self._args.pod_group_backoff_seconds), state.group
        if not rest_s or attempt is None or state.unscored:
            return ""
        now, members = self._clock.monotonic(), self._groups.members(group.key)
        self._attempts = {key: at for key, at in self._attempts.items() if at[1] + rest_s > now}
        if members.placed_count >= group.group.min_count:
            return ""
        # Evaluated once per placement of an attempt.
        before, _ = self._attempts.setdefault(group.key, (attempt, now))
        return "" if before is attempt else f"podGroup {group.key.full_name} failed recently"

    def _why_not_yet(self, key: GroupKey) -> str:
        """Return what is against trying any member, "" if nothing is."""
        group = self._get(key)
        wanted = group.spec.min_resources if group is not None else None
        if group is None or not wanted:
            return ""
        members = self._groups.members(key).placed.values()
        try:
            gaps = {
                name: missing
                for name, amount in _amounts(wanted).items()
                if (missing := amount - self._free(name, members)) > 0
            }
        except QuantityError as wrong:
            return f"minResources of podGroup {key.full_name}: {wrong}"
        free_slots = self._table.allowed_pods - self._table.pod_count
        missing = group.spec.min_member - len(members) - int(free_slots.clip(0).sum())
        if missing > 0:
            gaps[names.PODS] = missing
        if not gaps:
            return ""
        texts = (_text(name, missing) for name, missing in sorted(gaps.items()))
        return f"resource gap: {', '.join(texts)}"

    def _free(self, resource: str, members: Iterable[PodInfo]) -> int:
        """Return how much of a resource is free on all nodes, members of the group not counted."""
        number = self._table.resources.find(resource)
        if number is None:
            return 0
        free = (self._table.allocatable[number] - self._table.requested[number]).clip(0)
        return int(free.sum()) + sum(each.requests.amounts.get(resource, 0) for each in members)

    # --- all or none ------------------------------------------------------------------------

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:  # noqa: ARG002
        """Let the pod wait until enough of its group have a node; then let all of them go."""
        key = self._key_of(pod.pod)
        if key is None:
            return SUCCESS, 0.0
        group = self._get(key)
        if group is None:
            return NOT_FOUND, 0.0
        members = self._groups.members(key)
        if members.placed_count < group.spec.min_member:
            state.pods_to_activate.update({each.uid: each for each in members.unplaced()})
            own_s = group.spec.schedule_timeout_seconds
            return WAITING, float(own_s or self._args.permit_waiting_time_seconds)
        for waiting in self._waiting_of(members):
            waiting.allow(self.name)
        return SUCCESS, 0.0

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:  # noqa: ARG002
        """Let the pod pass: what the group needs is counted, not reserved."""
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:  # noqa: ARG002
        """Reject the pods that wait for this one."""
        key = self._key_of(pod.pod)
        if key is None or state.group is not None:
            return  # within the group's cycle nothing is final
        for waiting in self._waiting_of(self._groups.members(key)):
            waiting.reject(self.name, "rejection in Unreserve")

    def _waiting_of(self, members: GroupMembers) -> list[WaitingPod]:
        found = (self._waiting.get(uid) for uid in members.placed)
        return [each for each in found if each is not None]


def _arguments(profile: Profile) -> CoschedulingArgs:
    given = next((each.args for each in profile.plugin_config if each.name == "Coscheduling"), None)
    if not isinstance(given, dict):
        return CoschedulingArgs()
    fields = {key: value for key, value in given.items() if key not in _TYPE_FIELDS}
    try:
        return msgspec.convert(fields, CoschedulingArgs)
    except msgspec.ValidationError as wrong:
        raise ConfigError(f"args: {wrong}") from None


def _amounts(wanted: ResourceList) -> dict[str, int]:
    return {
        name: quantity.capacity(amount, milli=name == names.CPU) for name, amount in wanted.items()
    }


def _text(resource: str, missing: int) -> str:
    return f"{resource}: {missing}{'m' if resource == names.CPU else ''}"


def _seconds(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp()
