"""SchedulingGates, when gates are lifted: only its own matter to a pod."""

from __future__ import annotations

from kubesched.queue.events import Action
from tests.support.objects import pod
from tests.support.scheduling import Lab

from .hinting import changed_itself, helps

LIFTED = Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED


def test_gates_are_lifted() -> None:
    waiting = pod("p", gates=["a"])
    assert helps(Lab(), "SchedulingGates", waiting, changed_itself(LIFTED, waiting, pod("p")))
