"""How long a pod waits after a failure before it is tried again."""

from __future__ import annotations

import math
from typing import Final

from msgspec import Struct

from kubesched.queue.queued_pod import QueuedEntity, QueuedPod

#: A pod in its longest backoff rests for this share of it before an idle scheduler tries it early.
REST_SHARE: Final = 0.1


class Backoff(Struct, frozen=True):
    """Doubling with each failure in a row, between a first and a longest wait.

    Expiry is cut to whole seconds, so that pods which failed in the same second come back together
    and are then ordered by priority, not by who failed first.
    """

    initial_s: float = 1.0
    max_s: float = 10.0

    def duration_s(self, pod: QueuedEntity) -> float:
        """Return how long a pod or a group has to wait after its last failure.

        The longest wait of a group grows with the square root of its size.
        """
        failures = pod.consecutive_errors or pod.unschedulable_count
        if failures == 0 or self.max_s == 0:
            return 0.0
        # The exponent is bounded: a pod may fail for months.
        max_s = self.max_s if pod.size <= 1 else self.max_s * math.sqrt(pod.size)
        return min(self.initial_s * 2 ** min(failures - 1, 62), max_s)

    def expires_at(self, pod: QueuedEntity) -> float:
        """Return when the pod may be tried again."""
        duration_s = self.duration_s(pod)
        if duration_s == 0.0:
            return 0.0
        return float(math.floor(pod.queued_at + duration_s))

    def is_waiting(self, pod: QueuedEntity, now: float) -> bool:
        """Tell whether the pod still has to wait."""
        expires_at = self.expires_at(pod)
        return expires_at != 0.0 and expires_at >= math.floor(now)

    def is_resting(self, pod: QueuedEntity, now: float) -> bool:
        """Tell whether a pod is not to be tried even if the scheduler has nothing else to do.

        Without this a pod would be tried after each of many events that cannot help it, hundreds
        of times a second. Those that failed a few times only, or wait for their victims to go, are
        not held up.
        """
        if (isinstance(pod, QueuedPod) and pod.awaits_victims) or self.duration_s(pod) < self.max_s:
            return False
        return now < pod.queued_at + REST_SHARE * self.max_s
