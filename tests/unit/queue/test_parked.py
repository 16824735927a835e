"""Parked pods are found by the plugins that turned them away."""

from __future__ import annotations

import pytest

from kubesched.api.names import DEFAULT_SCHEDULER
from kubesched.errors import InvariantError
from kubesched.queue.parked import ParkedPods
from kubesched.queue.queued_pod import QueuedPod
from tests.support.queueing import queued


def _parked(name: str, *plugins: str, pending: str = "", gated_by: str = "") -> QueuedPod:
    pod = queued(name)
    pod.unschedulable_plugins = set(plugins)
    pod.pending_plugins = {pending} if pending else set()
    pod.gated_by = gated_by
    return pod


def _found(parked: ParkedPods, *plugins: str, profile: str = DEFAULT_SCHEDULER) -> list[str]:
    return [pod.key for pod in parked.of([(profile, plugin) for plugin in plugins])]


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
