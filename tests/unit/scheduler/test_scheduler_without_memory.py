"""Without memory the scheduler ends: what it knows may be half changed."""

from __future__ import annotations

import asyncio

import pytest

from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import Permit, PreBind, Reserve
from kubesched.framework.status import Status
from tests.support.embedded_scheduler import scheduler
from tests.support.waiting import eventually


class Greedy(Reserve):
    """Has no memory at the step of a cycle that its subclass names."""

    name = "Greedy"

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        raise MemoryError

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        pass


class GreedyPermit(Permit):
    name = "GreedyPermit"

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        raise MemoryError


@pytest.mark.parametrize("plugin", [Greedy, GreedyPermit])
def test_it_ends_in_the_scheduling_cycle(plugin: type[Greedy | GreedyPermit]) -> None:
    async def main() -> None:
        async with scheduler(plugin) as harness:
            harness.create_pod("p")
            with pytest.raises(ExceptionGroup) as ended:
                await asyncio.wait_for(harness._running, 20)
            assert ended.value.subgroup(MemoryError)
            assert harness.node_of("p") == ""

    asyncio.run(main())


class GreedyPreBind(PreBind):
    name = "GreedyPreBind"

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        raise MemoryError


def test_the_program_hears_of_it_in_the_binding_cycle() -> None:
    async def main() -> None:
        heard: list[BaseException | None] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _loop, context: heard.append(context.get("exception"))
        )
        async with scheduler(GreedyPreBind) as harness:
            harness.create_pod("p")
            await eventually(lambda: heard)
            assert isinstance(heard[0], MemoryError)
            assert harness.node_of("p") == ""

    asyncio.run(main())
