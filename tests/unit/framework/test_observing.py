"""What a profile's framework tells of its work."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.framework.observing import SAMPLING, Observer, Unobserved
from kubesched.framework.status import Code
from kubesched.metrics.recorder import Metrics
from tests.unit.builders import DEFAULT_GATES
from tests.unit.metrics.exposed import Exposed


class Named:
    """All that is asked of a plugin here."""

    def __init__(self, name: str) -> None:
        self.name = name


def plugins(*names: str) -> Any:
    return [Named(name) for name in names]


class Bench:
    """An observer whose clock a test sets."""

    def __init__(self) -> None:
        self.now = 10.0
        self.metrics = Metrics(DEFAULT_GATES)
        self.observer = Observer(self.metrics, "mine", timer=lambda: self.now)

    def value(self, name: str, **labels: str) -> float | None:
        return Exposed(self.metrics.render()).value(f"scheduler_{name}", **labels)

    def evaluations(self, point: str, plugin: str) -> float | None:
        labels = {"extension_point": point, "plugin": plugin, "profile": "mine"}
        return self.value("plugin_evaluation_total", **labels)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_points_are_timed_one_after_the_other(bench: Bench) -> None:
    started = bench.observer.begin()
    bench.now = 10.5
    started = bench.observer.point("PreFilter", Code.SUCCESS, started)
    bench.now = 12.0
    bench.observer.point("Filter", Code.UNSCHEDULABLE, started)
    name = "framework_extension_point_duration_seconds"
    labels = {"extension_point": "PreFilter", "status": "Success", "profile": "mine"}
    assert bench.value(f"{name}_sum", **labels) == 0.5
    labels = {"extension_point": "Filter", "status": "Unschedulable", "profile": "mine"}
    assert bench.value(f"{name}_sum", **labels) == 1.5
    assert bench.value(f"{name}_count", **labels) == 1


def test_one_attempt_in_ten_has_its_plugins_timed(bench: Bench) -> None:
    sampled = []
    for _ in range(3 * SAMPLING):
        bench.observer.begin()
        sampled.append(bench.observer.sampled)
    assert [index for index, each in enumerate(sampled) if each] == [0, SAMPLING, 2 * SAMPLING]


def test_a_plugin_s_time(bench: Bench) -> None:
    bench.now = 10.25
    bench.observer.plugin("Filter", "Fit", Code.SUCCESS, 10.0)
    name = "plugin_execution_duration_seconds_sum"
    labels = {"extension_point": "Filter", "plugin": "Fit", "status": "Success"}
    assert bench.value(name, **labels) == 0.25


def test_plugins_that_are_skipped_are_not_asked(bench: Bench) -> None:
    bench.observer.asked("Filter", plugins("Fit", "Ports"), {"Ports"}, 5)
    bench.observer.asked("Filter", plugins("Fit", "Ports"), set(), 2)
    assert bench.evaluations("Filter", "Fit") == 7
    assert bench.evaluations("Filter", "Ports") == 2


def test_plugins_show_before_they_are_asked(bench: Bench) -> None:
    assert bench.evaluations("Score", "Fit") is None
    bench.observer.expect("Score", plugins("Fit"))
    assert bench.evaluations("Score", "Fit") == 0
    bench.observer.asked("Score", plugins("Fit"), set())
    assert bench.evaluations("Score", "Fit") == 1
    # Another configuration with the same profile goes on counting.
    Observer(bench.metrics, "mine", timer=lambda: 0.0).expect("Score", plugins("Fit"))
    assert bench.evaluations("Score", "Fit") == 1


def test_nobody_need_watch() -> None:
    observer = Unobserved()
    assert observer.begin() == observer.now() == observer.point("Filter", Code.SUCCESS, 1.0) == 0.0
    assert not observer.sampled
    observer.plugin("Filter", "Fit", Code.SUCCESS, 0.0)
    observer.asked("Filter", plugins("Fit"), set())
