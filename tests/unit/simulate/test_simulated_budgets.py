"""Budgets in a simulation shrink with evictions and recover with replacements."""

from __future__ import annotations

from kubesched.cluster.cluster import Cluster
from kubesched.simulate.simulated_budgets import SimulatedBudgets
from tests.support.objects import budget, pod

WEB = {"app": "web"}


def allowed(cluster: Cluster) -> int:
    found = cluster.budgets.get("default", "b")
    assert found is not None
    return found.status.disruptions_allowed


def cluster_with(number: int) -> Cluster:
    cluster = Cluster()
    cluster.budgets.put(budget(allowed=number, match=WEB))
    return cluster


def test_an_eviction_uses_up_the_budget_and_one_more_violates_it() -> None:
    cluster = cluster_with(1)
    budgets = SimulatedBudgets(cluster)

    assert budgets.disrupted(pod("a", labels=WEB)) == ""
    assert allowed(cluster) == 0
    assert budgets.disrupted(pod("b", labels=WEB)) == "default/b"
    assert allowed(cluster) == 0
    cluster.budgets.validate()


def test_the_replacements_give_back_what_was_used_beyond_the_budget_too() -> None:
    cluster = cluster_with(1)
    budgets = SimulatedBudgets(cluster)
    for name in "ab":
        budgets.disrupted(pod(name, labels=WEB))

    budgets.placed(pod("a", labels=WEB))
    assert allowed(cluster) == 0, "one is still missing beyond the budget"
    budgets.placed(pod("b", labels=WEB))
    assert allowed(cluster) == 1


def test_new_pods_and_pods_of_no_budget_do_not_count() -> None:
    cluster = cluster_with(1)
    budgets = SimulatedBudgets(cluster)

    budgets.placed(pod("new", labels=WEB))
    assert budgets.disrupted(pod("other", labels={"app": "x"})) == ""
    assert allowed(cluster) == 1


def test_without_budgets_nothing_is_violated() -> None:
    assert SimulatedBudgets(Cluster()).disrupted(pod("a", labels=WEB)) == ""
