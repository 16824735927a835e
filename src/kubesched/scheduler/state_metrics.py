"""Gauges that a scrape computes from the state."""

from __future__ import annotations

from collections.abc import Callable

from kubesched.cluster.cluster import Cluster
from kubesched.metrics.label_values import (
    ALL_PODS,
    ASSUMED_PODS,
    BINDING,
    NARROWED,
    NODES,
    PODS,
)
from kubesched.metrics.recorder import Metrics
from kubesched.queue.scheduling_queue import SchedulingQueue
from kubesched.queue.waking import HintObserver, PreHintObserver
from kubesched.scheduler.queue_check import QueueCheck


def export_queue(metrics: Metrics, queue: SchedulingQueue) -> None:
    """Export pods by part of the queue, arrivals by event, and rejected pods by plugin."""
    metrics.pending_pods.set_function(
        lambda: {
            ("active",): queue.active_count,
            ("backoff",): queue.backoff_count,
            ("unschedulable",): queue.unschedulable_count,
            ("gated",): queue.gated_count,
            ("incomplete",): queue.incomplete_count,
            ("pending",): queue.pending_count,
        }
    )
    metrics.queued_entities.set_function(queue.entities)
    metrics.queue_incoming_pods.set_function(lambda: queue.tally.incoming)
    # As in kube-scheduler, arrivals in the part that hints chose are not incoming entities.
    metrics.queue_incoming_entities.set_function(lambda: queue.tally.incoming_entities)
    metrics.unschedulable_pods.set_function(lambda: queue.tally.rejected)
    metrics.inflight_events.set_function(
        lambda: {(label,): count for label, count in queue.in_flight_events.items()}
    )


def export_cluster(metrics: Metrics, cluster: Cluster, bindings: Callable[[], int]) -> None:
    """Export the sizes of the cache, and the number of bindings in flight."""
    metrics.cache_size.labels(ASSUMED_PODS).set_function(lambda: cluster.assumed_count)
    metrics.cache_size.labels(PODS).set_function(lambda: cluster.pod_count)
    metrics.cache_size.labels(NODES).set_function(lambda: len(cluster.table))
    metrics.goroutines.labels(BINDING).set_function(bindings)


def export_check(metrics: Metrics, check: QueueCheck) -> None:
    """Export the results of the queue check."""
    metrics.queue_checks.set_function(lambda: check.checked)
    metrics.queue_missed_wakeups.set_function(
        lambda: {(plugin,): count for plugin, count in check.missed.items()}
    )


def hint_observer(metrics: Metrics) -> HintObserver:
    """Return the function that the queue calls after every hint."""
    durations = metrics.queueing_hint_execution_duration
    observers: dict[tuple[str, str, str], Callable[[float], None]] = {}

    def observe(plugin: str, event: str, answer: str, seconds: float) -> None:
        key = plugin, event, answer
        cached = observers.get(key)
        if cached is None:
            cached = observers[key] = durations.labels(*key).observe
        cached(seconds)

    return observe


def pre_hint_observer(metrics: Metrics) -> PreHintObserver:
    """Return the function that the queue calls after every pre-hint."""
    evaluations = metrics.pre_queueing_hint_evaluations

    def observe(plugin: str, narrowed: bool) -> None:
        evaluations.labels(plugin, NARROWED if narrowed else ALL_PODS).inc()

    return observe
