"""The state of a live cluster with another scheduler: watched, never written to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from kubesched.api.core import Pod
from kubesched.api.scheduling import PriorityClass
from kubesched.client import resources
from kubesched.client.informer import Handler
from kubesched.clock import Clock
from kubesched.errors import ClientError, ObjectError
from kubesched.framework.grading import PlacementGrade, grade_on
from kubesched.shadow.watching import WatchedCluster
from kubesched.snapshot.world import World
from kubesched.web.conditions import waiting_pod
from kubesched.web.feed import KEPT, DecisionFeed
from kubesched.web.living_world import LivingWorld, Rules
from kubesched.web.report import DecisionsTold, PendingPodReport, PodTotals
from kubesched.web.state import ClusterState, PendingEntry, ReportedPending, by_group


class PlacementCount:
    """Wraps the handler of pods, and counts placements."""

    def __init__(self, clock: Clock) -> None:
        self.feed = DecisionFeed(clock, self._grade)
        #: grades placements of another scheduler
        self.grader: PlacementGrader | None = None
        self.placed = 0
        #: incremented with every change of a pod
        self.changes = 0
        self._handler: Handler[Pod] | None = None

    def wrap(self, handler: Handler[Pod]) -> Handler[Pod]:
        """Wrap a handler."""
        self._handler = handler
        return self

    def on_add(self, obj: Pod, initial: bool) -> None:
        """Handle a new pod."""
        self.changes += 1
        if self._handler is not None:
            self._handler.on_add(obj, initial)

    def on_update(self, old: Pod, new: Pod) -> None:
        """Handle a changed pod."""
        self.changes += 1
        self.placed += bool(new.spec.node_name and not old.spec.node_name)
        # Before the cluster has the pod on its node: that is what the placement is graded on.
        self.feed.on_update(old, new)
        if self._handler is not None:
            self._handler.on_update(old, new)

    def on_delete(self, obj: Pod) -> None:
        """Handle a deleted pod."""
        self.changes += 1
        if self._handler is not None:
            self._handler.on_delete(obj)

    def _grade(self, pod: Pod, node_name: str) -> PlacementGrade | None:
        return None if self.grader is None else self.grader.grade(pod, node_name)


class PlacementGrader:
    """Grades placements of another scheduler by our profiles, as many as the page shows.

    Not those of pods that claim devices, which can take long to search for, nor of groups, which
    are placed as a whole.
    """

    def __init__(self, watched: WatchedCluster) -> None:
        self._watched = watched
        self._left = KEPT

    def allow(self, placements: int) -> None:
        """Allow so many placements to be graded from now on."""
        self._left = max(self._left, placements)

    def grade(self, pod: Pod, node_name: str) -> PlacementGrade | None:
        """Grade the node of a pod that was pending until now; None if that is not possible."""
        watched = self._watched
        framework = watched.framework_for(pod.spec.scheduler_name)
        if framework is None or pod.spec.resource_claims or not self._left:
            return None
        cluster = watched.cluster
        if not watched.synced.is_set() or cluster.groups.of(pod) is not None:
            return None
        self._left -= 1
        try:
            return grade_on(framework, cluster.compiler.pending(pod), node_name)
        except ObjectError:
            return None


class WatchedState(ClusterState):
    """A cluster as known from the API server alone."""

    def __init__(
        self, watched: WatchedCluster, placements: PlacementCount, rules: Callable[[], Rules]
    ) -> None:
        super().__init__(watched.cluster)
        self._watched = watched
        self._placements = placements
        self._rules = rules
        self._grader = placements.grader = PlacementGrader(watched)
        self._pending = ReportedPending((), self._told)
        #: value of `changes` when `_pending` was built
        self._as_of = -1
        self._members: dict[tuple[str, str], list[Pod]] = {}
        self._members_as_of = -1

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about missing or skipped data, one line each."""
        return tuple(self._watched.notes)

    def counts(self) -> PodTotals:
        """Return the number of pods by state."""
        return self._newest().counts(self.cluster.pod_count)

    def reasons(self) -> Mapping[str, int]:
        """Return the number of pending pods by rejecting plugin, inferred from messages."""
        return self._newest().reasons

    def waiting(self) -> Iterator[PendingEntry]:
        """Yield the pending pods, those already tried first."""
        return self._newest().waiting()

    def pods(self) -> Iterable[Pod]:
        """Return all pods that are not terminated."""
        return self._watched.pods.objects.values()

    def find_pod(self, namespace: str, name: str) -> Pod | None:
        """Return a pod."""
        return self._watched.pods.get(name, namespace=namespace)

    def members(self) -> Mapping[tuple[str, str], Sequence[Pod]]:
        """Return the pods of each group."""
        if self._members_as_of != self._placements.changes:
            self._members_as_of = self._placements.changes
            self._members = by_group(self.pods())
        return self._members

    def decisions(self, limit: int) -> DecisionsTold:
        """Return the last placements and rejections that were seen, newest first."""
        # A page looks: it will show about as many of the next ones.
        self._grader.allow(limit)
        return self._placements.feed.last(limit)

    def make_world(self) -> World:
        """Return a world for what-if questions; only in a child."""
        return LivingWorld(self.cluster, self.pods(), self._rules(), notes=self.notes)

    async def priority_classes(self) -> Sequence[PriorityClass]:
        """Read the priority classes from the API server."""
        found: list[PriorityClass] = []
        path = resources.PRIORITY_CLASSES.collection()
        try:
            async for page in self._watched.client.list_pages(path, PriorityClass):
                found += page.items
        except ClientError:
            return ()  # a class in a question is then unknown
        return found

    def _told(self, pod: Pod) -> PendingPodReport:
        return waiting_pod(pod, self._watched.frameworks)

    def _newest(self) -> ReportedPending:
        if self._as_of != self._placements.changes:
            self._as_of = self._placements.changes
            self._pending = ReportedPending(
                (each.info.pod for each in self._watched.queue.pods()), self._told
            )
        return self._pending
