"""How things stand, read off the state when somebody looks."""

from __future__ import annotations

from typing import Any

from kubesched.metrics.recorder import Metrics
from kubesched.queue.events import NODE_ADD
from kubesched.queue.hints import Change
from kubesched.scheduler import state_metrics
from tests.support.exposed_metrics import Exposed
from tests.support.objects import node, pod
from tests.support.queueing import Bench, info
from tests.support.scheduling import DEFAULT_GATES, Lab


def exposed(metrics: Metrics) -> Exposed:
    return Exposed(metrics.render())


def test_where_pods_wait() -> None:
    metrics, bench = Metrics(DEFAULT_GATES), Bench()
    state_metrics.export_queue(metrics, bench.queue)

    def pending() -> dict[str, float | None]:
        text = exposed(metrics)
        return {
            queue: text.value("scheduler_pending_pods", queue=queue)
            for queue in ("active", "backoff", "unschedulable", "gated")
        }

    assert pending() == {"active": 0, "backoff": 0, "unschedulable": 0, "gated": 0}
    for queue in ("incomplete", "pending"):  # of pod groups
        assert exposed(metrics).value("scheduler_pending_pods", queue=queue) == 0
    bench.queue.add(info("active"))
    bench.queue.add(info("parked", priority=1))
    popped = bench.queue.pop()
    assert popped is not None
    popped.unschedulable_plugins = {"Fit"}
    bench.queue.requeue(popped)
    assert pending() == {"active": 1, "backoff": 0, "unschedulable": 1, "gated": 0}

    labels = {"plugin": "Fit", "profile": "default-scheduler"}
    assert exposed(metrics).value("scheduler_unschedulable_pods", **labels) == 1
    bench.queue.move(Change(NODE_ADD, new=node("n")))
    assert pending() == {"active": 1, "backoff": 1, "unschedulable": 0, "gated": 0}
    arrivals = exposed(metrics)
    name = "scheduler_queue_incoming_pods_total"
    assert arrivals.value(name, queue="backoff", event="NodeAdd") == 1
    assert arrivals.value(name, queue="active", event="UnscheduledPodAdd") == 2
    name = "scheduler_queue_incoming_entities_total"
    assert arrivals.value(name, queue="active", event="UnscheduledPodAdd", type="pod") == 2
    assert arrivals.value(name, queue="backoff", event="NodeAdd", type="pod") is None
    assert arrivals.value("scheduler_queued_entities", queue="backoff", type="pod") == 1


def test_what_pods_in_flight_miss() -> None:
    metrics, bench = Metrics(DEFAULT_GATES), Bench()
    state_metrics.export_queue(metrics, bench.queue)
    bench.queue.add(info("p"))
    bench.queue.pop()
    bench.queue.move(Change(NODE_ADD, new=node("n")))
    text = exposed(metrics)
    assert text.value("scheduler_inflight_events", event="PodPopped") == 1
    assert text.value("scheduler_inflight_events", event="NodeAdd") == 1
    bench.queue.done("p")
    assert exposed(metrics).value("scheduler_inflight_events", event="PodPopped") == 0


def test_how_much_there_is() -> None:
    metrics = Metrics(DEFAULT_GATES)
    lab = Lab(node("n1", cpu="4"), node("n2", cpu="4"), pod("placed", node="n1"))
    state_metrics.export_cluster(metrics, lab.cluster, lambda: 7)
    lab.cluster.assume(lab.pending(pod("assumed")), "n2")
    text = exposed(metrics)
    sizes = {
        kind: text.value("scheduler_cache_size", type=kind)
        for kind in ("nodes", "pods", "assumed_pods")
    }
    assert sizes == {"nodes": 2, "pods": 2, "assumed_pods": 1}
    assert text.value("scheduler_goroutines", operation="binding") == 7


def test_what_the_queue_found_out_about_itself() -> None:
    class Check:
        checked = 5
        missed = {"Fit": 2}  # noqa: RUF012 (nobody changes it)

    metrics, check = Metrics(DEFAULT_GATES), Check()
    pretended: Any = check
    state_metrics.export_check(metrics, pretended)
    text = exposed(metrics)
    assert text.value("kubesched_queue_checks_total") == 5
    assert text.value("kubesched_queue_missed_wakeups_total", plugin="Fit") == 2


def test_hints_are_timed() -> None:
    metrics = Metrics(DEFAULT_GATES)
    observe = state_metrics.hint_observer(metrics)
    observe("Fit", "NodeAdd", "Queue", 0.5)
    observe("Fit", "NodeAdd", "Queue", 0.25)
    labels = {"plugin": "Fit", "event": "NodeAdd", "hint": "Queue"}
    name = "scheduler_queueing_hint_execution_duration_seconds"
    assert exposed(metrics).value(f"{name}_sum", **labels) == 0.75
    assert exposed(metrics).value(f"{name}_count", **labels) == 2
