"""Everything that depends on the configuration: profiles, extenders, and the queue's settings.

`configure` creates all of it, so that the configuration can be replaced between two cycles while
the state stays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from kubesched.api.core import Pod
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import PodInfo
from kubesched.config.extenders import EXTENDER
from kubesched.config.features import FeatureGates
from kubesched.config.profiles import Profile
from kubesched.config.types import SchedulerConfiguration
from kubesched.framework.building import build_framework
from kubesched.framework.observing import Observer, TracedObserver
from kubesched.framework.registry import Evictor, PodBinder, Registry
from kubesched.framework.runtime import Framework
from kubesched.framework.waiting import WaitingPods
from kubesched.queue.backoff import Backoff
from kubesched.queue.hints import EXTENDER_EVENTS, Registrations
from kubesched.queue.queued_pod import QueuedEntity, QueuedPod
from kubesched.queue.scheduling_queue import IsHeld
from kubesched.scheduler.cycle import SchedulingCycle
from kubesched.scheduler.outside import Outside

if TYPE_CHECKING:
    from kubesched.scheduler.extended_cycle import ExtendedCycle
    from kubesched.scheduler.extenders import BindingExtenders

#: Longest turn of the loop that counts as progress; a turn takes milliseconds.
PROGRESS_LIMIT_S = 10.0


class Profiles:
    """The profiles and extenders of the configuration in use."""

    def __init__(
        self,
        config: SchedulerConfiguration,
        gates: FeatureGates,
        outside: Outside,
        *,
        registry: Registry,
        cluster: Cluster,
        cycle: SchedulingCycle,
        binder: PodBinder,
        evictor: Evictor,
        waiting: WaitingPods,
    ) -> None:
        self._gates = gates
        self._outside = outside
        self._registry = registry
        self._cluster = cluster
        self._cycle = cycle
        self._binder = binder
        self._evictor = evictor
        self._waiting = waiting
        #: by scheduler name; the same mapping for good, updated with the profiles in use
        self.frameworks: dict[str, Framework] = {}
        self.configure(config)

    def configure(self, config: SchedulerConfiguration) -> None:
        """Replace the configuration.

        Raises ConfigError, and changes nothing, if it cannot be used.
        """
        frameworks = {
            profile.scheduler_name: self._make_framework(profile, config)
            for profile in config.profiles
        }
        extenders = self._outside.make_extenders(config)
        self.frameworks.clear()
        self.frameworks.update(frameworks)
        self._config = config
        #: extenders that bind in place of the profile's plugins; None if there are none
        self.extenders: BindingExtenders | None = extenders
        #: replaces the scheduling cycle if there are extenders
        self.extended_cycle: ExtendedCycle | None = None
        if extenders is not None:
            # Imported only if there are extenders.
            from kubesched.scheduler.extended_cycle import ExtendedCycle  # noqa: PLC0415
            from kubesched.scheduler.observed_extenders import ObservedExtenders  # noqa: PLC0415

            observed = ObservedExtenders(extenders, self._outside.observer)
            self.extended_cycle = ExtendedCycle(self._cycle, self._cluster, observed)

    def _make_framework(self, profile: Profile, config: SchedulerConfiguration) -> Framework:
        outside, metrics = self._outside, self._outside.metrics
        failures = metrics.volume_scheduling_stage_error
        return build_framework(
            profile,
            registry=self._registry,
            gates=self._gates,
            cluster=self._cluster,
            binder=self._binder,
            evictor=self._evictor,
            waiting=self._waiting,
            volume_writer=outside.volume_writer,
            claim_writer=outside.claim_writer,
            clock=outside.clock,
            on_volume_stage_failure=lambda stage: failures.labels(stage).inc(),
            percentage_of_nodes_to_score=config.percentage_of_nodes_to_score,
            metrics=metrics,
            observer=self._make_observer(profile.scheduler_name),
        )

    def _make_observer(self, profile: str) -> Observer:
        metrics, timer, tracer = (
            self._outside.metrics,
            self._outside.clock.monotonic,
            self._outside.tracer,
        )
        if tracer is None:
            return Observer(metrics, profile, timer=timer)
        return TracedObserver(metrics, profile, timer=timer, tracer=tracer)

    def get(self, pod: Pod) -> Framework | None:
        """Return the profile of a pod's `schedulerName`, None if there is none."""
        return self.frameworks.get(pod.spec.scheduler_name)

    @property
    def turn_limit_s(self) -> float:
        """How long a turn of the loop may take, timeouts of extenders included."""
        timeouts_s = (each.http_timeout.seconds for each in self._config.extenders)
        return PROGRESS_LIMIT_S + 2 * sum(timeouts_s)

    # --- the queue's settings ---------------------------------------------------------------

    @property
    def sort_key(self) -> Callable[[QueuedEntity], tuple[float, ...]]:
        """The sort key of active pods."""
        # There is one queue, so validation requires the same QueueSort plugin in all profiles.
        first = next(iter(self.frameworks.values()))
        return first.plugins.queue_sort[0].sort_key

    @property
    def registrations(self) -> Mapping[str, Mapping[str, Registrations]]:
        """Scheduler name → plugin → the events that may help pods which it rejected."""
        always: dict[str, Registrations] = (
            {} if self.extenders is None else {EXTENDER: EXTENDER_EVENTS}
        )
        return {
            name: {**framework.plugins.registrations(), **always}
            for name, framework in self.frameworks.items()
        }

    @property
    def backoff(self) -> Backoff:
        """The backoff of failed attempts."""
        return Backoff(
            initial_s=self._config.pod_initial_backoff_seconds,
            max_s=self._config.pod_max_backoff_seconds,
        )

    def gate(self, pod: QueuedPod) -> str:
        """Return the PreEnqueue plugin that gates a pod, "" if none does."""
        framework = self.get(pod.info.pod)
        # A pod whose profile was removed while it was in flight is dropped when it is popped.
        return "" if framework is None else framework.gate(pod.info, pod.gated_by).plugin

    def holding(self) -> IsHeld:
        """Return the function that decides, for one event, whether a pod stays gated."""
        cached: dict[tuple[str, str], Callable[[PodInfo], bool]] = {}

        def is_held(pod: QueuedPod) -> bool:
            key = pod.info.pod.spec.scheduler_name, pod.gated_by
            held = cached.get(key)
            if held is None:
                framework = self.frameworks.get(key[0])
                held = (lambda _: False) if framework is None else framework.holding(key[1])
                cached[key] = held
            return held(pod.info)

        return is_held
