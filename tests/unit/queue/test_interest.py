"""Who wants to hear of which event, over all profiles."""

from __future__ import annotations

from kubesched.queue.events import NODE_ADD, NODE_DELETE, UNSCHEDULABLE_TIMEOUT
from kubesched.queue.interest import Interest

_INTEREST = Interest(
    {
        "default": {"Fit": [NODE_ADD], "Anything": None, "Nothing": []},
        "batch": {"Fit": [NODE_DELETE]},
    }
)


def test_subscribers_are_plugins_of_profiles() -> None:
    assert _INTEREST.subscribers(NODE_ADD) == {("default", "Fit"), ("default", "Anything")}
    assert _INTEREST.subscribers(NODE_DELETE) == {("default", "Anything"), ("batch", "Fit")}
    assert _INTEREST.subscribers(NODE_ADD) == {("default", "Fit"), ("default", "Anything")}


def test_wildcards_are_for_everybody() -> None:
    assert _INTEREST.subscribers(UNSCHEDULABLE_TIMEOUT) == {
        ("default", "Fit"),
        ("default", "Anything"),
        ("default", "Nothing"),
        ("batch", "Fit"),
    }


def test_an_event_concerns_a_pod_through_the_plugins_of_its_profile() -> None:
    assert _INTEREST.concerns(NODE_ADD, "default", ["Nothing", "Fit"])
    assert not _INTEREST.concerns(NODE_ADD, "batch", ["Fit"])
    assert not _INTEREST.concerns(NODE_ADD, "default", [])
    assert not _INTEREST.concerns(NODE_ADD, "unknown", ["Fit"])
