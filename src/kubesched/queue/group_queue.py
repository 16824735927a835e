"""The scheduling queue with groups: the pods of a group wait, and are tried, as one.

    add ──> incomplete       a group above the pod is not known yet
      ├───> queued           part of its root's QueuedGroup, which is where a single pod would be
      └───> pending          the root is being tried: its pods come back when that is over

A group that failed backs off and is tried again; it is parked only while a plugin gates one of its
members. So events matter to gated groups alone, by the hints of each of their members. Only the
end of the last of its victims ends a group's backoff early (`scheduler/nominations.py`).

A gang of which some members have a node, and too few, was interrupted amid its binding. When a
scheduler takes over, such gangs are the first of their priority: other pods must not get their
resources.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kubesched.cluster.group_forest import GroupForest
from kubesched.cluster.pod_groups import GroupKey
from kubesched.cluster.pod_info import PodInfo
from kubesched.errors import require
from kubesched.queue import events
from kubesched.queue.events import ClusterEvent
from kubesched.queue.queued_group import AttemptEnd, QueuedGroup
from kubesched.queue.queued_pod import POD, POD_GROUP, QueuedEntity, QueuedPod
from kubesched.queue.scheduling_queue import SchedulingQueue
from kubesched.queue.tally import ACTIVE, BACKOFF, GATED, UNSCHEDULABLE
from kubesched.queue.waking import Wake

INCOMPLETE = "incomplete"
PENDING = "pending"
#: When a group was queued that is to be tried before all others of its priority.
FIRST = 0.0


class GroupSchedulingQueue(SchedulingQueue):
    """Pods and groups of pods that wait for nodes."""

    def __init__(self, forest: GroupForest, **options: Any) -> None:  # noqa: ANN401 (the base's)
        """`options` are those of a queue without groups."""
        super().__init__(**options)
        self._forest = forest
        #: PodGroup → uid → member, where a group above it is not known
        self._incomplete: dict[GroupKey, dict[str, QueuedPod]] = {}
        #: uid of such a member → its PodGroup
        self._waits_for: dict[str, GroupKey] = {}
        #: uid → member, where the root is being tried
        self._pending: dict[str, QueuedPod] = {}
        #: uid → the group that a member is queued in
        self._queued_in: dict[str, QueuedGroup] = {}
        #: the root that is being tried
        self._attempted: GroupKey | None = None

    # --- what is where ----------------------------------------------------------------------

    def __len__(self) -> int:
        return super().__len__() + self.incomplete_count + self.pending_count

    def __contains__(self, uid: object) -> bool:
        return super().__contains__(uid) or self._member(uid) is not None

    @property
    def incomplete_count(self) -> int:
        """The number of pods of groups that are not known, or not all of those above them."""
        return sum(map(len, self._incomplete.values()))

    @property
    def pending_count(self) -> int:
        """The number of pods whose group is being tried."""
        return len(self._pending)

    def entities(self) -> dict[tuple[str, str], int]:
        """Return how many pods and groups there are, by part of the queue and kind."""
        counts = super().entities()
        for group in dict.fromkeys(self._queued_in.values()):
            part = self._part_of(group)
            counts[part, POD] -= group.size
            counts[part, POD_GROUP] = counts.get((part, POD_GROUP), 0) + 1
        return counts

    def _part_of(self, group: QueuedGroup) -> str:
        if group.key in self._active:
            return ACTIVE
        if group.key in self._parked:
            return GATED if group.gated_by else UNSCHEDULABLE
        return BACKOFF

    def pods(self) -> Iterable[QueuedPod]:
        """Return all pods in the queue."""
        return [*super().pods(), *self._incomplete_pods(), *self._pending.values()]

    def parts(self) -> Iterator[tuple[str, QueuedPod]]:
        """Return each pod with the part of the queue it is in."""
        yield from super().parts()
        yield from ((INCOMPLETE, pod) for pod in self._incomplete_pods())
        yield from ((PENDING, pod) for pod in list(self._pending.values()))

    def _incomplete_pods(self) -> list[QueuedPod]:
        return [pod for pods in self._incomplete.values() for pod in pods.values()]

    def _member(self, uid: object) -> QueuedPod | None:
        if not isinstance(uid, str):
            return None
        group = self._queued_in.get(uid)
        if group is not None:
            return group.member(uid)
        if uid in self._pending:
            return self._pending[uid]
        leaf = self._waits_for.get(uid)
        return None if leaf is None else self._incomplete[leaf][uid]

    def _key_of(self, uid: str) -> str:
        group = self._queued_in.get(uid)
        return uid if group is None else group.key

    def members_with(self, uid: str) -> Iterable[str]:
        """Return the pods of the group that a pod is queued in; none if it is queued by itself."""
        group = self._queued_in.get(uid)
        return () if group is None else [pod.info.uid for pod in group.pods()]

    # --- members come and go ----------------------------------------------------------------

    def delete(self, uid: str) -> None:
        """Remove a pod, wherever it is."""
        pod = self._member(uid)
        if pod is None:
            super().delete(uid)
            return
        self._take_away(pod)
        self.tally.settled(pod)

    def pop_entity(self) -> QueuedEntity | None:
        """Return what to try next; a group is tried until `end_attempt` is called."""
        entity = super().pop_entity()
        if isinstance(entity, QueuedGroup):
            self._attempted = entity.group
            for pod in entity.pods():
                del self._queued_in[pod.info.uid]
        return entity

    def requeue(self, pod: QueuedPod) -> None:
        """Requeue a pod that could not be placed: a member joins its group."""
        if self._leaf_of(pod.info) is None:
            super().requeue(pod)
            return
        self._in_flight.end(pod.info.uid)
        if pod.info.uid not in self:
            self._note_failure(pod)
            self._add_member(pod, events.UNSCHEDULED_POD_ADD)

    def end_attempt(self, group: QueuedGroup, end: AttemptEnd) -> None:
        """Queue the members again that came back, or came, while their group was tried."""
        self._attempted = None
        waiting, self._pending = self._pending, {}
        if not waiting:
            return
        renewed = group.renewed()
        for pod in waiting.values():
            renewed.add(pod)
            self._queued_in[pod.info.uid] = renewed
        came_back = any(group.member(uid) is not None for uid in waiting)
        if end is AttemptEnd.SUCCEEDED:
            renewed.unschedulable_count = renewed.consecutive_errors = 0
        elif end is AttemptEnd.REJECTED:
            renewed.unschedulable_count += 1
            renewed.consecutive_errors = 0
        else:
            renewed.consecutive_errors += 1
        # What is left of a group that succeeded is tried next: it may have to preempt others.
        if end is not AttemptEnd.SUCCEEDED or not came_back:
            renewed.queued_at = self._clock.time()
        wake = None if end is AttemptEnd.SUCCEEDED else Wake.AFTER_BACKOFF
        self._enqueue(renewed, wake, events.SCHEDULE_ATTEMPT_FAILURE)

    def prefer_interrupted(self) -> None:
        """Let gangs be the first that have too few members on nodes, of all that are active.

        When the cluster was read, members may have come before those of their gang with a node.
        """
        for group in dict.fromkeys(self._queued_in.values()):
            is_active = self._active.remove(group.key) is not None
            if self._forest.is_interrupted(group.group):
                group.queued_at = FIRST
            if is_active:
                self._active.push(group)

    # --- groups come and go -----------------------------------------------------------------

    def group_came(self, key: GroupKey) -> None:
        """Queue the pods that waited for a group to be known."""
        root = self._forest.root_of(key)
        if root is None:
            return
        for leaf in self._forest.leaves(root):
            for uid, pod in self._incomplete.pop(leaf, {}).items():
                del self._waits_for[uid]
                self._add_member(pod, events.UNSCHEDULED_POD_ADD)

    def group_went(self, key: GroupKey) -> None:
        """Let the pods below a group, which is not known any more, wait for it."""
        found = self._find(key)
        affected = [found] if found is not None else []
        if self._forest.composite:
            affected = list(dict.fromkeys(self._queued_in.values()))
        for group in affected:
            for pod in group.pods():
                if self._root_of(pod) != group.group:
                    self._take_away(pod)
                    self._add_member(pod, events.UNSCHEDULED_POD_UPDATE)

    # --- inside -----------------------------------------------------------------------------

    def _replace(self, info: PodInfo) -> bool:
        pod, leaf = self._member(info.uid), self._leaf_of(info)
        if pod is None and leaf is None:
            return super()._replace(info)
        if pod is None or self._leaf_of(pod.info) != leaf:
            # A label names its group now, or another one, or none: it is as if it came anew.
            self.delete(info.uid)
            return False
        pod.info = info
        return True

    def _add(self, info: PodInfo, event: ClusterEvent) -> None:
        if self._leaf_of(info) is None:
            super()._add(info, event)
        elif info.uid not in self._in_flight:
            self._add_member(QueuedPod(info, queued_at=self._clock.time()), event)

    def _add_member(self, pod: QueuedPod, event: ClusterEvent) -> None:
        """Add a member to the part of the queue that it belongs to."""
        uid, leaf, root = pod.info.uid, self._leaf_of(pod.info), self._root_of(pod)
        if leaf is not None and root is None:
            self._incomplete.setdefault(leaf, {})[uid] = pod
            self._waits_for[uid] = leaf
            self._observe_move(pod, INCOMPLETE, event.label)
        elif root is not None and root == self._attempted:
            self._pending[uid] = pod
        elif root is not None:
            self._join(root, pod, event)

    def _join(self, root: GroupKey, pod: QueuedPod, event: ClusterEvent) -> None:
        """Make a pod part of its queued group, which is made if there is none."""
        group = self._find(root)
        if group is None:
            group = QueuedGroup(root, self._forest, queued_at=pod.queued_at)
            group.initial_attempt_at = pod.initial_attempt_at
            wake: Wake | None = None
        else:
            wake = self._take_out(group)
        group.add(pod)
        self._queued_in[pod.info.uid] = group
        # Members that were let in stay in, so one more costs one question and not one for each.
        self._ask_gate(pod)
        group.gated_by = group.gated_by or pod.gated_by
        self._put(group, wake, event)

    def _take_away(self, pod: QueuedPod) -> None:
        """Take a member from where it is; what is left of its group stays in the queue."""
        uid = pod.info.uid
        group = self._queued_in.pop(uid, None)
        if group is None:
            self._pending.pop(uid, None)
            leaf = self._waits_for.pop(uid, None)
            if leaf is not None:
                del self._incomplete[leaf][uid]
                if not self._incomplete[leaf]:
                    del self._incomplete[leaf]
            return
        wake = self._take_out(group)
        group.remove(uid)
        if not group.size:
            return
        if wake is not Wake.NO:
            # One member is evaluated for all: the number of members gates all of them, or none.
            self._ask_gate(group.gatekeeper)
            group.gated_by = group.gatekeeper.gated_by
            self._put(group, wake, events.UNSCHEDULED_POD_ADD)
        elif pod.gated_by:
            self._enqueue(group, Wake.AFTER_BACKOFF, events.UNSCHEDULED_POD_ADD)
        else:
            self._park(group, events.UNSCHEDULED_POD_ADD, wake)

    def _leaf_of(self, pod: PodInfo) -> GroupKey | None:
        """Return the group that a pod waits with; one that waits to be resized waits by itself."""
        return None if pod.signature.is_resize else self._forest.groups.of(pod.pod)

    def _root_of(self, pod: QueuedPod) -> GroupKey | None:
        return self._forest.root_of_pod(pod.info)

    def _find(self, root: GroupKey) -> QueuedGroup | None:
        key = str(root)
        found = next((each for place in self._places() if (each := place.get(key))), None)
        return found if isinstance(found, QueuedGroup) else None

    def _take_out(self, group: QueuedGroup) -> Wake:
        """Remove a group from where it is; return what would bring it back there."""
        if self._active.remove(group.key) is not None:
            return Wake.AT_ONCE
        for heap in (self._backing_off, self._backing_off_errors):
            if heap.remove(group.key) is not None:
                return Wake.AFTER_BACKOFF
        self._parked.remove(group.key)
        return Wake.NO

    def validate(self) -> None:
        """Check also that every member is where its group says that it belongs."""
        super().validate()
        for leaf, pods in self._incomplete.items():
            require(pods, f"no pod waits for {leaf}")
            require(self._forest.root_of(leaf) is None, f"{leaf} is complete")
        known = {uid: leaf for leaf, pods in self._incomplete.items() for uid in pods}
        require(known == self._waits_for, "what incomplete members wait for")
        for pod in self._pending.values():
            require(self._root_of(pod) == self._attempted, f"{pod} waits for another group")
        for uid, group in self._queued_in.items():
            require(group.member(uid) is not None, f"{uid} is no member of {group}")
            require(self._find(group.group) is group, f"{group} is not in the queue")
            require(self._root_of(group.pods()[0]) == group.group, f"{group} is no root")
