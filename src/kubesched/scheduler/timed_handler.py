"""How long it takes to apply what informers report, by the events that it amounts to.

    add, delete ──> one event, named after the resource
    update ───────> an event for each property that changed; of a pod that got its node: that it
                    left the queue, and that it came to the node

Names and numbers are those of kube-scheduler. In particular, every update of a pod counts as a
general one, and counts once more for each event that it amounts to.
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
    """Passes everything on, and looks at the clock before and after."""

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
        #: kind and action → where the event is noted, nowhere if it does not concern us
        self._events: dict[tuple[str, str], tuple[Histogram, ...]] = {}
        #: kinds of a pod after and before it got its node → where that is noted
        self._got_node: dict[tuple[str, str], tuple[Histogram, ...]] = {}
        #: names the resource of an event, as its label does; "" for what does not concern us
        self._kind = kind
        self._timer = timer

    def on_add(self, obj: T, initial: bool) -> None:
        """One came."""
        started = self._timer()
        self._handler.on_add(obj, initial)
        took_s = self._timer() - started
        for noted in self._event(self._kind(obj), "Add"):
            noted.observe(took_s)

    def on_update(self, old: T, new: T) -> None:
        """One changed."""
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
        """One went."""
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
    """Tell pods that have a node from those that want one."""
    return _ASSIGNED if pod.spec.node_name else _UNSCHEDULED
