"""Metrics that say how things stand: read off the state whenever somebody looks."""

from __future__ import annotations

from collections.abc import Callable

from kubesched.cluster.cluster import Cluster
from kubesched.metrics.label_values import ASSUMED_PODS, BINDING, NODES, POD, PODS
from kubesched.metrics.recorder import Metrics
from kubesched.queue.scheduling_queue import SchedulingQueue
from kubesched.queue.waking import HintObserver
from kubesched.scheduler.queue_check import QueueCheck


def export_queue(metrics: Metrics, queue: SchedulingQueue) -> None:
    """Show where pods wait, what brought them there, and who turned them away."""
    metrics.pending_pods.set_function(
        lambda: {
            ("active",): queue.active_count,
            ("backoff",): queue.backoff_count,
            ("unschedulable",): queue.unschedulable_count,
            ("gated",): queue.gated_count,
            # Pods of groups wait here; without groups there are none.
            ("incomplete",): 0,
            ("pending",): 0,
        }
    )
    metrics.queued_entities.set_function(
        lambda: {
            ("active", POD): queue.active_count,
            ("backoff", POD): queue.backoff_count,
            ("unschedulable", POD): queue.unschedulable_count,
            ("gated", POD): queue.gated_count,
        }
    )
    metrics.queue_incoming_pods.set_function(lambda: queue.tally.incoming)
    metrics.unschedulable_pods.set_function(lambda: queue.tally.rejected)
    metrics.inflight_events.set_function(
        lambda: {(label,): count for label, count in queue.in_flight_events.items()}
    )


def export_cluster(metrics: Metrics, cluster: Cluster, bindings: Callable[[], int]) -> None:
    """Show how much there is, and how many bindings are under way."""
    metrics.cache_size.labels(ASSUMED_PODS).set_function(lambda: cluster.assumed_count)
    metrics.cache_size.labels(PODS).set_function(lambda: cluster.pod_count)
    metrics.cache_size.labels(NODES).set_function(lambda: len(cluster.table))
    metrics.goroutines.labels(BINDING).set_function(bindings)


def export_check(metrics: Metrics, check: QueueCheck) -> None:
    """Show what the queue found out about itself."""
    metrics.queue_checks.set_function(lambda: check.checked)
    metrics.queue_missed_wakeups.set_function(
        lambda: {(plugin,): count for plugin, count in check.missed.items()}
    )


def hint_observer(metrics: Metrics) -> HintObserver:
    """Return what the queue is to tell of every hint that it asks."""
    durations = metrics.queueing_hint_execution_duration
    observers: dict[tuple[str, str, str], Callable[[float], None]] = {}

    def observe(plugin: str, event: str, answer: str, seconds: float) -> None:
        key = plugin, event, answer
        known = observers.get(key)
        if known is None:
            known = observers[key] = durations.labels(*key).observe
        known(seconds)

    return observe
