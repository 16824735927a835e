"""DefaultPreemption, when a pod goes: it is not for this plugin to say whether that suffices."""

from __future__ import annotations

import pytest

from kubesched.api.core import Pod
from tests.support.objects import node, pod
from tests.support.scheduling import Lab

from .hinting import deleted, helps


@pytest.mark.parametrize(
    "gone", [pod("victim", node="n", cpu="4"), pod("other"), pod("p", nominated="n")]
)
def test_nobody_is_woken(gone: Pod) -> None:
    lab = Lab(node("n"))
    assert not helps(lab, "DefaultPreemption", pod("p", cpu="4", priority=9), deleted(gone))


def test_whoever_turned_the_pod_away_wakes_it() -> None:
    lab = Lab(node("n"))
    gone = pod("victim", node="n", cpu="4")
    assert helps(lab, "NodeResourcesFit", pod("p", cpu="4", priority=9), deleted(gone))
