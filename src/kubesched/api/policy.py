"""Disruption budgets: how many pods of a kind may be missing at a time."""

from __future__ import annotations

from msgspec import field

from kubesched.api.meta import ApiStruct, LabelSelector, ObjectMeta


class PodDisruptionBudgetSpec(ApiStruct, frozen=True):
    """Which pods a budget is about."""

    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(ApiStruct, frozen=True):
    """How much of the budget is left."""

    disruptions_allowed: int = 0
    #: pods whose eviction the API server has let pass, and which the budget does not show yet
    disrupted_pods: dict[str, str | None] = field(default_factory=dict)


class PodDisruptionBudget(ApiStruct, frozen=True):
    """A disruption budget."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()
