"""The scheduler without its connections: events come in through handlers, calls go out.

Profiles   what the configuration decides: frameworks, extenders, the rules of the queue
state      cluster, queue, nominations, pods that wait for permission
outgoing   Bindings, Evictions, FailureHandler ──> StatusReports, events

handlers ──> cluster, queue ──> Scheduler ──> Bindings ──> ApiCalls
                                    └──────> FailureHandler ──> StatusReports, events
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from msgspec import Struct

from kubesched.api.core import Pod
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.group_forest import GroupForest
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.errors import ObjectError
from kubesched.framework.registry import Registry
from kubesched.framework.waiting import PreBindingPods, WaitingPods
from kubesched.metrics.recorder import Metrics
from kubesched.progress import Progress
from kubesched.queue.group_queue import GroupSchedulingQueue
from kubesched.queue.queued_pod import QueuedPod
from kubesched.queue.scheduling_queue import SchedulingQueue
from kubesched.scheduler import state_metrics
from kubesched.scheduler.attempts import Attempts
from kubesched.scheduler.binding import Bindings
from kubesched.scheduler.cycle import SchedulingCycle
from kubesched.scheduler.evictions import Evictions
from kubesched.scheduler.failure import FailureHandler
from kubesched.scheduler.group_cycle import GroupCycle
from kubesched.scheduler.group_reports import GroupReports
from kubesched.scheduler.group_scheduling import GroupScheduling
from kubesched.scheduler.nominations import Nominations
from kubesched.scheduler.outside import Outside
from kubesched.scheduler.profiles import Profiles
from kubesched.scheduler.queue_check import QueueCheck
from kubesched.scheduler.reports import StatusReports
from kubesched.scheduler.scheduler import Scheduler
from kubesched.scheduler.state import SchedulerState
from kubesched.scheduler.unreadable import UnusableObjects


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


class Engine:
    """State, queue and everything that works on them."""

    def __init__(
        self,
        config: SchedulerConfiguration,
        gates: FeatureGates,
        cluster: Cluster,
        outside: Outside,
        *,
        registry: Registry,
        options: EngineOptions,
    ) -> None:
        self.gates = gates
        self.observer = outside.observer
        self.cluster = cluster
        #: objects that were decoded and cannot be used
        self.unusable = UnusableObjects()
        #: pods between placement and binding
        self.waiting, pre_binding = WaitingPods(), PreBindingPods()
        #: set whenever there may be a pod to schedule, or room for one to be bound
        ready = asyncio.Event()
        cycle = SchedulingCycle(cluster, seed=options.seed)

        self.evictions = Evictions(outside, cluster, self.waiting, pre_binding)
        self._profiles = Profiles(
            config,
            gates,
            outside,
            registry=registry,
            cluster=cluster,
            cycle=cycle,
            evictor=self.evictions,
            waiting=self.waiting,
        )
        #: by scheduler name; always the same mapping, with the profiles in use
        self.frameworks = self._profiles.frameworks

        self.queue = self._make_queue(outside, options, ready)
        self.nominations = Nominations(
            cluster, self.queue, is_preempting=self.evictions.is_evicting_for
        )
        self.evictions.on_ended = self.nominations.after_eviction
        state = SchedulerState(cluster, self.queue, self.nominations, self.waiting, pre_binding)

        attempts = Attempts(outside.metrics, outside.clock)
        self.reports = StatusReports(outside.api_calls, outside.find_pod)
        self.failures = FailureHandler(outside, state, reports=self.reports, attempts=attempts)
        self.bindings = Bindings(
            outside,
            state,
            profiles=self._profiles,
            failures=self.failures,
            attempts=attempts,
            on_bound=options.on_bound,
            on_room=ready.set,
        )

        #: whether the scheduling loop still turns
        self.progress = Progress(outside.clock, self._profiles.turn_limit_s)
        self.scheduler = Scheduler(
            outside,
            state,
            profiles=self._profiles,
            cycle=cycle,
            bindings=self.bindings,
            failures=self.failures,
            attempts=attempts,
            ready=ready,
            progress=self.progress,
        )
        self.group_reports = GroupReports(outside.api_calls, cluster.groups, outside.clock)
        if isinstance(self.queue, GroupSchedulingQueue):
            self.scheduler.groups = GroupScheduling(
                outside,
                state,
                queue=self.queue,
                forest=self._forest(),
                profiles=self._profiles,
                cycle=GroupCycle(
                    cluster,
                    cycle,
                    with_placements=gates.enabled("TopologyAwareWorkloadScheduling"),
                    with_composites=gates.enabled("CompositePodGroup"),
                    metrics=outside.metrics,
                ),
                failures=self.failures,
                attempts=attempts,
                reports=self.group_reports,
                groups_have_policy=gates.enabled("PodGroupPreemptionPolicy"),
                skips=self.scheduler.skips,
                bind=self.scheduler.bind,
            )
        self.queue_check = QueueCheck(
            self.queue,
            cluster,
            self.frameworks,
            timer=outside.clock.monotonic,
            share=options.queue_check_share,
        )
        self.observer.begin(config, gates, cycle, self.frameworks)
        self._export(outside.metrics)

    def _make_queue(
        self, outside: Outside, options: EngineOptions, ready: asyncio.Event
    ) -> SchedulingQueue:
        profiles = self._profiles
        asks_pre_hints = self.gates.enabled("SchedulerPreQueueingHints")
        make: Callable[..., SchedulingQueue] = SchedulingQueue
        if self.gates.enabled("GenericWorkload"):
            make = partial(GroupSchedulingQueue, self._forest())
        return make(
            clock=outside.clock,
            sort_key=profiles.sort_key,
            gate=profiles.gate,
            registrations=profiles.registrations,
            backoff=profiles.backoff,
            max_unschedulable_s=options.max_unschedulable_s,
            on_ready=ready.set,
            observe_hint=state_metrics.hint_observer(outside.metrics),
            observe_pre_hint=(
                state_metrics.pre_hint_observer(outside.metrics) if asks_pre_hints else None
            ),
            holding=profiles.holding,
        )

    def _forest(self) -> GroupForest:
        composite = self.gates.enabled("CompositePodGroup")
        return GroupForest(self.cluster.groups, composite=composite)

    def is_ours(self, pod: Pod) -> bool:
        """Tell whether one of the profiles is to schedule a pod."""
        return pod.spec.scheduler_name in self.frameworks

    def _export(self, metrics: Metrics) -> None:
        state_metrics.export_queue(metrics, self.queue)
        state_metrics.export_cluster(metrics, self.cluster, lambda: len(self.bindings))
        state_metrics.export_check(metrics, self.queue_check)

    # --- configuration ----------------------------------------------------------------------

    def reconfigure(self, config: SchedulerConfiguration, pending: Sequence[Pod]) -> None:
        """Let another configuration take the place of this one, from the next cycle on.

        `pending` are all pods that want a node. Raises ConfigError, and changes nothing, if the
        configuration cannot be used.
        """
        self._profiles.configure(config)
        self.progress.allow(self._profiles.turn_limit_s)
        self.queue.reconfigure(
            sort_key=self._profiles.sort_key,
            registrations=self._profiles.registrations,
            backoff=self._profiles.backoff,
        )
        for pod in pending:
            self._take_over(pod)
        self.observer.configured(config)
        # The plugin that rejected a pod may not be enabled any more, or have other arguments.
        queued = [each.info.uid for each in self.queue.pods()]
        self.queue.activate([*queued, *self.queue.in_flight_uids])

    def _take_over(self, pod: Pod) -> None:
        """Queue a pod that has become ours, and let one go that is not any more."""
        uid = pod.metadata.uid
        if not self.is_ours(pod):
            self.unusable.forget(pod)
            self.cluster.groups.remove_pending(pod)
            self.queue.delete(uid)
            self.nominations.withdraw(uid)
        elif uid not in self.queue and not self.cluster.is_assumed(uid):
            try:
                info = self.cluster.compiler.pending(pod)
            except ObjectError as unreadable:
                self.unusable.note(pod, unreadable)
                self.failures.refuse(pod, unreadable)
                return
            self.cluster.groups.put_pending(info)
            self.queue.add(info)
            if pod.status.nominated_node_name:
                self.nominations.nominate(info, pod.status.nominated_node_name)
