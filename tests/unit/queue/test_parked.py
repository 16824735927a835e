"""Parked pods are found by the plugins that turned them away."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kubesched.api.names import DEFAULT_SCHEDULER
from kubesched.errors import InvariantError
from kubesched.queue.parked import ParkedPods
from kubesched.queue.queued_pod import QueuedEntity, QueuedPod
from tests.support.queueing import info, queued


def _parked(
    name: str, *plugins: str, pending: str = "", gated_by: str = "", priority: int = 0
) -> QueuedPod:
    pod = queued(name, priority=priority)
    pod.unschedulable_plugins = set(plugins)
    pod.pending_plugins = {pending} if pending else set()
    pod.gated_by = gated_by
    return pod


def _found(parked: ParkedPods, *plugins: str, profile: str = DEFAULT_SCHEDULER) -> list[str]:
    subscribers = [(profile, plugin) for plugin in plugins]
    return [pod.key for pod in parked.of(subscribers, lambda alike: alike.values())]


def test_a_pod_is_found_by_each_of_its_plugins_and_listed_once() -> None:
    parked = ParkedPods()
    parked.add(_parked("a", "Fit", "Ports"))
    parked.add(_parked("b", "Ports", pending="Devices"))
    assert _found(parked, "Fit") == ["a"]
    assert sorted(_found(parked, "Fit", "Ports", "Devices")) == ["a", "b"]
    assert _found(parked, "Devices") == ["b"]
    assert _found(parked, "Other") == []
    assert _found(parked, "Fit", profile="batch") == []
    parked.validate()


def test_a_gated_pod_is_found_by_its_gate_only() -> None:
    parked = ParkedPods()
    parked.add(_parked("a", "Fit", gated_by="Gates"))
    assert _found(parked, "Fit") == []
    assert _found(parked, "Gates") == ["a"]
    assert parked.gated_count == 1
    parked.validate()
    parked.remove("a")
    assert parked.gated_count == 0


def test_a_removed_pod_is_not_found() -> None:
    parked = ParkedPods()
    pod = _parked("a", "Fit")
    parked.add(pod)
    assert parked.remove("a") is pod
    assert parked.remove("a") is None
    assert _found(parked, "Fit") == []
    assert len(parked) == 0
    assert "a" not in parked
    parked.validate()


class Screen:
    """Lets nothing through, or some, and records what it was asked about."""

    def __init__(self, *through: str) -> None:
        self.through = through
        self.asked: list[list[str]] = []

    def __call__(self, alike: Mapping[str, QueuedEntity]) -> list[QueuedEntity]:
        self.asked.append(sorted(alike))
        return [each for uid, each in alike.items() if uid in self.through]


FIT = [(DEFAULT_SCHEDULER, "Fit")]


def test_pods_that_are_alike_are_screened_together_and_others_not_at_all() -> None:
    parked, screen = ParkedPods(), Screen("c")
    for name in ("a", "c"):
        parked.add(_parked(name, "Fit"))
    others = (
        _parked("b", "Fit", "Ports"),
        _parked("d", pending="Fit"),
        _parked("e", "Fit", priority=7),
    )
    for each in others:
        parked.add(each)

    found = [pod.key for pod in parked.of(FIT, screen)]

    assert screen.asked == [["a", "c"]]
    assert found == ["c", "b", "d", "e"], "in order of arrival"


def test_gated_pods_are_screened_apart_from_those_that_were_tried() -> None:
    parked, screen = ParkedPods(), Screen("a")
    for name in ("a", "b"):
        parked.add(_parked(name, "Gates", gated_by="Gates"))
        parked.add(_parked(f"tried-{name}", "Gates"))

    found = [pod.key for pod in parked.of([(DEFAULT_SCHEDULER, "Gates")], screen)]

    assert found == ["a"]
    assert screen.asked == [["a", "b"], ["tried-a", "tried-b"]]


def test_a_new_version_is_among_those_that_it_is_like_now() -> None:
    parked, screen = ParkedPods(), Screen()
    first, second = _parked("a", "Fit"), _parked("b", "Fit")
    parked.add(first)
    parked.add(second)

    parked.replace(first, info("a", priority=7))

    parked.validate()
    assert [pod.key for pod in parked.of(FIT, screen)] == ["a", "b"]
    assert screen.asked == []
    parked.replace(second, info("b", priority=7))
    assert parked.of(FIT, screen) == []
    assert screen.asked == [["a", "b"]]


def test_a_pod_cannot_be_parked_twice() -> None:
    parked = ParkedPods()
    parked.add(_parked("a", "Fit"))
    with pytest.raises(InvariantError, match="parked already"):
        parked.add(_parked("a", "Fit"))


def test_validate_finds_a_pod_whose_plugins_changed_behind_the_index() -> None:
    parked = ParkedPods()
    pod = _parked("a", "Fit")
    parked.add(pod)
    pod.unschedulable_plugins = {"Ports"}
    with pytest.raises(InvariantError, match="indexed by"):
        parked.validate()
