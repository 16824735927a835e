"""The queue that checks itself: pods that fit and that nothing woke."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from kubesched.clock import VirtualClock
from kubesched.logs import klog_line
from kubesched.logs.formats import FIELDS
from kubesched.queue.backoff import Backoff
from kubesched.queue.queued_pod import QueuedPod
from kubesched.queue.scheduling_queue import SchedulingQueue
from kubesched.scheduler.queue_check import IDLE_PERIOD_S, PAUSE_S, PERIOD_S, QueueCheck
from tests.support.embedded_scheduler import scheduler
from tests.support.objects import node, pod
from tests.support.queueing import sort_key
from tests.support.scheduling import Lab
from tests.support.waiting import eventually


class Bench:
    """A cluster, and a queue to which nobody tells what happens."""

    def __init__(self, *, seconds_per_look: float = 0.0) -> None:
        self.lab = Lab(node("small", cpu="1"))
        self.gated: set[str] = set()
        self.queue = SchedulingQueue(
            clock=VirtualClock(1000.0),
            sort_key=sort_key,
            gate=lambda each: "Gate" if each.info.uid in self.gated else "",
            registrations={},
            backoff=Backoff(),
        )
        self.clock = VirtualClock()
        evaluator: Any = self.lab.framework.evaluator
        look = evaluator.look

        def look_slowly(*question: Any) -> Any:
            self.clock.advance(seconds_per_look)
            return look(*question)

        evaluator.look = look_slowly
        self.check = QueueCheck(
            self.queue,
            self.lab.cluster,
            {"default-scheduler": self.lab.framework},
            timer=self.clock.monotonic,
            share=0.01,
        )

    def park(self, name: str, *, cpu: str = "4", filtered: bool = True) -> None:
        """Have a pod that was tried in vain: no node would do, or the chosen one was refused."""
        self.queue.add(self.lab.pending(pod(name, cpu=cpu)))
        popped = self.queue.pop()
        assert popped is not None
        popped.unschedulable_plugins = {"NodeResourcesFit"}
        popped.filtered = filtered
        self.queue.requeue(popped)

    def silently_add_a_large_node(self) -> None:
        self.lab.cluster.put_node(node("large", cpu="8"))

    def silently_change_a_node(self) -> None:
        self.lab.cluster.put_node(node("small", cpu="1", labels={"any": "change"}))

    def woken(self) -> list[str]:
        """Return who can be popped now."""
        return [each.info.uid for each in self.pop_all()]

    def pop_all(self) -> list[QueuedPod]:
        popped: list[QueuedPod] = []
        while (each := self.queue.pop()) is not None:
            popped.append(each)
        return popped


def test_a_pod_that_fits_and_was_not_woken_is_tried_at_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench()
    bench.park("a")
    bench.silently_add_a_large_node()
    with caplog.at_level(logging.WARNING):
        bench.check.step(1.0)
    assert bench.woken() == ["a"]
    assert bench.check.missed == {"NodeResourcesFit": 1}
    (line,) = (klog_line(each.getMessage(), **vars(each)[FIELDS]) for each in caplog.records)
    assert line == (
        '"Pod fits but no event woke it, trying it now" '
        'pod="default/a" rejectedBy=["NodeResourcesFit"] feasibleNodes=1'
    )


def test_it_seldom_wakes_while_no_pod_is_parked() -> None:
    bench = Bench()
    assert bench.check.period_s == IDLE_PERIOD_S
    bench.park("a")
    assert bench.check.period_s == PERIOD_S


def test_a_pod_that_does_not_fit_stays_where_it_is() -> None:
    bench = Bench()
    bench.park("a")
    bench.check.step(1.0)
    assert bench.woken() == []
    assert (bench.check.checked, dict(bench.check.missed)) == (1, {})


def test_of_pods_that_ask_the_same_one_is_evaluated_and_one_is_woken() -> None:
    bench = Bench()
    for name in ("a", "b", "c"):
        bench.park(name)
    bench.park("other", cpu="5")
    bench.check.step(1.0)
    assert bench.check.checked == 2
    bench.silently_add_a_large_node()
    bench.check.step(1.0)
    assert bench.woken() == ["a", "other"]
    bench.silently_change_a_node()
    bench.check.step(1.0)
    assert bench.woken() == ["b"]


def test_pods_that_were_refused_the_node_chosen_for_them_are_left_alone() -> None:
    """The same plugin may filter and reserve: why it refused is not known here."""
    bench = Bench()
    bench.park("a", filtered=False)
    bench.silently_add_a_large_node()
    bench.check.step(1.0)
    assert (bench.woken(), bench.check.checked) == ([], 0)


def test_gated_pods_are_left_alone() -> None:
    bench = Bench()
    bench.gated.add("a")
    bench.queue.add(bench.lab.pending(pod("a", cpu="1")))
    bench.check.step(1.0)
    assert (bench.woken(), bench.check.checked) == ([], 0)


def test_a_step_ends_when_its_budget_is_spent_and_the_next_goes_on_from_there() -> None:
    bench = Bench(seconds_per_look=0.5)
    for number in range(4):
        bench.park(f"p{number}", cpu=str(2 + number))
    bench.check.step(1.0)
    assert bench.check.checked == 2
    bench.check.step(1.0)
    assert bench.check.checked == 4
    bench.check.step(1.0)
    assert bench.check.checked == 4, "all were looked at, and nothing has changed since"
    bench.silently_change_a_node()
    bench.check.step(1.0)
    assert bench.check.checked == 6, "from the beginning again"


def test_room_that_a_nomination_reserved_is_found_once_it_is_cleared() -> None:
    bench = Bench()
    nominator = bench.lab.cluster.nominator
    bench.silently_add_a_large_node()
    nominator.nominate(bench.lab.pending(pod("preemptor", cpu="8", priority=5)), "large")
    bench.park("a")
    bench.check.step(1.0)
    assert bench.woken() == []
    nominator.clear("preemptor")
    bench.check.step(1.0)
    assert bench.woken() == ["a"]


def test_what_a_step_overdraws_is_missing_in_the_next() -> None:
    bench = Bench(seconds_per_look=4.0)
    for number in range(20):
        bench.park(f"p{number}", cpu=str(2 + number))
    for _ in range(4):
        bench.check.step(1.0)
    assert bench.check.checked == 1, "one look took as much as four steps may"
    bench.check.step(1.0)
    assert bench.check.checked == 2


def test_a_pod_that_was_woken_in_vain_is_left_alone_for_a_while() -> None:
    bench = Bench()
    bench.park("a")
    bench.silently_add_a_large_node()
    bench.check.step(1.0)
    (popped,) = bench.pop_all()
    popped.unschedulable_plugins, popped.filtered = {"NodeResourcesFit"}, True
    bench.queue.requeue(popped)
    bench.silently_change_a_node()
    bench.check.step(1.0)
    assert bench.woken() == []
    bench.clock.advance(PAUSE_S)
    bench.silently_change_a_node()
    bench.check.step(1.0)
    assert bench.woken() == ["a"]


def test_nobody_listens_to_namespaces_but_the_pod_is_found() -> None:
    """An affinity term selects namespaces by label, and the label comes later."""

    async def run() -> None:
        async with scheduler(nodes=1) as here:
            here.create_pod("friend")
            await eventually(lambda: here.node_of("friend"))
            term = {
                "topologyKey": "kubernetes.io/hostname",
                "labelSelector": {},
                "namespaceSelector": {"matchLabels": {"team": "blue"}},
            }
            here.create_pod(
                "lonely",
                affinity={
                    "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
                },
            )
            await eventually(lambda: here.app.queue.unschedulable_count == 1)
            blue = {"metadata": {"labels": {"team": "blue"}}}
            await here.app.client.patch("/api/v1/namespaces/default", blue)
            await eventually(lambda: here.node_of("lonely"))
            assert here.app.engine.queue_check.missed == {"InterPodAffinity": 1}

    asyncio.run(run())
