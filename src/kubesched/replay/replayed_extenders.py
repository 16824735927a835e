"""Replays extenders: an attempt that calls them pauses until the recorded response is reached.

attempt ── calls ──> _Question       … entries are applied meanwhile, in recorded order …
        <── answer ── the recording's next Answered
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator, Mapping, Sequence
from typing import Final

from kubesched.api.core import Pod
from kubesched.api.meta import ObjectMeta
from kubesched.config.types import Extender
from kubesched.errors import ClientError
from kubesched.framework.status import Code, Status
from kubesched.recording.entries import Answered
from kubesched.scheduler.cycle import Decision
from kubesched.scheduler.extenders import ExtenderVerdict, PodsOnNode, Victims

FILTER, PRIORITIZE, PREEMPT = "filter", "prioritize", "preempt"
#: The outcome of an attempt that called extenders differently than in the recording.
ASKED_OTHERWISE: Final = "extenders were asked otherwise than then"


class _Question:
    """Yields to the driver of the attempt, until there is a response."""

    def __init__(self, about: str) -> None:
        self.about = about

    def __await__(self) -> Generator[_Question, Answered, Answered]:
        return (yield self)


class ReplayedExtenders:
    """Responds from the recording."""

    def __init__(self, configs: Sequence[Extender]) -> None:
        self.has_filters = any(each.filter_verb for each in configs)
        self.has_preemptors = any(each.preempt_verb for each in configs)
        self.has_prioritizers = any(each.prioritize_verb for each in configs)

    async def filter(self, pod: Pod, node_names: Sequence[str]) -> ExtenderVerdict:  # noqa: ARG002
        """Return the recorded feasible nodes."""
        said = await _Question(FILTER)
        rejected = {
            name: Status(Code(each.code), each.reasons)
            for name, each in (said.rejected or {}).items()
        }
        return ExtenderVerdict(list(said.feasible or ()), rejected)

    async def prioritize(self, pod: Pod, node_names: Sequence[str]) -> dict[str, int]:  # noqa: ARG002
        """Return the recorded scores."""
        return (await _Question(PRIORITIZE)).scores or {}

    async def preempt(
        self,
        pod: Pod,  # noqa: ARG002 (as extenders have it)
        candidates: Mapping[str, Victims],  # noqa: ARG002
        *,
        pods_on: PodsOnNode,  # noqa: ARG002
    ) -> dict[str, Victims]:
        """Return the recorded victims."""
        said = await _Question(PREEMPT)
        return {
            name: Victims([_pod(uid) for uid in each.uids], each.violations)
            for name, each in (said.victims or {}).items()
        }


def _pod(uid: str) -> Pod:
    return Pod(metadata=ObjectMeta(uid=uid))


class Attempt:
    """An attempt at a pod that may pause for responses."""

    def __init__(self, cycle: Coroutine[_Question, Answered, Decision]) -> None:
        self._cycle = cycle
        self._question: _Question | None = None
        #: None until there is one, or if the calls differ from the recorded ones
        self.decision: Decision | None = None
        self._go_on(None)

    def answer(self, said: Answered) -> None:
        """Continue with a response, if it answers the call."""
        question, self._question = self._question, None
        if question is not None and (said.error or question.about == _subject(said)):
            self._go_on(said)

    def close(self) -> None:
        """Abandon an attempt that still waits for a response."""
        self._cycle.close()

    def _go_on(self, said: Answered | None) -> None:
        try:
            if said is not None and said.error:
                self._question = self._cycle.throw(ClientError(said.error))
            else:
                self._question = self._cycle.send(said)  # type: ignore[arg-type] # None begins
        except StopIteration as ended:
            self.decision = ended.value


def _subject(said: Answered) -> str:
    if said.scores is not None:
        return PRIORITIZE
    return FILTER if said.feasible is not None else PREEMPT
