"""InterPodAffinity: near to some pods, away from others, and what others say about that."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
from msgspec.structs import replace

from kubesched.api import names
from kubesched.api.core import Namespace, Node, Pod, PodAffinityTerm
from kubesched.api.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta
from kubesched.config.args import InterPodAffinityArgs
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.status import unresolvable, unschedulable
from tests.support.evaluating import feasible_rows, total_scores
from tests.support.objects import must, node, on_node, pod, pod_term, should
from tests.support.scheduling import Lab

ZONE, HOST = names.LABEL_ZONE, names.LABEL_HOSTNAME
WEB, DB = {"app": "web"}, {"app": "db"}
NAME = "InterPodAffinity"

NOT_NEAR = unresolvable("node(s) didn't match pod affinity rules").by(NAME)
NOT_AWAY = unschedulable("node(s) didn't match pod anti-affinity rules").by(NAME)
KEPT_AWAY = unschedulable("node(s) didn't satisfy existing pods anti-affinity rules").by(NAME)


def place(name: str, zone: str | None = None) -> Node:
    """A node that is labelled with its name, and perhaps a zone."""
    return node(name, zone=zone, labels={HOST: name})


#: two nodes in zone a, one in zone b, one nowhere
PLACES = (place("a1", "a"), place("a2", "a"), place("b1", "b"), place("x"))


def alone(*objects: Node | Pod, **args: Any) -> Lab:
    """A profile in which nobody else filters or scores."""
    given = {NAME: InterPodAffinityArgs(**args)} if args else None
    return Lab(*PLACES, *objects, only=[NAME], args=given)


def on(node_name: str, name: str = "", **more: Any) -> Pod:
    """A pod that is there already."""
    return pod(name or f"on-{node_name}", node=node_name, **more)


def about(key: str, app: str, **more: Any) -> PodAffinityTerm:
    """A term about the pods of an app."""
    return replace(pod_term(key, app=app), **more)


# --- required terms ---------------------------------------------------------------------------

TERMINATING = replace(
    on("a1", labels=WEB),
    metadata=replace(on("a1", labels=WEB).metadata, deletion_timestamp="2026-01-01T00:00:00Z"),
)

#: pods that are there, the pod that asks, where it may go
REQUIRED: dict[str, tuple[list[Pod], Pod, list[str]]] = {
    "near, by zone": (
        [on("a1", labels=WEB)],
        pod(near=must(about(ZONE, "web"))),
        ["a1", "a2"],
    ),
    "near, by node": ([on("a1", labels=WEB)], pod(near=must(about(HOST, "web"))), ["a1"]),
    "nobody to be near to": ([], pod(near=must(about(ZONE, "web"))), []),
    "near to pods that are on their way out": (
        [TERMINATING],
        pod(near=must(about(HOST, "web"))),
        ["a1"],
    ),
    "the first of its group goes anywhere in the topology": (
        [],
        pod(labels=WEB, near=must(about(ZONE, "web"))),
        ["a1", "a2", "b1"],
    ),
    "the second of its group goes to the first": (
        [on("b1", labels=WEB)],
        pod(labels=WEB, near=must(about(ZONE, "web"))),
        ["b1"],
    ),
    "the first must match all of its terms": (
        [],
        pod(labels=WEB, near=must(about(ZONE, "web"), about(ZONE, "db"))),
        [],
    ),
    "one pod must match all terms": (
        [on("a1", labels=WEB), on("a2", labels={"tier": "front"})],
        pod(near=must(about(ZONE, "web"), pod_term(ZONE, tier="front"))),
        [],
    ),
    "one pod that matches all terms, by two topologies": (
        [on("a1", labels={"app": "web", "tier": "front"})],
        pod(near=must(about(ZONE, "web"), pod_term(HOST, tier="front"))),
        ["a1"],
    ),
    "a pod outside the topology is nobody": (
        [on("x", labels=WEB)],
        pod(labels=WEB, near=must(about(ZONE, "web"))),
        ["a1", "a2", "b1"],
    ),
    "all topologies must be there": (
        [on("x", labels=WEB)],
        pod(near=must(about(HOST, "web"), about(ZONE, "web"))),
        [],
    ),
    "away, by zone": (
        [on("a1", labels=WEB)],
        pod(away_from=must(about(ZONE, "web"))),
        ["b1", "x"],
    ),
    "away, by node": (
        [on("a1", labels=WEB)],
        pod(away_from=must(about(HOST, "web"))),
        ["a2", "b1", "x"],
    ),
    "away from any of several": (
        [on("a1", labels=WEB), on("b1", labels=DB)],
        pod(away_from=must(about(ZONE, "web"), about(HOST, "db"))),
        ["x"],
    ),
    "away from itself is no obstacle": (
        [],
        pod(labels=WEB, away_from=must(about(ZONE, "web"))),
        ["a1", "a2", "b1", "x"],
    ),
    "others want to be away from it": (
        [on("a1", away_from=must(about(ZONE, "web")))],
        pod(labels=WEB),
        ["b1", "x"],
    ),
    "others want to be away from somebody else": (
        [on("a1", away_from=must(about(ZONE, "web")))],
        pod(labels=DB),
        ["a1", "a2", "b1", "x"],
    ),
    "others have no zone to keep it out of": (
        [on("x", away_from=must(about(ZONE, "web")))],
        pod(labels=WEB),
        ["a1", "a2", "b1", "x"],
    ),
    "others want to be near to it": (
        [on("a1", near=must(about(ZONE, "web")))],
        pod(labels=WEB),
        ["a1", "a2", "b1", "x"],
    ),
    "near and away": (
        [on("a1", labels=WEB), on("a2", labels=DB), on("b1", "web-b", labels=WEB)],
        pod(near=must(about(ZONE, "web")), away_from=must(about(ZONE, "db"))),
        ["b1"],
    ),
    "no selector is about nobody": (
        [on("a1", labels=WEB)],
        pod(away_from=must(PodAffinityTerm(topology_key=ZONE))),
        ["a1", "a2", "b1", "x"],
    ),
    "an empty selector is about everybody": (
        [on("a1")],
        pod(away_from=must(PodAffinityTerm(topology_key=ZONE, label_selector=LabelSelector()))),
        ["b1", "x"],
    ),
}


@pytest.mark.parametrize(("there", "asking", "feasible"), REQUIRED.values(), ids=REQUIRED.keys())
def test_where_required_terms_let_pods_go(
    there: list[Pod], asking: Pod, feasible: list[str]
) -> None:
    assert sorted(alone(*there).feasible(asking)) == feasible


@pytest.mark.parametrize(("there", "asking", "feasible"), REQUIRED.values(), ids=REQUIRED.keys())
def test_the_same_nodes_are_turned_away_without_reasons(
    there: list[Pod], asking: Pod, feasible: list[str]
) -> None:
    assert sorted(alone(*there).left_by_masks(NAME, asking)) == feasible


def test_the_three_reasons_in_their_order() -> None:
    lab = alone(
        on("a1", "web", labels=WEB),
        on("b1", "db", labels=DB),
        on("b1", "grumpy", labels=WEB, away_from=must(about(ZONE, "new"))),
        on("a2", "grumpier", away_from=must(about(HOST, "new"))),
    )
    asking = pod(
        labels={"app": "new"}, near=must(about(ZONE, "web")), away_from=must(about(HOST, "db"))
    )
    lab.cluster.put_pod(on("a1", "db-too", labels=DB))
    diagnosis = lab.diagnosis(asking)
    table = lab.cluster.table
    assert {name: diagnosis.status_of(table.row_of(name) or 0) for name in table.names()} == {
        "a1": NOT_AWAY,
        "a2": KEPT_AWAY,
        "b1": NOT_AWAY,
        "x": NOT_NEAR,
    }


# --- namespaces -------------------------------------------------------------------------------


def namespaced(**teams: str) -> list[Namespace]:
    return [
        Namespace(metadata=ObjectMeta(name=name, labels={"team": team}))
        for name, team in teams.items()
    ]


def team(operator: str, *values: str) -> LabelSelector:
    return LabelSelector(
        match_expressions=(LabelSelectorRequirement(key="team", operator=operator, values=values),)
    )


#: what the term says of namespaces; whether it is about pods in default, red and blue
NAMESPACES: dict[str, tuple[dict[str, Any], set[str]]] = {
    "its own": ({}, {"default"}),
    "those that are listed": ({"namespaces": ("red",)}, {"red"}),
    "those that are selected": ({"namespace_selector": team("In", "b")}, {"blue"}),
    "listed or selected": (
        {"namespaces": ("red",), "namespace_selector": team("In", "b")},
        {"red", "blue"},
    ),
    "all, by an empty selector": (
        {"namespace_selector": LabelSelector()},
        {"default", "red", "blue"},
    ),
    "none that is selected": ({"namespace_selector": team("In", "z")}, set()),
}
#: A selector of what has no such label is about namespaces that are known, for new pods' terms.
ABSENCE: dict[str, tuple[dict[str, Any], set[str], set[str]]] = {
    "not in": (
        {"namespace_selector": team("NotIn", "b")},
        {"red"},
        {"default", "red"},
    ),
    "without": (
        {"namespace_selector": team("DoesNotExist")},
        set(),
        {"default"},
    ),
}
OWN = {**NAMESPACES, **{name: (given, mine) for name, (given, mine, _) in ABSENCE.items()}}
OTHERS = {**NAMESPACES, **{name: (given, theirs) for name, (given, _, theirs) in ABSENCE.items()}}


@pytest.mark.parametrize(("given", "found"), OWN.values(), ids=OWN.keys())
def test_in_which_namespaces_a_pod_s_own_term_looks(given: dict[str, Any], found: set[str]) -> None:
    seen = set()
    for namespace in ("default", "red", "blue"):
        lab = alone(on("a1", labels=WEB, namespace=namespace))
        for each in namespaced(red="a", blue="b"):
            lab.cluster.namespaces.put(each)
        if lab.feasible(pod("asks", away_from=must(about(ZONE, "web", **given)))) == ["b1", "x"]:
            seen.add(namespace)
    assert seen == found


@pytest.mark.parametrize(("given", "found"), OTHERS.values(), ids=OTHERS.keys())
def test_in_which_namespaces_others_terms_look(given: dict[str, Any], found: set[str]) -> None:
    lab = alone(on("a1", away_from=must(about(ZONE, "web", **given))))
    for each in namespaced(red="a", blue="b"):
        lab.cluster.namespaces.put(each)
    seen = {
        namespace
        for namespace in ("default", "red", "blue")
        if lab.feasible(pod("asks", namespace=namespace, labels=WEB)) == ["b1", "x"]
    }
    assert seen == found


def test_a_namespace_may_change_its_labels() -> None:
    selected = about(ZONE, "web", namespace_selector=team("In", "b"))
    lab = alone(on("a1", labels=WEB, namespace="red"), on("b1", away_from=must(selected)))
    mine = pod("mine", away_from=must(selected))
    its = pod("its", namespace="red", labels=WEB)
    everywhere = ["a1", "a2", "b1", "x"]
    for label, for_mine, for_its in (
        ("a", everywhere, everywhere),
        ("b", ["b1", "x"], ["a1", "a2", "x"]),
        ("a", everywhere, everywhere),
    ):
        lab.cluster.namespaces.put(namespaced(red=label)[0])
        assert sorted(lab.feasible(mine)) == for_mine
        assert sorted(lab.feasible(its)) == for_its


# --- scores -----------------------------------------------------------------------------------

#: pods that are there, the pod that asks, raw and normalised scores
SCORED: dict[str, tuple[list[Pod], Pod, dict[str, int], dict[str, int]]] = {
    "likes": (
        [on("a1", labels=WEB), on("b1", "web-b", labels=WEB), on("a2", labels=WEB)],
        pod(near=should((5, about(ZONE, "web")))),
        {"a1": 10, "a2": 10, "b1": 5, "x": 0},
        {"a1": 100, "a2": 100, "b1": 50, "x": 0},
    ),
    "dislikes": (
        [on("a1", labels=WEB), on("b1", labels=DB)],
        pod(away_from=should((4, about(ZONE, "web")), (1, about(HOST, "db")))),
        {"a1": -4, "a2": -4, "b1": -1, "x": 0},
        {"a1": 0, "a2": 0, "b1": 75, "x": 100},
    ),
    "likes and dislikes": (
        [on("a1", labels=WEB), on("a2", labels=DB)],
        pod(near=should((7, about(ZONE, "web"))), away_from=should((2, about(HOST, "db")))),
        {"a1": 7, "a2": 5, "b1": 0, "x": 0},
        {"a1": 100, "a2": 71, "b1": 0, "x": 0},
    ),
    "is liked and disliked": (
        [
            on("a1", near=should((6, about(ZONE, "new")))),
            on("b1", away_from=should((3, about(ZONE, "new")))),
        ],
        pod(labels={"app": "new"}),
        {"a1": 6, "a2": 6, "b1": -3, "x": 0},
        {"a1": 100, "a2": 100, "b1": 0, "x": 33},
    ),
    "is required by others": (
        [on("a1", near=must(about(HOST, "new"))), on("b1", near=must(about(ZONE, "other")))],
        pod(labels={"app": "new"}),
        {"a1": 1, "a2": 0, "b1": 0, "x": 0},
        {"a1": 100, "a2": 0, "b1": 0, "x": 0},
    ),
    "liking is mutual": (
        [on("a1", labels=WEB, near=should((2, about(HOST, "web"))))],
        pod(labels=WEB, near=should((3, about(HOST, "web")))),
        {"a1": 5, "a2": 0, "b1": 0, "x": 0},
        {"a1": 100, "a2": 0, "b1": 0, "x": 0},
    ),
    "several who like it in one place": (
        [on("a1", f"fan-{i}", near=should((1, about(HOST, "new")))) for i in range(3)],
        pod(labels={"app": "new"}),
        {"a1": 3, "a2": 0, "b1": 0, "x": 0},
        {"a1": 100, "a2": 0, "b1": 0, "x": 0},
    ),
    "they cancel each other out": (
        [on("a1", labels=WEB), on("a2", labels=DB)],
        pod(near=should((2, about(ZONE, "web"))), away_from=should((2, about(ZONE, "db")))),
        {"a1": 0, "a2": 0, "b1": 0, "x": 0},
        {"a1": 0, "a2": 0, "b1": 0, "x": 0},
    ),
}


@pytest.mark.parametrize(
    ("there", "asking", "raw", "normalised"), SCORED.values(), ids=SCORED.keys()
)
def test_weights_add_up_by_domain(
    there: list[Pod], asking: Pod, raw: dict[str, int], normalised: dict[str, int]
) -> None:
    lab = alone(*there)
    assert lab.scores(NAME, asking, raw=True) == raw
    assert lab.scores(NAME, asking) == normalised


NOT_SCORED: dict[str, tuple[list[Pod], Pod]] = {
    "nobody says anything": ([on("a1", labels=WEB)], pod(labels=WEB)),
    "what it likes is not there": ([], pod(near=should((5, about(ZONE, "web"))))),
    "what it likes is in no domain": (
        [on("x", labels=WEB)],
        pod(near=should((5, about(ZONE, "web")))),
    ),
    "its own required terms": (
        [on("a1", labels=WEB)],
        pod(near=must(about(ZONE, "web"))),
    ),
    "others' required anti-affinity": (
        [on("a1", away_from=must(about(HOST, "web")))],
        pod(labels=WEB),
    ),
}


@pytest.mark.parametrize(("there", "asking"), NOT_SCORED.values(), ids=NOT_SCORED.keys())
def test_without_any_weight_there_is_no_score(there: list[Pod], asking: Pod) -> None:
    assert NAME not in alone(*there).plugin_scores(asking)


@pytest.mark.parametrize(("weight", "score"), [(0, None), (1, 1), (100, 100)])
def test_the_weight_of_required_affinity_is_an_argument(weight: int, score: int | None) -> None:
    lab = alone(on("a1", near=must(about(HOST, "new"))), hard_pod_affinity_weight=weight)
    asking = pod(labels={"app": "new"})
    if score is None:
        assert NAME not in lab.plugin_scores(asking)
    else:
        assert lab.scores(NAME, asking, raw=True)["a1"] == score


def test_preferences_of_others_may_be_ignored_for_pods_without_any() -> None:
    fan = on("a1", near=should((6, about(ZONE, "new"))))
    required = on("b1", labels=DB, near=must(about(ZONE, "new")))
    lab = alone(fan, required, ignore_preferred_terms_of_existing_pods=True)
    indifferent = pod(labels={"app": "new"})
    choosy = pod(labels={"app": "new"}, near=should((1, about(ZONE, "db"))))
    assert NAME not in lab.plugin_scores(indifferent)
    assert lab.scores(NAME, choosy, raw=True) == {"a1": 6, "a2": 6, "b1": 2, "x": 0}


# --- what is malformed, what is kept ----------------------------------------------------------


def test_a_malformed_term_turns_the_pod_away() -> None:
    wrong = LabelSelectorRequirement(key="app", operator="Resembles")
    term = PodAffinityTerm(
        topology_key=ZONE, label_selector=LabelSelector(match_expressions=(wrong,))
    )
    lab = alone()
    diagnosis = lab.diagnosis(pod(near=must(term)))
    assert diagnosis.pre_filter is not None
    assert diagnosis.pre_filter.message.startswith("parsing pod: ")
    assert diagnosis.pre_filter.code is NOT_NEAR.code
    info = lab.pending(pod(near=should((1, term))))
    with pytest.raises(AttemptError, match="failed to parse pod: "):
        lab.framework.evaluator.plugin_scores(CycleState(), info, lab.cluster.table.order.rows())


def test_answers_follow_pods_and_nodes() -> None:
    lab = alone()
    lonely, follower = pod("lonely", away_from=must(about(ZONE, "web"))), pod("web", labels=WEB)
    everywhere = ["a1", "a2", "b1", "x"]
    assert sorted(lab.feasible(lonely)) == everywhere
    lab.cluster.put_pod(on_node(follower, "a1"))
    assert lab.feasible(lonely) == ["b1", "x"]
    lab.cluster.put_pod(on_node(lonely, "b1"))
    assert sorted(lab.feasible(pod("again", labels=WEB))) == ["a1", "a2", "x"]
    lab.cluster.put_node(place("a2", "b"))
    assert sorted(lab.feasible(pod("again", labels=WEB))) == ["a1", "x"]
    lab.cluster.remove_pod("lonely")
    lab.cluster.remove_pod("web")
    assert sorted(lab.feasible(lonely)) == everywhere


def test_what_is_known_of_a_pod_does_not_outlive_the_counters() -> None:
    lab = alone(on("a1", labels=WEB))
    lab.cluster.table.pod_counters._limit_bytes = 1  # each new counter pushes the others out
    first, second = (pod(app, away_from=must(about(ZONE, app))) for app in ("web", "db"))
    label_set = lab.pending(first).labels  # what is known of pods lasts as long as this
    assert lab.feasible(first) == ["b1", "x"]
    assert len(lab.feasible(second)) == 4
    lab.cluster.remove_pod("on-a1")
    lab.cluster.put_pod(on("b1", labels=DB))
    assert len(lab.feasible(first)) == 4
    assert sorted(lab.feasible(second)) == ["a1", "a2", "x"]
    assert lab.pending(first).labels is label_set


def test_signatures_are_released() -> None:
    lab = alone(on("a1", labels=WEB))
    info = lab.pending(
        pod(labels=DB, near=should((1, about(ZONE, "web"))), away_from=must(about(HOST, "web")))
    )
    signature, labels = weakref.ref(info.signature), weakref.ref(info.labels)
    evaluator = lab.framework.evaluator
    rows = feasible_rows(evaluator, CycleState(), info)
    total_scores(evaluator, CycleState(), info, lab.cluster.table.order.rows())
    evaluator.plans.clear()
    del info, rows
    gc.collect()

    assert signature() is None
    assert labels() is None
