"""A heap of pods from which any pod can be removed."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from itertools import count

from kubesched.cluster.pod_info import PodInfo
from kubesched.errors import require
from kubesched.queue.queued_pod import QueuedPod

Key = tuple[float, ...]


class PodHeap:
    """Pods by ascending key, those with equal keys in order of arrival.

    Removal leaves a hole that is skipped when it comes to the top, and the heap is rebuilt when
    most of it is holes; so removal costs nothing and memory stays in proportion.
    """

    def __init__(self, key: Callable[[QueuedPod], Key]) -> None:
        self._key = key
        self._arrivals = count()
        #: uid → its entry, whose last place is None once it is a hole
        self._entries: dict[str, list[object]] = {}
        self._heap: list[list[object]] = []

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, uid: object) -> bool:
        return uid in self._entries

    def __iter__(self) -> Iterator[QueuedPod]:
        return (entry[2] for entry in self._entries.values() if isinstance(entry[2], QueuedPod))

    def get(self, uid: str) -> QueuedPod | None:
        """Return a pod without removing it."""
        entry = self._entries.get(uid)
        return entry[2] if entry and isinstance(entry[2], QueuedPod) else None

    def push(self, pod: QueuedPod) -> None:
        """Add a pod, which must not be in the heap."""
        require(pod.info.uid not in self._entries, f"{pod} is in the heap already")
        entry: list[object] = [self._key(pod), next(self._arrivals), pod]
        self._entries[pod.info.uid] = entry
        heapq.heappush(self._heap, entry)

    def replace(self, pod: QueuedPod, info: PodInfo) -> None:
        """Give a pod of the heap its new version, and the place that belongs to it."""
        before = self._key(pod)
        pod.info = info
        if self._key(pod) != before:
            self.remove(info.uid)
            self.push(pod)

    def remove(self, uid: str) -> QueuedPod | None:
        """Remove a pod and return it, or None if it is not there."""
        entry = self._entries.pop(uid, None)
        if entry is None:
            return None
        pod, entry[2] = entry[2], None
        if len(self._heap) > 2 * len(self._entries) + 64:
            self._heap = list(self._entries.values())
            heapq.heapify(self._heap)
        return pod if isinstance(pod, QueuedPod) else None

    def peek(self) -> QueuedPod | None:
        """Return the first pod without removing it, or None if there is none."""
        while self._heap:
            pod = self._heap[0][2]
            if isinstance(pod, QueuedPod):
                return pod
            heapq.heappop(self._heap)
        return None

    def pop(self) -> QueuedPod | None:
        """Remove and return the first pod, or None if there is none."""
        pod = self.peek()
        if pod is not None:
            heapq.heappop(self._heap)
            del self._entries[pod.info.uid]
        return pod
