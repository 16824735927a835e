"""Decisions of the other scheduler are judged on the state before them, and applied in any case."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kubesched.shadow import judging
from kubesched.shadow.report import Agreement
from tests.support.objects import node, pod

from .lab import ShadowLab

HALF = node("half", cpu="4")
FREE = node("free", cpu="4")
CLOSED = node("closed", unschedulable=True)


def test_the_same_node() -> None:
    lab = ShadowLab(HALF, FREE)
    lab.there(pod("other", cpu="2", node="half"), wanted := pod("p", cpu="1"))

    lab.bind(wanted, "free")

    assert lab.found.verdict is Agreement.SAME
    assert lab.found.ours.nodes == ("free",)
    assert (lab.found.ours.best_nodes, lab.found.ours.feasible_nodes) == (1, 2)
    assert (lab.found.kind, lab.found.pod, lab.found.why) == ("Binding", "default/p", "")
    assert lab.watched.cluster.node_of("p") == "free"


def test_one_of_several_equally_good_nodes() -> None:
    lab = ShadowLab(*(node(f"n{number}") for number in range(5)))
    lab.there(wanted := pod("p", cpu="1"))

    lab.bind(wanted, "n4")

    assert lab.found.verdict is Agreement.SAME
    assert lab.found.ours.best_nodes == 5
    assert len(lab.found.ours.nodes) == 3


def test_a_feasible_node_that_scores_less_and_which_plugins_make_the_difference() -> None:
    lab = ShadowLab(HALF, FREE)
    lab.there(pod("other", cpu="2", memory="4Gi", node="half"), wanted := pod("p", cpu="1"))

    lab.bind(wanted, "half")
    lab.wait()

    found = lab.found
    assert found.verdict is Agreement.LOWER_SCORE
    assert found.score is not None
    assert found.score.ours > found.score.theirs
    assert found.score.rank == 2
    assert found.plugin == "NodeResourcesFit"
    differences = [each.ours - each.theirs for each in found.score.plugins]
    assert sum(differences) == found.score.ours - found.score.theirs
    assert "less than free: NodeResourcesFit -" in found.why
    assert found.why.endswith("number 2 of 2 feasible")


def test_a_node_that_our_filters_refuse() -> None:
    lab = ShadowLab(FREE, CLOSED)
    lab.there(wanted := pod("p"))

    lab.bind(wanted, "closed")
    lab.wait()

    assert lab.found.verdict is Agreement.REFUSED
    assert lab.found.why == "NodeUnschedulable: node(s) were unschedulable"
    assert lab.found.plugin == "NodeUnschedulable"
    assert lab.found.ours.nodes == ("free",)


def test_no_node_at_all() -> None:
    lab = ShadowLab(FREE, CLOSED)
    lab.there(wanted := pod("p", cpu="64"))

    lab.bind(wanted, "free")
    lab.wait()

    assert lab.found.verdict is Agreement.NONE_FITS
    assert lab.found.why == "NodeResourcesFit: Insufficient cpu; and no other node fits"
    assert lab.found.ours.message.startswith("0/2 nodes are available: ")


def test_room_that_is_promised_to_others_is_left_to_them() -> None:
    lab = ShadowLab(node("n1", cpu="2"), node("n2", cpu="1"))
    lab.there(pod("first", cpu="2", priority=10, nominated="n1"), wanted := pod("p", cpu="1"))

    lab.bind(wanted, "n1")
    lab.wait()

    assert lab.found.verdict is Agreement.REFUSED
    assert lab.found.why == "NodeResourcesFit: Insufficient cpu"


def test_a_pod_goes_where_it_is_nominated() -> None:
    lab = ShadowLab(HALF, FREE)
    lab.there(wanted := pod("p", cpu="1", nominated="half"))

    lab.bind(wanted, "free")
    lab.wait()

    assert lab.found.why == "the pod is nominated to half, which is free: others are not looked at"


def test_a_pod_that_ours_would_not_even_try() -> None:
    lab = ShadowLab(FREE)
    lab.there(wanted := pod("p", gates=["mine/wait"]))

    lab.bind(wanted, "free")
    lab.wait()

    assert lab.found.verdict is Agreement.GATED
    assert lab.found.plugin == "SchedulingGates"


# --- refusals ---------------------------------------------------------------------------------


def ours_says(lab: ShadowLab, *, cpu: str) -> str:
    """Return our own words about such a pod."""
    lab.there(asking := pod("asking", cpu=cpu))
    lab.refuse(asking, "?")
    lab.wait()
    return lab.findings.pop().ours.message


def test_a_refusal_in_the_same_words() -> None:
    lab = ShadowLab(FREE)
    message = ours_says(lab, cpu="64")
    assert "1 Insufficient cpu" in message
    lab.there(wanted := pod("p", cpu="64"))

    refused = lab.refuse(wanted, message)
    assert lab.found.verdict is Agreement.SAME_MESSAGE

    lab.update(refused, replace(refused, status=replace(refused.status, phase="Pending")))
    assert len(lab.findings) == 1, "the same words again are no news"


def test_a_refusal_in_other_words() -> None:
    lab = ShadowLab(FREE)
    lab.there(wanted := pod("p", cpu="64"))

    lab.refuse(wanted, "no")
    lab.wait()

    assert lab.found.verdict is Agreement.OTHER_WORDS
    assert lab.found.why.startswith("ours: 0/1 nodes are available: 1 Insufficient cpu.")


def test_a_refusal_of_a_pod_that_we_would_place() -> None:
    lab = ShadowLab(FREE, CLOSED)
    lab.there(wanted := pod("p"))

    lab.refuse(wanted, "no")
    lab.wait()

    assert lab.found.verdict is Agreement.WOULD_PLACE
    assert lab.found.ours.nodes == ("free",)


def test_room_made_on_another_node_and_nobody_is_evicted_for_it() -> None:
    lab = ShadowLab(FREE)
    lab.there(pod("victim", cpu="4", node="free"), wanted := pod("p", cpu="4", priority=10))
    message = ours_says(lab, cpu="4")
    assert message.startswith("0/1 nodes are available: 1 Insufficient cpu.")

    theirs = (
        "0/1 nodes are available: 1 Insufficient cpu. preemption: found a potential placement for "
        "pod on node elsewhere, preempting 2 victims"
    )
    lab.refuse(wanted, theirs, nominated="elsewhere")
    lab.wait()

    assert lab.found.verdict is Agreement.OTHER_NOMINATION
    assert lab.found.why == "theirs makes room on elsewhere, ours on free"
    assert lab.watched.cluster.node_of("victim") == "free"


# --- what is not judged -----------------------------------------------------------------------


def test_what_happened_while_nobody_looked_is_applied_all_the_same() -> None:
    lab = ShadowLab(FREE, CLOSED)
    lab.there(wanted := pod("p"))

    lab.bind(wanted, "closed", seen=False)
    lab.wait()

    assert lab.findings == []
    assert lab.not_judged == [judging.NOT_LOOKING]
    assert lab.watched.cluster.node_of("p") == "closed"


def test_a_pod_that_comes_with_its_node_was_decided_on_by_nobody() -> None:
    lab = ShadowLab(FREE, CLOSED)

    lab.handler.on_add(pod("static", node="closed"), False)
    lab.wait()

    assert (lab.findings, lab.not_judged) == ([], [])
    assert lab.watched.cluster.node_of("static") == "closed"


def test_a_node_that_is_not_known_yet() -> None:
    lab = ShadowLab(FREE)
    lab.there(wanted := pod("p"))

    lab.bind(wanted, "brand-new")

    assert lab.not_judged == [judging.NO_NODE]


def test_pods_of_others_are_none_of_our_business() -> None:
    lab = ShadowLab(FREE, CLOSED, scheduler_names=("mine",))
    lab.there(wanted := pod("p"))

    lab.bind(wanted, "closed")
    lab.wait()

    assert (lab.findings, lab.not_judged) == ([], [])
    assert lab.watched.cluster.node_of("p") == "closed"


def test_a_judgement_that_fails_leaves_the_state_right(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lab = ShadowLab(FREE)
    lab.there(wanted := pod("p"))

    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(judging, "decide", fail)
    lab.bind(wanted, "free")

    assert lab.not_judged == [judging.BUG]
    assert "judging default/p failed" in caplog.text
    assert lab.watched.cluster.node_of("p") == "free"


# --- time -------------------------------------------------------------------------------------


def test_it_is_said_when_a_decision_is_judged_late() -> None:
    lab = ShadowLab(FREE)
    lab.there(wanted := pod("p"))

    lab.arrive(wanted, replace(wanted, spec=replace(wanted.spec, node_name="free")))
    lab.clock.advance(2.5)
    lab.apply()

    assert lab.found.late_seconds == 2.5


def test_whoever_is_far_behind_only_catches_up() -> None:
    lab = ShadowLab(FREE)
    lab.there(wanted := pod("p"))

    lab.arrive(wanted, replace(wanted, spec=replace(wanted.spec, node_name="free")))
    lab.clock.advance(31.0)
    lab.apply()

    assert lab.not_judged == [judging.TOO_LATE]
    assert lab.watched.cluster.node_of("p") == "free"
