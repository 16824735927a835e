"""Pods for the queue's tests, and a queue whose surroundings the test decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubesched.api import names
from kubesched.api.core import Pod
from kubesched.clock import VirtualClock
from kubesched.cluster.pod_info import PodCompiler, PodInfo
from kubesched.queue.backoff import Backoff
from kubesched.queue.events import Action, ClusterEvent, Resource
from kubesched.queue.hints import Change, Registration, Registrations
from kubesched.queue.queued_pod import QueuedEntity, QueuedPod
from kubesched.queue.scheduling_queue import SchedulingQueue
from tests.support.objects import pod

COMPILER = PodCompiler()

#: Plugin → events; None: everything, an empty list: nothing.
REGISTERED: dict[str, Registrations] = {
    "Fit": [
        Registration(ClusterEvent(Resource.POD, Action.DELETE | Action.UPDATE_POD_SCALE_DOWN)),
        Registration(ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE)),
    ],
    "Labels": [
        Registration(ClusterEvent(Resource.NODE, Action.UPDATE_NODE_LABEL)),
        Registration(ClusterEvent(Resource.POD, Action.UPDATE_POD_LABEL)),
    ],
    "Gates": [
        Registration(ClusterEvent(Resource.POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED))
    ],
    "Anything": None,
    "Nothing": [],
}


def info(name: str, *, priority: int = 0, gates: Sequence[str] = ()) -> PodInfo:
    """A compiled pod."""
    return COMPILER.pending(pod(name, priority=priority, gates=gates))


def queued(name: str, *, priority: int = 0, at: float = 0.0) -> QueuedPod:
    """A pod as the queue holds it."""
    return QueuedPod(info(name, priority=priority), queued_at=at)


def sort_key(each: QueuedEntity) -> tuple[float, ...]:
    """Order as PrioritySort does."""
    return (-each.priority, each.queued_at)


class Bench:
    """A queue, its clock, and its gates."""

    def __init__(
        self,
        *,
        start: float = 1000.0,
        max_unschedulable_s: float = 300.0,
        registered: Mapping[str, Registrations] = REGISTERED,
    ) -> None:
        self.clock = VirtualClock(start)
        #: names of pods that the plugin "Gates" keeps out, besides those with scheduling gates
        self.gated: set[str] = set()
        self.gate_calls = 0
        self.ready_calls = 0
        #: plugin, event, answer of every hint that was asked
        self.hints: list[tuple[str, str, str]] = []
        #: pod or group, part of the queue and event of every move
        self.moves: list[tuple[str, str, str]] = []
        self.queue = SchedulingQueue(
            clock=self.clock,
            sort_key=sort_key,
            gate=self._gate,
            registrations={names.DEFAULT_SCHEDULER: registered},
            backoff=Backoff(),
            max_unschedulable_s=max_unschedulable_s,
            on_ready=self._on_ready,
            observe_hint=lambda *asked: self.hints.append(asked[:3]),
            observe_move=lambda entity, part, event: self.moves.append((entity.key, part, event)),
        )

    def _gate(self, each: QueuedPod) -> str:
        self.gate_calls += 1
        has_gates = bool(each.info.pod.spec.scheduling_gates)
        return "Gates" if has_gates or each.info.uid in self.gated else ""

    def _on_ready(self) -> None:
        self.ready_calls += 1

    def add(self, name: str, *, priority: int = 0, gates: Sequence[str] = ()) -> None:
        self.queue.add(info(name, priority=priority, gates=gates))
        self.queue.validate()

    def move(self, event: ClusterEvent, *, only: str | None = None) -> None:
        """Let something happen, without saying to which object."""
        self.queue.move(Change(event), only=lambda each: only in (None, each.uid))
        self.queue.validate()

    def flush(self) -> None:
        self.queue.flush_backoff()
        self.queue.flush_parked()
        self.queue.validate()

    def pop(self) -> QueuedPod:
        popped = self.queue.pop()
        assert popped is not None
        self.queue.validate()
        return popped

    def fail(self, each: QueuedPod, *plugins: str, pending: Sequence[str] = ()) -> None:
        """Bring a pod back that these plugins turned away; without any, after an error."""
        each.unschedulable_plugins = set(plugins)
        each.pending_plugins = set(pending)
        self.queue.requeue(each)
        self.queue.validate()

    def failed(self, name: str, *plugins: str, pending: Sequence[str] = ()) -> QueuedPod:
        """Add a pod, try it, and bring it back."""
        self.add(name)
        each = self.pop()
        assert each.info.uid == name
        self.fail(each, *plugins, pending=pending)
        return each

    def update(self, old: Pod, new: Pod) -> None:
        self.queue.update(old, COMPILER.pending(new))
        self.queue.validate()

    def drained(self) -> list[str]:
        """Pop everything that can be popped, and say in which order."""
        names = []
        while (popped := self.queue.pop()) is not None:
            names.append(popped.info.uid)
            self.queue.done(popped.info.uid)
        return names

    def counts(self) -> dict[str, int]:
        """Where pods are, places without any left out."""
        queue = self.queue
        places = {
            "active": queue.active_count,
            "backoff": queue.backoff_count,
            "unschedulable": queue.unschedulable_count,
            "gated": queue.gated_count,
            "in flight": queue.in_flight_count,
        }
        return {place: count for place, count in places.items() if count}
