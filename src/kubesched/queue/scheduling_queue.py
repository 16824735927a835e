"""The scheduling queue: every pending pod is in exactly one of its parts.

    add ──> gated ────────────────┐
      └──> active ── pop ──> in flight ── bound ──> gone
             ^  ^                └─ failed ─┬─ error ──> backing off (errors)
             │  └── after backoff ──────────┼─ an event arrived meanwhile ──> backing off
             └── an event that may help ────┴─> unschedulable

*Active* pods are popped in the order of the QueueSort plugin. When there are none, pods that are
backing off after a rejection are popped early, because the scheduler would be idle otherwise. Pods
that have reached the longest backoff wait for a tenth of it first, and pods that failed with an
error wait for all of it. *Unschedulable* pods are parked until an event arrives that a plugin which
rejected them has registered for, or until `max_unschedulable_s` is over. *Gated* pods are parked
until their PreEnqueue plugin admits them.

A pod that becomes feasible is retried after its backoff at the latest (rounded up to a second) if
an event reported the change, and after `max_unschedulable_s` and a flush if none did.

The queue has no timers: the scheduler calls `flush_backoff` once a second and `flush_parked` twice
a minute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from kubesched.api.core import Pod
from kubesched.clock import Clock
from kubesched.cluster.pod_info import PodInfo
from kubesched.errors import require
from kubesched.queue import events
from kubesched.queue.backoff import Backoff
from kubesched.queue.differences import pod_events
from kubesched.queue.events import ClusterEvent
from kubesched.queue.heap import Key, PodHeap
from kubesched.queue.hints import Change, Registrations
from kubesched.queue.in_flight import InFlight
from kubesched.queue.parked import ParkedPods
from kubesched.queue.queued_pod import POD, QueuedEntity, QueuedPod
from kubesched.queue.tally import ACTIVE, BACKOFF, GATED, UNSCHEDULABLE, QueueTally
from kubesched.queue.waking import HintEvaluation, HintObserver, Listeners, PreHintObserver, Wake

#: Returns whether a gated pod stays gated.
IsHeld = Callable[[QueuedPod], bool]
#: Called when a pod or group enters a part of the queue: with the part and the event's label.
MoveObserver = Callable[[QueuedEntity, str, str], None]


#: The part of the queue that hints choose; a gate, or a backoff that is over, may override it.
_SENT_TO: Final[Mapping[Wake | None, str]] = {
    Wake.NO: UNSCHEDULABLE,
    Wake.AFTER_BACKOFF: BACKOFF,
    Wake.AT_ONCE: ACTIVE,
    None: "",
}


class SchedulingQueue:
    """Pending pods, each in one part of the queue."""

    def __init__(
        self,
        *,
        clock: Clock,
        sort_key: Callable[[QueuedEntity], Key],
        gate: Callable[[QueuedPod], str],
        registrations: Mapping[str, Mapping[str, Registrations]],
        backoff: Backoff,
        max_unschedulable_s: float = 300.0,
        on_ready: Callable[[], None] = lambda: None,
        observe_hint: HintObserver | None = None,
        observe_pre_hint: PreHintObserver | None = None,
        heeds_pre_hints: bool = True,
        observe_move: MoveObserver = lambda _entity, _queue, _event_label: None,
        holding: Callable[[], IsHeld] = lambda: lambda _pod: False,
    ) -> None:
        self._clock = clock
        #: returns the PreEnqueue plugin that gates a pod, "" if none does
        self._gate = gate
        #: called once per event; the function that it returns decides whether a pod stays gated
        self._holding = holding
        self._observe_hint = observe_hint
        self._observe_move = observe_move
        #: None if pre-hints are disabled
        self._observe_pre_hint = observe_pre_hint
        self._heeds_pre_hints = heeds_pre_hints
        self._max_unschedulable_s = max_unschedulable_s
        #: called whenever there may be something to pop
        self._on_ready = on_ready
        #: returns whether another attempt at a pod or group cannot succeed; simulations set it
        self.is_futile: Callable[[QueuedEntity], bool] = lambda _entity: False
        self._parked = ParkedPods()
        self._in_flight = InFlight()
        self.tally = QueueTally()
        self._configure(sort_key, registrations, backoff)

    def _configure(
        self,
        sort_key: Callable[[QueuedEntity], Key],
        registrations: Mapping[str, Mapping[str, Registrations]],
        backoff: Backoff,
    ) -> None:
        timer = self._clock.monotonic
        self._listeners = Listeners(
            registrations,
            timer=timer,
            observe=self._observe_hint,
            observe_pre_hint=self._observe_pre_hint,
            heeds_pre_hints=self._heeds_pre_hints,
        )
        self._backoff = backoff
        self._active = PodHeap(sort_key)
        self._backing_off = PodHeap(lambda pod: (backoff.expires_at(pod), *sort_key(pod)))
        self._backing_off_errors = PodHeap(lambda pod: (backoff.expires_at(pod),))

    def reconfigure(
        self,
        *,
        sort_key: Callable[[QueuedEntity], Key],
        registrations: Mapping[str, Mapping[str, Registrations]],
        backoff: Backoff,
    ) -> None:
        """Replace order, registrations and backoff; every pod stays in its part of the queue."""
        before = self._active, self._backing_off, self._backing_off_errors
        self._configure(sort_key, registrations, backoff)
        after = self._active, self._backing_off, self._backing_off_errors
        for old, new in zip(before, after, strict=True):
            for pod in old:
                new.push(pod)

    # --- counts and parts -------------------------------------------------------------------

    def __len__(self) -> int:
        return self.active_count + self.backoff_count + self._parked.pod_count

    def __contains__(self, uid: object) -> bool:
        return any(uid in place for place in self._places())

    @property
    def active_count(self) -> int:
        """The number of pods that are ready to be popped."""
        return self._active.pod_count

    @property
    def backoff_count(self) -> int:
        """The number of pods that are backing off."""
        return self._backing_off.pod_count + self._backing_off_errors.pod_count

    @property
    def gated_count(self) -> int:
        """The number of pods that a PreEnqueue plugin gates."""
        return self._parked.gated_count

    @property
    def unschedulable_count(self) -> int:
        """The number of pods that were rejected and wait for an event."""
        return self._parked.pod_count - self.gated_count

    @property
    def incomplete_count(self) -> int:
        """The number of pods whose groups do not all exist yet: none without groups."""
        return 0

    @property
    def pending_count(self) -> int:
        """The number of pods whose group is in flight: none without groups."""
        return 0

    def entities(self) -> dict[tuple[str, str], int]:
        """Return the number of pods and of groups, by part of the queue and kind."""
        return {
            (ACTIVE, POD): self.active_count,
            (BACKOFF, POD): self.backoff_count,
            (UNSCHEDULABLE, POD): self.unschedulable_count,
            (GATED, POD): self.gated_count,
        }

    @property
    def in_flight_count(self) -> int:
        """The number of pods that were popped and are neither bound nor requeued."""
        return len(self._in_flight)

    @property
    def in_flight_uids(self) -> Iterable[str]:
        """The uids of the pods in flight."""
        return iter(self._in_flight)

    def is_in_flight(self, uid: str) -> bool:
        """Return whether a pod was popped and is neither bound nor requeued."""
        return uid in self._in_flight

    @property
    def in_flight_events(self) -> Mapping[str, int]:
        """The number of events of each kind that are recorded for pods in flight."""
        return self._in_flight.counts()

    def pods(self) -> Iterable[QueuedPod]:
        """Return all pods in the queue."""
        return [pod for place in self._places() for entity in place for pod in entity.pods()]

    def unschedulable_pods(self) -> Iterable[QueuedPod]:
        """Return the pods that were rejected and wait for an event."""
        return (pod for each in self._parked if not each.gated_by for pod in each.pods())

    def unschedulable_pod(self, uid: str) -> QueuedPod | None:
        """Return a pod if it was rejected and waits for an event."""
        pod = self._parked.get(uid)
        return pod if isinstance(pod, QueuedPod) and not pod.gated_by else None

    def is_gated(self, uid: str) -> bool:
        """Return whether a PreEnqueue plugin gates a pod, or the group that it belongs to."""
        parked = self._parked.get(self._key_of(uid))
        return parked is not None and bool(parked.gated_by)

    def parts(self) -> Iterator[tuple[str, QueuedPod]]:
        """Return each pod with its part of the queue, unschedulable pods first.

        Read it before the queue changes: it iterates over the queue's own structures.
        """
        parked = list(self._parked)
        parts: tuple[tuple[str, Iterable[QueuedEntity]], ...] = (
            (UNSCHEDULABLE, [each for each in parked if not each.gated_by]),
            (BACKOFF, self._backing_off),
            (BACKOFF, self._backing_off_errors),
            (ACTIVE, self._active),
            (GATED, [each for each in parked if each.gated_by]),
        )
        for part, entities in parts:
            yield from ((part, pod) for entity in entities for pod in entity.pods())

    # --- add, pop, requeue ------------------------------------------------------------------

    def add(self, info: PodInfo) -> None:
        """Add a pod, or update it if it is in the queue."""
        if not self._replace(info):
            self._add(info, events.UNSCHEDULED_POD_ADD)

    def update(self, old: Pod, new: PodInfo) -> None:
        """Update a pod, and wake it if the change may help it."""
        happened = pod_events(old, new.pod, is_target=True)
        changes = [Change(event, old, new.pod) for event in happened]
        if new.uid in self._in_flight:
            for change in changes:
                self._in_flight.record(change, only=new.uid)
            return
        if not self._replace(new):
            self._add(new, events.UNSCHEDULED_POD_ADD)
            return
        for change in changes:
            parked = self._parked.get(self._key_of(new.uid))
            if parked is not None:
                wake = _strongest(self._listeners.evaluate(change), parked)
                self._wake(parked, wake, change.event)

    def delete(self, uid: str) -> None:
        """Remove a pod from the part of the queue that it is in."""
        for place in self._places():
            removed = place.remove(uid)
            if isinstance(removed, QueuedPod):
                self.tally.settled(removed)

    def pop(self) -> QueuedPod | None:
        """Pop the next pod, or None if there is none; for queues without groups."""
        popped = self.pop_entity()
        require(popped is None or isinstance(popped, QueuedPod), f"{popped} is no pod")
        return popped if isinstance(popped, QueuedPod) else None

    def pop_entity(self) -> QueuedEntity | None:
        """Pop the next pod or group, or None; its pods are in flight from now on."""
        entity = self._next()
        while entity is not None and entity.attempts and self.is_futile(entity):
            self._skip(entity)
            entity = self._next()
        if entity is None:
            return None
        entity.attempts += 1
        for pod in entity.pods():
            if pod is not entity:
                pod.attempts += 1
            self.tally.settled(pod)
            self._in_flight.begin(pod.info.uid)
        return entity

    def _next(self) -> QueuedEntity | None:
        entity = self._active.pop()
        if entity is None:
            entity = self._backing_off.peek()
            if entity is None or self._backoff.is_resting(entity, self._clock.time()):
                return None
            self._backing_off.pop()
            self._arrived(ACTIVE, events.POP_FROM_BACKOFF, entity)
        return entity

    def _skip(self, entity: QueuedEntity) -> None:
        """Queue a pod or group again as if it had been tried in vain."""
        entity.queued_at, entity.unschedulable_count = (
            self._clock.time(),
            entity.unschedulable_count + 1,
        )
        if isinstance(entity, QueuedPod):
            self._park(entity, events.SCHEDULE_ATTEMPT_FAILURE, Wake.NO)
        else:
            self._enqueue(entity, Wake.AFTER_BACKOFF, events.SCHEDULE_ATTEMPT_FAILURE)

    def done(self, uid: str) -> None:
        """End the flight of a pod that is bound or deleted."""
        self._in_flight.end(uid)

    def requeue(self, pod: QueuedPod) -> None:
        """Return a pod that could not be placed to the queue.

        Its `unschedulable_plugins` and `pending_plugins` are the plugins that rejected it; both are
        empty after an error.
        """
        uid = pod.info.uid
        missed = list(self._in_flight.events_since(uid))
        self._in_flight.end(uid)
        if uid in self:
            return
        self._note_failure(pod)
        wake = self._missed_wake(missed, pod) if pod.was_rejected else Wake.AFTER_BACKOFF
        if wake is Wake.NO:
            self._park(pod, events.SCHEDULE_ATTEMPT_FAILURE, wake)
        else:
            self._enqueue(pod, wake, events.SCHEDULE_ATTEMPT_FAILURE)

    def _note_failure(self, pod: QueuedPod) -> None:
        pod.queued_at = self._clock.time()
        pod.flushed = False
        if pod.was_rejected:
            pod.unschedulable_count += 1
            pod.consecutive_errors = 0
        else:
            pod.consecutive_errors += 1
        self.tally.count_rejections(pod)

    # --- wake parked pods -------------------------------------------------------------------

    def move(
        self, change: Change[Any], *, only: Callable[[PodInfo], bool] = lambda _: True
    ) -> None:
        """Wake every parked pod that a change may help."""
        listeners = self._listeners.of(change.event)
        if not listeners:
            return
        self._in_flight.record(change)
        if not self._parked.concerns(listeners):
            return
        evaluation = self._listeners.evaluate_pre_hints(change)
        is_held = None if change.event.is_wildcard else self._holding()
        for entity in self._parked.of(listeners, evaluation.screened):
            # Hints cannot move a pod that stays gated, so they are not evaluated for it.
            if is_held is not None and entity.gated_by and is_held(entity.gatekeeper):
                continue
            if not any(only(pod.info) and evaluation.concerns(pod.info) for pod in entity.pods()):
                continue
            self._wake(entity, _strongest(evaluation, entity), change.event)

    def has_listeners(self, event: ClusterEvent) -> bool:
        """Return whether any plugin registered for an event."""
        return bool(self._listeners.of(event))

    def activate(self, uids: Iterable[str]) -> None:
        """Make pods active immediately, without hints or backoff; gated pods stay gated."""
        for uid in uids:
            if uid in self._in_flight:
                self._in_flight.record(Change(events.FORCE_ACTIVATE), only=uid)
                continue
            key = self._key_of(uid)
            parked = self._parked.get(key)
            if parked is not None:
                self._wake(parked, None, events.FORCE_ACTIVATE)
                continue
            self._end_backoff(key, events.FORCE_ACTIVATE)

    def try_again(self, uid: str, event: ClusterEvent, *, at_once: bool = False) -> None:
        """Retry a parked pod after its backoff, without hints; a gated pod stays gated.

        `at_once` is without its backoff, even if it is backing off already.
        """
        key = self._key_of(uid)
        if uid in self._in_flight:
            self._in_flight.record(Change(events.FORCE_ACTIVATE), only=uid)
        elif (parked := self._parked.get(key)) is not None:
            self._wake(parked, Wake.AT_ONCE if at_once else Wake.AFTER_BACKOFF, event)
        elif at_once:
            self._end_backoff(key, event)

    def members_with(self, uid: str) -> Iterable[str]:  # noqa: ARG002 (there are no groups)
        """Return the pods of the group that a pod is queued in; none if it is queued by itself."""
        return ()

    def waits_for(self, uid: str, event: ClusterEvent) -> bool:
        """Return whether a plugin that rejected a parked pod registered for an event."""
        parked = self._parked.get(self._key_of(uid))
        if parked is None:
            return False
        listeners = self._listeners.of(event)
        return any(
            (parked.scheduler_name, plugin) in listeners
            for pod in parked.pods()
            for plugin in pod.rejectors
        )

    def until_backoffs_end_s(self) -> float:
        """Return the time until the next full second.

        Backoffs end at full seconds, so that pods which failed in the same second become active
        together and are ordered by priority.
        """
        return 1.0 - self._clock.time() % 1.0

    def flush_backoff(self) -> None:
        """Make pods active whose backoff is over."""
        now = self._clock.time()
        for heap in (self._backing_off, self._backing_off_errors):
            while (pod := heap.peek()) and not self._backoff.is_waiting(pod, now):
                heap.pop()
                self._push_active(pod, events.BACKOFF_COMPLETE)

    def flush_parked(self) -> None:
        """Retry pods that were parked for too long: an event may have been missed."""
        now = self._clock.time()
        for pod in self._parked:
            if now - max(pod.queued_at, pod.flushed_at) > self._max_unschedulable_s:
                pod.flushed, pod.flushed_at = True, now
                self._wake(pod, Wake.AFTER_BACKOFF, events.UNSCHEDULABLE_TIMEOUT)

    # --- inside -----------------------------------------------------------------------------

    def _places(self) -> tuple[PodHeap | ParkedPods, ...]:
        return self._active, self._backing_off, self._backing_off_errors, self._parked

    def _key_of(self, uid: str) -> str:
        """Return the key of a pod, or of the group that it is queued in."""
        return uid

    def _replace(self, info: PodInfo) -> bool:
        """Update a queued pod to its new version; False if it is not in the queue."""
        for place in self._places():
            pod = place.get(info.uid)
            if isinstance(pod, QueuedPod):
                place.replace(pod, info)
                return True
        return False

    def _add(self, info: PodInfo, event: ClusterEvent) -> None:
        if info.uid not in self._in_flight:
            self._enqueue(QueuedPod(info, queued_at=self._clock.time()), None, event)

    def _missed_wake(self, changes: Iterable[Change[Any]], pod: QueuedPod) -> Wake:
        """Return what the changes that arrived while a pod was in flight do to it."""
        wake = Wake.NO
        for change in changes:
            wake = max(wake, self._listeners.evaluate(change).wake(pod))
            if wake is Wake.AT_ONCE or (wake and not pod.pending_plugins):
                break
        return wake

    def _end_backoff(self, key: str, event: ClusterEvent) -> None:
        """Make a pod or a group active that is backing off."""
        entity = self._backing_off.remove(key) or self._backing_off_errors.remove(key)
        if entity is not None:
            self._push_active(entity, event)

    def _wake(self, entity: QueuedEntity, wake: Wake | None, event: ClusterEvent) -> None:
        """Move a parked pod or group out of the parked ones, if a change may help it."""
        if wake is not Wake.NO:
            self._parked.remove(entity.key)
            self._enqueue(entity, wake, event)

    def _enqueue(self, entity: QueuedEntity, wake: Wake | None, event: ClusterEvent) -> None:
        """Put a pod or a group into its part of the queue.

        Without hints (`wake` is None), that is the active one unless it is gated.
        """
        for pod in entity.pods():
            self._ask_gate(pod)
        entity.gated_by = entity.gatekeeper.gated_by
        self._put(entity, wake, event)

    def _ask_gate(self, pod: QueuedPod) -> None:
        gate = pod.gated_by = self._gate(pod)
        if gate and gate not in pod.rejectors:
            self.tally.gated(pod, gate)
            pod.unschedulable_plugins = {*pod.unschedulable_plugins, gate}

    def _put(self, entity: QueuedEntity, wake: Wake | None, event: ClusterEvent) -> None:
        if entity.gated_by:
            entity.flushed = False
            self._park(entity, event, wake)
        elif wake is Wake.AFTER_BACKOFF and self._backoff.is_waiting(entity, self._clock.time()):
            heap = self._backing_off if entity.was_rejected else self._backing_off_errors
            heap.push(entity)
            self._arrived(BACKOFF, event, entity, Wake.AFTER_BACKOFF)
            self._on_ready()
        else:
            self._push_active(entity, event, wake)

    def _park(self, entity: QueuedEntity, event: ClusterEvent, wake: Wake | None) -> None:
        self._parked.add(entity)
        self._arrived(UNSCHEDULABLE, event, entity, wake)

    def _push_active(
        self, entity: QueuedEntity, event: ClusterEvent, wake: Wake | None = None
    ) -> None:
        now = self._clock.time()
        for each in (entity, *entity.pods()):
            if each.initial_attempt_at is None:
                each.initial_attempt_at = now
        self._active.push(entity)
        self._arrived(ACTIVE, event, entity, wake)
        self._on_ready()

    def _arrived(
        self, part: str, event: ClusterEvent, entity: QueuedEntity, wake: Wake | None = None
    ) -> None:
        """Count an arrival in a part of the queue, and notify the observer."""
        self.tally.arrived(part, event.label, entity, sent_to=_SENT_TO[wake])
        self._observe_move(entity, part, event.label)

    def validate(self) -> None:
        """Check that no pod is in two parts of the queue, or in the queue and in flight."""
        seen: set[str] = set()
        for pod in self.pods():
            require(pod.info.uid not in seen, f"{pod} is in two parts of the queue")
            require(pod.info.uid not in self._in_flight, f"{pod} is in the queue and in flight")
            seen.add(pod.info.uid)
        self._parked.validate()
        for heap in (self._active, self._backing_off, self._backing_off_errors):
            heap.validate()


def _strongest(evaluation: HintEvaluation, entity: QueuedEntity) -> Wake:
    """Return the strongest effect of a change on one of the pods."""
    return max(map(evaluation.wake, entity.pods()))
