"""The informers of all watched kinds, each with its handler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from kubesched.api.core import Node, Pod
from kubesched.client.informer import Handler, Informer
from kubesched.client.meta import ApiObject
from kubesched.client.rest import ApiClient
from kubesched.kinds import watched
from kubesched.metrics.recorder import Metrics
from kubesched.scheduler.engine import Engine
from kubesched.scheduler.handlers import PodHandler, state_handlers
from kubesched.scheduler.informer_metrics import export_informers, processing_observer
from kubesched.scheduler.observed_pods import ObservedPodHandler
from kubesched.scheduler.store_handler import Stopwatch
from kubesched.scheduler.timed_handler import TimedHandler, pod_kind
from kubesched.scheduler.unreadable import Unreadable

T = TypeVar("T", bound=ApiObject)


class Informers:
    """Lists and watches all kinds, and passes the events to the engine's handlers."""

    def __init__(
        self, client: ApiClient, engine: Engine, metrics: Metrics, timer: Callable[[], float]
    ) -> None:
        self._metrics = metrics
        self._timer = timer
        handlers = state_handlers(
            engine.cluster,
            engine.queue,
            engine.nominations,
            unusable=engine.unusable,
            watch=self._stopwatch(),
        )
        handlers["Node"] = self._timed(handlers["Node"], lambda _: "Node")
        handlers["Pod"] = self._timed(
            _pod_handler(engine),
            lambda pod: pod_kind(pod) if pod.spec.node_name or engine.is_ours(pod) else "",
        )
        informers: dict[str, Informer[Any]] = {
            kind.name: Informer(
                client,
                kind.path,
                kind.type,
                handler=handlers[kind.name],
                field_selector=kind.field_selector,
                optional=kind.optional,
                on_processed=processing_observer(metrics, kind),
                held_watches=engine.held_watches if kind.type is Node else None,
            )
            for kind in watched(engine.gates, engine.plugin_names)
        }
        engine.cluster.plugin_objects.informers_started()
        self.pods: Informer[Pod] = informers["Pod"]
        #: pods last: the objects that they refer to are listed before them
        self.all = list(informers.values())
        export_informers(metrics, self.all)
        self._unusable = engine.unusable
        metrics.unreadable_objects.set_function(
            lambda: {(kind,): len(objects) for kind, objects in self.unreadable().items()}
        )

    @property
    def have_synced(self) -> bool:
        """Whether every kind was listed once."""
        return all(informer.has_synced for informer in self.all)

    def unreadable(self) -> Unreadable:
        """Return the objects that cannot be read, by kind; every kind has an entry."""
        return {
            informer.kind: {**self._unusable.of(informer.kind), **informer.unreadable}
            for informer in self.all
        }

    async def wait_until_synced(self) -> None:
        """Return when every kind was listed once."""
        for informer in self.all:
            await informer.synced.wait()

    def _stopwatch(self) -> Stopwatch:
        durations = self._metrics.event_handling_duration
        return Stopwatch(
            self._timer, lambda label, seconds: durations.labels(label).observe(seconds)
        )

    def _timed(self, handler: Handler[T], kind: Callable[[T], str]) -> Handler[T]:
        return TimedHandler(handler, self._metrics, kind=kind, timer=self._timer)


def _pod_handler(engine: Engine) -> Handler[Pod]:
    pods = PodHandler(
        engine.cluster,
        engine.queue,
        nominations=engine.nominations,
        waiting=engine.waiting,
        is_ours=engine.is_ours,
        on_unreadable=engine.failures.refuse,
        unusable=engine.unusable,
        races=engine.races,
        resizes=engine.gates.enabled("InPlacePodVerticalScalingSchedulerPreemption"),
    )
    return ObservedPodHandler(pods, engine.observer)
