"""Extenders in an attempt at a group: their answers are collected between attempts, not within.

    attempt ──> an answer is missing ──> undone; asked ──> the same attempt again ──> …

An attempt at a group is one step in which members are placed hypothetically, so nothing else may
happen before it is undone. It is repeated with the same random numbers, and comes to the same
question and then further, until nothing is missing. A request that was answered is not sent again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Hashable, Mapping, Sequence
from typing import Any, TypeVar

from kubesched.api.core import Pod
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import PodInfo
from kubesched.errors import ClientError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.runtime import Framework
from kubesched.scheduler.cycle import Decision, SchedulingCycle
from kubesched.scheduler.extended_cycle import ExtendedCycle
from kubesched.scheduler.extenders import Extenders, ExtenderVerdict, PodsOnNode, Victims

T = TypeVar("T")


class MissingAnswerError(BaseException):
    """An attempt cannot continue before the extenders have responded.

    No plugin's bug: guards of plugins, which may be on the way, let it pass.
    """

    def __init__(self, key: Hashable, ask: Callable[[], Awaitable[Any]]) -> None:
        super().__init__(f"not answered yet: {key}")
        self.key = key
        self.ask = ask


class CollectedAnswers:
    """Answers of extenders in one attempt at a group, and who gives them."""

    def __init__(self, extenders: Extenders) -> None:
        self._extenders = extenders
        self._answers: dict[Hashable, object] = {}
        self.has_filters = extenders.has_filters
        self.has_preemptors = extenders.has_preemptors
        self.has_prioritizers = extenders.has_prioritizers

    async def collect(self, missing: MissingAnswerError) -> None:
        """Ask what an attempt needs to know."""
        try:
            self._answers[missing.key] = await missing.ask()
        except ClientError as failed:
            self._answers[missing.key] = failed

    async def filter(self, pod: Pod, node_names: Sequence[str]) -> ExtenderVerdict:
        """Return which nodes suit the pod."""
        key = "filter", pod.metadata.uid, tuple(node_names)
        return self._answer(key, lambda: self._extenders.filter(pod, node_names))

    async def prioritize(self, pod: Pod, node_names: Sequence[str]) -> dict[str, int]:
        """Return what extenders give to nodes."""
        key = "prioritize", pod.metadata.uid, tuple(node_names)
        return self._answer(key, lambda: self._extenders.prioritize(pod, node_names))

    async def preempt(
        self,
        pod: Pod,  # noqa: ARG002 (the protocol's)
        candidates: Mapping[str, Victims],  # noqa: ARG002 (the protocol's)
        *,
        pods_on: PodsOnNode,  # noqa: ARG002 (the protocol's)
    ) -> dict[str, Victims]:
        """Narrow nothing down: it is for the group to preempt others."""
        raise LookupError("members of groups do not preempt others")

    def _answer(self, key: Hashable, ask: Callable[[], Awaitable[T]]) -> T:
        if key not in self._answers:
            raise MissingAnswerError(key, ask)
        answer: Any = self._answers[key]
        if isinstance(answer, ClientError):
            raise answer
        found: T = answer
        return found


class AnsweredMembers:
    """Decides about members with the answers that were collected."""

    def __init__(self, cycle: SchedulingCycle, cluster: Cluster, answers: CollectedAnswers) -> None:
        self._cycle = ExtendedCycle(cycle, cluster, answers)

    def decide(self, framework: Framework, state: CycleState, pod: PodInfo) -> Decision:
        """Choose a node for a member; raises MissingAnswerError if an answer is missing."""
        return _at_once(self._cycle.schedule_member(framework, state, pod))


def _at_once(work: Coroutine[Any, Any, T]) -> T:
    """Return what a coroutine returns that never waits."""
    try:
        work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    raise RuntimeError("an attempt at a group must not wait")
