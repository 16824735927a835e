"""Terms between pods, compiled: which pods they are about."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.api.core import (
    Affinity,
    NodeAffinity,
    PodAffinity,
    PodAffinityTerm,
    WeightedPodAffinityTerm,
)
from kubesched.api.meta import LabelSelector, LabelSelectorRequirement
from kubesched.cluster.affinity_terms import NO_TERMS, AffinityTerm, compile_terms

WEB = LabelSelector(match_labels={"app": "web"})


def compiled(**term: Any) -> AffinityTerm:
    required = (PodAffinityTerm(topology_key="zone", **{"label_selector": WEB, **term}),)
    affinity = PodAffinity(required_during_scheduling_ignored_during_execution=required)
    return compile_terms(Affinity(pod_affinity=affinity), "own").required[0]


TEAM_A = {"team": "a"}
SELECTED = {"namespace_selector": LabelSelector(match_labels=TEAM_A)}
#: what a term says, and in which of four namespaces it looks: its own, one that is listed, one of
#: team a, another
SCOPES: dict[str, tuple[dict[str, Any], list[bool]]] = {
    "nothing": ({}, [True, False, False, False]),
    "a list": ({"namespaces": ("listed",)}, [False, True, False, False]),
    "a selector": (SELECTED, [False, False, True, False]),
    "both": ({"namespaces": ("listed",), **SELECTED}, [False, True, True, False]),
    "an empty selector": ({"namespace_selector": LabelSelector()}, [True, True, True, True]),
    "a list and an empty selector": (
        {"namespaces": ("listed",), "namespace_selector": LabelSelector()},
        [True, True, True, True],
    ),
}


@pytest.mark.parametrize(("said", "about"), SCOPES.values(), ids=SCOPES.keys())
def test_in_which_namespaces_a_term_looks(said: dict[str, Any], about: list[bool]) -> None:
    term = compiled(**said)
    namespaces = {"own": {}, "listed": {}, "selected": TEAM_A, "other": {"team": "b"}}
    assert [
        term.is_about({"app": "web"}, namespace=name, namespace_labels=labels)
        for name, labels in namespaces.items()
    ] == about


@pytest.mark.parametrize(
    ("selector", "web", "unlabelled"),
    [(WEB, True, False), (LabelSelector(), True, True), (None, False, False)],
    ids=["labels", "empty", "none"],
)
def test_which_pods_a_term_is_about(
    selector: LabelSelector | None, web: bool, unlabelled: bool
) -> None:
    term = compiled(label_selector=selector)
    assert term.is_about({"app": "web"}, namespace="own", namespace_labels={}) is web
    assert term.is_about({}, namespace="own", namespace_labels={}) is unlabelled


def test_equal_terms_are_one() -> None:
    assert compiled() == compiled()
    assert hash(compiled()) == hash(compiled())
    assert compiled() != compiled(namespaces=("listed",))


def test_the_weight_of_what_is_disliked_is_negative() -> None:
    term = PodAffinityTerm(topology_key="zone", label_selector=WEB)
    liked = WeightedPodAffinityTerm(weight=3, pod_affinity_term=term)
    preferred = PodAffinity(preferred_during_scheduling_ignored_during_execution=(liked,))
    terms = compile_terms(Affinity(pod_affinity=preferred, pod_anti_affinity=preferred), "own")
    assert [each.weight for each in terms.preferred] == [3, -3]
    assert terms.any


@pytest.mark.parametrize("affinity", [None, Affinity(), Affinity(node_affinity=NodeAffinity())])
def test_pods_without_terms_share_nothing_at_all(affinity: Affinity | None) -> None:
    assert compile_terms(affinity, "own") is NO_TERMS
    assert not NO_TERMS.any


def test_a_malformed_term_is_remembered_instead_of_all_terms() -> None:
    wrong = LabelSelector(
        match_expressions=(LabelSelectorRequirement(key="app", operator="Resembles"),)
    )
    terms = (
        PodAffinityTerm(topology_key="zone", label_selector=WEB),
        PodAffinityTerm(topology_key="zone", label_selector=wrong),
    )
    affinity = PodAffinity(required_during_scheduling_ignored_during_execution=terms)
    found = compile_terms(Affinity(pod_anti_affinity=affinity), "own")
    assert "Resembles" in found.error
    assert not found.any
