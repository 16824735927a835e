"""Pods in flight, and the cluster events since they were popped.

An event that arrives while a pod is being scheduled cannot wake it, because the pod is in no part
of the queue. Such events are recorded until every pod that was in flight at the time is bound or
requeued; a pod that fails is matched against those recorded since it was popped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from kubesched.queue.hints import Change


class InFlight:
    """Popped pods that are neither bound nor requeued, and the events since."""

    def __init__(self) -> None:
        #: uid → position of the first event after the pod was popped
        self._since: dict[str, int] = {}
        #: changes, each with the uid of the only pod that it concerns; None: it may concern any
        self._events: list[tuple[Change[Any], str | None]] = []
        #: position of the first recorded event
        self._start = 0
        #: labels of all events so far
        self._labels: set[str] = set()

    def __len__(self) -> int:
        return len(self._since)

    def __iter__(self) -> Iterator[str]:
        return iter(self._since)

    def __contains__(self, uid: object) -> bool:
        return uid in self._since

    @property
    def event_count(self) -> int:
        """The number of recorded events."""
        return len(self._events)

    def begin(self, uid: str) -> None:
        """Record that a pod was popped."""
        self._since[uid] = self._start + len(self._events)

    def counts(self) -> Counter[str]:
        """Return how many events of each kind are recorded, and the number of pods in flight."""
        counted = Counter(dict.fromkeys(self._labels, 0))
        counted.update(change.event.label for change, _ in self._events)
        counted["PodPopped"] = len(self._since)
        return counted

    def record(self, change: Change[Any], *, only: str | None = None) -> None:
        """Record a change if pods are in flight; `only` is the uid of the one that it concerns."""
        if self._since:
            self._labels.add(change.event.label)
            self._events.append((change, only))

    def events_since(self, uid: str) -> Iterator[Change[Any]]:
        """Return the events that arrived while the pod was in flight."""
        since = self._since.get(uid)
        happened = () if since is None else self._events[since - self._start :]
        return (change for change, only in happened if only in (None, uid))

    def end(self, uid: str) -> None:
        """End the flight of a pod, and drop events that no pod in flight needs any more."""
        if self._since.pop(uid, None) is None:
            return
        if not self._since:
            self._start += len(self._events)
            self._events.clear()
            return
        # Pods are in the order in which they were popped, so the first needs the oldest event.
        oldest = next(iter(self._since.values()))
        if oldest > self._start:
            del self._events[: oldest - self._start]
            self._start = oldest
