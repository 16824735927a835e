"""The feed of decisions, read off pods."""

from __future__ import annotations

from kubesched.api.core import Pod
from kubesched.api.decoding import convert
from kubesched.clock import VirtualClock
from kubesched.web.feed import KEPT, DecisionFeed

NOW = 1_800_000_000.0


def pod(name: str = "p", node: str = "", message: str = "", created: str | None = None) -> Pod:
    conditions = [{"type": "PodScheduled", "status": "False", "message": message}]
    return convert(
        {
            "metadata": {"name": name, "namespace": "shop", "creationTimestamp": created},
            "spec": {"nodeName": node},
            "status": {"conditions": conditions if message else []},
        },
        Pod,
    )


def test_a_placement_and_how_long_it_took() -> None:
    feed = DecisionFeed(VirtualClock(NOW), lambda *_: None)

    feed.on_update(pod(), pod(node="n1", created="2027-01-15T07:59:58Z"))

    (told,) = feed.last(10).decisions
    assert (told.namespace, told.name, told.node) == ("shop", "p", "n1")
    assert (told.time, told.waited_s) == ("2027-01-15T08:00:00.000Z", 2.0)


def test_a_rejection_is_told_once() -> None:
    feed = DecisionFeed(VirtualClock(NOW), lambda *_: None)

    feed.on_update(pod(), pod(message="no room"))
    feed.on_update(pod(message="no room"), pod(message="no room"))
    feed.on_update(pod(message="no room"), pod(message="still none"))

    assert [each.message for each in feed.last(10).decisions] == ["still none", "no room"]


def test_what_is_no_decision_is_not_told() -> None:
    feed = DecisionFeed(VirtualClock(NOW), lambda *_: None)

    feed.on_add(pod(node="n1"), initial=True)
    feed.on_update(pod(node="n1"), pod(node="n1"))
    feed.on_delete(pod(node="n1"))

    assert feed.last(10).decisions == ()


def test_only_the_last_are_kept_and_all_are_counted() -> None:
    feed = DecisionFeed(VirtualClock(NOW), lambda *_: None)
    for number in range(KEPT + 5):
        feed.on_update(pod(), pod(f"p{number}", node="n1"))

    told = feed.last(2)

    assert [each.name for each in told.decisions] == [f"p{KEPT + 4}", f"p{KEPT + 3}"]
    assert told.total == KEPT + 5
    assert len(feed.last(10_000).decisions) == KEPT
