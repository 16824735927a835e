"""What the queue counts about itself, for metrics: read when somebody asks, not pushed."""

from __future__ import annotations

from collections import Counter

from kubesched.queue.queued_pod import QueuedEntity, QueuedPod

ACTIVE = "active"
BACKOFF = "backoff"
UNSCHEDULABLE = "unschedulable"
GATED = "gated"


class QueueTally:
    """Arrivals in each part of the queue, and pods by the plugin that turned them away."""

    def __init__(self) -> None:
        #: (part of the queue, label of the event that brought a pod there) → how often
        self.incoming: Counter[tuple[str, str]] = Counter()
        #: the same with the kind of what came, without what went where hints sent it
        self.incoming_entities: Counter[tuple[str, str, str]] = Counter()
        #: (plugin, scheduler name) → pods it turned away that were not tried again since
        self.rejected: Counter[tuple[str, str]] = Counter()

    def arrived(
        self, queue: str, event_label: str, entity: QueuedEntity, *, sent_to: str = ""
    ) -> None:
        """A pod or a group came into a part of the queue.

        `sent_to` is where hints sent it, if they did.
        """
        self.incoming[queue, event_label] += entity.size
        if queue != sent_to:
            self.incoming_entities[queue, event_label, entity.kind] += 1

    def turned_away(self, pod: QueuedPod) -> None:
        """A pod comes back after plugins turned it away."""
        for plugin in pod.rejectors:
            self.rejected[plugin, pod.info.pod.spec.scheduler_name] += 1

    def gated(self, pod: QueuedPod, plugin: str) -> None:
        """A plugin keeps a pod out that it did not turn away before."""
        self.rejected[plugin, pod.info.pod.spec.scheduler_name] += 1

    def settled(self, pod: QueuedPod) -> None:
        """A pod is tried again, or gone: what turned it away is history."""
        for plugin in pod.rejectors:
            self.rejected[plugin, pod.info.pod.spec.scheduler_name] -= 1
