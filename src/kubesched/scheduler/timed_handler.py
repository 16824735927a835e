"""Measures how long informer events take to apply, by cluster event.

    add, delete ──> one event, named after the resource
    update ───────> an event for each property that changed; for a pod that was bound: that it left
                    the queue, and that it was added to the node

Labels and counts are kube-scheduler's. In particular, every update of a pod counts as a general
one, and once more for each specific event.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from kubesched.api.core import Node, Pod
from kubesched.client.informer import Handler
from kubesched.client.meta import ApiObject
from kubesched.metrics.recorder import Metrics
from kubesched.metrics.series import Histogram
from kubesched.queue.differences import node_events, pod_events

T = TypeVar("T", bound=ApiObject)

_ASSIGNED: Final = "AssignedPod"
_UNSCHEDULED: Final = "UnscheduledPod"


class TimedHandler(Generic[T]):
    """Passes events on, and measures the time."""

    def __init__(
        self,
        handler: Handler[T],
        metrics: Metrics,
        *,
        kind: Callable[[T], str],
        timer: Callable[[], float],
    ) -> None:
        self._handler = handler
        self._durations = metrics.event_handling_duration
        #: kind and action → the event's histograms, none if it is not counted
        self._events: dict[tuple[str, str], tuple[Histogram, ...]] = {}
        #: kinds of a pod after and before its binding → their histograms
        self._got_node: dict[tuple[str, str], tuple[Histogram, ...]] = {}
        #: returns the resource in an event's label; "" for events that are not counted
        self._kind = kind
        self._timer = timer

    def on_add(self, obj: T, initial: bool) -> None:
        """An object was added."""
        started = self._timer()
        self._handler.on_add(obj, initial)
        took_s = self._timer() - started
        for noted in self._event(self._kind(obj), "Add"):
            noted.observe(took_s)

    def on_update(self, old: T, new: T) -> None:
        """An object was updated."""
        started = self._timer()
        self._handler.on_update(old, new)
        took_s = self._timer() - started
        if (
            isinstance(old, Pod)
            and isinstance(new, Pod)
            and new.spec.node_name
            and not old.spec.node_name
        ):
            kinds = self._kind(new), self._kind(old)
            for noted in self._got_node.get(kinds) or self._on_node(*kinds):
                noted.observe(took_s)
        else:
            for label in self._updates(old, new):
                self._durations.labels(label).observe(took_s)

    def on_delete(self, obj: T) -> None:
        """An object was deleted."""
        started = self._timer()
        self._handler.on_delete(obj)
        took_s = self._timer() - started
        for noted in self._event(self._kind(obj), "Delete"):
            noted.observe(took_s)

    def _event(self, kind: str, action: str) -> tuple[Histogram, ...]:
        noted = self._events.get((kind, action))
        if noted is None:
            noted = (self._durations.labels(f"{kind}{action}"),) if kind else ()
            self._events[kind, action] = noted
        return noted

    def _on_node(self, after: str, before: str) -> tuple[Histogram, ...]:
        noted = self._event(after, "Add") + self._event(before, "Delete")
        self._got_node[after, before] = noted
        return noted

    def _updates(self, old: T, new: T) -> list[str]:
        if isinstance(old, Node) and isinstance(new, Node):
            return [event.label for event in node_events(old, new)]
        if isinstance(old, Pod) and isinstance(new, Pod):
            return _pod_updates(old, new) if self._kind(new) else []
        kind = self._kind(new)
        return [f"{kind}Update"] if kind else []


def _pod_updates(old: Pod, new: Pod) -> list[str]:
    happened = [event.label for event in pod_events(old, new)]
    if new.spec.node_name:
        return [f"{_ASSIGNED}Update", *happened]
    general = f"{_UNSCHEDULED}Update"
    return [general, *(label for label in happened if label != general)]


def pod_kind(pod: Pod) -> str:
    """Return the event resource of a pod: assigned or unscheduled."""
    return _ASSIGNED if pod.spec.node_name else _UNSCHEDULED
