"""The backoff of pods and groups after failed attempts."""

from __future__ import annotations

import math
from typing import Final

from msgspec import Struct

from kubesched.queue.queued_pod import QueuedEntity, QueuedPod

#: A pod in its longest backoff waits for this share of it before an idle scheduler pops it early.
REST_SHARE: Final = 0.1


class Backoff(Struct, frozen=True):
    """Doubles with each consecutive failure, from the initial to the longest backoff.

    Expiry is truncated to whole seconds, so that pods which failed in the same second become active
    together and are ordered by priority, not by the time of the failure.
    """

    initial_s: float = 1.0
    max_s: float = 10.0

    def duration_s(self, pod: QueuedEntity) -> float:
        """Return the backoff of a pod or a group after its last failure.

        The longest backoff of a group grows with the square root of its size.
        """
        failures = pod.consecutive_errors or pod.unschedulable_count
        if failures == 0 or self.max_s == 0:
            return 0.0
        # The exponent is bounded: a pod may fail for months.
        max_s = self.max_s if pod.size <= 1 else self.max_s * math.sqrt(pod.size)
        return min(self.initial_s * 2 ** min(failures - 1, 62), max_s)

    def expires_at(self, pod: QueuedEntity) -> float:
        """Return when the backoff is over, in seconds since the epoch."""
        duration_s = self.duration_s(pod)
        if duration_s == 0.0:
            return 0.0
        return float(math.floor(pod.queued_at + duration_s))

    def is_waiting(self, pod: QueuedEntity, now: float) -> bool:
        """Return whether the backoff is not over yet."""
        expires_at = self.expires_at(pod)
        return expires_at != 0.0 and expires_at >= math.floor(now)

    def is_resting(self, pod: QueuedEntity, now: float) -> bool:
        """Return whether a pod must not be popped early, even if the scheduler is idle.

        Otherwise a pod that many events wake in vain would be retried hundreds of times a second.
        Pods that failed only a few times, and preemptors that wait for their victims, do not rest.
        """
        if (isinstance(pod, QueuedPod) and pod.awaits_victims) or self.duration_s(pod) < self.max_s:
            return False
        return now < pod.queued_at + REST_SHARE * self.max_s
