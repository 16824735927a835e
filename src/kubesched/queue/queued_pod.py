"""A pod in the queue, with the history of the attempts to place it."""

from __future__ import annotations

from kubesched.cluster.pod_info import PodInfo


class QueuedPod:
    """A pod that waits, and what happened to it so far."""

    __slots__ = (
        "algorithm_s",
        "attempt_began",
        "attempts",
        "awaits_victims",
        "consecutive_errors",
        "filtered",
        "flushed",
        "flushed_at",
        "gated_by",
        "info",
        "initial_attempt_at",
        "pending_plugins",
        "queued_at",
        "unschedulable_count",
        "unschedulable_plugins",
    )

    def __init__(self, info: PodInfo, *, queued_at: float) -> None:
        self.info = info
        #: when it was last put into the queue; seconds since the epoch
        self.queued_at = queued_at
        #: when it was last taken out of the queue, by a clock that never goes back
        self.attempt_began = 0.0
        #: how long it took to decide in the current attempt, None: there is no decision yet
        self.algorithm_s: float | None = None
        #: how often it was tried
        self.attempts = 0
        #: failures in a row that were rejections, or errors: they decide how long it backs off
        self.unschedulable_count = 0
        self.consecutive_errors = 0
        #: when it first became active: waiting at a gate does not count as waiting
        self.initial_attempt_at: float | None = None
        #: who turned it away in the last attempt; both empty after an error
        self.unschedulable_plugins: set[str] = set()
        self.pending_plugins: set[str] = set()
        #: whether they looked at nodes and found none, rather than refuse the one chosen
        self.filtered = False
        #: whether it has preempted others, and may be placed as soon as they are gone
        self.awaits_victims = False
        #: the PreEnqueue plugin that keeps it out, "" if none does
        self.gated_by = ""
        #: whether the last wake-up was the timeout, which means that an event was missed; and when
        self.flushed = False
        self.flushed_at = 0.0

    def __repr__(self) -> str:
        return f"QueuedPod({self.info.full_name}, attempts={self.attempts})"

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
