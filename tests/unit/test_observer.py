"""An observer hears what the scheduler does, in the order in which it happens."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Iterable

from kubesched.cluster.pod_info import PodInfo
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.embedded.nodes import NodeTemplate
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import Permit, Reserve
from kubesched.framework.status import Status, unschedulable
from kubesched.observer import AttemptResult, ObserverPair, SchedulerObserver
from kubesched.queue.queued_pod import QueuedPod
from tests.support.embedded_scheduler import scheduler
from tests.support.waiting import eventually


class Listener(SchedulerObserver):
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def configured(self, config: SchedulerConfiguration) -> None:
        self.told.append("configured")

    def deciding(self) -> None:
        self.told.append("deciding")

    def evicting(self, victims: Iterable[PodInfo]) -> None:
        self.told.append(f"evicting {' '.join(each.pod.metadata.name for each in victims)}")

    def decided(self, profile: str, pod: QueuedPod, result: AttemptResult) -> None:
        name = pod.info.pod.metadata.name
        self.told.append(f"decided {name}: {result.node_name or result.status.code.label}")

    def raised(self, pod: QueuedPod, bug: Exception) -> None:
        self.told.append(f"raised {bug}")

    def returned(self, pod: PodInfo, status: Status) -> None:
        self.told.append(f"returned {pod.pod.metadata.name}: {status.plugin}")


def test_a_pair_notifies_both_of_everything_the_first_one_first() -> None:
    told: list[tuple[int, str]] = []

    def listener(number: int) -> SchedulerObserver:
        made = SchedulerObserver()
        for name in vars(SchedulerObserver):
            if not name.startswith("_"):
                note = functools.partial(told.append, (number, name))
                setattr(made, name, lambda *_, note=note: note())
        return made

    pair = ObserverPair(listener(1), listener(2))
    names = [name for name in vars(SchedulerObserver) if not name.startswith("_")]
    for name in names:
        getattr(pair, name)(None)

    both = [(number, name) for name in names for number in (1, 2)]
    both.remove((2, "make_cluster"))
    assert told == both


class Refuses(Permit):
    """Lets no pod be bound."""

    name = "Refuses"

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        return unschedulable("not here"), 0.0


class BreaksOnReserve(Reserve):
    """Has a bug."""

    name = "BreaksOnReserve"

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        raise RuntimeError("a bug")

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Nothing was reserved."""


def test_a_placed_pod() -> None:
    async def main() -> None:
        listener = Listener()
        async with scheduler(observer=listener) as here:
            here.create_pod("p")
            await eventually(lambda: here.node_of("p"))
            assert listener.told == ["deciding", f"decided p: {here.node_of('p')}"]

    asyncio.run(main())


def test_victims_are_told_before_the_decision_that_chose_them() -> None:
    async def main() -> None:
        listener = Listener()
        async with scheduler(nodes=0, observer=listener) as here:
            here.cluster.add_nodes(1, NodeTemplate(cpu="1"))
            here.create_pod("low")
            await eventually(lambda: here.node_of("low"))
            before = len(listener.told)
            here.cluster.create(
                {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "metadata": {"name": "high"},
                    "value": 10,
                }
            )
            here.create_pod("high", priorityClassName="high")
            await eventually(lambda: len(listener.told) >= before + 3)
            told = listener.told[before : before + 3]
            assert told == ["deciding", "evicting low", "decided high: Unschedulable"]

    asyncio.run(main())


def test_a_pod_whose_node_is_rejected_returns() -> None:
    async def main() -> None:
        listener = Listener()
        async with scheduler(Refuses, observer=listener) as here:
            here.create_pod("p")
            await eventually(lambda: len(listener.told) >= 3)
            assert listener.told[0] == "deciding"
            assert listener.told[1].startswith("decided p: ")
            assert listener.told[2] == "returned p: Refuses"
            assert here.app.cluster.assumed_count == 0

    asyncio.run(main())


def test_a_bug_in_a_plugin_that_reserves_returns_the_pod_and_is_not_raised() -> None:
    async def main() -> None:
        listener = Listener()
        async with scheduler(BreaksOnReserve, observer=listener) as here:
            here.create_pod("p")
            await eventually(lambda: "RuntimeError: a bug" in here.message("p"))
            assert "returned p: " in listener.told
            assert not any(each.startswith("raised") for each in listener.told)

    asyncio.run(main())


def test_another_configuration() -> None:
    async def main() -> None:
        listener = Listener()
        async with scheduler(observer=listener) as here:
            here.app.reconfigure(SchedulerConfiguration.default(FeatureGates.of({})))
            assert listener.told == ["configured"]

    asyncio.run(main())
