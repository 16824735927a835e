"""What a profile's framework tells of its work."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.framework.observing import NullObserver, Observer
from kubesched.framework.status import Code
from kubesched.metrics.recorder import Metrics
from kubesched.metrics.series import NOTED
from tests.support.exposed_metrics import Exposed
from tests.support.scheduling import DEFAULT_GATES


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
    started = bench.observer.stopwatch("PreFilter")(Code.SUCCESS, started)
    bench.now = 12.0
    assert bench.observer.stopwatch("Filter")(Code.UNSCHEDULABLE, started) == 12.0
    name = "framework_extension_point_duration_seconds"
    labels = {"extension_point": "PreFilter", "status": "Success", "profile": "mine"}
    assert bench.value(f"{name}_sum", **labels) == 0.5
    labels = {"extension_point": "Filter", "status": "Unschedulable", "profile": "mine"}
    assert bench.value(f"{name}_sum", **labels) == 1.5
    assert bench.value(f"{name}_count", **labels) == 1


@pytest.mark.parametrize("every", [1, 2, 10])
def test_one_attempt_in_ten_has_its_plugins_timed(bench: Bench, every: int) -> None:
    """Whichever attempts one looks at: there may be a kind of pod in every second of them."""
    sampled = []
    for _ in range(5_000 * every):
        bench.observer.begin()
        sampled.append(bench.observer.sampled)
    assert sum(sampled[::every]) == pytest.approx(500, rel=0.15)


def test_a_plugin_s_time(bench: Bench) -> None:
    bench.now = 10.25
    assert bench.observer.lap("Filter")("Fit", Code.SUCCESS, 10.0) == 10.25
    name = "plugin_execution_duration_seconds_sum"
    labels = {"extension_point": "Filter", "plugin": "Fit", "status": "Success"}
    assert bench.value(name, **labels) == 0.25


def test_plugins_that_are_skipped_are_not_asked(bench: Bench) -> None:
    bench.observer.expect("Filter", plugins("Fit", "Ports"))
    bench.observer.asked("Filter", frozenset({"Ports"}), 5)
    bench.observer.asked("Filter", frozenset(), 2)
    assert bench.evaluations("Filter", "Fit") == 7
    assert bench.evaluations("Filter", "Ports") == 2


def test_plugins_show_before_they_are_asked(bench: Bench) -> None:
    assert bench.evaluations("Score", "Fit") is None
    bench.observer.expect("Score", plugins("Fit"))
    assert bench.evaluations("Score", "Fit") == 0
    bench.observer.asked("Score", frozenset())
    assert bench.evaluations("Score", "Fit") == 1
    # Another configuration with the same profile goes on counting.
    another = Observer(bench.metrics, "mine", timer=lambda: 0.0)
    another.expect("Score", plugins("Fit", "Images"))
    assert bench.evaluations("Score", "Fit") == 1
    another.asked("Score", frozenset(), 2)
    bench.observer.asked("Score", frozenset(), 4)
    assert bench.evaluations("Score", "Fit") == 7
    assert bench.evaluations("Score", "Images") == 2


def test_a_stopwatch_tells_how_a_point_ended(bench: Bench) -> None:
    through = bench.observer.stopwatch("Reserve")
    name = "framework_extension_point_duration_seconds"
    labels = {"extension_point": "Reserve", "profile": "mine"}
    assert bench.value(f"{name}_count", status="Success", **labels) is None  # none of it yet
    for code in (Code.SUCCESS, Code.ERROR, Code.SUCCESS):
        through(code, 9.5)
    assert bench.value(f"{name}_count", status="Success", **labels) == 2
    assert bench.value(f"{name}_sum", status="Success", **labels) == 1.0
    assert bench.value(f"{name}_count", status="Error", **labels) == 1


def test_a_point_with_nothing_to_do_takes_no_time(bench: Bench) -> None:
    blank = bench.observer.blank("Permit")
    name = "framework_extension_point_duration_seconds"
    labels = {"extension_point": "Permit", "status": "Success", "profile": "mine"}
    assert bench.value(f"{name}_count", **labels) is None
    blank.zeros += 2
    assert bench.value(f"{name}_count", **labels) == 2
    assert bench.value(f"{name}_sum", **labels) == 0


def test_nobody_need_watch() -> None:
    observer = NullObserver()
    assert observer.begin() == observer.now() == 0.0
    assert observer.stopwatch("Filter")(Code.SUCCESS, 1.0) == 0.0
    assert not observer.sampled
    assert observer.lap("Filter")("Fit", Code.SUCCESS, 1.0) == 0.0
    observer.asked("Filter", frozenset())
    assert not observer.samples_gate()


# --- plugins, one after the other -------------------------------------------------------------


def durations_of(bench: Bench, point: str) -> dict[tuple[str, str], float]:
    """Plugin and status → the seconds that were noted."""
    found = {}
    for plugin in ("A", "B"):
        for code in Code:
            labels = {"extension_point": point, "plugin": plugin, "status": code.label}
            seconds = bench.value("plugin_execution_duration_seconds_sum", **labels)
            if seconds is not None:
                found[plugin, code.label] = seconds
    return found


def test_laps_time_plugins_one_after_the_other(bench: Bench) -> None:
    lap = bench.observer.lap("PostFilter")
    bench.now += 0.5
    began = lap("A", Code.UNSCHEDULABLE, 10.0)
    bench.now += 0.25
    lap("B", Code.SUCCESS, began)
    want = {("A", "Unschedulable"): 0.5, ("B", "Success"): 0.25}
    assert durations_of(bench, "PostFilter") == want


def test_laps_of_a_point_are_noted_in_one_place(bench: Bench) -> None:
    for _ in range(2):
        bench.observer.lap("Score")("A", Code.SUCCESS, 9.0)
    assert durations_of(bench, "Score") == {("A", "Success"): 2.0}
    assert bench.observer.lap("Score") is bench.observer.lap("Score")


def test_one_pod_in_ten_has_the_plugins_at_the_gate_timed(bench: Bench) -> None:
    """They are asked before there is an attempt, and more often."""
    timed = [bench.observer.samples_gate() for _ in range(5_000)]
    assert sum(timed) == pytest.approx(500, rel=0.15)


def test_pods_that_are_asked_differently_in_turns(bench: Bench) -> None:
    bench.observer.expect("Filter", plugins("A", "B"))
    for _ in range(3):
        bench.observer.asked("Filter", frozenset({"A"}))
        bench.observer.asked("Filter", frozenset())
    assert (bench.evaluations("Filter", "A"), bench.evaluations("Filter", "B")) == (3, 6)


@pytest.mark.parametrize("what", ["attempts", "gates"])
def test_what_is_noted_does_not_pile_up_until_somebody_looks(bench: Bench, what: str) -> None:
    through, lap = bench.observer.stopwatch("Reserve"), bench.observer.lap("Reserve")
    begin = bench.observer.begin if what == "attempts" else bench.observer.samples_gate
    longest = 0
    for _ in range(5 * NOTED):
        begin()
        through(Code.SUCCESS, 9.0)
        lap("A", Code.SUCCESS, 9.0)
        longest = max(longest, *(len(each._noted) for each in bench.observer._noted))
    assert longest <= NOTED
    name = "framework_extension_point_duration_seconds_count"
    labels = {"extension_point": "Reserve", "status": "Success", "profile": "mine"}
    assert bench.value(name, **labels) == 5 * NOTED
