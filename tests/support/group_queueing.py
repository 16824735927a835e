"""A queue of groups whose gates the test decides."""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.api import names
from kubesched.api.scheduling import CompositePodGroup, PodGroup
from kubesched.clock import VirtualClock
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.group_forest import GroupForest
from kubesched.cluster.pod_groups import key_of_group
from kubesched.queue.backoff import Backoff
from kubesched.queue.events import Action, ClusterEvent, Resource
from kubesched.queue.group_queue import GroupSchedulingQueue
from kubesched.queue.hints import Registration
from kubesched.queue.queued_group import AttemptEnd, QueuedGroup
from tests.support.group_objects import member
from tests.support.objects import pod
from tests.support.queueing import sort_key

REGISTERED = {
    "Gang": [Registration(ClusterEvent(Resource.UNSCHEDULED_POD, Action.ADD))],
    "Fit": [Registration(ClusterEvent(Resource.NODE, Action.ADD))],
}


class GroupBench:
    """A queue whose gates the test decides, and the groups that it knows."""

    def __init__(self, *groups: PodGroup | CompositePodGroup, composite_gate: bool = False) -> None:
        self.cluster = Cluster()
        self.clock = VirtualClock(1000.0)
        #: names of pods that the plugin "Gang" keeps out
        self.gated: set[str] = set()
        self.queue = GroupSchedulingQueue(
            GroupForest(self.cluster.groups, composite=composite_gate),
            clock=self.clock,
            sort_key=sort_key,
            gate=lambda each: "Gang" if each.info.uid in self.gated else "",
            registrations={names.DEFAULT_SCHEDULER: REGISTERED},
            backoff=Backoff(),
        )
        for each in groups:
            self.know(each)

    def know(self, group: PodGroup | CompositePodGroup) -> None:
        """Let a group come."""
        if isinstance(group, PodGroup):
            self.cluster.groups.objects.put(group)
        else:
            self.cluster.groups.composites.put(group)
        self.queue.group_came(key_of_group(group))
        self.queue.validate()

    def lose(self, group: PodGroup | CompositePodGroup) -> None:
        """Let a group go."""
        if isinstance(group, PodGroup):
            self.cluster.groups.objects.remove(group)
        else:
            self.cluster.groups.composites.remove(group)
        self.queue.group_went(key_of_group(group))
        self.queue.validate()

    def add(self, *names_: str, group: str = "g", priority: int = 0) -> None:
        for name in names_:
            self.clock.advance(0.01)
            made = member(name, group, priority=priority)
            self.queue.add(self.cluster.compiler.pending(made))
            self.queue.validate()

    def add_single(self, name: str, *, priority: int = 0) -> None:
        self.clock.advance(0.01)
        self.queue.add(self.cluster.compiler.pending(pod(name, priority=priority)))

    def pop(self) -> QueuedGroup:
        popped = self.queue.pop_entity()
        assert isinstance(popped, QueuedGroup), popped
        return popped

    def end(
        self,
        group: QueuedGroup,
        end: AttemptEnd,
        *,
        failed: Sequence[str] | None = None,
    ) -> None:
        """End an attempt: some pods come back, by default all; the others are bound."""
        for each in group.pods():
            if failed is None or each.info.uid in failed:
                each.unschedulable_plugins = {"Fit"}
                self.queue.requeue(each)
            else:
                self.queue.done(each.info.uid)
        self.queue.end_attempt(group, end)
        self.queue.validate()

    def counts(self) -> dict[str, int]:
        queue = self.queue
        places = {
            "active": queue.active_count,
            "backoff": queue.backoff_count,
            "unschedulable": queue.unschedulable_count,
            "gated": queue.gated_count,
            "incomplete": queue.incomplete_count,
            "pending": queue.pending_count,
            "in flight": queue.in_flight_count,
        }
        return {place: count for place, count in places.items() if count}
