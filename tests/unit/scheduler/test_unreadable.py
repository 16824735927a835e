"""Objects that cannot be used are named, each until it can be or is gone."""

from __future__ import annotations

from kubesched.errors import ObjectError
from kubesched.scheduler import unreadable
from kubesched.scheduler.unreadable import NAMED, UnusableObjects
from tests.support.objects import node, pod


def test_an_object_is_named_until_it_can_be_used() -> None:
    unusable = UnusableObjects()
    unusable.note(pod("p"), ObjectError("first"))
    unusable.note(pod("p"), ObjectError("pod default/p: second"))
    unusable.note(node("p"), ObjectError("a node of the same name"))
    assert unusable.of("Pod") == {("default", "p"): "second"}

    unusable.forget(pod("p"))
    unusable.forget(pod("never noted"))
    assert (unusable.of("Pod"), len(unusable.of("Node"))) == ({}, 1)


def test_lines_are_sorted_one_an_object() -> None:
    told = {
        "Pod": {("ns", "b"): "two\nlines", ("ns", "a"): "why"},
        "CSINode": {("", "n1"): "x" * 1000, ("", ""): "not a watch event"},
        "Node": {},
    }
    assert list(unreadable.lines(told)) == [
        "CSINode (without a readable name): not a watch event",
        f"CSINode n1: {'x' * 300}…",
        "Pod ns/a: why",
        "Pod ns/b: two lines",
    ]


def test_beyond_a_bound_they_are_only_counted() -> None:
    told = {"Pod": {("ns", f"p{number:03}"): "why" for number in range(NAMED + 7)}}
    lines = list(unreadable.lines(told))
    assert (len(lines), lines[-1]) == (NAMED + 1, "and 7 more")
