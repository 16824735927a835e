"""Notifies the observer of pending pods, before their events reach the queue.

Pods on nodes are part of the cluster, which notifies the observer itself.
"""

from __future__ import annotations

from kubesched.api.core import Pod
from kubesched.client.informer import Handler
from kubesched.observer import SchedulerObserver


class ObservedPodHandler:
    """Notifies the observer, then passes the event on."""

    def __init__(self, handler: Handler[Pod], observer: SchedulerObserver) -> None:
        self._handler = handler
        self._observer = observer

    def on_add(self, obj: Pod, initial: bool) -> None:
        """A pod was added."""
        if not obj.spec.node_name:
            self._observer.pending(obj)
        self._handler.on_add(obj, initial)

    def on_update(self, old: Pod, new: Pod) -> None:
        """A pod was updated."""
        if not new.spec.node_name:
            self._observer.pending(new)
        self._handler.on_update(old, new)
        if new.spec.node_name:
            self._observer.gone(new.metadata.uid)

    def on_delete(self, obj: Pod) -> None:
        """A pod was deleted."""
        self._observer.gone(obj.metadata.uid)
        self._handler.on_delete(obj)
