"""Disruption budgets in a simulation: what they allow changes as pods go and come again.

    pod evicted, or its node lost ──> one disruption less is allowed
    its replacement runs ───────────> one more

The disruption controller does this. Without it, a scheduler that preempts for many pods would take
the same few allowed disruptions for granted each time.
"""

from __future__ import annotations

from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.cluster.cluster import Cluster
from kubesched.errors import ObjectError


class SimulatedBudgets:
    """Keeps the status of budgets up to date."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._store = cluster.budgets
        #: (namespace, name) → disruptions that are left, below 0 once a budget is violated
        self._left: dict[tuple[str, str], int] = {}
        #: full name of a pod that went → the budgets that count it
        self._missing: dict[tuple[str, str], list[str]] = {}

    def disrupted(self, pod: Pod) -> str:
        """Count a pod that has to leave its node; return a budget that this violates, or ""."""
        namespace, violated = pod.metadata.namespace, ""
        for name in self._covering(pod):
            if self._change(namespace, name, -1) < 0:
                violated = violated or f"{namespace}/{name}"
            self._missing.setdefault((namespace, pod.metadata.name), []).append(name)
        return violated

    def placed(self, pod: Pod) -> None:
        """Count a pod that runs, if it replaces one that had to leave."""
        key = pod.metadata.namespace, pod.metadata.name
        for name in self._missing.pop(key, ()):
            self._change(pod.metadata.namespace, name, +1)

    def _covering(self, pod: Pod) -> list[str]:
        try:
            return self._store.covering(self._cluster.compiler.pending(pod)) if self._store else []
        except ObjectError:
            return []  # it was never on a node

    def _change(self, namespace: str, name: str, by: int) -> int:
        budget = self._store.get(namespace, name)
        if budget is None:
            return 0
        allowed = budget.status.disruptions_allowed
        left = self._left[namespace, name] = self._left.get((namespace, name), allowed) + by
        status = replace(budget.status, disruptions_allowed=max(left, 0))
        self._store.put(replace(budget, status=status))
        return left
