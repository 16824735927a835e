"""What waits in the queue, with the history of the attempts to place it: a pod, as a rule."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from kubesched.cluster.pod_info import PodInfo

# The kinds of what waits; part of metric labels.
POD = "pod"
POD_GROUP = "podgroup"


class QueuedEntity(ABC):
    """What the queue orders and lets wait as one: a pod, or a group of pods."""

    __slots__ = (
        "attempts",
        "consecutive_errors",
        "flushed",
        "flushed_at",
        "gated_by",
        "initial_attempt_at",
        "queued_at",
        "unschedulable_count",
    )

    def __init__(self, *, queued_at: float) -> None:
        #: when it was last put into the queue; seconds since the epoch
        self.queued_at = queued_at
        #: how often it was tried
        self.attempts = 0
        #: failures in a row that were rejections, or errors: they decide how long it backs off
        self.unschedulable_count = 0
        self.consecutive_errors = 0
        #: when it first became active: waiting at a gate does not count as waiting
        self.initial_attempt_at: float | None = None
        #: the PreEnqueue plugin that keeps it out, "" if none does
        self.gated_by = ""
        #: whether the last wake-up was the timeout, which means that an event was missed; and when
        self.flushed = False
        self.flushed_at = 0.0

    #: "pod" or "podgroup"
    kind: ClassVar[str]

    @property
    @abstractmethod
    def key(self) -> str:
        """What it is known by in the queue."""

    @property
    @abstractmethod
    def priority(self) -> int:
        """Its place in the queue."""

    @property
    @abstractmethod
    def scheduler_name(self) -> str:
        """The profile that is to schedule it."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many pods it stands for."""

    @abstractmethod
    def pods(self) -> Sequence[QueuedPod]:
        """Return its pods, in the order in which they are tried."""

    @property
    @abstractmethod
    def gatekeeper(self) -> QueuedPod:
        """The pod that the gate is about, if there is one."""

    @property
    @abstractmethod
    def was_rejected(self) -> bool:
        """Whether plugins rejected it in the last attempt; otherwise something went wrong."""

    @property
    @abstractmethod
    def waits_for(self) -> set[str]:
        """The plugins whose events may help it: while a plugin gates it, no other's."""


class QueuedPod(QueuedEntity):
    """A pod that waits, and what happened to it so far."""

    kind = POD

    __slots__ = (
        "algorithm_s",
        "attempt_began",
        "awaits_victims",
        "filtered",
        "info",
        "pending_plugins",
        "unschedulable_plugins",
    )

    def __init__(self, info: PodInfo, *, queued_at: float) -> None:
        super().__init__(queued_at=queued_at)
        self.info = info
        #: when it was last taken out of the queue, by a clock that never goes back
        self.attempt_began = 0.0
        #: how long it took to decide in the current attempt, None: there is no decision yet
        self.algorithm_s: float | None = None
        #: who turned it away in the last attempt; both empty after an error
        self.unschedulable_plugins: set[str] = set()
        self.pending_plugins: set[str] = set()
        #: whether they looked at nodes and found none, rather than refuse the one chosen
        self.filtered = False
        #: whether it has preempted others, and may be placed as soon as they are gone
        self.awaits_victims = False

    def __repr__(self) -> str:
        return f"QueuedPod({self.info.full_name}, attempts={self.attempts})"

    @property
    def key(self) -> str:
        """The uid: a name may be used again, a uid is not."""
        return self.info.uid

    @property
    def priority(self) -> int:
        """The pod's priority."""
        return self.info.priority

    @property
    def scheduler_name(self) -> str:
        """The profile that is to schedule it."""
        return self.info.pod.spec.scheduler_name

    @property
    def size(self) -> int:
        """One."""
        return 1

    def pods(self) -> Sequence[QueuedPod]:
        """Return itself."""
        return (self,)

    @property
    def gatekeeper(self) -> QueuedPod:
        """Itself."""
        return self

    @property
    def waits_for(self) -> set[str]:
        """The plugins whose events may help it: while a plugin gates it, no other's."""
        return {self.gated_by} if self.gated_by else self.rejectors

    @property
    def was_rejected(self) -> bool:
        """Whether anybody turned it away in the last attempt; otherwise something went wrong."""
        return bool(self.unschedulable_plugins or self.pending_plugins)

    @property
    def rejectors(self) -> set[str]:
        """Everybody who turned it away in the last attempt."""
        return self.unschedulable_plugins | self.pending_plugins
