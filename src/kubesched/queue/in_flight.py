"""What happened while a pod was being scheduled.

An event that comes between the moment a pod is popped and the moment it turns out not to fit wakes
nobody: the pod is in no queue. Such events are kept until every pod that was in flight when they
came is done, and a pod that fails is compared with those that came since it was popped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from kubesched.queue.hints import Change


class InFlight:
    """Pods that were popped and are not done, and the events since."""

    def __init__(self) -> None:
        #: uid → position of the first event that came after the pod was popped
        self._since: dict[str, int] = {}
        #: with the uid of the only pod that a change may concern, None if it may be any
        self._events: list[tuple[Change[Any], str | None]] = []
        #: position of the first event that is kept
        self._start = 0

    def __len__(self) -> int:
        return len(self._since)

    def __iter__(self) -> Iterator[str]:
        return iter(self._since)

    def __contains__(self, uid: object) -> bool:
        return uid in self._since

    @property
    def event_count(self) -> int:
        """The number of events that are kept."""
        return len(self._events)

    def begin(self, uid: str) -> None:
        """Note that a pod was popped."""
        self._since[uid] = self._start + len(self._events)

    def counts(self) -> Counter[str]:
        """Return how many events of each kind are kept, and how many pods are in flight."""
        counted = Counter(change.event.label for change, _ in self._events)
        counted["PodPopped"] = len(self._since)
        return counted

    def record(self, change: Change[Any], *, only: str | None = None) -> None:
        """Keep a change, if there is a pod that it may concern; `only` the one with that uid."""
        if self._since:
            self._events.append((change, only))

    def events_since(self, uid: str) -> Iterator[Change[Any]]:
        """Return the events that came while the pod was in flight."""
        since = self._since.get(uid)
        happened = () if since is None else self._events[since - self._start :]
        return (change for change, only in happened if only in (None, uid))

    def end(self, uid: str) -> None:
        """Note that a pod is done; drop events that nobody needs any more."""
        if self._since.pop(uid, None) is None:
            return
        if not self._since:
            self._start += len(self._events)
            self._events.clear()
            return
        # Pods are popped in order, so the first of them needs the oldest event.
        oldest = next(iter(self._since.values()))
        if oldest > self._start:
            del self._events[: oldest - self._start]
            self._start = oldest
