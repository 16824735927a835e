"""PrioritySort: the most important pod first, and among equals the one that waited longest."""

from __future__ import annotations

from kubesched.framework.plugin import QueueSort
from kubesched.queue.queued_pod import QueuedPod


class PrioritySort(QueueSort):
    """Orders the queue by priority, then by time."""

    name = "PrioritySort"

    def sort_key(self, pod: QueuedPod) -> tuple[float, ...]:
        """Return the pod's place."""
        return (-pod.info.priority, pod.queued_at)
