"""A plugin's time is that of a whole cycle, and its trouble is told on the pod it was about."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from kubesched.clock import VirtualClock
from kubesched.cluster.pod_info import PodCompiler, PodInfo
from kubesched.config.features import FeatureGates
from kubesched.metrics.recorder import Metrics
from kubesched.plugin_loading.watching import FAILED, PERIOD_S, SLOW, Trouble, Watch, watches_of
from tests.unit.builders import pod

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


def in_turns(*turns: Callable[[], None]) -> None:
    """Run each in a turn of the event loop of its own, as cycles are."""

    async def run() -> None:
        for each in turns:
            each()
            await asyncio.sleep(0)

    asyncio.run(run())


def spend(lab: Lab, *seconds: float, about: PodInfo | None = FIRST) -> Callable[[], None]:
    def calls() -> None:
        for each in seconds:
            lab.watch.spent("score", each, about)

    return calls


def test_calls_of_one_cycle_share_a_budget(lab: Lab) -> None:
    in_turns(spend(lab, 0.06, 0.06))
    assert lab.slow == 1
    (trouble,) = lab.told
    assert (trouble.reason, trouble.pod.metadata.name) == (SLOW, "first")
    assert trouble.note == (
        "plugin Mine took 120 ms for this pod, most of it in score; its budget is 100 ms"
    )


def test_calls_of_two_cycles_do_not(lab: Lab) -> None:
    in_turns(spend(lab, 0.06), spend(lab, 0.06, about=SECOND))
    assert (lab.slow, lab.told) == (0, [])


def test_a_slow_cycle_counts_once_and_the_next_one_begins_anew(lab: Lab) -> None:
    in_turns(spend(lab, 0.2, 0.2), spend(lab, 0.05, about=SECOND))
    assert lab.slow == 1


def test_without_a_loop_every_call_is_a_cycle(lab: Lab) -> None:
    spend(lab, 0.06, 0.06, 0.2)()
    assert lab.slow == 1


def test_who_settles_says_which_pod_it_was(lab: Lab) -> None:
    """A row-local plugin is told a shape, and not whose it is."""

    def cycle() -> None:
        spend(lab, 0.2, about=None)()
        lab.watch.settle(SECOND)

    in_turns(cycle)
    assert [each.pod.metadata.name for each in lab.told] == ["second"]


def test_a_binding_that_fails_does_not_claim_the_cycle_of_another_pod(lab: Lab) -> None:
    async def run() -> None:
        async def cycle() -> None:
            spend(lab, 0.2, about=None)()

        async def binding() -> None:
            lab.watch.settle(SECOND)

        await asyncio.gather(cycle(), binding())
        await asyncio.sleep(0)

    asyncio.run(run())
    assert lab.slow == 1, "it is counted all the same"
    assert lab.told == [], "nobody knows whose cycle it was"


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


def test_a_failure_that_names_no_pod_is_told_on_the_one_whose_cycle_it_ended(lab: Lab) -> None:
    def cycle() -> None:
        lab.watch.failed(ValueError("no"))
        spend(lab, 0.01, about=None)()
        lab.watch.settle(SECOND)

    in_turns(cycle, lambda: lab.watch.settle(FIRST))
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
