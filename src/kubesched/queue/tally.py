"""The queue's counters for metrics: a scrape reads them, the queue does not push."""

from __future__ import annotations

from collections import Counter

from kubesched.queue.queued_pod import QueuedEntity, QueuedPod

ACTIVE = "active"
BACKOFF = "backoff"
UNSCHEDULABLE = "unschedulable"
GATED = "gated"


class QueueTally:
    """Arrivals in each part of the queue, and pending pods by the plugins that rejected them."""

    def __init__(self) -> None:
        #: (part of the queue, label of the event that moved a pod there) → number of pods
        self.incoming: Counter[tuple[str, str]] = Counter()
        #: the same by pod or group, without arrivals in the part that hints had chosen
        self.incoming_entities: Counter[tuple[str, str, str]] = Counter()
        #: (plugin, scheduler name) → pods that it rejected and that were not retried since
        self.rejected: Counter[tuple[str, str]] = Counter()

    def arrived(
        self, queue: str, event_label: str, entity: QueuedEntity, *, sent_to: str = ""
    ) -> None:
        """Count a pod or a group that entered a part of the queue.

        `sent_to` is the part that hints chose, if hints were evaluated.
        """
        self.incoming[queue, event_label] += entity.size
        if queue != sent_to:
            self.incoming_entities[queue, event_label, entity.kind] += 1

    def count_rejections(self, pod: QueuedPod) -> None:
        """Count a requeued pod for each plugin that rejected it."""
        for plugin in pod.rejectors:
            self.rejected[plugin, pod.info.pod.spec.scheduler_name] += 1

    def gated(self, pod: QueuedPod, plugin: str) -> None:
        """Count a pod for the plugin that gates it and had not rejected it before."""
        self.rejected[plugin, pod.info.pod.spec.scheduler_name] += 1

    def settled(self, pod: QueuedPod) -> None:
        """Stop counting the rejections of a pod that is retried or deleted."""
        for plugin in pod.rejectors:
            self.rejected[plugin, pod.info.pod.spec.scheduler_name] -= 1
