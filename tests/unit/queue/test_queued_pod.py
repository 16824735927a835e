"""A queued pod: the plugins that rejected it, and the plugins whose events may help it."""

from __future__ import annotations

from tests.support.queueing import queued


def test_a_pod_is_its_own_entry() -> None:
    each = queued("a", priority=7)

    assert each.key == each.info.uid
    assert each.priority == 7
    assert (each.kind, each.size, list(each.pods())) == ("pod", 1, [each])
    assert each.gatekeeper is each


def test_after_an_error_no_plugin_rejected_it() -> None:
    each = queued("a")

    assert not each.was_rejected
    assert each.rejectors == set()


def test_unschedulable_and_pending_plugins_rejected_it() -> None:
    each = queued("a")
    each.unschedulable_plugins, each.pending_plugins = {"Fit"}, {"Claims"}

    assert each.was_rejected
    assert each.rejectors == {"Fit", "Claims"}
    assert each.waits_for == {"Fit", "Claims"}


def test_a_gated_pod_waits_for_the_gating_plugin_alone() -> None:
    each = queued("a")
    each.unschedulable_plugins = {"Fit", "SchedulingGates"}
    each.gated_by = "SchedulingGates"

    assert each.waits_for == {"SchedulingGates"}
