"""Attempts that a plugin pauses: other tasks run, and the attempt is made again."""

from __future__ import annotations

import asyncio

import pytest

from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.attempt_error import AttemptPausedError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import Filter
from kubesched.framework.registry import PluginContext
from kubesched.framework.verdict import ALL_PASS, Verdict
from kubesched.scheduler import scheduler as module
from tests.support.embedded_scheduler import scheduler
from tests.support.waiting import eventually


class Thinker(Filter):
    """Needs several attempts, as long as it may pause."""

    name = "Thinker"
    attempts: list[bool]
    pauses = 0

    @classmethod
    def create(cls, context: PluginContext) -> Thinker:
        return cls()

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Verdict:
        Thinker.attempts.append(state.may_pause)
        if state.may_pause and len(Thinker.attempts) <= Thinker.pauses:
            raise AttemptPausedError("thinking")
        return ALL_PASS


def attempts(pauses: int) -> list[bool]:
    Thinker.attempts, Thinker.pauses = [], pauses

    async def run() -> None:
        async with scheduler(Thinker) as harness:
            harness.create_pod("p")
            await eventually(lambda: harness.node_of("p"))

    asyncio.run(run())
    return Thinker.attempts


def test_an_attempt_is_made_again_until_the_plugin_is_done() -> None:
    assert attempts(3)[:4] == [True] * 4


def test_in_the_end_it_is_made_in_one_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSES_S", 0.0)
    assert attempts(10**9)[0] is False
