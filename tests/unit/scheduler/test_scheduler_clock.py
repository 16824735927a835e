"""The system's clock is set while pods wait: they wait as long as they would have."""

from __future__ import annotations

import asyncio
import time

import pytest

from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import Reserve
from kubesched.framework.status import SUCCESS, Status, error
from tests.support.embedded_scheduler import scheduler
from tests.support.waiting import eventually


class SetClock:
    """The system's clocks, one of which can be set."""

    monotonic = staticmethod(time.monotonic)

    def __init__(self) -> None:
        self.off_s = 0.0

    def time(self) -> float:
        return time.time() + self.off_s


class FailsOnce(Reserve):
    """An error at the first attempt at each pod."""

    name = "FailsOnce"

    def __init__(self) -> None:
        self._failed: set[str] = set()

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        if pod.uid in self._failed:
            return SUCCESS
        self._failed.add(pod.uid)
        return error("not yet")

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        pass


@pytest.mark.parametrize("jump_s", [-3600.0, 3600.0])
def test_a_backoff_ends_in_time_though_the_clock_was_set(jump_s: float) -> None:
    async def main() -> None:
        clock = SetClock()
        async with scheduler(FailsOnce, clock=clock) as harness:
            harness.create_pod("p")
            await eventually(lambda: "not yet" in harness.message("p"))
            clock.off_s = jump_s
            await eventually(lambda: harness.node_of("p"))
            waited = "scheduler_pod_scheduling_sli_duration_seconds_sum"
            text = harness.metrics.render().decode()
            (line,) = (each for each in text.splitlines() if each.startswith(waited))
            assert 0 < float(line.rpartition(" ")[2]) < 60

    asyncio.run(main())
