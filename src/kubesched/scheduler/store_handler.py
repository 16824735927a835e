"""Applies informer events of kinds that the cluster holds in a store.

First to the store, then to the queue: a pod that an event wakes must see the state that woke it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, NamedTuple, TypeVar

from kubesched.cluster.object_store import HasMeta, ObjectStore
from kubesched.kinds import ObjectKind
from kubesched.queue.events import Action, ClusterEvent
from kubesched.queue.hints import Change
from kubesched.queue.scheduling_queue import SchedulingQueue

T = TypeVar("T", bound=HasMeta)


class Stopwatch(NamedTuple):
    """Measures how long an event takes to apply, by its label."""

    timer: Callable[[], float]
    observe: Callable[[str, float], None]


UNTIMED: Final = Stopwatch(lambda: 0.0, lambda _label, _seconds: None)


class StoreHandler(Generic[T]):
    """Applies the events of one kind."""

    def __init__(
        self,
        kind: ObjectKind,
        store: ObjectStore[T, Any],
        queue: SchedulingQueue,
        watch: Stopwatch = UNTIMED,
    ) -> None:
        self._store = store
        self._causes_events = kind.causes_events
        self._queue = queue
        self._watch = watch
        self._added = ClusterEvent(kind.event_resource, Action.ADD)
        self._updated = ClusterEvent(kind.event_resource, Action.UPDATE)
        self._deleted = ClusterEvent(kind.event_resource, Action.DELETE)

    def on_add(self, obj: T, initial: bool) -> None:  # noqa: ARG002 (the protocol's)
        """An object was added."""
        started = self._watch.timer()
        self._store.put(obj)
        self._tell(Change(self._added, new=obj), started)

    def on_update(self, old: T, new: T) -> None:
        """An object was updated."""
        started = self._watch.timer()
        self._store.put(new)
        self._tell(Change(self._updated, old, new), started)

    def on_delete(self, obj: T) -> None:
        """An object was deleted."""
        started = self._watch.timer()
        self._store.remove(obj)
        self._tell(Change(self._deleted, old=obj), started)

    def _tell(self, change: Change[T], started: float) -> None:
        if not self._causes_events:
            return
        self._queue.move(change)
        # kube-scheduler does not handle, and so does not time, events without registrations.
        if self._queue.has_listeners(change.event):
            self._watch.observe(change.event.label, self._watch.timer() - started)
