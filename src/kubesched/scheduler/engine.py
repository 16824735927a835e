"""The scheduler without connections: informer events in through handlers, API calls out.

Profiles   everything that depends on the configuration: frameworks, extenders, queue settings
state      cluster, queue, nominations, pods that wait on Permit
outgoing   Bindings, Evictions, FailureHandler ──> StatusReports, events

handlers ──> cluster, queue ──> Scheduler ──> Bindings ──> ApiCalls
                                    └──────> FailureHandler ──> StatusReports, events
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from kubesched.api.core import Pod
from kubesched.client.held_watches import HeldWatches
from kubesched.clock import SteadyClock
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.group_forest import GroupForest
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.errors import ConfigError, ObjectError
from kubesched.framework.registry import PodBinder, Registry
from kubesched.framework.runtime import Framework
from kubesched.framework.waiting import PreBindingPods, WaitingPods
from kubesched.metrics.recorder import Metrics
from kubesched.plugins.coscheduling import Coscheduling
from kubesched.progress import LoopProgress
from kubesched.queue.group_queue import GroupSchedulingQueue
from kubesched.queue.queued_pod import QueuedPod
from kubesched.queue.scheduling_queue import SchedulingQueue
from kubesched.scheduler import state_metrics
from kubesched.scheduler.attempts import Attempts
from kubesched.scheduler.binding import Bindings
from kubesched.scheduler.binding_check import CheckedBinder
from kubesched.scheduler.checked_state import CheckedState
from kubesched.scheduler.cycle import SchedulingCycle
from kubesched.scheduler.evictions import Evictions
from kubesched.scheduler.failure import FailureHandler
from kubesched.scheduler.group_reports import GroupReports
from kubesched.scheduler.group_statuses import GroupStatuses
from kubesched.scheduler.nominations import Nominations
from kubesched.scheduler.outside import Outside
from kubesched.scheduler.profiles import Profiles
from kubesched.scheduler.queue_check import QueueCheck
from kubesched.scheduler.races import RaceDetector
from kubesched.scheduler.reports import StatusReports
from kubesched.scheduler.scheduler import Scheduler
from kubesched.scheduler.state import SchedulerState
from kubesched.scheduler.unreadable import UnusableObjects

if TYPE_CHECKING:
    from kubesched.scheduler.group_scheduling import GroupScheduling


class EngineOptions(Struct, frozen=True):
    """Options that are not part of the configuration file."""

    #: breaks ties; the same seed gives the same placements
    seed: int | None = None
    #: how long a pod stays parked if no event wakes it
    max_unschedulable_s: float = 300.0
    #: share of the time that the queue check may use; 0 disables it
    queue_check_share: float = 0.01
    #: what is checked directly before a binding
    check_before_binding: CheckedState = CheckedState.NONE
    #: makes the scheduling cycle; the web page has one that grades placements
    make_cycle: Callable[..., SchedulingCycle] = SchedulingCycle
    #: called for every bound pod
    on_bound: Callable[[QueuedPod, str], None] = lambda _pod, _node: None


class Engine:
    """The scheduler's state and the components that work on it."""

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
        #: the groups of the cluster as trees
        self.forest = GroupForest(cluster.groups, composite=gates.enabled("CompositePodGroup"))
        #: objects that were decoded and cannot be used
        self.unusable = UnusableObjects()
        #: pods between placement and binding
        self.waiting, pre_binding = WaitingPods(), PreBindingPods()
        #: set when a pod may be ready to be popped, or a binding ended
        ready = asyncio.Event()
        #: chooses nodes
        self.cycle = cycle = options.make_cycle(cluster, seed=options.seed)
        cluster.groups.by_spec = gates.enabled("GenericWorkload")

        self.evictions = Evictions(outside, cluster, self.waiting, pre_binding)
        self._profiles = Profiles(
            config,
            gates,
            outside,
            registry=registry,
            cluster=cluster,
            cycle=cycle,
            binder=self._make_binder(outside, options),
            evictor=self.evictions,
            waiting=self.waiting,
        )
        #: by scheduler name; the same mapping for good, updated with the profiles in use
        self.frameworks = self._profiles.frameworks

        steady = SteadyClock(outside.clock)
        self.queue = self._make_queue(outside, options, steady, ready)
        #: watches that wait while no pod does
        self.held_watches = HeldWatches(lambda: len(self.queue) == 0)
        self.nominations = Nominations(
            cluster,
            self.queue,
            is_preempting=self.evictions.is_evicting_for,
            is_deleted=self.evictions.is_deleted,
        )
        self.evictions.on_ended = self.nominations.after_eviction
        state = SchedulerState(cluster, self.queue, self.nominations, self.waiting, pre_binding)

        attempts = Attempts(outside.metrics, steady)
        self.reports = StatusReports(outside.api_calls, outside.find_pod)
        self.failures = FailureHandler(outside, state, reports=self.reports, attempts=attempts)
        #: finds nodes that another scheduler and this one oversubscribed together
        self.races = RaceDetector(cluster, outside.clock)
        self.bindings = Bindings(
            outside,
            state,
            profiles=self._profiles,
            failures=self.failures,
            attempts=attempts,
            on_bound=options.on_bound,
            on_room=ready.set,
            races=self.races,
        )

        #: whether the scheduling loop makes progress
        self.progress = LoopProgress(outside.clock, self._profiles.turn_limit_s)
        self.scheduler = Scheduler(
            outside,
            state,
            profiles=self._profiles,
            cycle=cycle,
            bindings=self.bindings,
            failures=self.failures,
            attempts=attempts,
            ready=ready,
            held_watches=self.held_watches,
            progress=self.progress,
        )
        self.group_reports = GroupReports(outside.api_calls, cluster.groups, outside.clock)
        self.group_statuses = GroupStatuses(outside.api_calls, cluster.groups, outside.clock)
        if isinstance(self.queue, GroupSchedulingQueue):
            self.scheduler.groups = self._make_groups(outside, state, self.queue, attempts)
        self.queue_check = QueueCheck(
            self.queue,
            cluster,
            self.frameworks,
            timer=outside.clock.monotonic,
            share=options.queue_check_share,
        )
        self.observer.begin(config, gates, cycle, self.frameworks)
        self._export(outside.metrics)

    def _make_groups(
        self,
        outside: Outside,
        state: SchedulerState,
        queue: GroupSchedulingQueue,
        attempts: Attempts,
    ) -> GroupScheduling:
        # Imported only if groups are scheduled.
        from kubesched.scheduler.group_cycle import GroupCycle  # noqa: PLC0415
        from kubesched.scheduler.group_scheduling import GroupScheduling  # noqa: PLC0415

        gates = self.gates
        return GroupScheduling(
            outside,
            state,
            queue=queue,
            forest=self.forest,
            profiles=self._profiles,
            cycle=GroupCycle(
                self.cluster,
                self.cycle,
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

    def _make_binder(self, outside: Outside, options: EngineOptions) -> PodBinder:
        if options.check_before_binding is CheckedState.NONE:
            return outside.api_calls
        return CheckedBinder(
            self.cluster,
            outside.api_calls,
            outside.metrics,
            framework_of=self._framework_of,
            reads_live=options.check_before_binding is CheckedState.LIVE,
        )

    def _framework_of(self, pod: Pod) -> Framework | None:
        return self._profiles.get(pod)

    def _make_queue(
        self, outside: Outside, options: EngineOptions, clock: SteadyClock, ready: asyncio.Event
    ) -> SchedulingQueue:
        profiles = self._profiles
        asks_pre_hints = self.gates.enabled("SchedulerPreQueueingHints")
        make: Callable[..., SchedulingQueue] = SchedulingQueue
        if self.cluster.groups.by_spec or self.cluster.groups.by_label:
            make = partial(GroupSchedulingQueue, self.forest)
        return make(
            clock=clock,
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
            # They know nothing of groups of groups.
            heeds_pre_hints=not self.gates.enabled("CompositePodGroup"),
            observe_move=outside.observer.moved,
            holding=profiles.holding,
        )

    @property
    def plugin_names(self) -> frozenset[str]:
        """The plugins of all profiles."""
        return frozenset(
            name for framework in self.frameworks.values() for name in framework.plugins.instances
        )

    def is_ours(self, pod: Pod) -> bool:
        """Return whether a pod's `schedulerName` is one of the profiles."""
        return pod.spec.scheduler_name in self.frameworks

    def _export(self, metrics: Metrics) -> None:
        state_metrics.export_queue(metrics, self.queue)
        state_metrics.export_cluster(metrics, self.cluster, lambda: len(self.bindings))
        state_metrics.export_check(metrics, self.queue_check)
        metrics.oversubscription_races.set_function(lambda: self.races.count)

    # --- configuration ----------------------------------------------------------------------

    def reconfigure(self, config: SchedulerConfiguration, pending: Sequence[Pod]) -> None:
        """Replace the configuration, from the next cycle on.

        `pending` are all pending pods. Raises ConfigError, and changes nothing, if the
        configuration cannot be used.
        """
        self._check_groups(config)
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
        # The plugin that rejected a pod may be disabled now, or have other arguments.
        queued = [each.info.uid for each in self.queue.pods()]
        self.queue.activate([*queued, *self.queue.in_flight_uids])

    def _check_groups(self, config: SchedulerConfiguration) -> None:
        """Refuse what needs another queue and other informers."""
        name = Coscheduling.name
        using = {each.scheduler_name for each in config.profiles if name in each.plugins.names()}
        changed = using ^ self.cluster.groups.by_label
        if changed:
            raise ConfigError(
                f'profile "{min(changed)}": {name} can be switched on or off only by a restart'
            )

    def _take_over(self, pod: Pod) -> None:
        """Queue a pod that a new profile claims; drop one that no profile claims any more."""
        uid = pod.metadata.uid
        if not self.is_ours(pod):
            self.unusable.forget(pod)
            self.cluster.remove_pending(pod)
            self.queue.delete(uid)
            self.nominations.withdraw(uid)
        elif uid not in self.queue and not self.cluster.is_assumed(uid):
            try:
                info = self.cluster.compiler.pending(pod)
            except ObjectError as unreadable:
                self.unusable.note(pod, unreadable)
                self.failures.refuse(pod, unreadable)
                return
            self.cluster.put_pending(info)
            self.queue.add(info)
            if pod.status.nominated_node_name:
                self.nominations.nominate(info, pod.status.nominated_node_name)
