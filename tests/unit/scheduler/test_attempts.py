"""Attempts, counted and timed: by their results, and over all attempts at a pod."""

from __future__ import annotations

import pytest

from kubesched.clock import VirtualClock
from kubesched.framework.status import Status, error, unresolvable, unschedulable
from kubesched.metrics.recorder import Metrics
from kubesched.scheduler.attempts import Attempts
from tests.support.exposed_metrics import Exposed
from tests.support.queueing import queued
from tests.support.scheduling import DEFAULT_GATES

PROFILE = "default-scheduler"


class Bench:
    """Attempts at a pod that became active at 100 s."""

    def __init__(self) -> None:
        self.clock = VirtualClock(100.0)
        self.metrics = Metrics(DEFAULT_GATES)
        self.attempts = Attempts(self.metrics, self.clock)
        self.pod = queued("p", at=90.0)
        self.pod.initial_attempt_at = 100.0

    def try_once(self, *, deciding_s: float = 0.0) -> None:
        self.pod.attempts += 1
        self.attempts.begin(self.pod)
        self.clock.advance(deciding_s)
        self.attempts.decided(self.pod)

    def value(self, name: str, **labels: str) -> float | None:
        return Exposed(self.metrics.render()).value(f"scheduler_{name}", **labels)

    def results(self, result: str) -> tuple[float | None, float | None]:
        """How many attempts had a result, and how long they took."""
        labels = {"result": result, "profile": PROFILE}
        return (
            self.value("schedule_attempts_total", **labels),
            self.value("scheduling_attempt_duration_seconds_sum", **labels),
        )


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_an_attempt_lasts_until_the_pod_is_bound(bench: Bench) -> None:
    bench.try_once(deciding_s=0.25)
    bench.clock.advance(1.0)
    bench.attempts.bound(PROFILE, bench.pod)
    assert bench.results("scheduled") == (1, 1.25)
    assert bench.value("scheduling_algorithm_duration_seconds_sum") == 0.25
    assert bench.value("scheduling_algorithm_duration_seconds_count") == 1


@pytest.mark.parametrize(
    ("status", "result"),
    [
        (unschedulable("no"), "unschedulable"),
        (unresolvable("never"), "unschedulable"),
        (error("a bug"), "error"),
    ],
)
def test_how_an_attempt_fails(bench: Bench, status: Status, result: str) -> None:
    bench.try_once(deciding_s=0.5)
    bench.attempts.failed(PROFILE, bench.pod, status)
    assert bench.results(result) == (1, 0.5)
    others = {"scheduled", "unschedulable", "error"} - {result}
    assert [bench.results(each) for each in others] == [(None, None)] * 2
    assert bench.value("pod_scheduling_attempts_count") == 0


def test_a_pod_s_attempts_add_up(bench: Bench) -> None:
    for _ in range(2):
        bench.try_once(deciding_s=1.0)
        bench.attempts.failed(PROFILE, bench.pod, unschedulable("no"))
        bench.clock.advance(10.0)
    bench.try_once(deciding_s=1.0)
    bench.attempts.bound(PROFILE, bench.pod)
    assert bench.results("unschedulable") == (2, 2.0)
    assert bench.results("scheduled") == (1, 1.0)
    assert bench.value("pod_scheduling_attempts_sum") == 3
    assert bench.value("pod_scheduling_sli_duration_seconds_sum", attempts="3") == 23.0


def test_profiles_are_told_apart(bench: Bench) -> None:
    for profile in ("a", "b", "a"):
        bench.try_once()
        bench.attempts.bound(profile, bench.pod)
    counted = [
        bench.value("schedule_attempts_total", result="scheduled", profile=each)
        for each in ("a", "b")
    ]
    assert counted == [2, 1]


def test_a_pod_that_never_was_active_did_not_wait(bench: Bench) -> None:
    bench.pod.initial_attempt_at = None
    bench.try_once()
    bench.attempts.bound(PROFILE, bench.pod)
    assert bench.value("pod_scheduling_sli_duration_seconds_count", attempts="1") is None


def test_pods_that_only_time_woke_are_counted(bench: Bench) -> None:
    for flushed in (False, True):
        bench.pod.flushed = flushed
        bench.try_once()
        bench.attempts.bound(PROFILE, bench.pod)
    assert bench.value("pod_scheduled_after_flush_total") == 1
