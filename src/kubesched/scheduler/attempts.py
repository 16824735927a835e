"""Counting and timing attempts: how they end, and how long a pod takes from its first to its last.

An attempt lasts from the moment a pod is taken out of the queue until it is bound, or until it goes
back. What counts as waiting begins when the pod first became active: time at a gate is not ours.
"""

from __future__ import annotations

from collections.abc import Callable

from kubesched.clock import Clock
from kubesched.framework.status import Status
from kubesched.metrics.label_values import ERROR, SCHEDULED, UNSCHEDULABLE, attempts_label
from kubesched.metrics.recorder import Metrics
from kubesched.queue.queued_pod import QueuedPod


class Attempts:
    """Records what becomes of attempts."""

    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._metrics = metrics
        self._clock = clock
        self._algorithm = metrics.scheduling_algorithm_duration.observe
        self._by_result: dict[tuple[str, str], Callable[[float], None]] = {}

    def begin(self, pod: QueuedPod) -> None:
        """A pod was taken out of the queue."""
        pod.attempt_began = self._clock.monotonic()

    def decided(self, pod: QueuedPod) -> None:
        """There is a decision, or there is none to be had."""
        self._algorithm(self._clock.monotonic() - pod.attempt_began)

    def bound(self, profile: str, pod: QueuedPod) -> None:
        """The pod is bound."""
        self._ended(SCHEDULED, profile, pod)
        metrics = self._metrics
        metrics.pod_scheduling_attempts.observe(pod.attempts)
        if pod.initial_attempt_at is not None:
            waited_s = self._clock.time() - pod.initial_attempt_at
            label = attempts_label(pod.attempts)
            metrics.pod_scheduling_sli_duration.labels(label).observe(waited_s)
        if pod.flushed:
            metrics.pod_scheduled_after_flush.inc()

    def failed(self, profile: str, pod: QueuedPod, status: Status) -> None:
        """The pod goes back into the queue."""
        self._ended(UNSCHEDULABLE if status.rejected else ERROR, profile, pod)

    def _ended(self, result: str, profile: str, pod: QueuedPod) -> None:
        observe = self._by_result.get((result, profile))
        if observe is None:
            observe = self._by_result[result, profile] = self._observer(result, profile)
        observe(self._clock.monotonic() - pod.attempt_began)

    def _observer(self, result: str, profile: str) -> Callable[[float], None]:
        count = self._metrics.schedule_attempts.labels(result, profile)
        duration = self._metrics.scheduling_attempt_duration.labels(result, profile)

        def observe(seconds: float) -> None:
            count.value += 1
            duration.observe(seconds)

        return observe
