"""Notifies the observer of extenders' responses: a replay cannot get them again."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import TypeVar

from kubesched.api.core import Pod
from kubesched.errors import ClientError
from kubesched.observer import SchedulerObserver
from kubesched.scheduler.extenders import Extenders, ExtenderVerdict, PodsOnNode, Victims

T = TypeVar("T")


class ObservedExtenders:
    """Calls the extenders, and passes their responses to the observer."""

    def __init__(self, extenders: Extenders, observer: SchedulerObserver) -> None:
        self._extenders = extenders
        self._observer = observer
        self.has_filters = extenders.has_filters
        self.has_preemptors = extenders.has_preemptors
        self.has_prioritizers = extenders.has_prioritizers

    async def filter(self, pod: Pod, node_names: Sequence[str]) -> ExtenderVerdict:
        """Have the extenders filter nodes."""
        verdict = await self._answer(self._extenders.filter(pod, node_names))
        self._observer.extenders_filtered(verdict.feasible, verdict.rejected)
        return verdict

    async def prioritize(self, pod: Pod, node_names: Sequence[str]) -> dict[str, int]:
        """Have the extenders score nodes."""
        scores = await self._answer(self._extenders.prioritize(pod, node_names))
        self._observer.extenders_scored(scores)
        return scores

    async def preempt(
        self, pod: Pod, candidates: Mapping[str, Victims], *, pods_on: PodsOnNode
    ) -> dict[str, Victims]:
        """Have the extenders filter candidates for preemption."""
        victims = await self._answer(self._extenders.preempt(pod, candidates, pods_on=pods_on))
        self._observer.extenders_chose_victims(
            {name: (each.pods, each.num_pdb_violations) for name, each in victims.items()}
        )
        return victims

    async def _answer(self, asked: Awaitable[T]) -> T:
        try:
            return await asked
        except ClientError as failed:
            self._observer.extenders_failed(str(failed))
            raise
