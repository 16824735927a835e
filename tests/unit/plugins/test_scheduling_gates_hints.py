"""SchedulingGates, when gates are lifted: only its own matter to a pod."""

from __future__ import annotations

import pytest

from kubesched.api.core import Pod
from kubesched.queue.events import Action
from tests.support.objects import pod
from tests.support.scheduling import Lab

from .hinting import helps, updated

LIFTED = Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(pod("p", gates=["a"]), pod("p"), True, id="its own"),
        pytest.param(pod("other", gates=["a"]), pod("other"), False, id="those of another"),
        pytest.param(
            pod("p", uid="older", gates=["a"]),
            pod("p", uid="older"),
            False,
            id="those of an earlier pod of that name",
        ),
    ],
)
def test_gates_are_lifted(old: Pod, new: Pod, want: bool) -> None:
    waiting = pod("p", gates=["a"])
    assert helps(Lab(), "SchedulingGates", waiting, updated(LIFTED, old, new)) is want
