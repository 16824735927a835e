"""Pod disruption budgets: how many pods may be disrupted at a time."""

from __future__ import annotations

from msgspec import field

from kubesched.api.meta import ApiStruct, LabelSelector, ObjectMeta


class PodDisruptionBudgetSpec(ApiStruct, frozen=True):
    """The pods of a budget."""

    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(ApiStruct, frozen=True):
    """The remaining budget."""

    disruptions_allowed: int = 0
    #: pods whose eviction the API server has allowed, not yet counted in the budget
    disrupted_pods: dict[str, str | None] = field(default_factory=dict)


class PodDisruptionBudget(ApiStruct, frozen=True):
    """A disruption budget."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()
