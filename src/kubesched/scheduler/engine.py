"""The scheduler without its connections: events come in through handlers, calls go out.

    handlers ──> cluster, queue ──> Scheduler ──> Bindings ──> ApiCalls
                                        └──────> FailureHandler ──> StatusReports, events

All that the configuration decides is made by `_configure`, so that another configuration can take
its place between two cycles, while the state stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from msgspec import Struct

from kubesched.api.core import Pod
from kubesched.clock import Clock
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import PodInfo
from kubesched.config.features import FeatureGates
from kubesched.config.profiles import Profile
from kubesched.config.types import SchedulerConfiguration
from kubesched.errors import ObjectError
from kubesched.framework.building import build_framework
from kubesched.framework.observing import Observer
from kubesched.framework.registry import Registry, VolumeWriter
from kubesched.framework.runtime import Framework
from kubesched.framework.waiting import PreBindingPods, WaitingPods
from kubesched.metrics.recorder import Metrics
from kubesched.progress import Progress
from kubesched.queue import events
from kubesched.queue.backoff import Backoff
from kubesched.queue.hints import Registrations
from kubesched.queue.queued_pod import QueuedPod
from kubesched.queue.scheduling_queue import IsHeld, SchedulingQueue
from kubesched.recording import randomness
from kubesched.recording.entries import Randomness
from kubesched.recording.journal import Journal
from kubesched.recording.recorded_cluster import RecordedCluster
from kubesched.recording.recorded_extenders import RecordedExtenders
from kubesched.scheduler import state_metrics
from kubesched.scheduler.api_calls import ApiCalls
from kubesched.scheduler.attempts import Attempts
from kubesched.scheduler.binding import Bindings
from kubesched.scheduler.cycle import SchedulingCycle
from kubesched.scheduler.evictions import Evictions
from kubesched.scheduler.extended_cycle import EXTENDER, ExtendedCycle
from kubesched.scheduler.extenders import Extenders
from kubesched.scheduler.failure import FailureHandler
from kubesched.scheduler.nominations import Nominations
from kubesched.scheduler.queue_check import QueueCheck
from kubesched.scheduler.recorders import Recorders
from kubesched.scheduler.reports import StatusReports
from kubesched.scheduler.scheduler import Scheduler
from kubesched.scheduler.unreadable import UnusableObjects

#: A turn of the loop takes less than a millisecond; after this long, something is wrong.
PROGRESS_LIMIT_S = 10.0


class Outside(Struct, frozen=True):
    """What the engine knows of the world, and how it acts on it."""

    api_calls: ApiCalls
    volume_writer: VolumeWriter
    recorders: Recorders
    #: returns the newest version of a pod, by namespace and name
    find_pod: Callable[[str, str], Pod | None]
    #: makes the extenders that a configuration names, None if it names none
    make_extenders: Callable[[SchedulerConfiguration], Extenders | None]


class EngineOptions(Struct, frozen=True):
    """What the configuration file does not say."""

    #: settles ties between equally good nodes; the same seed gives the same placements
    seed: int | None = None
    #: how long a pod stays parked if nothing wakes it
    max_unschedulable_s: float = 300.0
    #: share of the time in which the queue may check itself; 0 switches that off
    queue_check_share: float = 0.01
    #: told of every pod that was bound
    on_bound: Callable[[QueuedPod, str], None] = lambda _pod, _node: None
    #: hears of everything that is decided; it must be the one of the cluster, if that is recorded
    journal: Journal | None = None


class Engine:
    """State, queue and everybody who works on them."""

    def __init__(
        self,
        config: SchedulerConfiguration,
        gates: FeatureGates,
        cluster: Cluster,
        outside: Outside,
        *,
        registry: Registry,
        clock: Clock,
        metrics: Metrics,
        options: EngineOptions,
    ) -> None:
        self.gates = gates
        self._registry = registry
        self._clock = clock
        self._metrics = metrics
        self._outside = outside
        #: hears of everything that is decided, None if nobody wants to know
        self.journal = options.journal
        self.cluster = cluster
        #: objects that were decoded and cannot be used
        self.unusable = UnusableObjects()
        #: pods between placement and binding
        self.waiting, self._pre_binding = WaitingPods(), PreBindingPods()
        #: set whenever there may be a pod to schedule
        self._ready = asyncio.Event()
        self.evictions = Evictions(
            api_calls=outside.api_calls,
            cluster=cluster,
            waiting=self.waiting,
            pre_binding=self._pre_binding,
            recorders=outside.recorders,
            find_pod=outside.find_pod,
            activate=self._activate,
            try_again=self._try_again,
            is_gated=self._is_gated,
            metrics=metrics,
            journal=options.journal,
        )
        #: by scheduler name; always the same mapping, whatever is in it
        self.frameworks: dict[str, Framework] = self._make_frameworks(config)
        self.extenders = outside.make_extenders(config)
        self.queue = self._make_queue(config, options)
        self.nominations = Nominations(
            cluster, self.queue, is_preempting=self.evictions.is_evicting_for
        )
        attempts = Attempts(metrics, clock)
        self.reports = StatusReports(outside.api_calls, outside.find_pod)
        self.failures = FailureHandler(
            cluster=cluster,
            queue=self.queue,
            nominations=self.nominations,
            reports=self.reports,
            recorders=outside.recorders,
            attempts=attempts,
            find_pod=outside.find_pod,
        )
        self.bindings = Bindings(
            cluster=cluster,
            queue=self.queue,
            nominations=self.nominations,
            waiting=self.waiting,
            pre_binding=self._pre_binding,
            failures=self.failures,
            recorders=outside.recorders,
            attempts=attempts,
            metrics=metrics,
            api_calls=outside.api_calls,
            extenders=self.extenders,
            journal=options.journal,
            on_bound=options.on_bound,
            on_room=self._ready.set,
        )
        #: whether the scheduling loop still turns
        self.progress = Progress(clock, PROGRESS_LIMIT_S + _patience_s(config))
        self._cycle = SchedulingCycle(cluster, seed=options.seed)
        self.scheduler = Scheduler(
            frameworks=self.frameworks,
            cluster=cluster,
            queue=self.queue,
            cycle=self._cycle,
            bindings=self.bindings,
            failures=self.failures,
            recorders=outside.recorders,
            attempts=attempts,
            ready=self._ready,
            clock=clock,
            progress=self.progress,
            extended_cycle=self._extended_cycle(),
            journal=options.journal,
        )
        if isinstance(cluster, RecordedCluster) and options.journal is not None:
            options.journal.begin(config, gates, cluster, self._randomness)
        self.queue_check = QueueCheck(
            self.queue,
            cluster,
            self.frameworks,
            timer=clock.monotonic,
            share=options.queue_check_share,
        )
        state_metrics.export_queue(metrics, self.queue)
        state_metrics.export_cluster(metrics, cluster, lambda: len(self.bindings))
        state_metrics.export_check(metrics, self.queue_check)

    def is_ours(self, pod: Pod) -> bool:
        """Tell whether one of the profiles is to schedule a pod."""
        return pod.spec.scheduler_name in self.frameworks

    # --- configuration ----------------------------------------------------------------------

    def reconfigure(self, config: SchedulerConfiguration, pending: Sequence[Pod]) -> None:
        """Let another configuration take the place of this one, from the next cycle on.

        `pending` are all pods that want a node. Raises ConfigError, and changes nothing, if the
        configuration cannot be used.
        """
        frameworks, extenders = self._make_frameworks(config), self._outside.make_extenders(config)
        self.frameworks.clear()
        self.frameworks.update(frameworks)
        self.extenders = self.bindings.extenders = extenders
        self.scheduler.extended_cycle = self._extended_cycle()
        self.progress.allow(PROGRESS_LIMIT_S + _patience_s(config))
        self.queue.reconfigure(
            sort_key=self._sort_key(),
            registrations=self._registrations(),
            backoff=_backoff(config),
        )
        for pod in pending:
            self._take_over(pod)
        if self.journal is not None:
            self.journal.configured(config)
        # What turned a pod away may not be there any more, or may be about to do so in vain.
        queued = [each.info.uid for each in self.queue.pods()]
        self.queue.activate([*queued, *self.queue.in_flight_uids])

    def _take_over(self, pod: Pod) -> None:
        """Queue a pod that has become ours, and let one go that is not any more."""
        uid = pod.metadata.uid
        if not self.is_ours(pod):
            self.unusable.forget(pod)
            self.queue.delete(uid)
            self.nominations.withdraw(uid)
        elif uid not in self.queue and not self.cluster.is_assumed(uid):
            try:
                info = self.cluster.compiler.pending(pod)
            except ObjectError as unreadable:
                self.unusable.note(pod, unreadable)
                self.failures.refuse(pod, unreadable)
                return
            self.queue.add(info)
            if pod.status.nominated_node_name:
                self.nominations.nominate(info, pod.status.nominated_node_name)

    def _make_frameworks(self, config: SchedulerConfiguration) -> dict[str, Framework]:
        return {
            profile.scheduler_name: self._make_framework(profile, config)
            for profile in config.profiles
        }

    def _make_framework(self, profile: Profile, config: SchedulerConfiguration) -> Framework:
        failures = self._metrics.volume_scheduling_stage_error
        observer = Observer(self._metrics, profile.scheduler_name, timer=self._clock.monotonic)
        return build_framework(
            profile,
            registry=self._registry,
            gates=self.gates,
            cluster=self.cluster,
            binder=self._outside.api_calls,
            evictor=self.evictions,
            waiting=self.waiting,
            volume_writer=self._outside.volume_writer,
            on_volume_stage_failure=lambda stage: failures.labels(stage).inc(),
            percentage_of_nodes_to_score=config.percentage_of_nodes_to_score,
            metrics=self._metrics,
            observer=observer,
        )

    def _make_queue(
        self, config: SchedulerConfiguration, options: EngineOptions
    ) -> SchedulingQueue:
        def gate(pod: QueuedPod) -> str:
            framework = self.frameworks.get(pod.info.pod.spec.scheduler_name)
            # A pod whose profile went while it was in flight is let go when its turn comes.
            return "" if framework is None else framework.gate(pod.info, pod.gated_by).plugin

        def holding() -> IsHeld:
            known: dict[tuple[str, str], Callable[[PodInfo], bool]] = {}

            def is_held(pod: QueuedPod) -> bool:
                key = pod.info.pod.spec.scheduler_name, pod.gated_by
                held = known.get(key)
                if held is None:
                    framework = self.frameworks.get(key[0])
                    held = (lambda _: False) if framework is None else framework.holding(key[1])
                    known[key] = held
                return held(pod.info)

            return is_held

        return SchedulingQueue(
            clock=self._clock,
            sort_key=self._sort_key(),
            gate=gate,
            registrations=self._registrations(),
            backoff=_backoff(config),
            max_unschedulable_s=options.max_unschedulable_s,
            on_ready=self._ready.set,
            observe_hint=state_metrics.hint_observer(self._metrics),
            holding=holding,
        )

    def _sort_key(self) -> Callable[[QueuedPod], tuple[float, ...]]:
        # All profiles have the same QueueSort plugin: there is one queue.
        first = next(iter(self.frameworks.values()))
        return first.plugins.queue_sort[0].sort_key

    def _registrations(self) -> Mapping[str, Mapping[str, Registrations]]:
        # Extenders do not say what might help, so anything may.
        always: dict[str, Registrations] = {} if self.extenders is None else {EXTENDER: None}
        return {
            name: {**framework.plugins.registrations(), **always}
            for name, framework in self.frameworks.items()
        }

    def _extended_cycle(self) -> ExtendedCycle | None:
        if self.extenders is None:
            return None
        extenders = self.extenders
        if self.journal is not None:
            extenders = cast("Extenders", RecordedExtenders(extenders, self.journal))
        return ExtendedCycle(self._cycle, self.cluster, extenders)

    def _randomness(self) -> Randomness:
        return randomness.capture(self._cycle.rng, self._cycle.sampler.start, self.frameworks)

    # Evictions are there before the queue, whose gates ask for them.

    def _activate(self, uids: Sequence[str]) -> None:
        self.queue.activate(uids)

    def _try_again(self, uid: str) -> None:
        self.queue.try_again(uid, events.ASSIGNED_POD_DELETE)

    def _is_gated(self, uid: str) -> bool:
        return self.queue.is_gated(uid)


def _patience_s(config: SchedulerConfiguration) -> float:
    """Return how long a turn of the loop may have to wait for extenders."""
    timeouts_s = (each.http_timeout.seconds for each in config.extenders)
    return 2 * sum(timeouts_s)


def _backoff(config: SchedulerConfiguration) -> Backoff:
    return Backoff(
        initial_s=config.pod_initial_backoff_seconds, max_s=config.pod_max_backoff_seconds
    )
