"""Reports: the newest one counts, a few at a time, and never about a pod that has a node."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.framework.status import error, unschedulable
from kubesched.scheduler.reports import AT_ONCE, StatusReports
from tests.support.objects import on_node, pod


class SlowApi:
    """An API server whose answers come when the test wants them to."""

    def __init__(self) -> None:
        self.under_way = 0
        self.most = 0
        self.told: list[tuple[str, str, str, str | None]] = []
        self.gate = asyncio.Event()

    async def report_unschedulable(
        self, pod: Pod, *, reason: str, message: str, nominated_node: str | None
    ) -> None:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await self.gate.wait()
        self.under_way -= 1
        self.told.append((pod.metadata.name, reason, message, nominated_node))


class Bench:
    def __init__(self, *pods: Pod) -> None:
        self.api = SlowApi()
        self.pods = {each.metadata.name: each for each in pods}
        self.reports = StatusReports(self.api, lambda _, name: self.pods.get(name))  # type: ignore[arg-type]

    async def finish(self) -> list[tuple[str, str, str, str | None]]:
        self.api.gate.set()
        await self.reports.drain(5)
        assert len(self.reports) == 0
        return self.api.told


def test_a_rejection_and_an_error_have_their_own_reasons() -> None:
    async def run() -> None:
        bench = Bench(pod("a"), pod("b"))
        bench.reports.submit(bench.pods["a"], unschedulable("no room"), "n1")
        bench.reports.submit(bench.pods["b"], error("a bug"), "")

        assert await bench.finish() == [
            ("a", "Unschedulable", "no room", "n1"),
            ("b", "SchedulerError", "a bug", ""),
        ]

    asyncio.run(run())


def test_only_a_few_are_under_way_at_a_time() -> None:
    async def run() -> None:
        bench = Bench(*(pod(f"p{number}") for number in range(30)))
        for each in bench.pods.values():
            bench.reports.submit(each, unschedulable("no"), None)
        await asyncio.sleep(0)
        assert bench.api.under_way == AT_ONCE

        assert len(await bench.finish()) == 30
        assert bench.api.most == AT_ONCE

    asyncio.run(run())


def test_of_several_reports_that_wait_the_newest_is_sent_with_the_nomination() -> None:
    async def run() -> None:
        bench = Bench(pod("a"))
        for number in range(5):
            nominated = "n1" if number == 2 else None
            bench.reports.submit(bench.pods["a"], unschedulable(f"no {number}"), nominated)
            await asyncio.sleep(0)

        told = await bench.finish()
        assert [message for _, _, message, _ in told] == ["no 0", "no 4"]
        assert told[-1][3] == "n1"

    asyncio.run(run())


def test_reports_about_one_pod_keep_their_order() -> None:
    async def run() -> None:
        bench = Bench(pod("a"))
        bench.reports.submit(bench.pods["a"], unschedulable("first"), None)
        await asyncio.sleep(0)
        bench.reports.submit(bench.pods["a"], unschedulable("second"), None)
        await asyncio.sleep(0)
        assert bench.api.under_way == 1

        assert [message for _, _, message, _ in await bench.finish()] == ["first", "second"]

    asyncio.run(run())


def test_a_pod_that_is_bound_gone_or_another_one_is_told_nothing() -> None:
    async def run() -> None:
        bench = Bench(pod("bound"), pod("gone"), pod("again"))
        for each in list(bench.pods.values()):
            bench.reports.submit(each, unschedulable("no"), None)
        bench.pods["bound"] = on_node(bench.pods["bound"], "n1")
        del bench.pods["gone"]
        again = bench.pods["again"]
        bench.pods["again"] = replace(again, metadata=replace(again.metadata, uid="other"))

        assert await bench.finish() == []

    asyncio.run(run())


def test_draining_gives_up_what_takes_too_long() -> None:
    async def run() -> None:
        bench = Bench(pod("a"))
        bench.reports.submit(bench.pods["a"], unschedulable("no"), None)

        await bench.reports.drain(0.05)

        assert bench.api.told == []

    asyncio.run(run())
