"""SchedulingGates: a pod with gates is left alone."""

from __future__ import annotations

from kubesched.framework.status import SUCCESS, unresolvable
from kubesched.plugins.scheduling_gates import SchedulingGates
from tests.support.objects import pod
from tests.support.scheduling import Lab


def test_a_pod_without_gates_may_be_tried() -> None:
    lab = Lab()
    assert SchedulingGates().pre_enqueue(lab.pending(pod())) == SUCCESS


def test_a_pod_with_gates_waits_and_all_of_them_are_named() -> None:
    lab = Lab()
    gated = lab.pending(pod(gates=["example.com/quota", "example.com/network"]))
    assert SchedulingGates().pre_enqueue(gated) == unresolvable(
        "waiting for scheduling gates: [example.com/quota example.com/network]"
    )
    assert lab.framework.gate(gated).plugin == "SchedulingGates"
