"""A plugin's time is that of a whole cycle, and its trouble is told on the pod it was about."""

from __future__ import annotations

import pytest

from kubesched.clock import VirtualClock
from kubesched.cluster.pod_info import PodCompiler, PodInfo
from kubesched.config.features import FeatureGates
from kubesched.metrics.recorder import Metrics
from kubesched.plugin_loading.watching import FAILED, PERIOD_S, SLOW, Trouble, Watch, watches_of
from tests.support.objects import pod

FIRST, SECOND = (PodCompiler().pending(pod(name)) for name in ("first", "second"))


class Lab:
    """A watch with a budget of 100 ms, and what it told."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.metrics = Metrics(FeatureGates.of({}))
        self.told: list[Trouble] = []
        self.watch = Watch(
            "Mine", "mine.py", metrics=self.metrics, timer=self.clock.monotonic, budget_s=0.1
        )
        self.watch.report_to(self.told.append)

    @property
    def slow(self) -> float:
        return self.metrics.plugin_slow.labels("Mine").value


@pytest.fixture
def lab() -> Lab:
    return Lab()


def cycle(lab: Lab, *seconds: float, about: PodInfo = FIRST) -> None:
    lab.watch.begin(about)
    for each in seconds:
        assert lab.watch.spent("score", each)
    lab.watch.end()


def test_calls_of_one_cycle_share_a_budget(lab: Lab) -> None:
    cycle(lab, 0.06, 0.06)
    assert lab.slow == 1
    (trouble,) = lab.told
    assert (trouble.reason, trouble.pod.metadata.name) == (SLOW, "first")
    assert trouble.note == (
        "plugin Mine took 120 ms for this pod, most of it in score; its budget is 100 ms"
    )


def test_calls_of_two_cycles_do_not(lab: Lab) -> None:
    cycle(lab, 0.06)
    cycle(lab, 0.06, about=SECOND)
    assert (lab.slow, lab.told) == (0, [])


def test_a_slow_cycle_counts_once_and_the_next_one_begins_anew(lab: Lab) -> None:
    cycle(lab, 0.2, 0.2)
    cycle(lab, 0.05, about=SECOND)
    assert lab.slow == 1


def test_outside_of_a_cycle_every_call_has_the_budget_for_itself(lab: Lab) -> None:
    for seconds in (0.06, 0.06, 0.2):
        assert not lab.watch.spent("score", seconds)
        lab.watch.took("score", seconds)
    assert lab.slow == 1
    assert lab.told == [], "nobody knows whose it was"


def test_a_cycle_that_waits_is_not_charged_for_another(lab: Lab) -> None:
    lab.watch.begin(FIRST)
    lab.watch.spent("filter", 0.06)
    cycle(lab, 0.06, 0.07, about=SECOND)
    lab.watch.spent("score", 0.02)
    lab.watch.end()
    assert lab.slow == 1
    assert [each.pod.metadata.name for each in lab.told] == ["second"]
    assert not lab.watch.spent("score", 0.0), "no cycle is left"


def test_events_are_one_a_period_with_their_number(lab: Lab) -> None:
    for _ in range(3):
        lab.watch.failed(ValueError("no"), FIRST)
    lab.clock.advance(PERIOD_S)
    lab.watch.failed(ValueError("no"), SECOND)

    first, second = lab.told
    assert (first.reason, first.pod.metadata.name) == (FAILED, "first")
    assert first.note == "plugin Mine failed at mine.py: ValueError: no"
    assert second.pod.metadata.name == "second"
    assert second.note.endswith("(3 times since the last event about it)")
    assert lab.metrics.plugin_failures.labels("Mine").value == 4


def test_a_failure_that_names_no_pod_is_told_on_the_one_whose_cycle_it_is_in(lab: Lab) -> None:
    """A row-local plugin is told a signature, and not whose it is."""
    lab.watch.begin(SECOND)
    lab.watch.failed(ValueError("no"))
    lab.watch.end()
    assert [(each.reason, each.pod.metadata.name) for each in lab.told] == [(FAILED, "second")]


def test_what_happens_before_anybody_listens_waits(lab: Lab) -> None:
    watch = Watch("Early", "e.py", metrics=lab.metrics, timer=lab.clock.monotonic)
    watch.failed(ValueError("no"), FIRST)
    assert lab.told == []

    watch.report_to(lab.told.append)
    watch.report_to(lab.told.append)

    assert [each.reason for each in lab.told] == [FAILED]


def test_plugins_in_the_tree_have_no_watch() -> None:
    assert watches_of([object(), None]) == []
