"""What was found about claims holds until devices change; a long search goes on in parts."""

from __future__ import annotations

import time

import pytest

from kubesched.clock import RealClock
from kubesched.config.args import DynamicResourcesArgs
from kubesched.config.durations import Duration
from kubesched.framework.attempt_error import AttemptError, AttemptPausedError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.feasible_nodes import FeasibleNodes
from kubesched.plugins import device_outcomes, search_budget
from tests.support.device_objects import (
    allocated,
    claim,
    claiming,
    device,
    device_class,
    different,
    fill,
    request,
    result,
    slice_of,
)
from tests.support.objects import node, pod
from tests.support.scheduling import Lab

LATE = "node n1: timed out trying to allocate devices"
ASKING = claiming(pod("p"), "c")
EASY = slice_of("s2", *(device(f"e{n}", a=n, b=n) for n in range(18)), node="n2")


class Exploding(Lab):
    """A node on which all combinations would have to be tried."""

    def __init__(self, timeout_s: float) -> None:
        seconds = Duration(int(timeout_s * 10**9))
        args = {"DynamicResources": DynamicResourcesArgs(filter_timeout=seconds)}
        super().__init__(node("n1"), args=args)
        devices = [device(f"d{number}", a=number % 5, b=number) for number in range(30)]
        requests = [request(f"r{n}", count=3) for n in range(6)]
        fill(
            self.cluster,
            device_class(),
            slice_of("s1", *devices, node="n1"),
            claim("c", *requests, constraints=[different("a"), different("b")]),
        )

    def attempt(self) -> CycleState:
        state = CycleState()
        state.may_pause = True
        found = self.framework.evaluator.filter(state, self.pending(ASKING))
        assert isinstance(found, FeasibleNodes)
        return state

    def attempts(self) -> int:
        """How often an attempt is paused before it ends with an error."""
        for number in range(1000):
            try:
                self.attempt()
            except AttemptPausedError:
                continue
            except AttemptError as failed:
                return number if LATE in str(failed) else -1
        return -1


@pytest.fixture(autouse=True)
def _short_slices_of_cpu_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each attempt gets the same time, also on a busy machine."""
    monkeypatch.setattr(search_budget, "SLICE_S", 0.01)
    monkeypatch.setattr(RealClock, "monotonic", lambda _clock: time.process_time())


def test_a_long_search_goes_on_in_the_next_attempt_until_its_timeout() -> None:
    lab = Exploding(0.1)
    assert lab.attempts() > 1
    assert lab.attempts() == 0, "that it takes too long is known"


def test_a_change_of_devices_lets_it_begin_anew() -> None:
    lab = Exploding(0.05)
    lab.attempts()
    fill(lab.cluster, allocated(claim("other"), result("d1")))
    assert lab.attempts() > 0


def test_an_attempt_that_may_not_be_paused_takes_the_whole_timeout() -> None:
    lab = Exploding(0.05)
    with pytest.raises(AttemptError, match=LATE):
        lab.find(ASKING)


def test_a_node_that_takes_too_long_ends_the_attempt_for_all() -> None:
    lab = Exploding(0.05)
    lab.cluster.put_node(node("n2"))
    fill(lab.cluster, EASY)
    assert lab.attempts() > 0, "as in kube-scheduler, where an error of one node does"


def test_other_claims_are_not_concerned() -> None:
    lab = Exploding(0.05)
    lab.attempts()
    fill(lab.cluster, claim("d", request()))
    assert lab.feasible(claiming(pod("q"), "d")) == ["n1"]


def test_each_attempt_gets_further_however_many_nodes_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(search_budget, "SLICE_S", 1e-9)
    monkeypatch.setattr(device_outcomes, "AT_ONCE", 2)
    nodes = [node(f"n{number}") for number in range(9)]
    lab = Lab(*nodes)
    fill(lab.cluster, device_class(), claim("c", request()))
    for number in range(9):
        devices = [device(f"d{each}", a=number) for each in range(number % 3 + 1)]
        fill(lab.cluster, slice_of(f"s{number}", *devices, node=f"n{number}"))

    attempts = 1
    while True:
        state = CycleState()
        state.may_pause = True
        try:
            found = lab.framework.evaluator.filter(state, lab.pending(ASKING))
        except AttemptPausedError:
            attempts += 1
            assert attempts < 20
        else:
            break
    assert isinstance(found, FeasibleNodes)
    assert len(found) == 9
    assert attempts > 1
