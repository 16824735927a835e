"""Disruption budgets, and which evictions would overdraw them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from kubesched.api import labels
from kubesched.api.labels import NOTHING, Selector
from kubesched.api.policy import PodDisruptionBudget
from kubesched.cluster.pod_info import PodInfo
from kubesched.errors import SelectorError


class Budget(Struct, frozen=True):
    """One budget, compiled."""

    selector: Selector
    allowed: int
    already_disrupted: Mapping[str, object]

    def covers(self, pod: PodInfo) -> bool:
        """Tell whether evicting a pod would draw on the budget."""
        # A budget without requirements covers no pod, and a pod without labels has no budget.
        return (
            bool(self.selector.requirements)
            and bool(pod.labels.labels)
            and self.selector.matches(pod.labels.labels)
            and pod.pod.metadata.name not in self.already_disrupted
        )


class Budgets:
    """All budgets of the cluster."""

    def __init__(self) -> None:
        #: namespace → name → budget
        self._budgets: dict[str, dict[str, Budget]] = {}
        #: the number of all changes ever made
        self.version = 0

    def put(self, budget: PodDisruptionBudget) -> None:
        """Take over a budget; one with a malformed selector covers nothing."""
        try:
            selector = labels.from_label_selector(budget.spec.selector)
        except SelectorError:
            selector = NOTHING
        self.version += 1
        self._budgets.setdefault(budget.metadata.namespace, {})[budget.metadata.name] = Budget(
            selector, budget.status.disruptions_allowed, budget.status.disrupted_pods
        )

    def remove(self, budget: PodDisruptionBudget) -> None:
        """Forget a budget."""
        self.version += 1
        namespace = budget.metadata.namespace
        in_namespace = self._budgets.get(namespace, {})
        in_namespace.pop(budget.metadata.name, None)
        if not in_namespace:
            self._budgets.pop(namespace, None)

    def split(self, pods: Iterable[PodInfo]) -> tuple[list[PodInfo], list[PodInfo]]:
        """Tell pods whose eviction would overdraw a budget from the others.

        They are taken to be evicted in the given order, each drawing on all budgets that cover it.
        """
        if not self._budgets:
            return [], list(pods)
        drawn: dict[tuple[str, str], int] = {}
        overdrawing: list[PodInfo] = []
        others: list[PodInfo] = []
        for pod in pods:
            overdraws = False
            namespace = pod.labels.namespace
            for name, budget in self._budgets.get(namespace, {}).items():
                if budget.covers(pod):
                    left = drawn.get((namespace, name), budget.allowed) - 1
                    drawn[namespace, name] = left
                    overdraws |= left < 0
            (overdrawing if overdraws else others).append(pod)
        return overdrawing, others
