"""GangScheduling: pods of a group are bound only if enough of them can be.

    PreEnqueue         gates pods until the gang has as many as it needs
    PlacementFeasible  decides during an attempt whether enough members are placed
    Permit             keeps pods from being bound until enough of them have a node

A gang needs ``minCount`` pods, any other group one. A composite group needs ``minGroupCount``
groups that have enough themselves, or one; where there are such groups, the whole tree counts.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import Final

from kubesched.api.core import Pod
from kubesched.api.scheduling import CompositePodGroup, PodGroup
from kubesched.cluster.group_forest import GroupForest
from kubesched.cluster.pod_groups import (
    GroupKey,
    GroupKind,
    GroupMembers,
    key_of_group,
)
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.group import GroupInfo, Progress
from kubesched.framework.plugin import Permit, PlacementFeasible, PreEnqueue
from kubesched.framework.registry import PluginContext
from kubesched.framework.status import SUCCESS, Code, Status, error, unresolvable, unschedulable
from kubesched.framework.waiting import WaitingPods
from kubesched.queue.events import Action, ClusterEvent, Resource
from kubesched.queue.hints import Change, Registration, Registrations

#: How long pods wait for the others at most.
PERMIT_WAIT_S: Final = 300.0

WAITING_TO_APPEAR: Final = unresolvable(
    "waiting for minCount pods from a gang to appear in scheduling queue"
)
WAITING_FOR_OTHERS: Final = Status(
    Code.WAIT, ("waiting for minCount pods from a gang to be scheduled",)
)

#: The number of members of a group that count.
Count = Callable[[GroupMembers], int]


class GangScheduling(PreEnqueue, PlacementFeasible, Permit):
    """Lets gangs be bound as a whole, or not at all."""

    name = "GangScheduling"

    def __init__(self, forest: GroupForest, waiting: WaitingPods) -> None:
        self._forest = forest
        self._waiting = waiting

    @classmethod
    def create(cls, context: PluginContext) -> GangScheduling:
        """Make the plugin."""
        composite = context.gates.enabled("CompositePodGroup")
        return cls(GroupForest(context.cluster.groups, composite=composite), context.waiting)

    # --- when to try again ------------------------------------------------------------------

    def events_to_register(self) -> Registrations:
        """A pod or a group that may make a gang complete, or a gang that needs fewer pods."""
        pods = (Resource.UNSCHEDULED_POD, Resource.ASSIGNED_POD)
        registrations = [
            *(Registration(ClusterEvent(each, Action.ADD), hint=self._after_pod) for each in pods),
            Registration(ClusterEvent(Resource.POD_GROUP, Action.ADD), hint=self._after_group),
            Registration(ClusterEvent(Resource.POD_GROUP, Action.UPDATE), hint=self._after_update),
        ]
        if self._forest.composite:
            added = ClusterEvent(Resource.COMPOSITE_POD_GROUP, Action.ADD)
            registrations.append(Registration(added, hint=self._after_group))
        return registrations

    def _after_pod(self, pod: PodInfo, change: Change[Pod]) -> bool:
        other = None if change.new is None else self._group_of(change.new)
        return other is not None and self._are_related(pod, other)

    def _after_group(self, pod: PodInfo, change: Change[PodGroup | CompositePodGroup]) -> bool:
        return change.new is None or self._are_related(pod, key_of_group(change.new))

    def _after_update(self, pod: PodInfo, change: Change[PodGroup]) -> bool:
        if change.old is None or change.new is None:
            return True
        before = change.old.spec.scheduling_policy.gang
        after = change.new.spec.scheduling_policy.gang
        if not self._are_related(pod, key_of_group(change.new)) or before is None or after is None:
            return False
        return after.min_count < before.min_count

    def _are_related(self, pod: PodInfo, other: GroupKey) -> bool:
        own = self._group_of(pod.pod)
        if own is None or not self._forest.composite:
            return own == other
        root = self._forest.root_of(own)
        return root is not None and root == self._forest.root_of(other)

    def _group_of(self, pod: Pod) -> GroupKey | None:
        """Return the PodGroup that a pod names; those of scheduler-plugins are Coscheduling's."""
        key = self._forest.groups.of(pod)
        return None if key is None or key.kind is GroupKind.COSCHEDULED else key

    # --- PreEnqueue -------------------------------------------------------------------------

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """Keep the pod out as long as its gang, or the tree above it, has too few pods."""
        key = self._group_of(pod.pod)
        if key is None:
            return SUCCESS
        if self._forest.composite:
            problem = self._broken_chain(key)
            if problem:
                return unresolvable(f"failed to build hierarchy snapshot: {problem}")
        if self._forest.get(key) is None:
            return unresolvable(
                f'waiting for pods\'s pod group "{key.name}" to appear in scheduling queue'
            )
        root = self._forest.root_of(key)
        if root is not None and root.kind is GroupKind.COMPOSITE:
            return SUCCESS if self._is_ready(root, _known) else _waiting_for_tree(root)
        return SUCCESS if self._is_ready(key, _known) else WAITING_TO_APPEAR

    def kept_out(self) -> Container[str] | None:
        """Return None: whether a pod is gated depends on its group, which is looked up."""
        return None

    def _broken_chain(self, key: GroupKey) -> str:
        """Return what is wrong with the groups above a pod, "" if nothing is."""
        seen: list[GroupKey] = []
        at: GroupKey | None = key
        while at is not None:
            if at in seen:
                return f"cycle detected in composite pod group hierarchy: {at}"
            if self._forest.get(at) is None:
                if at.kind is GroupKind.COMPOSITE:
                    return f"parent composite pod group state not found for {at}"
                return f"pod group object not found in state for {at}"
            seen.append(at)
            at = self._forest.parent_of(at)
        return ""

    def _is_ready(self, key: GroupKey, count: Count) -> bool:
        """Return whether a group has enough pods, or a composite group enough ready groups."""
        group = self._forest.get(key)
        if group is None:
            return False
        if key.kind is GroupKind.POD_GROUP:
            return count(self._forest.groups.members(key)) >= group.min_count
        ready = sum(self._is_ready(child, count) for child in self._forest.children(key))
        return ready >= group.min_count

    # --- PlacementFeasible ------------------------------------------------------------------

    def placement_feasible(
        self,
        state: CycleState,  # noqa: ARG002
        group: GroupInfo,
        progress: Progress,
    ) -> Status:
        """Compare what was placed, and what may be placed yet, with what the group needs."""
        if group.key.kind is GroupKind.COSCHEDULED:
            return SUCCESS
        remaining, scheduled = progress
        needed = group.group.min_count
        if remaining + scheduled < needed:
            return unschedulable(
                f"minCount ({needed}) cannot be satisfied: {scheduled} scheduled, "
                f"{remaining} remaining"
            )
        if scheduled < needed:
            text = (
                f"minCount ({needed}) is not yet satisfied: {scheduled} scheduled, "
                f"{remaining} remaining"
            )
            return Status(Code.WAIT, (text,))
        return SUCCESS

    # --- Permit -----------------------------------------------------------------------------

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:  # noqa: ARG002
        """Let the pod wait until enough of its group have a node; then let all of them go."""
        key = self._group_of(pod.pod)
        if key is None:
            return SUCCESS, 0.0
        problem = self._broken_chain(key) if self._forest.composite else ""
        if problem:
            return error(f"failed to build hierarchy snapshot: {problem}"), 0.0
        group = self._forest.get(key)
        if not isinstance(group, PodGroup):
            text = f"failed to get podGroup {key.full_name}: pod group object not found for pod"
            return error(f"{text} group {key}"), 0.0
        root = self._forest.root_of(key)
        is_tree = root is not None and root.kind is GroupKind.COMPOSITE
        top = root if root is not None and is_tree else key
        if not is_tree and group.spec.scheduling_policy.gang is None:
            return SUCCESS, 0.0
        members = [self._forest.groups.members(leaf) for leaf in self._forest.leaves(top)]
        if not self._is_ready(top, _placed):
            self._activate(state, members)
            status = _waiting_for_tree(top) if is_tree else WAITING_FOR_OTHERS
            return Status(Code.WAIT, status.reasons), PERMIT_WAIT_S
        self._allow(members)
        return SUCCESS, 0.0

    def _activate(self, state: CycleState, members: Iterable[GroupMembers]) -> None:
        """Have the others tried again, which may have waited for this pod to get a node."""
        for each in members:
            state.pods_to_activate.update({pod.uid: pod for pod in each.unplaced()})

    def _allow(self, members: Iterable[GroupMembers]) -> None:
        for each in members:
            for uid in each.placed:
                waiting = self._waiting.get(uid)
                if waiting is not None:
                    waiting.allow(self.name)


def _known(members: GroupMembers) -> int:
    return members.count


def _placed(members: GroupMembers) -> int:
    return members.placed_count


def _waiting_for_tree(root: GroupKey) -> Status:
    return unresolvable(f'waiting for composite pod group "{root.name}" tree to meet quorum')
