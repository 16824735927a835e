"""The queue's counters: arrivals by part and event, and rejected pods by plugin."""

from __future__ import annotations

from kubesched.queue.tally import ACTIVE, BACKOFF, QueueTally
from tests.support.queueing import queued

PROFILE = "default-scheduler"


def test_an_arrival_counts_by_part_and_event() -> None:
    tally = QueueTally()
    tally.arrived(ACTIVE, "NodeAdd", queued("a"))
    tally.arrived(ACTIVE, "NodeAdd", queued("b"))

    assert tally.incoming == {(ACTIVE, "NodeAdd"): 2}
    assert tally.incoming_entities == {(ACTIVE, "NodeAdd", "pod"): 2}


def test_an_arrival_in_the_part_that_hints_chose_is_no_incoming_entity() -> None:
    tally = QueueTally()
    tally.arrived(BACKOFF, "NodeAdd", queued("a"), sent_to=BACKOFF)

    assert tally.incoming == {(BACKOFF, "NodeAdd"): 1}
    assert not tally.incoming_entities


def test_a_rejected_pod_counts_for_each_plugin_until_it_is_settled() -> None:
    tally = QueueTally()
    each = queued("a")
    each.unschedulable_plugins, each.pending_plugins = {"Fit"}, {"Claims"}

    tally.count_rejections(each)
    assert tally.rejected == {("Fit", PROFILE): 1, ("Claims", PROFILE): 1}

    tally.settled(each)
    assert not any(tally.rejected.values())


def test_a_gated_pod_counts_for_the_gating_plugin() -> None:
    tally = QueueTally()
    tally.gated(queued("a"), "SchedulingGates")

    assert tally.rejected == {("SchedulingGates", PROFILE): 1}
