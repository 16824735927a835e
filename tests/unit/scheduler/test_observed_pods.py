"""An observer hears of pods that want a node, before the scheduler does anything about them."""

from __future__ import annotations

from kubesched.api.core import Pod
from kubesched.observer import SchedulerObserver
from kubesched.scheduler.observed_pods import ObservedPodHandler
from tests.support.objects import on_node, pod

WAITING, BOUND = pod("p"), on_node(pod("p"), "n1")


class Both(SchedulerObserver):
    """An observer and a handler, in one list."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def pending(self, pod: Pod) -> None:
        self.told.append(f"pending {pod.metadata.name}")

    def gone(self, uid: str) -> None:
        self.told.append(f"gone {uid}")

    def on_add(self, obj: Pod, initial: bool) -> None:
        self.told.append(f"added, initial: {initial}")

    def on_update(self, old: Pod, new: Pod) -> None:
        self.told.append("updated")

    def on_delete(self, obj: Pod) -> None:
        self.told.append("deleted")


def test_a_pod_that_wants_a_node_is_told_before_it_is_handled() -> None:
    both = Both()
    handler = ObservedPodHandler(both, both)
    handler.on_add(WAITING, True)
    handler.on_update(WAITING, WAITING)
    handler.on_delete(WAITING)
    assert both.told == [
        "pending p",
        "added, initial: True",
        "pending p",
        "updated",
        "gone p",
        "deleted",
    ]


def test_a_pod_that_got_its_node_is_gone_once_that_is_handled() -> None:
    both = Both()
    ObservedPodHandler(both, both).on_update(WAITING, BOUND)
    assert both.told == ["updated", "gone p"]


def test_a_pod_that_comes_with_a_node_is_none_that_wants_one() -> None:
    both = Both()
    ObservedPodHandler(both, both).on_add(BOUND, False)
    assert both.told == ["added, initial: False"]
