"""Binding: how many pods are bound at a time, and who waits."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import pytest

from kubesched.api.core import Pod
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import Bind, Permit, PreBind
from kubesched.framework.status import SKIP, SUCCESS, Code, Status
from kubesched.scheduler import binding
from kubesched.scheduler.api_calls import ApiCalls
from tests.support.embedded_scheduler import scheduler
from tests.support.waiting import eventually

LIMIT, FEW = 3, 2


@pytest.fixture(autouse=True)
def limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binding, "MAX_IN_FLIGHT", LIMIT)
    monkeypatch.setattr(binding, "RESUME_BELOW", FEW)
    TakesItsTime.at_work = 0


class TakesItsTime(Bind):
    """Leaves the binding to the next plugin, when the test says so."""

    name = "TakesItsTime"
    go_on: ClassVar[asyncio.Semaphore]
    at_work: ClassVar[int]

    async def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        TakesItsTime.at_work += 1
        await TakesItsTime.go_on.acquire()
        TakesItsTime.at_work -= 1
        return SKIP


def let_go(pods: int) -> None:
    for _ in range(pods):
        TakesItsTime.go_on.release()


class AllTogether(Permit):
    """Lets nobody go before all are there."""

    name = "AllTogether"
    arrived: ClassVar[list[str]] = []

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        AllTogether.arrived.append(pod.pod.metadata.name)
        return Status(Code.WAIT), 60.0


class HasWork(PreBind):
    """Has nothing to write, but says that it does."""

    name = "HasWork"
    done: ClassVar[list[str]] = []

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        return SUCCESS

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        HasWork.done.append(pod.pod.metadata.name)
        return SUCCESS


class WaitsForOthers(PreBind):
    """Says when the test lets it."""

    name = "WaitsForOthers"
    go_on: ClassVar[asyncio.Event]
    at_work: ClassVar[int] = 0

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        return SUCCESS

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        WaitsForOthers.at_work += 1
        await WaitsForOthers.go_on.wait()
        WaitsForOthers.at_work -= 1
        return SUCCESS


def profile(*, permit: bool, pre_bind: str = "") -> dict[str, Any]:
    first = {"disabled": [{"name": "*"}]}
    binders = [{"name": "TakesItsTime"}, {"name": "DefaultBinder"}]
    plugins: dict[str, Any] = {"bind": {**first, "enabled": binders}}
    if permit:
        plugins["permit"] = {"enabled": [{"name": "AllTogether"}]}
    if pre_bind:
        plugins["preBind"] = {"enabled": [{"name": pre_bind}]}
    return {"schedulerName": "default-scheduler", "plugins": plugins}


def test_the_next_decision_waits_while_many_are_being_bound() -> None:
    async def main() -> None:
        TakesItsTime.go_on = asyncio.Semaphore(0)
        async with scheduler(TakesItsTime, profiles=[profile(permit=False)]) as harness:
            names = [f"p{number}" for number in range(2 * LIMIT)]
            for name in names:
                harness.create_pod(name)
            await eventually(lambda: TakesItsTime.at_work == LIMIT)
            # However long it takes, and however often the loop turns for other reasons.
            await asyncio.sleep(1.2)
            assert TakesItsTime.at_work == LIMIT
            assert harness.app.cluster.assumed_count <= LIMIT + 1
            # It has turned since: nobody takes a loop that waits for one that is stuck.
            await eventually(lambda: harness.app.engine.progress.silent_s < 1)
            let_go(len(names))
            await eventually(lambda: all(map(harness.node_of, names)))

    asyncio.run(main())


def test_the_next_ones_are_decided_in_a_row() -> None:
    async def main() -> None:
        TakesItsTime.go_on = asyncio.Semaphore(0)
        async with scheduler(TakesItsTime, profiles=[profile(permit=False)]) as harness:
            names = [f"p{number}" for number in range(2 * LIMIT)]
            for name in names:
                harness.create_pod(name)
            await eventually(lambda: TakesItsTime.at_work == LIMIT)
            let_go(1)
            await eventually(lambda: TakesItsTime.at_work == FEW)
            await asyncio.sleep(0.2)  # the loop has turned many times since
            assert TakesItsTime.at_work == FEW, "there is room for one, and that is not enough"
            let_go(1)
            await eventually(lambda: TakesItsTime.at_work == LIMIT)
            let_go(len(names))
            await eventually(lambda: all(map(harness.node_of, names)))

    asyncio.run(main())


def test_pods_that_wait_for_permission_do_not_count() -> None:
    """Others may have to come before they get it."""

    async def main() -> None:
        TakesItsTime.go_on = asyncio.Semaphore(2 * LIMIT)
        AllTogether.arrived.clear()
        async with scheduler(TakesItsTime, AllTogether, profiles=[profile(permit=True)]) as harness:
            names = [f"p{number}" for number in range(2 * LIMIT)]
            for name in names:
                harness.create_pod(name)
            await eventually(lambda: sorted(AllTogether.arrived) == names)
            await eventually(lambda: all(map(harness.nominated_node_of, names)))
            for waiting in list(harness.app.engine.waiting):
                waiting.allow("AllTogether")
            await eventually(lambda: all(map(harness.node_of, names)))

    asyncio.run(main())


@pytest.mark.parametrize(("rests_after_s", "at_work"), [(60.0, LIMIT), (0.05, 2 * LIMIT)])
def test_pods_in_pre_bind_count_until_they_wait_for_others(
    monkeypatch: pytest.MonkeyPatch, rests_after_s: float, at_work: int
) -> None:
    """At first they write, which takes connections; then they may wait for minutes."""

    async def main() -> None:
        TakesItsTime.go_on = asyncio.Semaphore(2 * LIMIT)
        WaitsForOthers.go_on, WaitsForOthers.at_work = asyncio.Event(), 0
        monkeypatch.setattr(binding, "REST_AFTER_S", rests_after_s)
        profiles = [profile(permit=False, pre_bind="WaitsForOthers")]
        async with scheduler(TakesItsTime, WaitsForOthers, profiles=profiles) as harness:
            names = [f"p{number}" for number in range(2 * LIMIT)]
            for name in names:
                harness.create_pod(name)
            await eventually(lambda: WaitsForOthers.at_work == at_work)
            await asyncio.sleep(0.5)  # the loop has turned many times since
            assert WaitsForOthers.at_work == at_work
            WaitsForOthers.go_on.set()
            await eventually(lambda: all(map(harness.node_of, names)))

    asyncio.run(main())


def test_a_nomination_is_written_beside_a_long_pre_bind_and_before_the_binding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After the binding it would stay: the API server clears nominations when it binds."""

    async def main() -> None:
        TakesItsTime.go_on = asyncio.Semaphore(1)
        WaitsForOthers.go_on, WaitsForOthers.at_work = asyncio.Event(), 0
        monkeypatch.setattr(binding, "REST_AFTER_S", 0.05)
        nominate, asked, answered = ApiCalls.nominate, asyncio.Event(), asyncio.Event()

        async def late(calls: ApiCalls, *about: Any) -> None:
            asked.set()
            await answered.wait()
            await nominate(calls, *about)

        monkeypatch.setattr(ApiCalls, "nominate", late)
        profiles = [profile(permit=False, pre_bind="WaitsForOthers")]
        async with scheduler(TakesItsTime, WaitsForOthers, profiles=profiles) as harness:
            harness.create_pod("p")
            await eventually(lambda: WaitsForOthers.at_work == 1)
            await asyncio.wait_for(asked.wait(), 10)
            WaitsForOthers.go_on.set()
            await eventually(lambda: WaitsForOthers.at_work == 0)
            assert TakesItsTime.go_on.locked() is False, "Bind has not begun"
            answered.set()
            await eventually(lambda: harness.node_of("p"))
            await eventually(lambda: not harness.nominated_node_of("p"))

    asyncio.run(main())


def test_a_pod_with_a_short_pre_bind_is_not_nominated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody would have the time to act on it."""

    async def main() -> None:
        TakesItsTime.go_on = asyncio.Semaphore(1)
        HasWork.done.clear()
        asked: list[str] = []

        async def nominate(calls: ApiCalls, pod: Pod, node_name: str) -> None:
            asked.append(pod.metadata.name)

        monkeypatch.setattr(ApiCalls, "nominate", nominate)
        profiles = [profile(permit=False, pre_bind="HasWork")]
        async with scheduler(TakesItsTime, HasWork, profiles=profiles) as harness:
            harness.create_pod("p")
            await eventually(lambda: harness.node_of("p"))
        assert HasWork.done == ["p"]
        assert asked == []

    asyncio.run(main())
