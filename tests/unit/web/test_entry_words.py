"""Each entry of a recording is described in one line."""

from __future__ import annotations

from typing import get_args

import pytest

from kubesched.api.resource import AllocationResult
from kubesched.recording.entries import (
    Answered,
    AnyEntry,
    Assumed,
    ClaimDecided,
    ClaimDropped,
    Decided,
    Gone,
    GroupDecided,
    MemberDecided,
    Moved,
    Pending,
    Put,
    Raised,
    Removed,
    Returned,
    VolumeRestored,
)
from kubesched.web.entry_words import WORDS, words_of
from tests.support.objects import node, pod

NAMES = {"u": "shop/web"}


def member(name: str, node_name: str = "") -> MemberDecided:
    return MemberDecided(uid=name, namespace="shop", name=name, node=node_name)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (Put(kind="Node", object=node("n1")), "Node n1 was added or changed"),
        (Removed(kind="Node", name="n1"), "Node n1 was removed"),
        (Removed(kind="Pod", uid="u"), "Pod shop/web was removed"),
        (Pending(pod=pod("web")), "pending pod default/web was added or changed"),
        (Gone(uid="u"), "pod shop/web is no longer pending"),
        (
            Decided(uid="u", namespace="shop", name="web", profile="p", node="n1"),
            "pod shop/web was given node n1",
        ),
        (
            Decided(uid="u", namespace="shop", name="web", profile="p"),
            "pod shop/web was given no node",
        ),
        (
            Decided(uid="u", namespace="shop", name="web", profile="p", nominated="n2"),
            "pod shop/web was given no node, but may get n2 after preemption",
        ),
        (
            GroupDecided(
                group_kind="podgroup",
                namespace="shop",
                name="gang",
                profile="p",
                uids=("a", "b"),
                members=(member("a", "n1"), member("b")),
            ),
            "1 of 2 pods of group shop/gang were given nodes",
        ),
        (
            Moved(uids=("u",), queue="backoff", event="NodeAdd"),
            "pod shop/web moved to backoff: NodeAdd",
        ),
        (
            Moved(uids=("u",), queue="gated", event="PodAdd", plugin="SchedulingGates"),
            "pod shop/web moved to gated by SchedulingGates: PodAdd",
        ),
        (
            Moved(uids=("u", "v"), queue="active", event="NodeAdd"),
            "2 pods of a group moved to active: NodeAdd",
        ),
        (Answered(), "extenders answered"),
        (Answered(error="timeout"), "extenders answered: timeout"),
        (Raised(uid="u", profile="p", error="E"), "the attempt at pod shop/web failed: E"),
        (Assumed(uid="u", node="n1"), "pod shop/web was assumed on n1"),
        (Returned(uid="u", message="conflict"), "pod shop/web was not bound: conflict"),
        (
            VolumeRestored(kind="PersistentVolume", name="v"),
            "the assumption of PersistentVolume v was undone",
        ),
        (
            ClaimDecided(uid="u", allocation=AllocationResult()),
            "devices were allocated to claim shop/web",
        ),
        (
            ClaimDropped(uid="u", written=True),
            "the allocation of claim shop/web was written",
        ),
        (ClaimDropped(uid="u"), "the allocation of claim shop/web was given up"),
        (None, ""),
    ],
)
def test_what_an_entry_was(entry: AnyEntry | None, words: str) -> None:
    assert words_of(entry, NAMES.__getitem__) == words


def test_every_kind_of_entry_has_words() -> None:
    assert set(WORDS) == set(get_args(AnyEntry))
