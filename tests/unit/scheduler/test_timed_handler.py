"""Events that informers report, timed by what they amount to, as kube-scheduler counts them."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from msgspec.structs import replace

from kubesched.api.core import Node, Pod
from kubesched.metrics.recorder import Metrics
from kubesched.scheduler.timed_handler import TimedHandler, pod_kind
from tests.support.exposed_metrics import Exposed
from tests.support.objects import node, on_node, pod
from tests.support.scheduling import DEFAULT_GATES

FAMILY = "scheduler_event_handling_duration_seconds"


class Handler:
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[object, ...]] = []

    def on_add(self, obj: object, initial: bool) -> None:
        self.told.append(("add", obj, initial))

    def on_update(self, old: object, new: object) -> None:
        self.told.append(("update", old, new))

    def on_delete(self, obj: object) -> None:
        self.told.append(("delete", obj))


class Bench:
    """A handler that takes a second for everything."""

    def __init__(self) -> None:
        self.metrics = Metrics(DEFAULT_GATES)
        self.handler = Handler()
        ticks = count()
        handler: Any = self.handler

        def timed(kind: Any) -> TimedHandler[Any]:
            return TimedHandler(handler, self.metrics, kind=kind, timer=lambda: float(next(ticks)))

        self.pods = timed(pod_kind)
        self.nodes = timed(lambda _: "Node")
        self.nobody_s = timed(lambda _: "")

    def counted(self) -> dict[str, int]:
        """How often each event was seen; each took a second."""
        page = Exposed(self.metrics.render())
        counts, sums = (page.series(f"{FAMILY}_{what}") for what in ("count", "sum"))
        assert counts == sums
        return {labels["event"]: int(number) for labels, number in counts}


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_everything_is_passed_on(bench: Bench) -> None:
    old, new = pod("p"), pod("p", labels={"a": "b"})
    bench.pods.on_add(old, True)
    bench.pods.on_update(old, new)
    bench.pods.on_delete(new)
    assert bench.handler.told == [("add", old, True), ("update", old, new), ("delete", new)]


def test_pods_that_want_a_node(bench: Bench) -> None:
    bench.pods.on_add(pod("p"), False)
    bench.pods.on_delete(pod("p"))
    assert bench.counted() == {"UnscheduledPodAdd": 1, "UnscheduledPodDelete": 1}


def test_pods_that_have_one(bench: Bench) -> None:
    bench.pods.on_add(pod("p", node="n"), False)
    bench.pods.on_delete(pod("p", node="n"))
    assert bench.counted() == {"AssignedPodAdd": 1, "AssignedPodDelete": 1}


def test_a_pod_that_gets_its_node_leaves_and_comes(bench: Bench) -> None:
    waiting = pod("p")
    bench.pods.on_update(waiting, on_node(waiting, "n"))
    assert bench.counted() == {"UnscheduledPodDelete": 1, "AssignedPodAdd": 1}


@pytest.mark.parametrize(
    ("old", "new", "events"),
    [
        (pod("p"), pod("p", nominated="n"), {"UnscheduledPodUpdate": 1}),
        (
            pod("p", gates=["g"]),
            pod("p"),
            {
                "UnscheduledPodUpdate": 1,
                "UnscheduledPodUpdatePodSchedulingGatesEliminated": 1,
            },
        ),
        (
            pod("p"),
            pod("p", labels={"a": "b"}),
            {"UnscheduledPodUpdate": 1, "UnscheduledPodUpdatePodLabel": 1},
        ),
        # kube-scheduler counts a general update of a placed pod twice.
        (pod("p", node="n"), pod("p", node="n"), {"AssignedPodUpdate": 2}),
        (
            pod("p", node="n", cpu="2"),
            pod("p", node="n", cpu="1"),
            {"AssignedPodUpdate": 1, "AssignedPodUpdatePodScaleDown": 1},
        ),
    ],
)
def test_updates_of_pods(bench: Bench, old: Pod, new: Pod, events: dict[str, int]) -> None:
    bench.pods.on_update(old, new)
    assert bench.counted() == events


@pytest.mark.parametrize(
    ("old", "new", "events"),
    [
        (node("n"), node("n"), {}),
        (node("n", cpu="1"), node("n", cpu="2"), {"NodeUpdateNodeAllocatable": 1}),
        (
            node("n"),
            node("n", labels={"a": "b"}, taints=["k=v:NoSchedule"]),
            {"NodeUpdateNodeLabel": 1, "NodeUpdateNodeTaint": 1},
        ),
    ],
)
def test_updates_of_nodes(bench: Bench, old: Node, new: Node, events: dict[str, int]) -> None:
    bench.nodes.on_update(old, new)
    assert bench.counted() == events


def test_nodes_come_and_go(bench: Bench) -> None:
    bench.nodes.on_add(node("n"), True)
    bench.nodes.on_delete(node("n"))
    assert bench.counted() == {"NodeAdd": 1, "NodeDelete": 1}


def test_what_is_of_no_kind_is_not_counted(bench: Bench) -> None:
    other = pod("p")
    bench.nobody_s.on_add(other, False)
    bench.nobody_s.on_update(other, replace(other, metadata=replace(other.metadata, uid="2")))
    bench.nobody_s.on_delete(other)
    assert bench.counted() == {}
    assert len(bench.handler.told) == 3
