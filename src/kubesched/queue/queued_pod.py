"""An entry of the queue, with the history of its attempts: a pod, or a group of pods."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from kubesched.cluster.pod_info import PodInfo

# The kinds of entries; values of metric labels.
POD = "pod"
POD_GROUP = "podgroup"


class QueuedEntity(ABC):
    """An entry that the queue orders and pops as one: a pod, or a group of pods."""

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
        #: when it was last added to the queue; seconds since the epoch
        self.queued_at = queued_at
        #: number of attempts
        self.attempts = 0
        #: consecutive rejections, and consecutive errors: they determine the backoff
        self.unschedulable_count = 0
        self.consecutive_errors = 0
        #: when it first became active: the time that it was gated does not count
        self.initial_attempt_at: float | None = None
        #: the PreEnqueue plugin that gates it, "" if none does
        self.gated_by = ""
        #: whether the timeout woke it last, which means that an event was missed; and when
        self.flushed = False
        self.flushed_at = 0.0

    #: "pod" or "podgroup"
    kind: ClassVar[str]

    @property
    @abstractmethod
    def key(self) -> str:
        """Its key in the queue."""

    @property
    @abstractmethod
    def priority(self) -> int:
        """The priority that QueueSort orders it by."""

    @property
    @abstractmethod
    def scheduler_name(self) -> str:
        """The profile that is to schedule it."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of its pods."""

    @abstractmethod
    def pods(self) -> Sequence[QueuedPod]:
        """Return its pods, in the order of the attempt."""

    @property
    @abstractmethod
    def gatekeeper(self) -> QueuedPod:
        """The pod that is gated; any of its pods if none is."""

    @property
    @abstractmethod
    def was_rejected(self) -> bool:
        """Whether plugins rejected it in the last attempt; otherwise there was an error."""

    @property
    @abstractmethod
    def waits_for(self) -> set[str]:
        """The plugins whose events may help it: while a plugin gates it, no other's."""


class QueuedPod(QueuedEntity):
    """A pending pod, and the history of its attempts."""

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
        #: when it was last popped, by the monotonic clock
        self.attempt_began = 0.0
        #: duration of the decision in the current attempt, None before there is one
        self.algorithm_s: float | None = None
        #: the plugins that rejected it in the last attempt; both empty after an error
        self.unschedulable_plugins: set[str] = set()
        self.pending_plugins: set[str] = set()
        #: whether filters left no node, rather than Reserve or Permit rejecting the chosen one
        self.filtered = False
        #: whether it is a preemptor whose victims are not gone yet
        self.awaits_victims = False

    def __repr__(self) -> str:
        return f"QueuedPod({self.info.full_name}, attempts={self.attempts})"

    @property
    def key(self) -> str:
        """The uid: names are reused, uids are not."""
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
        """Whether plugins rejected it in the last attempt; otherwise there was an error."""
        return bool(self.unschedulable_plugins or self.pending_plugins)

    @property
    def rejectors(self) -> set[str]:
        """The plugins that rejected it in the last attempt."""
        return self.unschedulable_plugins | self.pending_plugins
