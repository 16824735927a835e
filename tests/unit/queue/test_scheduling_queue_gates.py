"""Pods at a gate: who keeps them out, and what lets them in."""

from __future__ import annotations

from kubesched.queue import events
from kubesched.queue.events import Action, ClusterEvent, Resource
from kubesched.queue.hints import Registration
from tests.support.objects import pod
from tests.support.queueing import Bench

NODE_LABEL = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_LABEL)

# --- gates ------------------------------------------------------------------------------------


def test_a_gated_pod_is_not_popped() -> None:
    bench = Bench()
    bench.add("a", gates=["wait"])
    assert bench.counts() == {"gated": 1}
    assert bench.queue.pop() is None
    (each,) = bench.queue.pods()
    assert (each.gated_by, each.unschedulable_plugins) == ("Gates", {"Gates"})
    assert each.initial_attempt_at is None


def test_events_that_do_not_concern_the_gate_do_not_evaluate_it() -> None:
    bench = Bench()
    bench.add("a", gates=["wait"])
    bench.move(events.NODE_ADD)
    assert bench.gate_calls == 1
    assert bench.counts() == {"gated": 1}


def test_a_pod_whose_last_gate_is_lifted_is_active_immediately() -> None:
    bench = Bench()
    bench.add("a", gates=["one", "two"])
    bench.update(pod("a", gates=["one", "two"]), pod("a", gates=["two"]))
    assert bench.counts() == {"gated": 1}
    bench.update(pod("a", gates=["two"]), pod("a"))
    assert bench.counts() == {"active": 1}
    each = bench.pop()
    assert each.gated_by == ""
    assert each.info.pod.spec.scheduling_gates == ()


def test_a_gate_that_is_still_closed_keeps_the_pod_parked() -> None:
    bench = Bench()
    bench.gated.add("a")
    bench.add("a", gates=["one"])
    bench.update(pod("a", gates=["one"]), pod("a"))
    assert bench.counts() == {"gated": 1}
    assert bench.gate_calls == 2


def test_a_gate_may_close_between_attempts() -> None:
    bench = Bench()
    bench.failed("a", "Fit")
    bench.gated.add("a")
    bench.move(events.NODE_ADD)
    assert bench.counts() == {"gated": 1}
    bench.gated.clear()
    bench.clock.advance(60)
    bench.queue.activate(["a"])
    assert bench.counts() == {"active": 1}


def test_a_pod_that_failed_with_an_error_may_find_its_gate_closed() -> None:
    bench = Bench()
    bench.add("a")
    each = bench.pop()
    bench.gated.add("a")
    bench.fail(each)
    assert bench.counts() == {"gated": 1}


# --- gates and those who turned the pod away before ---------------------------------------------


def _evicting(*, helps: bool) -> Bench:
    """A queue in which "Gates" hears of deleted pods and itself never wakes anybody for them."""
    deleted = ClusterEvent(Resource.POD, Action.DELETE)
    return Bench(
        registered={
            "Gates": [Registration(deleted, hint=lambda _pod, _change: False)],
            "Fit": [Registration(deleted, hint=lambda _pod, _change: helps)],
            "Labels": [Registration(NODE_LABEL)],
        }
    )


def _gated_after_failure(bench: Bench, rejected_by: str) -> None:
    bench.failed("a", rejected_by)
    bench.gated.add("a")
    bench.queue.activate(["a"])
    assert bench.counts() == {"gated": 1}
    bench.gated.clear()


def test_an_event_of_the_gating_plugin_wakes_by_the_hints_of_the_rejecting_plugins() -> None:
    bench = _evicting(helps=True)
    _gated_after_failure(bench, "Fit")
    bench.move(events.ASSIGNED_POD_DELETE)
    assert bench.counts() == {"backoff": 1}


def test_the_gate_alone_does_not_wake_the_pod_against_its_own_hint() -> None:
    bench = _evicting(helps=False)
    _gated_after_failure(bench, "Fit")
    bench.move(events.ASSIGNED_POD_DELETE)
    assert bench.counts() == {"gated": 1}


def test_hints_are_not_evaluated_for_events_that_the_gating_plugin_did_not_register_for() -> None:
    bench = _evicting(helps=True)
    _gated_after_failure(bench, "Labels")
    bench.move(NODE_LABEL)
    assert bench.counts() == {"gated": 1}
    assert bench.hints == []


def test_a_pod_that_is_to_be_retried_stays_gated() -> None:
    bench = Bench()
    bench.failed("a", "Fit")
    bench.gated.add("a")
    bench.queue.try_again("a", events.ASSIGNED_POD_DELETE)
    assert bench.counts() == {"gated": 1}
    assert bench.queue.is_gated("a")
    bench.gated.clear()
    bench.queue.activate(["a"])
    assert bench.counts() == {"active": 1}
    assert not bench.queue.is_gated("a")
