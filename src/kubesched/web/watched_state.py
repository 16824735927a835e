"""The state of a live cluster that somebody else schedules: watched, never written to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from kubesched.api.core import Pod
from kubesched.api.scheduling import PriorityClass
from kubesched.client import resources
from kubesched.client.informer import Handler
from kubesched.errors import ClientError
from kubesched.shadow.watching import WatchedCluster
from kubesched.snapshot.world import World
from kubesched.web.conditions import waiting_pod
from kubesched.web.living_world import LivingWorld, Rules
from kubesched.web.report import PodCounts, WaitingPod
from kubesched.web.state import ClusterState, Pending, Waiting


class PlacementCount:
    """Put between the news of pods and their handler: counts the pods that get a node."""

    def __init__(self) -> None:
        self.placed = 0
        #: grows with every change of a pod
        self.changes = 0
        self._handler: Handler[Pod] | None = None

    def wrap(self, handler: Handler[Pod]) -> Handler[Pod]:
        """Stand before a handler."""
        self._handler = handler
        return self

    def on_add(self, obj: Pod, initial: bool) -> None:
        """A pod came."""
        self.changes += 1
        if self._handler is not None:
            self._handler.on_add(obj, initial)

    def on_update(self, old: Pod, new: Pod) -> None:
        """A pod changed."""
        self.changes += 1
        self.placed += bool(new.spec.node_name and not old.spec.node_name)
        if self._handler is not None:
            self._handler.on_update(old, new)

    def on_delete(self, obj: Pod) -> None:
        """A pod went."""
        self.changes += 1
        if self._handler is not None:
            self._handler.on_delete(obj)


class WatchedState(ClusterState):
    """A cluster of which only the API server's word is known."""

    def __init__(
        self, watched: WatchedCluster, placements: PlacementCount, rules: Callable[[], Rules]
    ) -> None:
        super().__init__(watched.cluster)
        self._watched = watched
        self._placements = placements
        self._rules = rules
        self._pending = Pending((), self._told)
        #: number of changes after which `_pending` was made
        self._as_of = -1

    @property
    def notes(self) -> tuple[str, ...]:
        """What is missing or was left out, one line each."""
        return tuple(self._watched.notes)

    def counts(self) -> PodCounts:
        """Return how many pods are where."""
        return self._newest().counts(self.cluster.pod_count)

    def reasons(self) -> Mapping[str, int]:
        """Return how many pods each plugin keeps waiting, as far as messages tell."""
        return self._newest().reasons

    def waiting(self) -> Iterator[Waiting]:
        """Return the pods that wait, first those that were tried in vain."""
        return self._newest().waiting()

    def pods(self) -> Iterable[Pod]:
        """Return all pods that are not over."""
        return self._watched.pods.objects.values()

    def find_pod(self, namespace: str, name: str) -> Pod | None:
        """Return a pod."""
        return self._watched.pods.get(name, namespace=namespace)

    def make_world(self) -> World:
        """Return the same as something that can be asked what if; only in a child."""
        return LivingWorld(self.cluster, self.pods(), self._rules(), notes=self.notes)

    async def priority_classes(self) -> Sequence[PriorityClass]:
        """Ask the API server for the priority classes."""
        found: list[PriorityClass] = []
        path = resources.PRIORITY_CLASSES.collection()
        try:
            async for page in self._watched.client.list_pages(path, PriorityClass):
                found += page.items
        except ClientError:
            return ()  # whoever names one is told that it is not known
        return found

    def _told(self, pod: Pod) -> WaitingPod:
        return waiting_pod(pod, self._watched.frameworks)

    def _newest(self) -> Pending:
        if self._as_of != self._placements.changes:
            self._as_of = self._placements.changes
            self._pending = Pending(
                (each.info.pod for each in self._watched.queue.pods()), self._told
            )
        return self._pending
