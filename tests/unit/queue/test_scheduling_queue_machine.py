"""Whatever happens, every pod that wants a node is in exactly one place, and gets its turn."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kubesched.queue import events
from kubesched.queue.backoff import Backoff
from kubesched.queue.events import Action, ClusterEvent, Resource
from kubesched.queue.queued_pod import QueuedPod
from kubesched.queue.tally import ACTIVE, BACKOFF
from tests.support.objects import pod
from tests.support.queueing import COMPILER, Bench, info, sort_key

UIDS = [f"p{number}" for number in range(6)]
#: A pod's priority does not change while it lives.
PRIORITIES = {uid: number % 3 for number, uid in enumerate(UIDS)}
EVENTS = [
    events.NODE_ADD,
    events.NODE_DELETE,
    events.ASSIGNED_POD_DELETE,
    ClusterEvent(Resource.NODE, Action.UPDATE_NODE_LABEL),
]
PLUGINS = ["Fit", "Labels", "Anything", "Nothing"]


class QueueMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench()
        self.queue = self.bench.queue
        #: pods that exist and are not bound
        self.alive: set[str] = set()
        self.in_flight: dict[str, QueuedPod] = {}
        #: how often each pod was popped since it was last added anew
        self.attempts: dict[str, int] = {}

    # --- pods ---------------------------------------------------------------------------------

    @rule(uid=st.sampled_from(UIDS), gated=st.booleans())
    def add(self, uid: str, gated: bool) -> None:
        if uid not in self.alive and uid not in self.in_flight:
            self.attempts[uid] = 0
        if uid in self.in_flight:
            return
        if uid not in self.alive and gated:
            self.bench.gated.add(uid)
        self.queue.add(info(uid, priority=PRIORITIES[uid]))
        self.alive.add(uid)

    @rule(uid=st.sampled_from(UIDS), labels=st.booleans(), gates=st.booleans())
    def update(self, uid: str, labels: bool, gates: bool) -> None:
        if uid not in self.alive:
            return
        new = pod(
            uid,
            priority=PRIORITIES[uid],
            labels={"a": "b"} if labels else None,
            gates=["x"] if gates else (),
        )
        self.queue.update(pod(uid), COMPILER.pending(new))

    @rule(uid=st.sampled_from(UIDS))
    def delete(self, uid: str) -> None:
        self.queue.delete(uid)
        self.alive.discard(uid)
        if uid not in self.in_flight:
            self.attempts.pop(uid, None)

    # --- attempts -----------------------------------------------------------------------------

    @rule()
    def pop(self) -> None:
        parts = list(self.queue.parts())
        best = min((sort_key(each) for part, each in parts if part == ACTIVE), default=None)
        rejected = sum(part == BACKOFF and bool(each.rejectors) for part, each in parts)
        popped = self.queue.pop()
        if popped is None:
            assert best is None
            assert rejected == 0, "idle, so whoever backs off after a rejection is popped"
            return
        uid = popped.info.uid
        if best is not None:
            assert sort_key(popped) == best
        else:
            assert popped.rejectors, "never one that failed with an error"
        assert uid in self.alive
        assert not popped.gated_by
        self.attempts[uid] += 1
        assert popped.attempts == self.attempts[uid]
        self.in_flight[uid] = popped

    @precondition(lambda self: self.in_flight)
    @rule(
        data=st.data(),
        plugins=st.sets(st.sampled_from(PLUGINS), max_size=2),
        pending=st.sets(st.sampled_from(PLUGINS), max_size=1),
    )
    def fail(self, data: st.DataObject, plugins: set[str], pending: set[str]) -> None:
        uid = data.draw(st.sampled_from(sorted(self.in_flight)))
        failed = self.in_flight.pop(uid)
        if uid not in self.alive:
            self.queue.done(uid)
            self.attempts.pop(uid, None)
            return
        failed.unschedulable_plugins, failed.pending_plugins = set(plugins), set(pending)
        self.queue.requeue(failed)

    @precondition(lambda self: self.in_flight)
    @rule(data=st.data())
    def bind(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.in_flight)))
        del self.in_flight[uid]
        self.alive.discard(uid)
        self.queue.done(uid)
        self.attempts.pop(uid, None)

    # --- time and events ----------------------------------------------------------------------

    @rule(event=st.sampled_from(EVENTS))
    def move(self, event: ClusterEvent) -> None:
        self.bench.move(event)

    @rule(uids=st.lists(st.sampled_from(UIDS), max_size=3))
    def activate(self, uids: list[str]) -> None:
        self.queue.activate(uids)

    @rule(uid=st.sampled_from(UIDS))
    def open_a_gate(self, uid: str) -> None:
        self.bench.gated.discard(uid)

    @rule(seconds=st.sampled_from([0.3, 1.0, 12.0, 301.0]))
    def wait(self, seconds: float) -> None:
        self.bench.clock.advance(seconds)
        self.bench.flush()
        now = self.bench.clock.time()
        backing_off = (each for part, each in self.queue.parts() if part == BACKOFF)
        assert all(Backoff().is_waiting(each, now) for each in backing_off)
        assert all(now - each.queued_at <= 300.0 for each in self.queue.unschedulable_pods())

    # --- comparison ---------------------------------------------------------------------------

    @invariant()
    def contradicts_itself_nowhere(self) -> None:
        self.queue.validate()

    @invariant()
    def has_every_pod_exactly_once(self) -> None:
        waiting = [each.info.uid for each in self.queue.pods()]
        assert sorted(waiting) == sorted(self.alive - self.in_flight.keys())
        assert self.queue.in_flight_count == len(self.in_flight)
        counts = self.bench.counts()
        counts.pop("in flight", None)
        assert sum(counts.values()) == len(self.queue) == len(waiting)

    @invariant()
    def keeps_no_events_for_nobody(self) -> None:
        assert self.in_flight or not any(self.queue.in_flight_events.values())

    def teardown(self) -> None:
        """In the end, everybody gets a turn: gates open, time passes."""
        self.bench.gated.clear()
        for uid in list(self.in_flight):
            self.bind_now(uid)
        for uid in sorted(self.alive):
            self.queue.update(pod(uid, gates=["x"]), info(uid, priority=PRIORITIES[uid]))
        self.bench.clock.advance(1000.0)
        self.bench.flush()
        assert sorted(self.bench.drained()) == sorted(self.alive)

    def bind_now(self, uid: str) -> None:
        del self.in_flight[uid]
        self.alive.discard(uid)
        self.queue.delete(uid)
        self.queue.done(uid)


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=120, stateful_step_count=40)
