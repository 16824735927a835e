"""What extenders answer, told to an observer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from kubesched.api.core import Pod
from kubesched.errors import ClientError
from kubesched.framework.status import Status, unschedulable
from kubesched.observer import SchedulerObserver
from kubesched.scheduler.extenders import ExtenderVerdict, PodsOnNode, Victims
from kubesched.scheduler.observed_extenders import ObservedExtenders
from tests.support.objects import pod

REJECTED = {"n2": unschedulable("no licence")}
VICTIMS = {"n1": Victims([pod("victim")], 1)}


class Scripted:
    """Extenders that always say the same, or nothing."""

    has_filters, has_preemptors, has_prioritizers = True, False, True

    def __init__(self) -> None:
        self.failure: ClientError | None = None

    def _fail(self) -> None:
        if self.failure is not None:
            raise self.failure

    async def filter(self, pod: Pod, node_names: Sequence[str]) -> ExtenderVerdict:
        self._fail()
        return ExtenderVerdict(["n1"], REJECTED)

    async def prioritize(self, pod: Pod, node_names: Sequence[str]) -> dict[str, int]:
        self._fail()
        return {"n1": 7}

    async def preempt(
        self, pod: Pod, candidates: Mapping[str, Victims], *, pods_on: PodsOnNode
    ) -> dict[str, Victims]:
        self._fail()
        return VICTIMS


class Listener(SchedulerObserver):
    """Writes down what it is told of extenders."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def extenders_filtered(self, feasible: Sequence[str], rejected: Mapping[str, Status]) -> None:
        self.told.append((feasible, rejected))

    def extenders_scored(self, scores: Mapping[str, int]) -> None:
        self.told.append(scores)

    def extenders_chose_victims(self, victims: Mapping[str, tuple[Sequence[Pod], int]]) -> None:
        self.told.append(victims)

    def extenders_failed(self, message: str) -> None:
        self.told.append(message)


def ask(extenders: ObservedExtenders, question: str) -> object:
    asked = pod("p")

    async def main() -> object:
        if question == "filter":
            return await extenders.filter(asked, ["n1", "n2"])
        if question == "prioritize":
            return await extenders.prioritize(asked, ["n1"])
        return await extenders.preempt(asked, VICTIMS, pods_on=lambda _node: None)

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("question", "answer", "told"),
    [
        ("filter", ExtenderVerdict(["n1"], REJECTED), (["n1"], REJECTED)),
        ("prioritize", {"n1": 7}, {"n1": 7}),
        ("preempt", VICTIMS, {"n1": (VICTIMS["n1"].pods, 1)}),
    ],
)
def test_answers_are_passed_on_and_told(question: str, answer: object, told: object) -> None:
    listener = Listener()
    assert ask(ObservedExtenders(Scripted(), listener), question) == answer
    assert listener.told == [told]


@pytest.mark.parametrize("question", ["filter", "prioritize", "preempt"])
def test_a_failure_is_told_and_raised(question: str) -> None:
    extenders, listener = Scripted(), Listener()
    extenders.failure = ClientError("out of order")
    with pytest.raises(ClientError, match="out of order"):
        ask(ObservedExtenders(extenders, listener), question)
    assert listener.told == ["out of order"]


def test_what_extenders_can_do_is_asked_once() -> None:
    observed = ObservedExtenders(Scripted(), Listener())
    assert (observed.has_filters, observed.has_preemptors, observed.has_prioritizers) == (
        True,
        False,
        True,
    )
