"""Races: nodes that another scheduler and this one oversubscribed together."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.clock import VirtualClock
from kubesched.cluster.cluster import Cluster
from kubesched.logs import klog_line
from kubesched.logs.formats import FIELDS
from kubesched.scheduler.races import REMEMBERED, SHORTLY_S, RaceDetector
from tests.support.objects import node, pod


def of_scheduler(name: str, each: Pod) -> Pod:
    return replace(each, spec=replace(each.spec, scheduler_name=name))


class Bench:
    """A cluster with a node of four CPUs, and the detector."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.cluster.put_node(node("n1", cpu="4", pods=5))
        self.clock = VirtualClock(1000.0)
        self.races = RaceDetector(self.cluster, self.clock)

    def assume(self, name: str, **requests: Any) -> None:
        """Place a pod of ours, which is not bound yet."""
        self.cluster.assume(self.cluster.compiler.pending(pod(name, **requests)), "n1")

    def bind(self, name: str, **requests: Any) -> None:
        """Place a pod of ours, bind it, and have the watch confirm it."""
        self.assume(name, **requests)
        self.races.binding(name)
        self.confirm(name, **requests)

    def confirm(self, name: str, **requests: Any) -> None:
        self._event(pod(name, node="n1", **requests))

    def theirs(self, name: str, **requests: Any) -> None:
        """Have the event of a pod arrive that another scheduler bound."""
        self._event(of_scheduler("theirs", pod(name, node="n1", **requests)))

    def _event(self, bound: Pod) -> None:
        uid = bound.metadata.uid
        is_of_others = self.races.is_of_others(uid, bound.spec.node_name)
        self.cluster.put_pod(bound)
        if is_of_others:
            self.races.arrived(uid)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_pod_of_theirs_takes_the_room_of_an_assumed_pod(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.assume("ours", cpu="3")
    with caplog.at_level(logging.WARNING):
        bench.theirs("theirs", cpu="2")

    assert bench.races.count == 1
    (line,) = (klog_line(each.getMessage(), **vars(each)[FIELDS]) for each in caplog.records)
    assert line.endswith(
        '"Node is oversubscribed, because another scheduler took the same room" node="n1" '
        'resource="cpu" pod="default/ours" otherPod="default/theirs" otherScheduler="theirs"'
    )
    (told,) = map(str, bench.races.last)
    assert told == (
        "1970-01-01T00:16:40Z node n1: cpu: pod default/ours of ours, "
        "and pod default/theirs of theirs"
    )


def test_a_pod_that_was_bound_shortly_before_counts_as_well(bench: Bench) -> None:
    bench.bind("ours", cpu="3")
    bench.clock.advance(SHORTLY_S)
    bench.theirs("theirs", cpu="2")
    assert bench.races.count == 1


def test_a_pod_that_was_bound_long_before_is_no_race(bench: Bench) -> None:
    """The other scheduler must have seen it, and oversubscribed the node by itself."""
    bench.bind("ours", cpu="3")
    bench.clock.advance(SHORTLY_S + 0.1)
    bench.theirs("theirs", cpu="2")
    assert bench.races.count == 0


def test_a_pod_that_waits_on_permit_for_minutes_still_counts(bench: Bench) -> None:
    bench.assume("ours", cpu="3")
    bench.clock.advance(300)
    bench.theirs("theirs", cpu="2")
    assert bench.races.count == 1


def test_there_is_no_race_while_the_node_has_enough(bench: Bench) -> None:
    bench.assume("ours", cpu="2")
    bench.theirs("theirs", cpu="2")
    assert bench.races.count == 0


def test_an_occurrence_is_counted_once(bench: Bench) -> None:
    """Further pods on a node that has too little already are not what made it so."""
    bench.assume("ours", cpu="3")
    bench.theirs("first", cpu="2")
    bench.theirs("second", cpu="1")
    assert bench.races.count == 1

    bench.cluster.remove_pod("first")
    bench.theirs("third", cpu="1")
    assert bench.races.count == 2, "it had enough in between"


def test_a_node_that_they_oversubscribe_without_our_help_is_no_race(bench: Bench) -> None:
    bench.assume("ours", cpu="100m")
    bench.theirs("theirs", cpu="5")
    assert bench.races.count == 0


def test_several_pods_of_ours_race_together(bench: Bench) -> None:
    for name in ("a", "b", "c"):
        bench.assume(name, cpu="1")
    bench.assume("idle", memory="1Mi")
    bench.theirs("theirs", cpu="4")
    (race,) = bench.races.last
    assert (race.ours, race.other) == ("default/c", "default/theirs"), "the newest that has a part"


def test_every_resource_that_ran_short_is_named(bench: Bench) -> None:
    bench.assume("ours", cpu="3", memory="7Gi")
    bench.theirs("theirs", cpu="2", memory="2Gi")
    assert [race.resource for race in bench.races.last] == ["cpu,memory"]
    assert bench.races.count == 1


def test_the_number_of_pods_is_a_resource(bench: Bench) -> None:
    for number in range(5):
        bench.assume(f"ours{number}")
    bench.theirs("theirs")
    assert [race.resource for race in bench.races.last] == ["pods"]


def test_our_own_pods_do_not_race_with_each_other(bench: Bench) -> None:
    """Also if the watch is faster than the response, or confirms a pod that was forgotten."""
    bench.bind("first", cpu="3")
    bench.assume("second", cpu="2")
    bench.confirm("second", cpu="2")
    bench.assume("third", cpu="2")
    bench.races.binding("third")
    bench.cluster.forget("third")
    bench.confirm("third", cpu="2")
    assert bench.races.count == 0


def test_a_pod_that_another_process_bound_under_our_name_is_one_of_others(bench: Bench) -> None:
    bench.assume("ours", cpu="3")
    bench.confirm("of-another-replica", cpu="2")
    assert [race.other_scheduler for race in bench.races.last] == ["default-scheduler"]


def test_a_pod_that_another_process_bound_elsewhere_counts_where_it_is(bench: Bench) -> None:
    bench.cluster.put_node(node("n2", cpu="4"))
    bench.assume("ours", cpu="3")
    bench.cluster.assume(bench.cluster.compiler.pending(pod("moved", cpu="2")), "n2")
    bench.confirm("moved", cpu="2")
    assert [race.node_name for race in bench.races.last] == ["n1"]


def test_a_replica_that_places_nothing_finds_nothing(bench: Bench) -> None:
    bench.confirm("of-the-leader", cpu="3")
    bench.theirs("theirs", cpu="2")
    assert bench.races.count == 0


def test_a_pod_whose_node_is_not_known_yet_is_no_race(bench: Bench) -> None:
    bench.assume("ours", cpu="3")
    far = pod("theirs", node="n9", cpu="9")
    bench.cluster.put_pod(far)
    bench.races.arrived("theirs")
    assert bench.races.count == 0


def test_only_the_last_races_are_remembered(bench: Bench) -> None:
    bench.assume("ours", cpu="3")
    for number in range(REMEMBERED + 5):
        bench.theirs(f"t{number}", cpu="2")
        bench.cluster.remove_pod(f"t{number}")
    assert bench.races.count == REMEMBERED + 5
    assert [race.other for race in bench.races.last][-1] == f"default/t{REMEMBERED + 4}"
    assert len(bench.races.last) == REMEMBERED
