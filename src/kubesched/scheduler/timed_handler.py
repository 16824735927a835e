"""How long it takes to apply what informers report, by the event that it amounts to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from kubesched.api.core import Pod
from kubesched.client.informer import Handler
from kubesched.client.meta import ApiObject
from kubesched.metrics.recorder import Metrics

T = TypeVar("T", bound=ApiObject)


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
        #: names the resource of an event, as its label does
        self._kind = kind
        self._timer = timer

    def on_add(self, obj: T, initial: bool) -> None:
        """One came."""
        started = self._timer()
        self._handler.on_add(obj, initial)
        self._observe(f"{self._kind(obj)}Add", started)

    def on_update(self, old: T, new: T) -> None:
        """One changed."""
        started = self._timer()
        self._handler.on_update(old, new)
        self._observe(f"{self._kind(new)}Update", started)

    def on_delete(self, obj: T) -> None:
        """One went."""
        started = self._timer()
        self._handler.on_delete(obj)
        self._observe(f"{self._kind(obj)}Delete", started)

    def _observe(self, label: str, started: float) -> None:
        self._durations.labels(label).observe(self._timer() - started)


def pod_kind(pod: Pod) -> str:
    """Tell pods that have a node from those that want one."""
    return "AssignedPod" if pod.spec.node_name else "UnschedulablePod"
