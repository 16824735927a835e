"""Disruption budgets: which evictions would overdraw them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubesched.api.meta import LabelSelector, LabelSelectorRequirement
from kubesched.api.policy import PodDisruptionBudget
from kubesched.cluster.budgets import Budgets
from kubesched.cluster.pod_info import PodCompiler
from tests.support.objects import budget, pod

WEB = {"app": "web"}


def split(*given: PodDisruptionBudget, labels: Sequence[Mapping[str, str]]) -> list[str]:
    """The names of pods, p0, p1 and so on by their labels, that would overdraw a budget."""
    budgets, compiler = Budgets(), PodCompiler()
    for each in given:
        budgets.put(each)
    pods = [compiler.placed(pod(f"p{i}", labels=each)) for i, each in enumerate(labels)]
    overdrawing, others = budgets.split(pods)
    assert sorted([*overdrawing, *others], key=pods.index) == pods
    assert others == [each for each in pods if each not in overdrawing], "in the order given"
    return [each.uid for each in overdrawing]


def test_without_budgets_nothing_is_overdrawn() -> None:
    assert split(labels=[WEB, WEB]) == []


def test_evictions_draw_on_the_budget_in_their_order() -> None:
    assert split(budget(allowed=2, match=WEB), labels=[WEB] * 4) == ["p2", "p3"]
    assert split(budget(allowed=0, match=WEB), labels=[WEB]) == ["p0"]
    assert split(budget(allowed=-1, match=WEB), labels=[WEB]) == ["p0"]


def test_the_budget_that_is_overdrawn_is_named() -> None:
    budgets, compiler = Budgets(), PodCompiler()
    budgets.put(budget("one", allowed=1, match=WEB))
    budgets.put(budget("none", allowed=0, match={"x": "y"}))
    pods = [
        compiler.placed(pod(f"p{i}", labels=each)) for i, each in enumerate([WEB, {"x": "y"}, WEB])
    ]

    assert budgets.overdrawn(pods) == {"p1": "none", "p2": "one"}
    assert budgets.covering(compiler.placed(pod("both", labels={**WEB, "x": "y"}))) == [
        "one",
        "none",
    ]
    assert budgets.covering(compiler.placed(pod("other", labels={"x": "z"}))) == []


def test_each_budget_that_covers_a_pod_is_drawn_on() -> None:
    wide, narrow = (
        budget("wide", allowed=1, match=WEB),
        budget("narrow", allowed=9, match={"x": "y"}),
    )
    both = {**WEB, "x": "y"}
    assert split(wide, narrow, labels=[both, {"x": "y"}, WEB]) == ["p2"]
    assert split(narrow, wide, labels=[both, {"x": "y"}, WEB]) == ["p2"]


def test_a_pod_draws_on_no_more_budgets_once_it_overdraws_one() -> None:
    used_up, other = (
        budget("used-up", allowed=0, match=WEB),
        budget("other", allowed=1, match={"x": "y"}),
    )
    both = {**WEB, "x": "y"}
    assert split(used_up, other, labels=[both, {"x": "y"}]) == ["p0"], "p1 has the other budget"


def test_pods_without_labels_or_of_other_namespaces_are_not_covered() -> None:
    everything = LabelSelector(
        match_expressions=(LabelSelectorRequirement(key="absent", operator="DoesNotExist"),)
    )
    assert split(budget(allowed=0, selector=everything), labels=[{}, WEB]) == ["p1"]
    assert split(budget(allowed=0, match=WEB, namespace="other"), labels=[WEB]) == []


def test_a_selector_that_is_empty_absent_or_malformed_covers_nobody() -> None:
    wrong = LabelSelector(
        match_expressions=(LabelSelectorRequirement(key="app", operator="Resembles"),)
    )
    for selector in (None, LabelSelector(), wrong):
        assert split(budget(allowed=0, selector=selector), labels=[WEB]) == []


def test_a_pod_that_is_being_disrupted_already_draws_on_nothing() -> None:
    given = budget(allowed=1, match=WEB, disrupted=["p0"])
    assert split(given, labels=[WEB, WEB, WEB]) == ["p2"]


def test_a_budget_changes_and_goes() -> None:
    budgets, asking = Budgets(), [PodCompiler().placed(pod(labels=WEB))]
    old, new = budget(allowed=0, match=WEB), budget(allowed=1, match=WEB)
    budgets.put(old)
    assert budgets.split(asking) == (asking, [])
    budgets.put(new)
    assert budgets.split(asking) == ([], asking)
    budgets.put(old)
    budgets.remove(old)
    budgets.remove(old)
    assert budgets.split(asking) == ([], asking)
