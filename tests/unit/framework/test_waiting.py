"""Pods that wait for permission: all who made them wait must allow, one may reject."""

from __future__ import annotations

from kubesched.cluster.pod_info import PodCompiler
from kubesched.framework.status import SUCCESS, Status, error, unschedulable
from kubesched.framework.waiting import WaitingPod, WaitingPods
from tests.support.objects import pod


def _waiting(name: str = "p", *plugins: str) -> tuple[WaitingPod, list[Status]]:
    decided: list[Status] = []
    info = PodCompiler().pending(pod(name))
    return WaitingPod(info, set(plugins), decided.append), decided


def test_the_last_permission_decides() -> None:
    waiting, decided = _waiting("p", "B", "A")
    assert waiting.pending_plugins == ["A", "B"]
    waiting.allow("A")
    assert (waiting.pending_plugins, decided) == (["B"], [])
    waiting.allow("A")
    waiting.allow("Somebody")
    assert decided == []
    waiting.allow("B")
    assert decided == [SUCCESS]


def test_one_rejection_decides() -> None:
    waiting, decided = _waiting("p", "A", "B")
    waiting.reject("B", "no quota")
    assert decided == [unschedulable("no quota").by("B")]


def test_a_pod_that_waits_can_be_preempted() -> None:
    waiting, decided = _waiting("p", "A")
    assert waiting.preempt()
    assert decided == [error("waiting on permit for pod: preempted")]


def test_only_the_first_decision_counts() -> None:
    waiting, decided = _waiting("p", "A")
    waiting.allow("A")
    assert not waiting.reject("A", "too late")
    assert not waiting.preempt()
    waiting.allow("A")
    assert decided == [SUCCESS]


def test_waiting_pods_by_uid() -> None:
    waiting, _ = _waiting("p", "A")
    other, _ = _waiting("q", "A")
    pods = WaitingPods()
    pods.add(waiting)
    pods.add(other)
    assert pods.get("p") is waiting
    assert list(pods) == [waiting, other]
    pods.remove("p")
    pods.remove("p")
    assert pods.get("p") is None
    assert len(pods) == 1
