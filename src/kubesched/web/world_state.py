"""The state of a snapshot; immutable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kubesched.api.core import Pod
from kubesched.api.scheduling import PriorityClass
from kubesched.snapshot.world import World
from kubesched.web.conditions import waiting_pod
from kubesched.web.report import PodTotals
from kubesched.web.state import ClusterState, PendingEntry, ReportedPending


class WorldState(ClusterState):
    """A world that only children modify."""

    def __init__(self, world: World, classes: Sequence[PriorityClass] = ()) -> None:
        super().__init__(world.cluster)
        self._world = world
        self._classes = tuple(classes)
        self._pending = ReportedPending(
            world.pending.values(), lambda pod: waiting_pod(pod, world.frameworks)
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about missing or skipped data, one line each."""
        return tuple(self._world.notes)

    def counts(self) -> PodTotals:
        """Return the number of pods by state."""
        return self._pending.counts(self.cluster.pod_count)

    def reasons(self) -> Mapping[str, int]:
        """Return the number of pending pods by rejecting plugin, inferred from messages."""
        return self._pending.reasons

    def waiting(self) -> Iterator[PendingEntry]:
        """Yield the pending pods, those already tried first."""
        return self._pending.waiting()

    def pods(self) -> Iterable[Pod]:
        """Return all pods that are not terminated."""
        yield from self._world.pending.values()
        yield from self._world.placed.values()

    def find_pod(self, namespace: str, name: str) -> Pod | None:
        """Return a pod."""
        return self._world.find_pod(namespace, name)

    def make_world(self) -> World:
        """Return the world; only in a child."""
        return self._world

    async def priority_classes(self) -> Sequence[PriorityClass]:
        """Return the priority classes."""
        return self._classes
