"""A heap of pods and groups with removal by key."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from kubesched.cluster.pod_info import PodInfo
from kubesched.errors import require
from kubesched.queue.queued_pod import QueuedEntity, QueuedPod

Key = tuple[float, ...]


class PodHeap:
    """Pods and groups by ascending key, those with equal keys in order of arrival.

    Removal leaves a hole that is skipped when it reaches the top, and the heap is rebuilt when most
    of it is holes: removal takes amortized constant time and memory stays proportional.
    """

    def __init__(self, key: Callable[[QueuedEntity], Key]) -> None:
        self._key = key
        self._arrivals = count()
        #: number of pods, members of groups included
        self.pod_count = 0
        #: key → its entry, whose last item is None once it is a hole
        self._entries: dict[str, list[Any]] = {}
        self._heap: list[list[Any]] = []

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[QueuedEntity]:
        return (entry[2] for entry in self._entries.values())

    def get(self, key: str) -> QueuedEntity | None:
        """Return a pod or a group without removing it."""
        entry = self._entries.get(key)
        return entry[2] if entry else None

    def push(self, entity: QueuedEntity) -> None:
        """Add a pod or a group, which must not be in the heap."""
        require(entity.key not in self._entries, f"{entity} is in the heap already")
        entry: list[Any] = [self._key(entity), next(self._arrivals), entity]
        self._entries[entity.key] = entry
        self.pod_count += entity.size
        heapq.heappush(self._heap, entry)

    def replace(self, pod: QueuedPod, info: PodInfo) -> None:
        """Update a pod to its new version, and move it to its position."""
        before = self._key(pod)
        pod.info = info
        if self._key(pod) != before:
            self.remove(info.uid)
            self.push(pod)

    def remove(self, key: str) -> QueuedEntity | None:
        """Remove a pod or a group and return it, or None if it is not there."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return None
        entity: QueuedEntity = entry[2]
        entry[2] = None
        if len(self._heap) > 2 * len(self._entries) + 64:
            self._heap = list(self._entries.values())
            heapq.heapify(self._heap)
        self.pod_count -= entity.size
        return entity

    def peek(self) -> QueuedEntity | None:
        """Return the first pod or group without removing it, or None if there is none."""
        while self._heap:
            entity: QueuedEntity | None = self._heap[0][2]
            if entity is not None:
                return entity
            heapq.heappop(self._heap)
        return None

    def pop(self) -> QueuedEntity | None:
        """Remove and return the first pod or group, or None if there is none."""
        entity = self.peek()
        if entity is not None:
            heapq.heappop(self._heap)
            del self._entries[entity.key]
            self.pod_count -= entity.size
        return entity

    def validate(self) -> None:
        """Check the number of pods."""
        require(self.pod_count == sum(each.size for each in self), "number of pods in the heap")
