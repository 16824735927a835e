"""A group of pods in the queue: its members wait and are tried together."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto

from kubesched.cluster.group_forest import GroupForest
from kubesched.cluster.pod_groups import GroupKey
from kubesched.queue.queued_pod import POD_GROUP, QueuedEntity, QueuedPod


class AttemptEnd(Enum):
    """How an attempt to schedule a group ended."""

    #: some of its pods are being bound
    SUCCEEDED = auto()
    REJECTED = auto()
    #: there was an error
    FAILED = auto()


class QueuedGroup(QueuedEntity):
    """A PodGroup, or the root of a tree of them, with the members that wait for a node."""

    kind = POD_GROUP

    __slots__ = ("_forest", "_members", "group")

    def __init__(self, group: GroupKey, forest: GroupForest, *, queued_at: float) -> None:
        super().__init__(queued_at=queued_at)
        self.group = group
        self._forest = forest
        #: by uid
        self._members: dict[str, QueuedPod] = {}

    def __repr__(self) -> str:
        return f"QueuedGroup({self.group}, {self.size} pods, attempts={self.attempts})"

    def renewed(self) -> QueuedGroup:
        """Return the same group with the same history, and no members yet."""
        renewed = QueuedGroup(self.group, self._forest, queued_at=self.queued_at)
        renewed.attempts = self.attempts
        renewed.unschedulable_count = self.unschedulable_count
        renewed.consecutive_errors = self.consecutive_errors
        renewed.initial_attempt_at = self.initial_attempt_at
        return renewed

    def add(self, pod: QueuedPod) -> None:
        """Add a member."""
        self._members[pod.info.uid] = pod

    def remove(self, uid: str) -> None:
        """Remove a member."""
        del self._members[uid]

    @property
    def key(self) -> str:
        """Kind, namespace and name."""
        return str(self.group)

    @property
    def priority(self) -> int:
        """The group's priority: that of its members does not count."""
        return self._forest.priority(self.group)

    @property
    def scheduler_name(self) -> str:
        """The profile that is to schedule its members."""
        return next(iter(self._members.values())).scheduler_name

    @property
    def size(self) -> int:
        """The number of members in the queue."""
        return len(self._members)

    def pods(self) -> Sequence[QueuedPod]:
        """Return the members, in the order of the attempt."""
        return sorted(self._members.values(), key=_place)

    def member(self, uid: str) -> QueuedPod | None:
        """Return a member."""
        return self._members.get(uid)

    @property
    def gatekeeper(self) -> QueuedPod:
        """A member that is gated; any member if none is."""
        members = self._members.values()
        return next((pod for pod in members if pod.gated_by), next(iter(members)))

    @property
    def was_rejected(self) -> bool:
        """False: a group that failed always backs off, and no event ends the backoff."""
        return False

    @property
    def waits_for(self) -> set[str]:
        """The plugin that gates it: a group that is not gated is never parked."""
        return {self.gated_by}


def _place(pod: QueuedPod) -> tuple[int, int, float, str]:
    return -pod.priority, -pod.attempts, pod.queued_at, pod.info.pod.metadata.name
