"""The last minute: what is placed a second, and how long attempts take."""

from __future__ import annotations

import pytest

from kubesched.clock import VirtualClock
from kubesched.config.features import FeatureGates
from kubesched.metrics.recorder import Metrics
from kubesched.web.rates import HISTORY_S, Rates, RateSample, of_metrics


class Counting:
    """Pods that a test places."""

    def __init__(self) -> None:
        self.clock = VirtualClock(1000.0)
        self.placed = 0
        self.rates = Rates(self.clock, lambda at: RateSample(at, self.placed))

    def second(self, placed: int, *, took_s: float = 1.0) -> None:
        self.placed += placed
        self.clock.advance(took_s)
        self.rates.sample()


def test_nothing_is_known_at_first() -> None:
    counting = Counting()

    assert counting.rates.rate().per_second == 0.0
    assert counting.rates.rate().history == (0.0,) * HISTORY_S
    assert counting.rates.latency().p50_ms is None


def test_history_is_a_number_a_second_oldest_first() -> None:
    counting = Counting()
    counting.rates.sample()
    for placed in (10, 0, 30):
        counting.second(placed)

    rate = counting.rates.rate()

    assert rate.history == (*(0.0,) * (HISTORY_S - 3), 10.0, 0.0, 30.0)
    assert rate.per_second == pytest.approx(13.3)


def test_what_is_longer_ago_than_a_minute_is_forgotten() -> None:
    counting = Counting()
    for _ in range(200):
        counting.second(5)

    assert counting.rates.rate().history == (5.0,) * HISTORY_S


def test_a_second_that_took_longer_counts_as_long_as_it_took() -> None:
    counting = Counting()
    counting.rates.sample()
    counting.second(10, took_s=2.0)

    assert counting.rates.rate().history[-1] == 5.0


def test_a_counter_that_was_reset_is_no_negative_rate() -> None:
    counting = Counting()
    counting.second(10)
    counting.second(-10)

    assert counting.rates.rate().history[-1] == 0.0


def test_the_scheduler_is_measured_by_its_own_metrics() -> None:
    metrics, clock = Metrics(FeatureGates.of({})), VirtualClock(1.0)
    rates = of_metrics(metrics, clock, lambda: ["default-scheduler", "other"])
    rates.sample()
    for profile, result, count, took_s in (
        ("default-scheduler", "scheduled", 98, 0.0015),
        ("other", "unschedulable", 2, 0.1),
    ):
        metrics.schedule_attempts.labels(result, profile).inc(count)
        for _ in range(count):
            metrics.scheduling_attempt_duration.labels(result, profile).observe(took_s)
    clock.advance(2.0)
    rates.sample()

    assert rates.rate().history[-1] == 49.0
    latency = rates.latency()
    assert latency.p50_ms is not None
    assert latency.p99_ms is not None
    assert 1.0 <= latency.p50_ms <= 2.0
    assert 64.0 <= latency.p99_ms <= 128.0


def test_to_look_at_metrics_does_not_make_them_show() -> None:
    metrics = Metrics(FeatureGates.of({}))
    before = metrics.render()

    of_metrics(metrics, VirtualClock(1.0), lambda: ["default-scheduler"]).sample()

    shown = b"scheduler_schedule_attempts_total{"
    assert (shown in metrics.render()) == (shown in before)
    assert b"attempt_duration_seconds_count{" not in metrics.render()


def test_attempts_that_took_longer_than_all_bounds_took_at_least_the_last() -> None:
    clock = VirtualClock(1.0)
    counts = [[0, 0, 0], [0, 0, 5]]
    rates = Rates(clock, lambda at: RateSample(at, 0, counts.pop(0)), bounds_s=(0.1, 0.2))
    rates.sample()
    rates.sample()

    assert rates.latency().p50_ms == 200.0
