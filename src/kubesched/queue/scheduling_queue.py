"""The scheduling queue: every pod that wants a node and has none is in exactly one place.

    add ──> gated ────────────────┐
      └──> active ── pop ──> in flight ── bound ──> gone
             ^  ^                └─ failed ─┬─ error ──> backing off (errors)
             │  └── after backoff ──────────┼─ an event came meanwhile ──> backing off
             └── an event that may help ────┴─> unschedulable

*Active* pods are popped in the order of the QueueSort plugin. When there are none, pods that are
backing off after a rejection are popped early: waiting helps nobody while the scheduler is idle.
Those that failed with an error wait in any case. *Unschedulable* pods are parked until an event
happens that one of the plugins which turned them away has registered, or until they have been
parked for too long. *Gated* pods are parked until their PreEnqueue plugin lets them go.

The queue does nothing by itself: `flush` is to be called about once a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from kubesched.api.core import Pod
from kubesched.clock import Clock
from kubesched.cluster.pod_info import PodInfo
from kubesched.errors import require
from kubesched.queue import events
from kubesched.queue.backoff import Backoff
from kubesched.queue.differences import pod_events
from kubesched.queue.events import ClusterEvent
from kubesched.queue.heap import Key, PodHeap
from kubesched.queue.in_flight import InFlight
from kubesched.queue.interest import Interest, Registrations
from kubesched.queue.parked import ParkedPods
from kubesched.queue.queued_pod import QueuedPod


class SchedulingQueue:
    """Pods that wait for a node."""

    def __init__(
        self,
        *,
        clock: Clock,
        sort_key: Callable[[QueuedPod], Key],
        gate: Callable[[QueuedPod], str],
        registrations: Mapping[str, Registrations],
        backoff: Backoff,
        max_unschedulable_s: float = 300.0,
        on_ready: Callable[[], None] = lambda: None,
    ) -> None:
        self._clock = clock
        #: returns the plugin that keeps a pod out, "" if none does
        self._gate = gate
        self._interest = Interest(registrations)
        self._backoff = backoff
        self._max_unschedulable_s = max_unschedulable_s
        #: called whenever there may be something to pop
        self._on_ready = on_ready
        self._active = PodHeap(sort_key)
        self._backing_off = PodHeap(lambda pod: (backoff.expires_at(pod), *sort_key(pod)))
        self._backing_off_errors = PodHeap(lambda pod: (backoff.expires_at(pod),))
        self._parked = ParkedPods()
        self._in_flight = InFlight()

    # --- what is where ----------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._active) + self.backoff_count + len(self._parked)

    def __contains__(self, uid: object) -> bool:
        return any(uid in place for place in self._places())

    @property
    def active_count(self) -> int:
        """The number of pods that can be tried now."""
        return len(self._active)

    @property
    def backoff_count(self) -> int:
        """The number of pods that are backing off."""
        return len(self._backing_off) + len(self._backing_off_errors)

    @property
    def gated_count(self) -> int:
        """The number of pods that a PreEnqueue plugin keeps out."""
        return self._parked.gated_count

    @property
    def unschedulable_count(self) -> int:
        """The number of pods that were tried in vain and wait for an event."""
        return len(self._parked) - self.gated_count

    @property
    def in_flight_count(self) -> int:
        """The number of pods that were popped and are neither bound nor back."""
        return len(self._in_flight)

    def pods(self) -> Iterable[QueuedPod]:
        """Return all pods in the queue."""
        return [pod for place in self._places() for pod in place]

    # --- pods come and go -------------------------------------------------------------------

    def add(self, info: PodInfo) -> None:
        """Add a pod; one that is in the queue already takes over the new version."""
        if self._replace(info):
            return
        if info.uid in self._in_flight:
            return
        self._enqueue(QueuedPod(info, queued_at=self._clock.time()))

    def update(self, old: Pod, new: PodInfo) -> None:
        """Take over a new version of a pod, which may be what it waited for."""
        happened = pod_events(old, new.pod)
        if new.uid in self._in_flight:
            for event in happened:
                self._in_flight.record(event, only=new.uid)
            return
        if not self._replace(new):
            self.add(new)
            return
        parked = self._parked.get(new.uid)
        if parked is not None:
            helping = [event for event in happened if self._may_help(event, parked)]
            if helping:
                self._wake(parked, backoff=not self._end_pending(helping, parked))

    def delete(self, uid: str) -> None:
        """Remove a pod, wherever it is."""
        for place in self._places():
            place.remove(uid)

    def pop(self) -> QueuedPod | None:
        """Return the pod to try next, or None if there is none; it is then in flight."""
        pod = self._active.pop() or self._backing_off.pop()
        if pod is None:
            return None
        pod.attempts += 1
        self._in_flight.begin(pod.info.uid)
        return pod

    def done(self, uid: str) -> None:
        """Note that a popped pod needs no more care: it is bound, or gone."""
        self._in_flight.end(uid)

    def requeue(self, pod: QueuedPod) -> None:
        """Take back a pod that could not be placed.

        `unschedulable_plugins` and `pending_plugins` say who turned it away; nobody means that
        something went wrong.
        """
        uid = pod.info.uid
        missed = list(self._in_flight.events_since(uid))
        self._in_flight.end(uid)
        if uid in self:
            return
        pod.queued_at = self._clock.time()
        pod.flushed = False
        if not pod.rejectors:
            pod.consecutive_errors += 1
            self._enqueue(pod)
            return
        pod.unschedulable_count += 1
        pod.consecutive_errors = 0
        helping = [event for event in missed if self._may_help(event, pod)]
        if helping:
            self._enqueue(pod, backoff=not self._end_pending(helping, pod))
        else:
            self._parked.add(pod)

    # --- pods are woken ---------------------------------------------------------------------

    def move(
        self, event: ClusterEvent, *, only: Callable[[PodInfo], bool] = lambda _: True
    ) -> None:
        """Wake every parked pod that an event may help."""
        self._in_flight.record(event)
        for pod in self._parked.of(self._interest.subscribers(event)):
            if only(pod.info):
                self._wake(pod, backoff=not self._end_pending([event], pod))

    def activate(self, uids: Iterable[str]) -> None:
        """Make pods active at once, whatever they wait for; a gate still holds."""
        for uid in uids:
            if uid in self._in_flight:
                self._in_flight.record(events.FORCE_ACTIVATE, only=uid)
                continue
            parked = self._parked.get(uid)
            if parked is not None:
                self._wake(parked, backoff=False)
                continue
            pod = self._backing_off.remove(uid) or self._backing_off_errors.remove(uid)
            if pod is not None:
                self._push_active(pod)

    def flush(self) -> None:
        """Let pods go whose backoff is over, or that were parked for too long."""
        now = self._clock.time()
        for heap in (self._backing_off, self._backing_off_errors):
            while (pod := heap.peek()) and not self._backoff.is_waiting(pod, now):
                heap.pop()
                self._push_active(pod)
        for pod in self._parked:
            if now - max(pod.queued_at, pod.flushed_at) > self._max_unschedulable_s:
                pod.flushed, pod.flushed_at = True, now
                self._wake(pod)

    # --- inside -----------------------------------------------------------------------------

    def _places(self) -> tuple[PodHeap | ParkedPods, ...]:
        return self._active, self._backing_off, self._backing_off_errors, self._parked

    def _replace(self, info: PodInfo) -> bool:
        """Give a queued pod its new version; False if it is not in the queue."""
        for place in self._places():
            pod = place.get(info.uid)
            if pod is not None:
                place.replace(pod, info)
                return True
        return False

    def _wake(self, pod: QueuedPod, *, backoff: bool = True) -> None:
        self._parked.remove(pod.info.uid)
        self._enqueue(pod, backoff=backoff)

    def _enqueue(self, pod: QueuedPod, *, backoff: bool = True) -> None:
        """Put a pod that is nowhere where it belongs."""
        pod.gated_by = self._gate(pod)
        if pod.gated_by:
            pod.unschedulable_plugins = {pod.gated_by}
            pod.flushed = False
            self._parked.add(pod)
        elif backoff and self._backoff.is_waiting(pod, self._clock.time()):
            heap = self._backing_off if pod.rejectors else self._backing_off_errors
            heap.push(pod)
            self._on_ready()
        else:
            self._push_active(pod)

    def _push_active(self, pod: QueuedPod) -> None:
        if pod.initial_attempt_at is None:
            pod.initial_attempt_at = self._clock.time()
        self._active.push(pod)
        self._on_ready()

    def _may_help(self, event: ClusterEvent, pod: QueuedPod) -> bool:
        return event.is_wildcard or self._concerns(event, pod, pod.waits_for)

    def _end_pending(self, helping: Iterable[ClusterEvent], pod: QueuedPod) -> bool:
        """Tell whether what a pod was told to wait for has happened: then it waits no longer."""
        return any(self._concerns(event, pod, pod.pending_plugins) for event in helping)

    def _concerns(self, event: ClusterEvent, pod: QueuedPod, plugins: Iterable[str]) -> bool:
        return self._interest.concerns(event, pod.info.pod.spec.scheduler_name, plugins)

    def validate(self) -> None:
        """Check that no pod is in two places, and none both in the queue and in flight."""
        seen: set[str] = set()
        for pod in self.pods():
            require(pod.info.uid not in seen, f"{pod} is in two places")
            require(pod.info.uid not in self._in_flight, f"{pod} is in the queue and in flight")
            seen.add(pod.info.uid)
        self._parked.validate()
