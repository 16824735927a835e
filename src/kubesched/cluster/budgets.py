"""Pod disruption budgets, and the evictions that would violate them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from kubesched.api import labels
from kubesched.api.labels import NOTHING, Selector
from kubesched.api.policy import PodDisruptionBudget
from kubesched.cluster.object_store import HasMeta, NamespacedStore
from kubesched.cluster.pod_info import PodInfo
from kubesched.errors import SelectorError, require


class Budget(Struct, frozen=True):
    """A compiled budget."""

    selector: Selector
    allowed: int
    already_disrupted: Mapping[str, object]

    def covers(self, pod: PodInfo) -> bool:
        """Return whether evicting a pod counts against the budget."""
        # A budget without requirements covers no pod, and a pod without labels has no budget.
        return (
            bool(self.selector.requirements)
            and bool(pod.labels.labels)
            and self.selector.matches(pod.labels.labels)
            and pod.pod.metadata.name not in self.already_disrupted
        )


class Budgets(NamespacedStore[PodDisruptionBudget]):
    """All budgets of the cluster."""

    def __init__(self) -> None:
        super().__init__()
        #: namespace → name → budget
        self._compiled: dict[str, dict[str, Budget]] = {}

    def put(self, obj: PodDisruptionBudget) -> None:
        """Add or update a budget; one with a malformed selector covers nothing."""
        namespace, name = self.key_of(obj)
        self._compiled.setdefault(namespace, {})[name] = _compiled(obj)
        super().put(obj)

    def remove(self, obj: HasMeta) -> None:
        """Remove a budget."""
        namespace, name = self.key_of(obj)
        in_namespace = self._compiled.get(namespace, {})
        in_namespace.pop(name, None)
        if not in_namespace:
            self._compiled.pop(namespace, None)
        super().remove(obj)

    def validate(self) -> None:
        """Check each compiled budget against its object."""
        super().validate()
        known = {
            (namespace, name): budget
            for namespace, budgets in self._compiled.items()
            for name, budget in budgets.items()
        }
        fresh = {key: _compiled(obj) for key, obj in self._objects.items()}
        require(known == fresh, "compiled budgets")

    def split(self, pods: Iterable[PodInfo]) -> tuple[list[PodInfo], list[PodInfo]]:
        """Separate pods whose eviction would violate a budget from the others.

        They are taken to be evicted in the given order, each drawing on the budgets that cover it
        up to the first one that it overdraws.
        """
        if not self._compiled:
            return [], list(pods)
        drawn: dict[tuple[str, str], int] = {}
        overdrawing: list[PodInfo] = []
        others: list[PodInfo] = []
        for pod in pods:
            (others if self._overdrawn(pod, drawn) is None else overdrawing).append(pod)
        return overdrawing, others

    def covering(self, pod: PodInfo) -> list[str]:
        """Return the names of the budgets against which a pod's eviction counts."""
        budgets = self._compiled.get(pod.labels.namespace, {})
        return [name for name, budget in budgets.items() if budget.covers(pod)]

    def overdrawn(self, pods: Iterable[PodInfo]) -> dict[str, str]:
        """Return the budgets that evictions in this order would violate: uid → name."""
        drawn: dict[tuple[str, str], int] = {}
        found = ((pod.uid, self._overdrawn(pod, drawn)) for pod in pods)
        return {uid: name for uid, name in found if name is not None}

    def violations(self, units: Iterable[Iterable[PodInfo]]) -> list[int]:
        """Return how many pods of each unit would overdraw a budget, evicted in this order."""
        drawn: dict[tuple[str, str], int] = {}
        return [sum(self._overdrawn(pod, drawn) is not None for pod in pods) for pods in units]

    def _overdrawn(self, pod: PodInfo, drawn: dict[tuple[str, str], int]) -> str | None:
        """Draw on the budgets of a pod; return the first that it overdraws.

        `drawn` is what is left of those drawn on before.
        """
        namespace = pod.labels.namespace
        for name, budget in self._compiled.get(namespace, {}).items():
            if budget.covers(pod):
                left = drawn.get((namespace, name), budget.allowed) - 1
                drawn[namespace, name] = left
                if left < 0:
                    return name
        return None


def _compiled(budget: PodDisruptionBudget) -> Budget:
    try:
        selector = labels.from_label_selector(budget.spec.selector)
    except SelectorError:
        selector = NOTHING
    return Budget(selector, budget.status.disruptions_allowed, budget.status.disrupted_pods)
