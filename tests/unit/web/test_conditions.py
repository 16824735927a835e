"""Why a pod waits, by its condition; and which plugin says so, by its message."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kubesched.api.core import Pod, PodCondition
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.web.conditions import plugins_named, waiting_pod
from tests.support.objects import host_port, must, node, pod, pod_term, spread_over
from tests.support.worlds import case_of, world_of


def told(waiting: Pod, reason: str, message: str = "") -> Pod:
    """A pod with what a scheduler said of it."""
    said = PodCondition(type="PodScheduled", status="False", reason=reason, message=message)
    return replace(waiting, status=replace(waiting.status, conditions=(said,)))


@pytest.mark.parametrize(
    ("waiting", "state"),
    [
        (pod("p"), "active"),
        (told(pod("p"), "Unschedulable"), "unschedulable"),
        (told(pod("p"), "SchedulerError"), "backoff"),
        (told(pod("p"), "SchedulingGated"), "gated"),
        (pod("p", gates=["example.com/quota"]), "gated"),
    ],
)
def test_the_condition_tells_where_a_pod_waits(waiting: Pod, state: str) -> None:
    assert waiting_pod(waiting, ("default-scheduler",)).state == state


def test_a_gated_pod_names_its_gates() -> None:
    waiting = waiting_pod(pod("p", gates=["a", "b"], priority=7), ("default-scheduler",))

    assert waiting.plugins == ("SchedulingGates",)
    assert waiting.message == "waiting for scheduling gates: [a b]"
    assert waiting.priority == 7


def test_what_preemption_says_names_nobody() -> None:
    message = (
        "0/2 nodes are available: 2 node(s) were unschedulable. "
        "preemption: 0/2 nodes are available: 1 Insufficient cpu."
    )

    assert plugins_named(message) == ("NodeUnschedulable",)


#: What turns pods away, each by one plugin on the one node.
CASES = {
    "NodeResourcesFit": (node("n"), pod("p", cpu="100")),
    "TaintToleration": (node("n", taints=["x:NoSchedule"]), pod("p")),
    "NodeAffinity": (node("n"), pod("p", node_selector={"a": "b"})),
    "NodeUnschedulable": (node("n", unschedulable=True), pod("p")),
    "NodePorts": (node("n"), pod("p", ports=[host_port(80)])),
    "PodTopologySpread": (
        node("n"),
        pod("p", labels={"a": "b"}, spread=[spread_over("zone", a="b")]),
    ),
    "InterPodAffinity": (node("n"), pod("p", near=must(pod_term("zone", a="b")))),
}


@pytest.mark.parametrize("plugin", CASES)
def test_the_texts_of_our_own_plugins_name_them(plugin: str) -> None:
    the_node, waiting = CASES[plugin]
    world = world_of(the_node, pod("other", node="n", ports=[host_port(80)]))
    case = case_of(world, waiting)

    found = case.framework.evaluator.look(CycleState(), case.info)

    assert isinstance(found, Diagnosis)
    assert found.unschedulable_plugins == {plugin}
    assert plugins_named(found.message()) == (plugin,)
