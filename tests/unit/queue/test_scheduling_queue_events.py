"""Events: whom they wake, and that none is missed while a pod is tried."""

from __future__ import annotations

import pytest

from kubesched.queue import events
from kubesched.queue.events import Action, ClusterEvent, Resource
from tests.support.objects import pod
from tests.support.queueing import COMPILER, Bench

NODE_LABEL = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_LABEL)

# --- events -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("plugins", "event", "woken"),
    [
        pytest.param(["Fit"], events.NODE_ADD, True, id="registered"),
        pytest.param(["Fit"], events.ASSIGNED_POD_DELETE, True, id="registered for all pods"),
        pytest.param(["Fit"], NODE_LABEL, False, id="not registered"),
        pytest.param(["Fit", "Labels"], NODE_LABEL, True, id="one of those who turned it away"),
        pytest.param(["Anything"], NODE_LABEL, True, id="whoever registers nothing hears all"),
        pytest.param(["Nothing"], events.NODE_ADD, False, id="whoever wants none hears none"),
        pytest.param(["Unknown"], events.NODE_ADD, False, id="a plugin of another profile"),
        pytest.param(["Nothing"], events.UNSCHEDULABLE_TIMEOUT, True, id="wildcards wake all"),
    ],
)
def test_an_event_wakes_the_pods_that_it_may_help(
    plugins: list[str], event: ClusterEvent, woken: bool
) -> None:
    bench = Bench()
    bench.failed("a", *plugins)
    bench.move(event)
    assert bench.counts() == ({"backoff": 1} if woken else {"unschedulable": 1})


def test_an_event_can_be_limited_to_some_pods() -> None:
    bench = Bench()
    bench.failed("a", "Fit")
    bench.failed("b", "Fit")
    bench.move(events.NODE_ADD, only="b")
    assert bench.counts() == {"backoff": 1, "unschedulable": 1}
    assert bench.pop().info.uid == "b"


def test_an_event_leaves_pods_that_are_not_parked_alone() -> None:
    bench = Bench()
    bench.failed("broken")
    bench.add("a")
    bench.move(events.UNSCHEDULABLE_TIMEOUT)
    assert bench.counts() == {"active": 1, "backoff": 1}


def test_an_event_that_a_pending_plugin_waits_for_skips_the_backoff() -> None:
    bench = Bench()
    bench.failed("a", "Fit", pending=["Labels"])
    bench.move(NODE_LABEL)
    assert bench.counts() == {"active": 1}


# --- events while in flight -------------------------------------------------------------------


def test_an_event_that_arrives_while_the_pod_is_in_flight_is_not_missed() -> None:
    bench = Bench()
    bench.add("a")
    each = bench.pop()
    bench.move(events.NODE_ADD)
    bench.fail(each, "Fit")
    assert bench.counts() == {"backoff": 1}


def test_an_event_that_helps_no_plugin_that_rejected_the_pod_does_not_count() -> None:
    bench = Bench()
    bench.add("a")
    each = bench.pop()
    bench.move(NODE_LABEL)
    bench.fail(each, "Fit")
    assert bench.counts() == {"unschedulable": 1}


def test_an_event_from_before_the_attempt_does_not_count() -> None:
    bench = Bench()
    bench.add("first")
    bench.add("a")
    bench.pop()
    bench.move(events.NODE_ADD)
    each = bench.pop()
    bench.fail(each, "Fit")
    assert bench.counts() == {"unschedulable": 1, "in flight": 1}


def test_an_in_flight_event_that_a_pending_plugin_waits_for_skips_the_backoff() -> None:
    bench = Bench()
    bench.add("a")
    each = bench.pop()
    bench.move(NODE_LABEL)
    bench.fail(each, "Fit", pending=["Labels"])
    assert bench.counts() == {"active": 1}


def test_other_in_flight_events_activate_the_pod_after_its_backoff() -> None:
    bench = Bench()
    bench.add("a")
    each = bench.pop()
    bench.move(events.NODE_ADD)
    bench.fail(each, "Fit", pending=["Labels"])
    assert bench.counts() == {"backoff": 1}


def test_an_update_while_in_flight_is_recorded() -> None:
    bench = Bench()
    bench.queue.add(COMPILER.pending(pod("a")))
    each = bench.pop()
    bench.update(pod("a"), pod("a", labels={"app": "web"}))
    assert bench.counts() == {"in flight": 1}
    bench.fail(each, "Labels")
    assert bench.counts() == {"backoff": 1}


def test_activation_while_in_flight_is_recorded() -> None:
    bench = Bench()
    bench.add("a")
    each = bench.pop()
    bench.queue.activate(["a"])
    assert bench.counts() == {"in flight": 1}
    bench.fail(each, "Nothing")
    assert bench.counts() == {"backoff": 1}


def test_nothing_is_recorded_for_a_pod_that_is_done() -> None:
    bench = Bench()
    bench.add("a")
    each = bench.pop()
    bench.move(events.NODE_ADD)
    bench.queue.done("a")
    bench.fail(each, "Fit")
    assert bench.counts() == {"unschedulable": 1}


def test_an_activation_while_in_flight_is_for_that_pod_alone() -> None:
    bench = Bench()
    bench.add("a")
    bench.add("b")
    _, other = bench.pop(), bench.pop()
    bench.queue.activate(["a"])
    bench.fail(other, "Nothing")
    assert bench.counts() == {"unschedulable": 1, "in flight": 1}


def test_a_pod_s_own_update_while_in_flight_is_for_that_pod_alone() -> None:
    bench = Bench()
    bench.add("a")
    bench.add("b")
    _, other = bench.pop(), bench.pop()
    bench.update(pod("a"), pod("a", labels={"x": "y"}))
    bench.fail(other, "Labels")
    assert bench.counts() == {"unschedulable": 1, "in flight": 1}


def test_every_move_is_observed_with_its_event() -> None:
    bench = Bench()
    bench.add("p")
    bench.add("gated", gates=("wait",))
    bench.fail(bench.pop(), "Fit")
    bench.move(events.NODE_ADD)
    bench.clock.advance(2.0)
    bench.flush()
    assert bench.moves == [
        ("p", "active", "UnscheduledPodAdd"),
        ("gated", "unschedulable", "UnscheduledPodAdd"),
        ("p", "unschedulable", "ScheduleAttemptFailure"),
        ("p", "backoff", "NodeAdd"),
        ("p", "active", "BackoffComplete"),
    ]
