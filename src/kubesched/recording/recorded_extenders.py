"""Extenders whose answers are told to a journal: nobody can ask them the same again."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from kubesched.api.core import Pod
from kubesched.errors import ClientError
from kubesched.framework.status import Status
from kubesched.recording.entries import Answered, NodeVictims, Reason
from kubesched.recording.journal import Journal

T = TypeVar("T")


class Verdict(Protocol):
    """Which nodes the extenders left, and why not the others."""

    @property
    def feasible(self) -> list[str]:
        """Nodes that are left."""

    @property
    def rejected(self) -> dict[str, Status]:
        """Why not the others."""


class RecordedExtenders:
    """Asks the extenders, and tells what they say."""

    def __init__(self, extenders: Any, journal: Journal) -> None:  # noqa: ANN401 (of a layer above)
        self._extenders = extenders
        self._told = journal
        self.has_filters: bool = extenders.has_filters
        self.has_preemptors: bool = extenders.has_preemptors
        self.has_prioritizers: bool = extenders.has_prioritizers

    async def filter(self, pod: Pod, node_names: Sequence[str]) -> Verdict:
        """Ask the extenders which nodes suit the pod."""
        verdict: Verdict = await self._answer(self._extenders.filter(pod, node_names))
        rejected = {
            name: Reason(status.code.value, status.reasons)
            for name, status in verdict.rejected.items()
        }
        self._told.answered(Answered(feasible=tuple(verdict.feasible), rejected=rejected))
        return verdict

    async def prioritize(self, pod: Pod, node_names: Sequence[str]) -> dict[str, int]:
        """Ask the extenders to score nodes."""
        scores: dict[str, int] = await self._answer(self._extenders.prioritize(pod, node_names))
        self._told.answered(Answered(scores=dict(scores)))
        return scores

    async def preempt(self, pod: Pod, candidates: Mapping[str, Any], **more: Any) -> dict[str, Any]:  # noqa: ANN401
        """Ask the extenders who may be evicted."""
        victims: dict[str, Any] = await self._answer(
            self._extenders.preempt(pod, candidates, **more)
        )
        told = {
            name: NodeVictims(
                tuple(victim.metadata.uid for victim in each.pods), each.num_pdb_violations
            )
            for name, each in victims.items()
        }
        self._told.answered(Answered(victims=told))
        return victims

    async def _answer(self, asked: Awaitable[T]) -> T:
        try:
            return await asked
        except ClientError as failed:
            self._told.answered(Answered(error=str(failed)))
            raise
