"""A pod that fits is tried within the bound that the queue documents, whatever else happens.

The world is a set of resources; a pod needs one of them and fits while it is free. A scheduler pops
pods, decides by what it sees at that moment, and reports later: meanwhile the world changes. Some
changes are not told, as if a hint had missed them.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kubesched.cluster.pod_info import PodInfo
from kubesched.queue import events
from kubesched.queue.hints import Change, Registration
from kubesched.queue.queued_pod import QueuedPod
from tests.support.objects import pod
from tests.support.queueing import COMPILER, Bench

UIDS = ["a", "b", "c"]
RESOURCES = ["disk", "gpu"]
#: the longest backoff, and the second that it is cut to
BOUND_IF_TOLD_S = 10.0 + 1.0
BOUND_IF_NOT_TOLD_S = 300.0 + BOUND_IF_TOLD_S


def _needs(each: PodInfo) -> str:
    return (each.pod.metadata.labels or {})["needs"]


def _is_what_it_needs(each: PodInfo, change: Change[Any]) -> bool:
    return change.new == _needs(each)


class ProgressMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        hint = Registration(events.NODE_ADD, hint=_is_what_it_needs)
        self.bench = Bench(registered={"Fit": [hint]})
        self.queue = self.bench.queue
        self.free: set[str] = set()
        #: pods in flight with what was decided when they were popped
        self.deciding: dict[str, tuple[QueuedPod, bool]] = {}
        self.needs: dict[str, str] = {}
        #: since when a pod fits without having been tried, and whether the queue was told
        self.fits_since: dict[str, tuple[float, bool]] = {}

    def _now(self) -> float:
        return self.bench.clock.time()

    # --- the world ----------------------------------------------------------------------------

    @rule(uid=st.sampled_from(UIDS), needs=st.sampled_from(RESOURCES))
    def add(self, uid: str, needs: str) -> None:
        if uid in self.needs:
            return
        self.needs[uid] = needs
        self.queue.add(COMPILER.pending(pod(uid, labels={"needs": needs})))
        if needs in self.free:
            self.fits_since[uid] = (self._now(), True)

    @rule(resource=st.sampled_from(RESOURCES), told=st.booleans())
    def becomes_free(self, resource: str, told: bool) -> None:
        newly = resource not in self.free
        self.free.add(resource)
        if told:
            self.queue.move(Change(events.NODE_ADD, new=resource))
        for uid, needs in self.needs.items():
            if needs != resource:
                continue
            if newly:
                self.fits_since[uid] = (self._now(), told)
            elif told and uid in self.fits_since and not self.fits_since[uid][1]:
                self.fits_since[uid] = (self._now(), True)

    @rule(resource=st.sampled_from(RESOURCES))
    def is_taken(self, resource: str) -> None:
        self.free.discard(resource)
        for uid, needs in self.needs.items():
            if needs == resource:
                self.fits_since.pop(uid, None)

    # --- the scheduler ------------------------------------------------------------------------

    @rule()
    def pop(self) -> None:
        self._pop()

    def _pop(self) -> bool:
        popped = self.queue.pop()
        if popped is None:
            return False
        fits = self.needs[popped.info.uid] in self.free
        self.deciding[popped.info.uid] = (popped, fits)
        self.fits_since.pop(popped.info.uid, None)
        return True

    @rule(resource=st.sampled_from(RESOURCES))
    def a_resource_becomes_free_during_an_attempt(self, resource: str) -> None:
        self.is_taken(resource)
        if self._pop():
            self.becomes_free(resource, told=True)
            self._report(next(reversed(self.deciding)))

    @precondition(lambda self: self.deciding)
    @rule(data=st.data(), error=st.booleans())
    def report(self, data: st.DataObject, error: bool) -> None:
        self._report(data.draw(st.sampled_from(sorted(self.deciding))), error=error)

    def _report(self, uid: str, *, error: bool = False) -> None:
        tried, fits = self.deciding.pop(uid)
        if fits and not error:
            self.queue.done(uid)
            del self.needs[uid]
            self.fits_since.pop(uid, None)
            return
        tried.pending_plugins = set()
        tried.unschedulable_plugins = set() if error else {"Fit"}
        self.queue.requeue(tried)
        if error and self.needs[uid] in self.free:
            self.fits_since[uid] = (self._now(), True)

    @rule(seconds=st.sampled_from([1, 12, 320]))
    def time_passes_while_the_scheduler_works(self, seconds: int) -> None:
        for _ in range(seconds):
            self.bench.clock.advance(1.0)
            self.bench.flush()
            for uid in list(self.deciding):
                self._report(uid)
            while self._pop():
                self._report(next(iter(self.deciding)))

    # --- the promise --------------------------------------------------------------------------

    @invariant()
    def nobody_who_fits_waits_longer_than_promised(self) -> None:
        for uid, (since, told) in self.fits_since.items():
            if uid not in self.deciding:
                bound = BOUND_IF_TOLD_S if told else BOUND_IF_NOT_TOLD_S
                assert self._now() - since <= bound, f"{uid} fits since {since}, told: {told}"

    @invariant()
    def everybody_is_somewhere(self) -> None:
        self.queue.validate()
        waiting = {each.info.uid for each in self.queue.pods()}
        assert waiting | self.deciding.keys() == self.needs.keys()


TestProgressMachine = ProgressMachine.TestCase
TestProgressMachine.settings = settings(max_examples=200, stateful_step_count=25, deadline=None)
