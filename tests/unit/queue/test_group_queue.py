"""Groups in the scheduling queue: their pods wait, and are tried, as one."""

from __future__ import annotations

import math
from typing import ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kubesched.cluster.cluster import Cluster
from kubesched.cluster.group_forest import GroupForest
from kubesched.cluster.pod_groups import key_of_group
from kubesched.queue import events
from kubesched.queue.backoff import Backoff
from kubesched.queue.hints import Change
from kubesched.queue.queued_group import AttemptEnd, QueuedGroup
from kubesched.queue.queued_pod import QueuedPod
from tests.support.group_objects import composite, member, pod_group
from tests.support.group_queueing import GroupBench
from tests.support.objects import on_node


def uids(group: QueuedGroup) -> list[str]:
    return [each.info.uid for each in group.pods()]


# --- where members are ----------------------------------------------------------------------------


def test_the_pods_of_a_group_are_popped_together_in_the_order_of_their_arrival() -> None:
    bench = GroupBench(pod_group())
    bench.add("b", "a", "c")
    group = bench.pop()
    assert group.key == "podgroup/default/g"
    assert uids(group) == ["b", "a", "c"]
    assert bench.counts() == {"in flight": 3}


def test_members_are_tried_by_priority_then_by_attempts() -> None:
    bench = GroupBench(pod_group())
    bench.add("a", "b")
    bench.end(bench.pop(), AttemptEnd.REJECTED, failed=["b"])
    bench.add("c")
    bench.add("d", priority=1)
    bench.clock.advance(60)
    bench.queue.flush_backoff()
    assert uids(bench.pop()) == ["d", "b", "c"]


def test_groups_and_single_pods_take_turns_by_the_priority_of_the_group() -> None:
    bench = GroupBench(pod_group("low"), pod_group("high", priority=10))
    bench.add("a", group="low", priority=100)
    bench.add_single("single", priority=5)
    bench.add("b", group="high")
    popped = [bench.queue.pop_entity() for _ in range(3)]
    assert [each.key for each in popped if each] == [
        "podgroup/default/high",
        "single",
        "podgroup/default/low",
    ]


def test_a_group_has_the_place_of_its_first_pod() -> None:
    bench = GroupBench(pod_group())
    bench.add("a")
    bench.add_single("single")
    bench.add("b")
    assert uids(bench.pop()) == ["a", "b"]


def test_pods_of_a_group_that_is_not_known_are_incomplete() -> None:
    bench = GroupBench()
    bench.add("a", "b")
    assert bench.counts() == {"incomplete": 2}
    assert bench.queue.pop_entity() is None

    bench.know(pod_group())

    assert bench.counts() == {"active": 2}


def test_pods_become_incomplete_when_their_group_goes() -> None:
    bench = GroupBench(pod_group())
    bench.add("a", "b")
    bench.lose(pod_group())
    assert bench.counts() == {"incomplete": 2}


def test_pods_become_incomplete_when_their_group_goes_while_it_is_tried() -> None:
    bench = GroupBench(pod_group())
    bench.add("a", "b")
    group = bench.pop()
    bench.add("late")
    bench.lose(pod_group())
    assert bench.counts() == {"incomplete": 1, "in flight": 2}

    bench.end(group, AttemptEnd.REJECTED)
    assert bench.counts() == {"incomplete": 3}

    bench.know(pod_group())
    assert uids(bench.pop()) == ["a", "b", "late"]


def test_a_pod_that_comes_while_its_group_is_tried_is_pending() -> None:
    bench = GroupBench(pod_group())
    bench.add("a")
    group = bench.pop()
    bench.add("late")
    assert bench.counts() == {"pending": 1, "in flight": 1}

    bench.end(group, AttemptEnd.SUCCEEDED, failed=[])

    assert uids(bench.pop()) == ["late"]


def test_a_pod_of_a_tree_is_incomplete_until_all_groups_above_it_are_known() -> None:
    bench = GroupBench(pod_group("leaf", parent="mid"), composite_gate=True)
    bench.add("a", group="leaf")
    bench.know(composite("mid", parent="top"))
    assert bench.counts() == {"incomplete": 1}

    bench.know(composite("top"))

    assert bench.pop().key == "compositepodgroup/default/top"


def test_a_tree_keeps_the_pods_of_other_groups_when_one_goes() -> None:
    left, right = pod_group("left", parent="top"), pod_group("right", parent="top")
    bench = GroupBench(composite("top"), left, right, composite_gate=True)
    bench.add("a", group="left")
    bench.add("b", group="right")
    bench.lose(left)
    assert bench.counts() == {"active": 1, "incomplete": 1}
    assert uids(bench.pop()) == ["b"]


# --- after an attempt -------------------------------------------------------------------------


def test_a_group_that_failed_backs_off_and_is_not_popped_early() -> None:
    bench = GroupBench(pod_group())
    bench.add("a", "b")
    bench.end(bench.pop(), AttemptEnd.REJECTED)
    assert bench.counts() == {"backoff": 2}
    assert bench.queue.pop_entity() is None, "not even while idle"

    bench.clock.advance(3)
    bench.queue.flush_backoff()

    assert bench.pop().attempts == 2


def test_no_event_ends_the_backoff_of_a_group() -> None:
    bench = GroupBench(pod_group())
    bench.add("a")
    bench.end(bench.pop(), AttemptEnd.REJECTED)
    bench.queue.move(Change(events.NODE_ADD))
    assert bench.counts() == {"backoff": 1}


def test_a_group_that_is_to_be_retried_at_once_does_not_back_off() -> None:
    bench = GroupBench(pod_group())
    bench.add("a", "b")
    bench.end(bench.pop(), AttemptEnd.REJECTED)
    bench.queue.try_again("a", events.ASSIGNED_POD_DELETE)
    assert bench.counts() == {"backoff": 2}
    bench.queue.try_again("a", events.ASSIGNED_POD_DELETE, at_once=True)
    assert bench.counts() == {"active": 2}


def test_a_gated_group_that_is_to_be_retried_at_once_stays_gated() -> None:
    bench = GroupBench(pod_group())
    bench.add("a")
    bench.gated.add("a")
    bench.end(bench.pop(), AttemptEnd.REJECTED)
    bench.queue.try_again("a", events.ASSIGNED_POD_DELETE, at_once=True)
    assert bench.counts() == {"gated": 1}
    bench.gated.clear()
    bench.queue.try_again("a", events.ASSIGNED_POD_DELETE, at_once=True)
    assert bench.counts() == {"active": 1}


def test_members_know_each_other_and_a_single_pod_knows_none() -> None:
    bench = GroupBench(pod_group())
    bench.add("a", "b")
    bench.add_single("single")
    assert list(bench.queue.members_with("b")) == ["a", "b"]
    assert list(bench.queue.members_with("single")) == []


def test_what_is_left_of_a_group_that_succeeded_is_tried_next() -> None:
    bench = GroupBench(pod_group())
    bench.add("a", "b")
    group = bench.pop()
    bench.add_single("single")
    bench.end(group, AttemptEnd.SUCCEEDED, failed=["b"])
    assert uids(bench.pop()) == ["b"], "its time is the group's, which is before the single pod's"


def test_a_group_vanishes_with_its_last_pod() -> None:
    bench = GroupBench(pod_group())
    bench.add("a")
    bench.end(bench.pop(), AttemptEnd.SUCCEEDED, failed=[])
    assert bench.counts() == {}


@pytest.mark.parametrize(("failures", "longest"), [(1, 1.0), (3, 4.0), (30, 10 * math.sqrt(9))])
def test_the_longest_backoff_grows_with_the_root_of_the_size(failures: int, longest: float) -> None:
    group = QueuedGroup(key_of_group(pod_group()), GroupForest(Cluster().groups), queued_at=0.0)
    compiler = Cluster().compiler
    for number in range(9):
        group.add(QueuedPod(compiler.pending(member(f"p{number}")), queued_at=0.0))
    group.unschedulable_count = failures
    assert Backoff(initial_s=1.0, max_s=10.0).duration_s(group) == longest


# --- gates ----------------------------------------------------------------------------------------


def test_one_gated_pod_gates_its_group() -> None:
    bench = GroupBench(pod_group())
    bench.gated = {"b"}
    bench.add("a", "b", "c")
    assert bench.counts() == {"gated": 3}
    assert bench.queue.is_gated("a")


def test_an_event_for_the_gating_plugin_lets_the_group_in() -> None:
    bench = GroupBench(pod_group())
    bench.gated = {"a", "b"}
    bench.add("a", "b")
    bench.gated = set()
    bench.queue.move(Change(events.NODE_ADD))
    assert bench.counts() == {"gated": 2}, "Gang did not register it"

    bench.queue.move(Change(events.UNSCHEDULED_POD_ADD))

    assert bench.counts() == {"active": 2}


def test_a_group_is_let_in_when_its_gated_pod_is_deleted() -> None:
    bench = GroupBench(pod_group())
    bench.gated = {"b"}
    bench.add("a", "b")
    bench.queue.delete("b")
    assert bench.counts() == {"active": 1}


def test_activating_one_member_activates_all() -> None:
    bench = GroupBench(pod_group())
    bench.add("a", "b")
    bench.end(bench.pop(), AttemptEnd.REJECTED)
    bench.queue.activate(["b"])
    assert bench.counts() == {"active": 2}


def test_groups_are_counted_apart_from_pods() -> None:
    bench = GroupBench(pod_group())
    bench.add("a", "b")
    bench.add_single("single")
    found = {place: count for place, count in bench.queue.entities().items() if count}
    assert found == {("active", "pod"): 1, ("active", "podgroup"): 1}


def test_a_part_without_groups_counts_none() -> None:
    bench = GroupBench(pod_group())
    parts = ("active", "backoff", "unschedulable", "gated")
    none = {(part, kind): 0 for part in parts for kind in ("pod", "podgroup")}
    assert bench.queue.entities() == none
    bench.add("a")
    bench.pop()
    assert bench.queue.entities() == none


def test_a_group_that_backs_off_counts_as_an_incoming_entity() -> None:
    """No hint chose that part of the queue for it, as hints do for pods."""
    bench = GroupBench(pod_group())
    bench.add("a", "b")
    bench.end(bench.pop(), AttemptEnd.REJECTED)
    counted = bench.queue.tally.incoming_entities
    assert counted["backoff", "ScheduleAttemptFailure", "podgroup"] == 1


# --- whatever happens -------------------------------------------------------------------------


def interrupted(bench: GroupBench, name: str) -> None:
    """Let a member of the gang "late" be on a node."""
    bench.cluster.put_pod(on_node(member(name, "late"), "n"))


def test_at_a_takeover_a_gang_with_too_few_members_on_nodes_is_the_first_of_its_priority() -> None:
    bench = GroupBench(pod_group("g", gang=1), pod_group("late", gang=3))
    bench.add("a")
    bench.add("y", "z", group="late")
    interrupted(bench, "x")
    bench.queue.prefer_interrupted()
    bench.queue.validate()
    assert bench.pop().group.name == "late"


@pytest.mark.parametrize("needed", [None, 1])
def test_members_that_come_late_to_a_group_with_enough_wait_for_their_turn(
    needed: int | None,
) -> None:
    bench = GroupBench(pod_group("g", gang=1), pod_group("late", gang=needed))
    bench.add("a")
    interrupted(bench, "x")
    bench.add("y", group="late")
    bench.queue.prefer_interrupted()
    assert bench.pop().group.name == "g"


def test_a_gang_that_was_interrupted_and_does_not_fit_backs_off_like_any_other() -> None:
    bench = GroupBench(pod_group("g", gang=1), pod_group("late", gang=3))
    interrupted(bench, "x")
    bench.add("y", "z", group="late")
    bench.queue.prefer_interrupted()
    bench.end(bench.pop(), AttemptEnd.REJECTED)
    assert bench.counts() == {"backoff": 2}
    bench.clock.advance(2)
    bench.queue.flush_backoff()
    assert bench.pop().queued_at > 1000


class GroupQueueMachine(RuleBasedStateMachine):
    """Every member that wants a node is in exactly one place, whatever happens to its group."""

    groups: ClassVar = {
        "g0": pod_group("g0"),
        "g1": pod_group("g1", parent="top"),
        "g2": pod_group("g2", parent="top"),
    }
    top: ClassVar = composite("top")
    pods: ClassVar = {f"p{n}": f"g{n % 3}" for n in range(7)}

    def __init__(self) -> None:
        super().__init__()
        self.bench = GroupBench(composite_gate=True)
        self.queue = self.bench.queue
        #: uids of pods that want a node
        self.alive: set[str] = set()
        self.popped: QueuedGroup | None = None
        self.in_flight: set[str] = set()

    uids = st.sampled_from(sorted(pods))
    names = st.sampled_from(sorted(groups))

    @rule(uid=uids, gated=st.booleans())
    def add(self, uid: str, gated: bool) -> None:
        if uid in self.alive:
            return
        self.bench.gated = self.bench.gated | {uid} if gated else self.bench.gated - {uid}
        self.bench.add(uid, group=self.pods[uid])
        self.alive.add(uid)

    @rule(uid=uids)
    def delete(self, uid: str) -> None:
        if uid not in self.in_flight:
            self.queue.delete(uid)
            self.alive.discard(uid)

    @rule(uid=uids)
    def activate(self, uid: str) -> None:
        self.bench.gated.discard(uid)
        self.queue.activate([uid])

    @rule(name=names)
    def group_comes(self, name: str) -> None:
        self.bench.know(self.groups[name])

    @rule(name=names)
    def group_goes(self, name: str) -> None:
        if self.popped is None:
            self.bench.lose(self.groups[name])

    @rule(there=st.booleans())
    def top_comes_or_goes(self, there: bool) -> None:
        if there:
            self.bench.know(self.top)
        elif self.popped is None:
            self.bench.lose(self.top)

    @rule()
    def pop(self) -> None:
        if self.popped is not None:
            return
        entity = self.queue.pop_entity()
        if entity is None:
            return
        assert isinstance(entity, QueuedGroup)
        self.popped, self.in_flight = entity, set(uids(entity))
        assert self.in_flight <= self.alive
        assert not self.in_flight & self.bench.gated

    @rule(end=st.sampled_from(AttemptEnd), data=st.data())
    def end(self, end: AttemptEnd, data: st.DataObject) -> None:
        if self.popped is None:
            return
        failed = data.draw(st.sets(st.sampled_from(sorted(self.in_flight))))
        self.bench.end(self.popped, end, failed=sorted(failed))
        self.alive -= self.in_flight - failed
        self.popped, self.in_flight = None, set()

    @rule(seconds=st.sampled_from([1.0, 400.0]))
    def time_passes(self, seconds: float) -> None:
        self.bench.clock.advance(seconds)
        self.queue.flush_backoff()
        self.queue.flush_parked()

    @invariant()
    def everybody_is_somewhere(self) -> None:
        self.queue.validate()
        waiting = [each.info.uid for each in self.queue.pods()]
        assert len(waiting) == len(set(waiting))
        assert set(waiting) | self.in_flight == self.alive
        assert len(self.queue) == len(waiting)


TestGroupQueue = GroupQueueMachine.TestCase
TestGroupQueue.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
