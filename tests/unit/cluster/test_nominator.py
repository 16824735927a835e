"""Who was promised a place on which node."""

from __future__ import annotations

import pytest

from kubesched.cluster.nominator import Nominator
from kubesched.cluster.pod_info import PodCompiler, PodInfo
from kubesched.errors import InvariantError
from tests.support.objects import pod

_COMPILER = PodCompiler()


def _pod(name: str, priority: int = 0) -> PodInfo:
    return _COMPILER.pending(pod(name, priority=priority))


def _room(nominator: Nominator, info: PodInfo) -> dict[str, list[str]]:
    found = nominator.nodes_to_leave_room_on(info)
    return {node_name: [each.uid for each in others] for node_name, others in found.items()}


def test_a_new_promise_replaces_the_old_one() -> None:
    nominator = Nominator()
    nominator.nominate(_pod("a"), "n1")
    nominator.nominate(_pod("a"), "n2")
    assert len(nominator) == 1
    assert nominator.node_of("a") == "n2"
    nominator.validate()


def test_a_promise_can_be_taken_back_twice() -> None:
    nominator = Nominator()
    nominator.nominate(_pod("a"), "n1")
    nominator.clear("a")
    nominator.clear("a")
    assert nominator.node_of("a") is None
    assert len(nominator) == 0
    nominator.validate()


def test_room_is_left_to_pods_of_the_same_or_higher_priority() -> None:
    nominator = Nominator()
    for name, priority, node_name in (("low", 1, "n1"), ("same", 5, "n1"), ("high", 9, "n2")):
        nominator.nominate(_pod(name, priority), node_name)
    assert _room(nominator, _pod("me", 5)) == {"n1": ["same"], "n2": ["high"]}
    assert _room(nominator, _pod("me", 10)) == {}
    assert _room(nominator, _pod("me", 0)) == {"n1": ["low", "same"], "n2": ["high"]}


def test_nobody_leaves_room_for_himself() -> None:
    nominator = Nominator()
    nominator.nominate(_pod("me", 5), "n1")
    assert _room(nominator, _pod("me", 5)) == {}


def test_no_priority_is_priority_zero() -> None:
    nominator = Nominator()
    nominator.nominate(_COMPILER.pending(pod("a")), "n1")
    assert _room(nominator, _pod("me", 0)) == {"n1": ["a"]}
    assert _room(nominator, _pod("me", 1)) == {}


def test_validate_finds_directions_that_disagree() -> None:
    nominator = Nominator()
    nominator.nominate(_pod("a"), "n1")
    nominator._node_of["a"] = "n2"
    with pytest.raises(InvariantError):
        nominator.validate()
