"""Why a pod is not on a certain node: its rejection there, or the points that it lost."""

from __future__ import annotations

from kubesched.explain.explaining import explain, find_pod
from kubesched.explain.on_node import on_node
from tests.support.objects import node, pod, taint
from tests.support.worlds import explained, world_of

BIG, SMALL = node("big", cpu="16", memory="32Gi"), node("small", cpu="2", memory="4Gi")


def test_a_rejection_comes_with_its_numbers() -> None:
    full = node("full", cpu="4", taints=[taint("gpu:NoSchedule")])

    said = on_node(explained(pod("p", cpu="6"), BIG, full), "full")

    assert (said.outcome, said.text) == ("Rejected", "full rejects it for 2 reasons")
    assert [(each.text, each.details[0].text) for each in said.reasons] == [
        ("node(s) had untolerated taint(s)", "taint gpu:NoSchedule"),
        ("Insufficient cpu", "6 requested, 4 of 4 free"),
    ]


def test_a_feasible_node_that_lost_says_by_how_much_and_to_which_score() -> None:
    all_scores = explained(pod("p", cpu="1", memory="1Gi"), BIG, SMALL)

    said = on_node(all_scores, "small")

    assert (said.outcome, said.winner) == ("Outscored", "big")
    lost = said.winner_points - said.node_points
    assert sum(each.difference for each in said.scores) == -lost < 0
    worst = said.scores[0]
    assert said.text == (
        f"small loses by {lost} points to big, most of all {-worst.difference} of {worst.plugin}"
    )
    assert worst.difference == min(each.difference for each in said.scores)


def test_the_best_node_says_so_beside_the_second() -> None:
    said = on_node(explained(pod("p", cpu="1", memory="1Gi"), BIG, SMALL), "big")

    assert (said.outcome, said.winner) == ("Best", "small")
    assert said.text.startswith("big is the best for it, by ")
    assert said.node_points > said.winner_points


def test_equal_nodes_are_tied_and_a_single_one_has_no_rival() -> None:
    twins = node("a"), node("b")

    tied = on_node(explained(pod("p"), *twins), "b")
    single = on_node(explained(pod("p"), node("a")), "a")

    assert (tied.outcome, tied.text) == (
        "Tied",
        "b is as good as a: ties are broken at random",
    )
    assert (single.outcome, single.text) == ("Best", "a is the only node that it fits on")


def test_a_placed_pod_is_compared_with_its_own_node() -> None:
    world = world_of(BIG, SMALL, pod("p", cpu="1", memory="1Gi", node="small"))
    all_scores = explain(world, find_pod(world, "default", "p"))

    elsewhere, here = on_node(all_scores, "big"), on_node(all_scores, "small")

    assert elsewhere.winner == "small"
    assert elsewhere.text.startswith("big would win against small now, by ")
    assert here.text.startswith("small loses now by ")


def test_what_else_decides_about_the_pod_is_noted() -> None:
    said = on_node(explained(pod("p", gates=["quota"]), BIG), "big")

    assert said.notes == ("gated: waiting for scheduling gates: [quota]",)
