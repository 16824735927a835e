"""Metrics of attempts: their results and durations, and the time from a pod's first to its last.

An attempt lasts from the pop until the pod is bound or requeued. The time to schedule a pod begins
when it first becomes active: the time that it is gated does not count.
"""

from __future__ import annotations

from kubesched.clock import Clock
from kubesched.framework.status import Status
from kubesched.metrics.label_values import (
    ERROR,
    MANY_ATTEMPTS,
    SCHEDULED,
    UNSCHEDULABLE,
    attempts_label,
)
from kubesched.metrics.recorder import Metrics
from kubesched.metrics.series import Bundle, Counter, Histogram
from kubesched.queue.queued_pod import QueuedPod


class Attempts:
    """Records the results of attempts."""

    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._metrics = metrics
        self._clock = clock
        self._by_result: dict[tuple[str, str], tuple[Counter, Histogram]] = {}
        #: profile, number of attempts → the metrics of a pod that is bound after so many
        self._bound: dict[tuple[str, int], tuple[Counter, Bundle]] = {}

    def begin(self, pod: QueuedPod) -> None:
        """Record that a pod was popped."""
        pod.attempt_began, pod.algorithm_s = self._clock.monotonic(), None

    def decided(self, pod: QueuedPod) -> None:
        """Measure the duration of the decision; it is recorded when the attempt ends."""
        pod.algorithm_s = self._clock.monotonic() - pod.attempt_began

    def bound(self, profile: str, pod: QueuedPod) -> None:
        """Record that the pod was bound."""
        if pod.flushed:
            self._metrics.pod_scheduled_after_flush.inc()
        attempts, first_at, algorithm_s = pod.attempts, pod.initial_attempt_at, pod.algorithm_s
        if first_at is None or algorithm_s is None:
            self._ended(SCHEDULED, profile, pod)
            self._metrics.pod_scheduling_attempts.observe(attempts)
            return
        cached = self._bound.get((profile, min(attempts, MANY_ATTEMPTS)))
        count, durations = cached or self._bound_after(profile, attempts)
        count.value += 1
        clock = self._clock
        took_s = clock.monotonic() - pod.attempt_began
        durations.observe((took_s, attempts, clock.time() - first_at, algorithm_s))

    def _bound_after(self, profile: str, attempts: int) -> tuple[Counter, Bundle]:
        metrics = self._metrics
        count, duration = self._of(SCHEDULED, profile)
        waited = metrics.pod_scheduling_sli_duration.labels(attempts_label(attempts))
        made = (
            count,
            Bundle(
                duration,
                metrics.pod_scheduling_attempts,
                waited,
                metrics.scheduling_algorithm_duration,
            ),
        )
        self._bound[profile, min(attempts, MANY_ATTEMPTS)] = made
        return made

    def failed(self, profile: str, pod: QueuedPod, status: Status) -> None:
        """Record that the pod is requeued."""
        self._ended(UNSCHEDULABLE if status.rejected else ERROR, profile, pod)

    def _ended(self, result: str, profile: str, pod: QueuedPod) -> None:
        count, duration = self._of(result, profile)
        count.value += 1
        duration.observe(self._clock.monotonic() - pod.attempt_began)
        if pod.algorithm_s is not None:
            self._metrics.scheduling_algorithm_duration.observe(pod.algorithm_s)

    def _of(self, result: str, profile: str) -> tuple[Counter, Histogram]:
        cached = self._by_result.get((result, profile))
        if cached is None:
            cached = self._by_result[result, profile] = (
                self._metrics.schedule_attempts.labels(result, profile),
                self._metrics.scheduling_attempt_duration.labels(result, profile),
            )
        return cached
