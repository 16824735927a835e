"""PrioritySort: orders pods by priority, then by the time they were queued."""

from __future__ import annotations

from kubesched.framework.plugin import QueueSort
from kubesched.queue.queued_pod import QueuedEntity


class PrioritySort(QueueSort):
    """Orders the queue by priority, then by time."""

    name = "PrioritySort"

    def sort_key(self, pod: QueuedEntity) -> tuple[float, ...]:
        """Return the sort key of a pod or a group."""
        return (-pod.priority, pod.queued_at)
