"""The state of the scheduler in this process: its columns, queue and metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice

from kubesched.api.core import Pod
from kubesched.api.scheduling import PriorityClass
from kubesched.app import App
from kubesched.client import resources
from kubesched.clock import Clock
from kubesched.cluster.pod_groups import GroupKind
from kubesched.errors import ClientError
from kubesched.framework.grading import PlacementGrade
from kubesched.metrics.recorder import Metrics
from kubesched.queue.group_queue import INCOMPLETE, PENDING
from kubesched.queue.queued_pod import QueuedPod
from kubesched.scheduler.graded_cycle import GradedCycle
from kubesched.snapshot.world import World
from kubesched.web.conditions import (
    ACTIVE,
    GATED,
    group_name,
    plugins_named,
    scheduled_condition,
    waiting_pod,
    workload_of,
)
from kubesched.web.feed import DecisionFeed
from kubesched.web.freshness import Freshness
from kubesched.web.living_world import LivingWorld, Rules
from kubesched.web.pending_pods import PendingPods
from kubesched.web.rates import of_metrics
from kubesched.web.report import DecisionsTold, PendingPodReport, PodTotals
from kubesched.web.source import LiveSource, Source
from kubesched.web.state import ClusterState, PendingEntry
from kubesched.web.times import rfc3339

#: Parts of the queue that only pods of groups are in → how the page counts them.
_STATES = {PENDING: ACTIVE, INCOMPLETE: GATED}
#: So many decisions are evaluated in full each second while no page is open.
_UNSEEN_PER_SECOND = 10
#: Limit of a list of priority classes: clusters have a few.
_MOST_CLASSES = 1000


class EngineState(ClusterState):
    """The state of a running scheduler."""

    def __init__(self, app: App, rules: Callable[[], Rules], clock: Clock) -> None:
        """`rules` returns the current configuration, which may be reloaded."""
        super().__init__(app.cluster)
        self._app = app
        self._rules = rules
        self._pending = PendingPods()
        self._feed = DecisionFeed(clock, self._grade)
        self._clock = clock
        #: when more decisions may be evaluated in full, in monotonic seconds
        self._allow_at = 0.0
        app.informers.pods.add_handler(self._pending)
        app.informers.pods.add_handler(self._feed)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about missing data, one line each."""
        if self._app.informers.have_synced:
            return ()
        return ("the cluster is still being listed: not everything is here yet",)

    def counts(self) -> PodTotals:
        """Return the number of pods by state."""
        queue = self._app.queue
        return PodTotals(
            placed=self.cluster.pod_count,
            active=queue.active_count + queue.pending_count,
            backoff=queue.backoff_count,
            unschedulable=queue.unschedulable_count,
            gated=queue.gated_count + queue.incomplete_count,
            unclaimed=sum(1 for _ in self._unclaimed()),
        )

    def reasons(self) -> Mapping[str, int]:
        """Return the number of pods that each plugin rejected."""
        found: Counter[str] = Counter()
        for (plugin, _), count in self._app.queue.tally.rejected.items():
            found[plugin] += count
        return +found

    def waiting(self) -> Iterator[PendingEntry]:
        """Yield pods that no profile claims, then our queue's, those already tried first."""
        profiles = self._app.engine.frameworks
        for pod in self._unclaimed():
            yield PendingEntry(pod, partial(waiting_pod, pod, profiles))
        for state, queued in self._app.queue.parts():
            yield PendingEntry(queued.info.pod, partial(self._told, state, queued))

    def pods(self) -> Iterable[Pod]:
        """Return all pods that are not terminated."""
        return self._app.informers.pods.objects.values()

    def find_pod(self, namespace: str, name: str) -> Pod | None:
        """Return a pod."""
        return self._app.find_pod(namespace, name)

    def members(self) -> Mapping[tuple[str, str], Sequence[Pod]]:
        """Return the pods of each group."""
        groups = self.cluster.groups
        found: dict[tuple[str, str], Sequence[Pod]] = {}
        for key in groups.groups_with_members():
            if key.kind is GroupKind.POD_GROUP:
                members = groups.members(key)
                every = {**members.pending, **members.placed}
                newest = (self.find_pod(key.namespace, e.pod.metadata.name) for e in every.values())
                found[key.namespace, key.name] = [pod for pod in newest if pod is not None]
        return found

    def decisions(self, limit: int) -> DecisionsTold:
        """Return the last decisions, newest first."""
        cycle = self._app.engine.cycle
        if isinstance(cycle, GradedCycle):
            # A page looks: it will show about as many of the next ones.
            cycle.allow(limit)
        return self._feed.last(limit)

    def make_world(self) -> World:
        """Return a world for what-if questions; only in a child."""
        self._app.engine.observer.detach()
        return LivingWorld(
            self.cluster,
            self.pods(),
            self._rules(),
            notes=self.notes,
            preemptors=self._app.engine.evictions.preemptors,
        )

    async def priority_classes(self) -> Sequence[PriorityClass]:
        """Read the priority classes from the API server; the scheduler itself needs none."""
        found: list[PriorityClass] = []
        path = resources.PRIORITY_CLASSES.collection()
        try:
            async for page in self._app.client.list_pages(path, PriorityClass):
                found += islice(page.items, _MOST_CLASSES - len(found))
        except ClientError:
            # The scheduler's role may not list them; a class in a question is then unknown.
            return ()
        return found

    def _grade(self, pod: Pod, _: str) -> PlacementGrade | None:
        cycle = self._app.engine.cycle
        if not isinstance(cycle, GradedCycle):
            return None
        now = self._clock.monotonic()
        if now >= self._allow_at:
            # A page that is opened later shows these.
            self._allow_at = now + 1.0
            cycle.allow(_UNSEEN_PER_SECOND)
        return cycle.take(pod.metadata.uid)

    def _unclaimed(self) -> Iterator[Pod]:
        return self._pending.unclaimed(self._app.engine.frameworks)

    def _told(self, state: str, queued: QueuedPod) -> PendingPodReport:
        pod = queued.info.pod
        meta = pod.metadata
        newest = self.find_pod(meta.namespace, meta.name) or pod
        group = group_name(pod)
        message = self._message(queued, newest)
        if state == INCOMPLETE:
            message = f"waiting for pod group {group} to be created"
        return PendingPodReport(
            namespace=meta.namespace,
            name=meta.name,
            state=_STATES.get(state, state),
            plugins=tuple(sorted(queued.waits_for)) or plugins_named(message),
            message=message,
            attempts=queued.attempts,
            since=meta.creation_timestamp or rfc3339(queued.queued_at),
            priority=queued.info.priority,
            group=group,
            workload=workload_of(newest),
        )

    def _message(self, queued: QueuedPod, newest: Pod) -> str:
        framework = self._app.engine.frameworks.get(newest.spec.scheduler_name)
        if queued.gated_by and framework is not None:
            return framework.gate(queued.info, queued.gated_by).message
        said = scheduled_condition(newest)
        return said.message if said is not None else ""


def engine_source(
    app: App,
    rules: Callable[[], Rules],
    metrics: Metrics,
    *,
    clock: Clock,
    title: Callable[[], str],
    notes: Callable[[], Iterable[str]] = tuple,
) -> Source:
    """Return a source for the scheduler of this process."""
    frameworks = app.engine.frameworks
    return LiveSource(
        "scheduler",
        EngineState(app, rules, clock),
        of_metrics(metrics, clock, lambda: frameworks),
        clock=clock,
        title=title,
        scheduler_names=lambda: frameworks,
        stale=Freshness(lambda: app.informers.all, clock).stale,
        notes=notes,
    )
