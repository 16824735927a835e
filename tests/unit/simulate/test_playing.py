"""Plays on the real engine: queue, preemption and bindings in virtual time."""

from __future__ import annotations

from itertools import pairwise

import pytest
from msgspec.structs import replace

from kubesched.api.core import Node, Pod
from kubesched.api.meta import OwnerReference
from kubesched.framework.plugin import Plugin
from kubesched.framework.registry import Registry
from kubesched.plugins.in_tree import IN_TREE
from kubesched.plugins.priority_sort import PrioritySort
from kubesched.simulate.playing import play
from kubesched.simulate.running import run, summary
from kubesched.simulate.simulated_cluster import Delays
from kubesched.simulate.timed_events import Arrival, NodeAdded, NodeDrained, NodeLost, TimedEvent
from tests.support.objects import node, pod

from .plays import conditions_of, nodes_of, played


def test_a_pod_comes_runs_and_ends() -> None:
    found = played([node("n1")], [Arrival(10.0, pod("a", cpu="1"), lifetime_s=100.0)])

    assert found.pods == ()
    assert found.cluster.pod_count == 0
    seen = found.observations
    assert (seen.arrivals, seen.placements, seen.ends) == (1, 1, 1)
    assert 110.0 <= found.seconds <= 112.0


def test_a_pod_waits_until_another_one_has_ended() -> None:
    first = Arrival(0.0, pod("first", cpu="3"), lifetime_s=600.0)
    second = Arrival(60.0, pod("second", cpu="3"), lifetime_s=60.0)

    said = summary(played([node("n1", cpu="4")], [first, second]))

    assert (said.arrived, said.placed, said.ended, said.pending) == (2, 2, 2, 0)
    assert said.waits.longest_s == pytest.approx(540.0, abs=0.01)
    [reason] = said.reasons
    assert (reason.reason, reason.pods) == ("Insufficient cpu", 1)


def test_pods_without_an_end_stay_and_a_pod_that_fits_nowhere_is_reported() -> None:
    said = summary(
        played(
            [node("n1", cpu="4")],
            [Arrival(0.0, pod("a", cpu="3")), Arrival(5.0, pod("b", cpu="3"))],
        )
    )

    [waiting] = said.waiting
    assert waiting.pod == "default/b"
    assert waiting.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert waiting.attempts >= 1


def test_binding_takes_the_time_that_it_is_given() -> None:
    arrival = Arrival(0.0, pod("a", cpu="1"), lifetime_s=10.0)

    said = summary(played([node("n1")], [arrival], delays=Delays(binding_s=2.5)))

    assert said.waits.longest_s == pytest.approx(2.5)
    assert said.seconds >= 12.5


def test_a_victim_leaves_after_its_time_and_comes_again() -> None:
    low = Arrival(0.0, pod("low", cpu="4", priority=1), lifetime_s=1000.0)
    high = Arrival(100.0, pod("high", cpu="4", priority=100), lifetime_s=50.0)

    said = summary(played([node("n1", cpu="4")], [low, high], delays=Delays(termination_s=30.0)))

    [preemption] = said.preemptions
    assert (preemption.preemptor, preemption.node) == ("default/high", "n1")
    assert preemption.victims == ("default/low",)
    assert preemption.at_s == pytest.approx(100.0)
    assert (said.arrived, said.displaced, said.ended, said.pending) == (2, 1, 2, 0)
    # The important one waits for the victim to terminate, the victim for the important one's end;
    # then it runs its whole time again.
    assert said.waits.longest_s == pytest.approx(50.0, abs=1.0)
    assert said.seconds == pytest.approx(100.0 + 30.0 + 50.0 + 1000.0, abs=3.0)


def test_what_is_pending_in_the_snapshot_is_placed_and_what_runs_stays() -> None:
    found = played([node("n1"), pod("there", node="n1", cpu="1"), pod("waits", cpu="1")])

    assert nodes_of(found) == {"there": "n1", "waits": "n1"}
    assert found.pending_at_start == {"default/waits"}


def test_pods_of_a_lost_node_come_again_elsewhere_and_daemons_do_not() -> None:
    daemon = pod("daemon", node="n1", cpu="1")
    owner = OwnerReference(kind="DaemonSet", name="agents")
    daemon = replace(daemon, metadata=replace(daemon.metadata, owner_references=(owner,)))
    objects: list[Node | Pod] = [node("n1"), node("n2"), daemon, pod("web", node="n1", cpu="1")]

    found = played(objects, [NodeLost(60.0, "n1")])

    assert nodes_of(found) == {"web": "n2"}
    assert list(found.cluster.table.names()) == ["n2"]
    assert found.observations.displacements == 1


def test_a_lost_node_comes_back_with_its_daemons() -> None:
    daemon = pod("daemon", node="n1", cpu="1")
    owner = OwnerReference(kind="DaemonSet", name="agents")
    daemon = replace(daemon, metadata=replace(daemon.metadata, owner_references=(owner,)))

    found = played(
        [node("n1", cpu="4"), daemon, pod("web", cpu="3")], [NodeLost(60.0, "n1", 600.0)]
    )

    assert nodes_of(found) == {"daemon": "n1", "web": "n1"}
    # Without any node it was backing off when the node came.
    assert 600.0 <= summary(found).waits.longest_s <= 611.0


def test_a_drained_node_gives_its_pods_away_and_is_used_again() -> None:
    objects: list[Node | Pod] = [
        node("n1", cpu="4"),
        node("n2", cpu="4"),
        pod("web", node="n1", cpu="1"),
    ]
    late = Arrival(900.0, pod("late", cpu="4"))

    found = played(objects, [NodeDrained(60.0, "n1", 600.0), late])

    assert nodes_of(found) == {"web": "n2", "late": "n1"}


def test_an_added_node_takes_what_waits_and_has_the_daemons_of_its_example() -> None:
    daemon = pod("daemon", node="n1", cpu="1")
    owner = OwnerReference(kind="DaemonSet", name="agents")
    daemon = replace(daemon, metadata=replace(daemon.metadata, owner_references=(owner,)))
    objects: list[Node | Pod] = [
        node("n1", cpu="4"),
        daemon,
        pod("a", node="n1", cpu="3"),
        pod("b", cpu="3"),
    ]

    found = played(objects, [NodeAdded(3600.0, node("n2", cpu="4"), "n1")])

    assert nodes_of(found) == {"daemon": "n1", "daemon-n2": "n2", "a": "n1", "b": "n2"}
    assert summary(found).waits.longest_s == pytest.approx(3600.0, abs=1.0)


def test_it_ends_when_it_is_to_end() -> None:
    arrivals = [Arrival(float(hour * 3600), pod(f"p{hour}", cpu="100m")) for hour in range(10)]

    said = summary(played([node("n1")], arrivals, until_s=4.5 * 3600))

    assert (said.arrived, said.seconds) == (5, 4.5 * 3600)


def test_in_line_pods_that_are_alike_are_placed_in_the_order_in_which_they_came() -> None:
    """Only the first in line is tried again and again; the others follow it."""
    arrivals = [Arrival(float(n), pod(f"p{n}", cpu="4"), lifetime_s=100.0) for n in range(20)]

    found = played([node("n1", cpu="4")], arrivals, in_line=True)
    said = summary(found)
    all_tried = summary(played([node("n1", cpu="4")], arrivals))

    assert (said.placed, said.ended, said.pending) == (20, 20, 0)
    assert (all_tried.placed, all_tried.ended, all_tried.pending) == (20, 20, 0)
    assert all_tried.reasons[0].refusals == len(arrivals) - 1, "no attempt is made in vain"
    # One after the other, each 100 s: the last one waits for the 19 before it.
    assert said.waits.longest_s == pytest.approx(19 * 100.0 - 19.0, abs=2.0)
    # Each is refused when it comes and when it has become the first, not at every end.
    assert said.reasons[0].refusals <= 3 * len(arrivals)


def test_a_name_that_is_taken_is_not_taken_twice() -> None:
    objects: list[Node | Pod] = [node("n1"), pod("web", node="n1", cpu="1")]

    found = played(objects, [Arrival(1.0, pod("web", uid="other", cpu="1"))])

    assert sorted(nodes_of(found)) == ["web", "web-0"]


def test_readings_are_regular_and_never_too_many() -> None:
    arrivals = [Arrival(float(n * 60), pod(f"p{n}", cpu="1"), lifetime_s=60.0) for n in range(60)]

    said = run(
        replace(conditions_of([node("n1", cpu="2")]), reading_period_s=5.0, until_s=3600.0),
        _Fixed(arrivals),
    )

    times = [each.at_s for each in said.readings[:-1]]
    assert len(said.readings) <= 241
    assert {round(after - before, 3) for before, after in pairwise(times)} == {20.0}
    assert said.mean_cpu == pytest.approx(50.0, abs=1.0)
    assert said.readings[-1].at_s == 3600.0


class _Fixed:
    until_s = None

    def __init__(self, arrivals: list[Arrival]) -> None:
        self._arrivals = arrivals

    def happenings(self, seed: int) -> list[TimedEvent]:
        return list(self._arrivals)


class _Broken(PrioritySort):
    """A queue that cannot be sorted: the scheduler's loop itself fails."""

    def sort_key(self, pod: object) -> tuple[float, ...]:
        raise RuntimeError("no order")


def test_a_scheduler_that_fails_ends_the_play_with_its_failure() -> None:
    plugins: list[type[Plugin]] = [each for each in IN_TREE.values() if each is not PrioritySort]
    registry = Registry([*plugins, _Broken])

    with pytest.raises(RuntimeError, match="no order"):
        play(replace(conditions_of([node("n1"), pod("a")]), registry=registry))
