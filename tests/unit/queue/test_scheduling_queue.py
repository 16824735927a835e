"""The scheduling queue: where a pod waits, and what lets it go."""

from __future__ import annotations

import pytest

from kubesched.errors import InvariantError
from kubesched.queue import events
from kubesched.queue.events import Action, ClusterEvent, Resource
from tests.support.objects import pod
from tests.support.queueing import Bench, info

NODE_LABEL = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_LABEL)

# --- coming and being popped ------------------------------------------------------------------


def test_pods_are_popped_by_priority_then_by_time_in_the_queue() -> None:
    bench = Bench()
    for name, priority in (("a", 0), ("b", 10), ("c", 0), ("d", 10)):
        bench.add(name, priority=priority)
        bench.clock.advance(1)
    assert bench.drained() == ["b", "d", "a", "c"]


def test_a_pod_moves_when_its_priority_changes() -> None:
    bench = Bench()
    bench.add("a", priority=1)
    bench.add("b", priority=2)
    bench.queue.add(info("a", priority=5))
    assert bench.pop().info.uid == "a"


def test_the_initial_attempt_is_when_a_pod_became_active() -> None:
    bench = Bench(start=1000.0)
    bench.add("a")
    bench.clock.advance(50)
    assert bench.pop().initial_attempt_at == 1000.0


def test_an_empty_queue_has_nothing_to_pop() -> None:
    assert Bench().queue.pop() is None


def test_a_popped_pod_is_in_flight_until_it_is_done() -> None:
    bench = Bench()
    bench.add("a")
    popped = bench.pop()
    assert (popped.attempts, bench.counts()) == (1, {"in flight": 1})
    assert len(bench.queue) == 0
    assert "a" not in bench.queue
    bench.queue.done("a")
    assert bench.counts() == {}


def test_a_pod_added_twice_is_queued_once_in_its_new_version() -> None:
    bench = Bench()
    bench.add("a")
    newer = info("a", priority=3)
    bench.queue.add(newer)
    assert len(bench.queue) == 1
    assert bench.pop().info is newer


def test_a_pod_in_flight_is_not_added_again() -> None:
    bench = Bench()
    bench.add("a")
    bench.pop()
    bench.add("a")
    assert bench.counts() == {"in flight": 1}


def test_attempts_are_counted() -> None:
    bench = Bench()
    each = bench.failed("a", "Fit")
    bench.queue.activate(["a"])
    assert bench.pop() is each
    assert each.attempts == 2
    assert each.initial_attempt_at == 1000.0


def test_on_ready_is_called_when_a_pod_can_be_popped() -> None:
    bench = Bench()
    bench.add("a")
    assert bench.ready_calls == 1
    each = bench.pop()
    bench.fail(each, "Fit")
    assert bench.ready_calls == 1, "parked"
    bench.move(events.NODE_ADD)
    assert bench.ready_calls == 2, "backing off, which is as good as active while we are idle"


def test_all_pods_can_be_listed() -> None:
    bench = Bench()
    bench.gated.add("gated")
    bench.failed("parked", "Fit")
    bench.failed("broken")
    bench.add("gated")
    bench.add("active")
    assert sorted(each.info.uid for each in bench.queue.pods()) == [
        "active",
        "broken",
        "gated",
        "parked",
    ]
    assert len(bench.queue) == 4
    assert bench.counts() == {"active": 1, "backoff": 1, "unschedulable": 1, "gated": 1}


# --- failing ----------------------------------------------------------------------------------


def test_a_rejected_pod_is_parked() -> None:
    bench = Bench()
    each = bench.failed("a", "Fit")
    assert bench.counts() == {"unschedulable": 1}
    assert (each.unschedulable_count, each.consecutive_errors) == (1, 0)
    assert bench.queue.pop() is None


def test_a_pod_that_failed_with_an_error_backs_off_and_is_not_popped_early() -> None:
    bench = Bench()
    each = bench.failed("a")
    assert bench.counts() == {"backoff": 1}
    assert (each.unschedulable_count, each.consecutive_errors) == (0, 1)
    assert bench.queue.pop() is None, "not even while idle"
    bench.clock.advance(2)
    bench.flush()
    assert bench.counts() == {"active": 1}


def test_a_rejection_resets_the_consecutive_errors() -> None:
    bench = Bench()
    each = bench.failed("a")
    bench.queue.activate(["a"])
    bench.fail(bench.pop())
    assert each.consecutive_errors == 2
    bench.queue.activate(["a"])
    bench.fail(bench.pop(), "Fit")
    assert (each.unschedulable_count, each.consecutive_errors) == (1, 0)


def test_a_requeued_pod_counts_as_queued_now() -> None:
    bench = Bench()
    bench.add("a")
    each = bench.pop()
    bench.clock.advance(7)
    bench.fail(each, "Fit")
    assert each.queued_at == 1007.0


def test_a_pod_that_is_queued_already_is_not_requeued() -> None:
    bench = Bench()
    bench.add("a")
    each = bench.pop()
    bench.queue.done("a")
    bench.add("a")
    bench.fail(each, "Fit")
    assert bench.counts() == {"active": 1}


# --- backing off ------------------------------------------------------------------------------


def test_backoff_doubles_with_each_rejection() -> None:
    bench = Bench()
    bench.add("a")
    waits = []
    for _ in range(6):
        each = bench.pop()
        bench.fail(each, "Fit")
        bench.move(events.NODE_ADD)
        assert bench.counts() == {"backoff": 1}
        waited = 0
        while not bench.queue.active_count:
            bench.clock.advance(1)
            waited += 1
            bench.flush()
        waits.append(waited - 1)  # a pod waits through the whole second of its expiry
    assert waits == [1, 2, 4, 8, 10, 10]


def test_an_idle_scheduler_pops_the_pod_early_whose_backoff_ends_first() -> None:
    bench = Bench()
    late = bench.failed("late", "Fit")
    bench.queue.activate(["late"])
    bench.fail(bench.pop(), "Fit")  # two rejections: two seconds
    bench.failed("soon", "Fit")
    bench.move(events.NODE_ADD)
    assert bench.counts() == {"backoff": 2}
    assert bench.pop().info.uid == "soon"
    assert bench.pop() is late


def test_many_events_do_not_cause_unlimited_retries() -> None:
    """An idle scheduler pops early; what that may come to is bounded for each pod."""
    bench, names = Bench(), [f"p{number}" for number in range(20)]
    tried = {name: [0.0] for name in names}
    for name in names:
        bench.failed(name, "Fit")
    for tick in range(1, 3001):  # half a minute, an event and a look at the queue every 10 ms
        bench.clock.advance(0.01)
        bench.move(events.NODE_ADD)
        if tick % 100 == 0:
            bench.flush()
        while (popped := bench.queue.pop()) is not None:
            tried[popped.info.uid].append(tick / 100)
            bench.fail(popped, "Fit")
    for moments in tried.values():
        first = sum(moment <= 2.5 for moment in moments)
        assert 5 <= first <= 8, "quick at first: the next event may be the one"
        assert 8 <= len(moments) <= 35, "then about once a second"


def test_a_pod_in_its_longest_backoff_rests_before_it_is_popped_early() -> None:
    bench = Bench()
    pod = bench.failed("a", "Fit")
    pod.unschedulable_count = 4
    bench.queue.activate(["a"])
    bench.fail(bench.pop(), "Fit")
    bench.move(events.NODE_ADD)
    assert bench.counts() == {"backoff": 1}
    bench.clock.advance(0.99)
    assert bench.queue.pop() is None
    bench.clock.advance(0.02)
    assert bench.pop() is pod


def test_a_preemptor_whose_victims_terminate_does_not_rest() -> None:
    bench = Bench()
    pod = bench.failed("a", "Fit")
    pod.unschedulable_count = 100
    pod.awaits_victims = True
    bench.move(events.NODE_ADD)
    assert bench.pop() is pod


def test_pods_whose_backoff_ends_in_the_same_second_are_popped_by_priority() -> None:
    bench = Bench(start=1000.0)
    for name, priority, at in (("a", 0, 0.1), ("b", 5, 0.3), ("c", 9, 0.3)):
        bench.add(name, priority=priority)
        bench.clock.advance(at)
        bench.fail(bench.pop(), "Fit")
    bench.move(events.NODE_ADD)
    assert bench.drained() == ["c", "b", "a"]


def test_active_pods_are_popped_before_pods_that_back_off() -> None:
    bench = Bench()
    bench.failed("a", "Fit")
    bench.move(events.NODE_ADD)
    bench.add("b")
    assert bench.drained() == ["b", "a"]


def test_a_pod_whose_backoff_ended_while_parked_is_active_immediately() -> None:
    bench = Bench()
    bench.failed("a", "Fit")
    bench.clock.advance(30)
    bench.move(events.NODE_ADD)
    assert bench.counts() == {"active": 1}


def test_a_flush_activates_exactly_the_pods_whose_backoff_is_over() -> None:
    bench = Bench()
    bench.failed("first", "Fit")
    bench.failed("broken")
    bench.clock.advance(1)
    bench.failed("second", "Fit")
    bench.move(events.NODE_ADD)
    bench.clock.advance(1)
    bench.flush()
    assert bench.counts() == {"active": 2, "backoff": 1}
    bench.clock.advance(1)
    bench.flush()
    assert bench.counts() == {"active": 3}
    assert bench.gate_calls == 6, "three came, one came back broken, two were moved"


# --- activation -------------------------------------------------------------------------------


def test_activation_ends_parking_and_backoff() -> None:
    bench = Bench()
    bench.failed("parked", "Nothing")
    bench.failed("broken")
    bench.failed("moved", "Fit")
    bench.move(events.NODE_ADD)
    bench.queue.activate(["parked", "broken", "moved", "unknown"])
    bench.queue.validate()
    assert bench.counts() == {"active": 3}


def test_activation_of_an_active_pod_changes_nothing() -> None:
    bench = Bench()
    bench.add("a")
    bench.queue.activate(["a"])
    assert bench.counts() == {"active": 1}


def test_activation_does_not_open_a_gate() -> None:
    bench = Bench()
    bench.add("a", gates=["wait"])
    bench.queue.activate(["a"])
    assert bench.counts() == {"gated": 1}


# --- parked for too long ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("waited_s", "woken"), [(299.0, False), (300.0, False), (300.5, True), (1000.0, True)]
)
def test_a_pod_that_was_parked_for_more_than_five_minutes_is_tried_again(
    waited_s: float, woken: bool
) -> None:
    bench = Bench()
    each = bench.failed("a", "Nothing")
    bench.clock.advance(waited_s)
    bench.flush()
    assert bench.counts() == ({"active": 1} if woken else {"unschedulable": 1})
    assert each.flushed is woken


def test_the_longest_time_in_the_unschedulable_part_is_configurable() -> None:
    bench = Bench(max_unschedulable_s=10)
    bench.failed("a", "Nothing")
    bench.clock.advance(11)
    bench.flush()
    assert bench.counts() == {"active": 1}


def test_the_gate_is_evaluated_again_after_the_timeout() -> None:
    bench = Bench()
    bench.gated.add("a")
    bench.add("a")
    bench.gated.clear()
    bench.clock.advance(301)
    bench.flush()
    assert bench.counts() == {"active": 1}


def test_a_closed_gate_is_evaluated_every_five_minutes_not_every_second() -> None:
    bench = Bench()
    bench.add("a", gates=["x"])
    bench.clock.advance(301)
    for _ in range(60):
        bench.flush()
        bench.clock.advance(1)
    assert bench.gate_calls == 2


def test_the_next_failure_resets_flushed() -> None:
    bench = Bench()
    each = bench.failed("a", "Fit")
    bench.clock.advance(301)
    bench.flush()
    assert each.flushed
    bench.fail(bench.pop(), "Fit")
    assert not each.flushed


def test_a_gated_pod_does_not_count_as_flushed() -> None:
    bench = Bench()
    bench.add("a", gates=["x"])
    bench.clock.advance(301)
    bench.flush()
    (each,) = bench.queue.pods()
    assert not each.flushed


# --- updates and deletion ---------------------------------------------------------------------


def test_an_update_that_may_help_wakes_the_pod_itself() -> None:
    bench = Bench()
    bench.failed("a", "Labels")
    bench.update(pod("a"), pod("a", labels={"app": "web"}))
    assert bench.counts() == {"backoff": 1}
    assert bench.pop().info.pod.metadata.labels == {"app": "web"}


def test_an_update_that_does_not_help_leaves_the_pod_parked_in_its_new_version() -> None:
    bench = Bench()
    bench.failed("a", "Fit")
    bench.update(pod("a"), pod("a", labels={"app": "web"}))
    assert bench.counts() == {"unschedulable": 1}
    (each,) = bench.queue.pods()
    assert each.info.pod.metadata.labels == {"app": "web"}


def test_an_update_of_one_pod_does_not_wake_another() -> None:
    bench = Bench()
    bench.failed("a", "Labels")
    bench.failed("b", "Labels")
    bench.update(pod("a"), pod("a", labels={"app": "web"}))
    assert bench.counts() == {"backoff": 1, "unschedulable": 1}


def test_an_update_replaces_an_active_pod() -> None:
    bench = Bench()
    bench.add("a")
    bench.update(pod("a"), pod("a", labels={"app": "web"}))
    assert bench.pop().info.pod.metadata.labels == {"app": "web"}


def test_an_update_of_a_pod_that_backs_off_does_not_end_its_backoff() -> None:
    bench = Bench()
    bench.failed("a")
    bench.update(pod("a"), pod("a", labels={"app": "web"}))
    assert bench.counts() == {"backoff": 1}


def test_an_update_of_an_unknown_pod_adds_it() -> None:
    bench = Bench()
    bench.update(pod("a"), pod("a", labels={"app": "web"}))
    assert bench.counts() == {"active": 1}


def test_a_pod_can_be_deleted_from_every_part_of_the_queue() -> None:
    bench = Bench()
    bench.failed("broken")
    bench.failed("moved", "Fit")
    bench.move(events.NODE_ADD)
    bench.failed("parked", "Fit")
    bench.add("gated", gates=["wait"])
    bench.add("active")
    assert len(bench.queue) == 5
    for name in ("broken", "moved", "parked", "gated", "active", "unknown"):
        bench.queue.delete(name)
        bench.queue.validate()
        assert name not in bench.queue
    assert bench.counts() == {}
    assert bench.queue.pop() is None


def test_a_deleted_pod_in_flight_is_done_when_its_attempt_ends() -> None:
    bench = Bench()
    bench.add("a")
    bench.pop()
    bench.queue.delete("a")
    assert bench.counts() == {"in flight": 1}
    bench.queue.done("a")
    assert bench.counts() == {}


# --- validation can fail ----------------------------------------------------------------------


def test_validate_finds_a_pod_in_two_parts() -> None:
    bench = Bench()
    each = bench.failed("a", "Fit")
    bench.queue._active.push(each)
    with pytest.raises(InvariantError, match="two parts"):
        bench.queue.validate()


def test_validate_finds_a_pod_in_the_queue_and_in_flight() -> None:
    bench = Bench()
    bench.add("a")
    each = bench.pop()
    bench.queue._active.push(each)
    with pytest.raises(InvariantError, match="in flight"):
        bench.queue.validate()


def test_validate_finds_a_parked_pod_that_no_plugin_rejected() -> None:
    bench = Bench()
    each = bench.failed("a", "Fit")
    each.unschedulable_plugins.clear()
    with pytest.raises(InvariantError, match="no plugin rejected it"):
        bench.queue.validate()


# --- counting -----------------------------------------------------------------------------------


def test_pods_in_the_part_that_hints_chose_do_not_count_as_incoming_entities() -> None:
    bench = Bench()
    bench.failed("a", "Fit")  # parked, as no hint has it tried again
    bench.move(events.NODE_ADD)  # backs off, as the hint says
    bench.pop()
    bench.queue.done("a")
    bench.failed("b", "Fit")
    bench.queue.activate(["b"])
    counted = {queue for queue, *_ in bench.queue.tally.incoming_entities}
    assert counted == {"active"}
    assert sum(bench.queue.tally.incoming_entities.values()) == 4  # two adds, a pop, one forced


def test_pods_whose_backoff_is_over_count_as_incoming_entities() -> None:
    bench = Bench()
    bench.failed("a", "Fit")
    bench.clock.advance(60)
    bench.move(events.NODE_ADD)
    assert bench.queue.tally.incoming_entities["active", "NodeAdd", "pod"] == 1


def test_arrivals_are_counted_by_the_event_that_moved_the_pod() -> None:
    bench = Bench()
    bench.failed("a", "Fit")
    bench.move(events.NODE_ADD)
    bench.pop()
    bench.queue.done("a")
    bench.failed("b", "Fit")
    bench.queue.activate(["b"])
    assert dict(bench.queue.tally.incoming) == {
        ("active", "UnscheduledPodAdd"): 2,
        ("unschedulable", "ScheduleAttemptFailure"): 2,
        ("backoff", "NodeAdd"): 1,
        ("active", "PopFromBackoffQ"): 1,
        ("active", "ForceActivate"): 1,
    }


def test_rejected_pods_are_counted_by_plugin_until_they_are_retried() -> None:
    bench = Bench()
    profile = "default-scheduler"
    each = bench.failed("a", "Fit", "Labels")
    assert +bench.queue.tally.rejected == {("Fit", profile): 1, ("Labels", profile): 1}
    bench.gated.add("a")
    bench.queue.activate(["a"])
    bench.queue.activate(["a"])
    assert bench.queue.tally.rejected["Gates", profile] == 1, "gated twice, counted once"
    bench.gated.clear()
    bench.queue.activate(["a"])
    assert bench.pop() is each
    assert +bench.queue.tally.rejected == {}
    bench.fail(each, "Fit")
    bench.queue.delete("a")
    assert +bench.queue.tally.rejected == {}


def test_events_recorded_for_pods_in_flight_are_counted_by_kind() -> None:
    bench = Bench()
    bench.add("a")
    bench.pop()
    bench.move(events.NODE_ADD)
    bench.move(events.NODE_ADD)
    assert bench.queue.in_flight_events == {"PodPopped": 1, "NodeAdd": 2}


def test_kinds_of_events_that_are_not_needed_any_more_count_none() -> None:
    bench = Bench()
    bench.add("a")
    bench.pop()
    bench.move(events.NODE_ADD)
    bench.queue.done("a")
    assert dict(bench.queue.in_flight_events) == {"PodPopped": 0, "NodeAdd": 0}
