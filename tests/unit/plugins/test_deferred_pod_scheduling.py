"""DeferredPodScheduling: a pod on its node that waits for room, and what others make of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from kubesched.api.core import Node, NodePodPreemptionPolicy, Pod, PodCondition
from kubesched.client.rest import STRATEGIC_MERGE_PATCH
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.config.features import FeatureGates
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.plugin import PostFilterResult
from kubesched.framework.status import SUCCESS, Code, Status, unresolvable
from kubesched.queue.events import Action
from kubesched.queue.hints import Change
from tests.support.embedded_scheduler import Harness, scheduler
from tests.support.evaluating import feasible_rows
from tests.support.objects import must, node, pod, pod_term
from tests.support.scheduling import Lab
from tests.support.waiting import eventually

from .hinting import added, deleted, registration, updated

PLUGIN, FIT = "DeferredPodScheduling", "NodeResourcesFit"
GATE = "InPlacePodVerticalScalingSchedulerPreemption"
ON = FeatureGates.of({GATE: True})
POLICY = Action.UPDATE_NODE_PREEMPTION_POLICY

HERE = node("here", cpu="4")
FORBIDDING = replace(
    HERE,
    spec=replace(
        HERE.spec,
        pod_preemption_policy=NodePodPreemptionPolicy(disable_resize_preemption=("ops",)),
    ),
)


def resizing(name: str = "p", cpu: str = "3", **more: Any) -> Pod:
    """A pod on the node here that wants more than it was given, which is one CPU."""
    made = pod(name, node="here", cpu=cpu, resized_to={"cpu": "1"}, **more)
    condition = PodCondition(type="PodResizePending", status="True", reason="Deferred")
    return replace(made, status=replace(made.status, conditions=(condition,)))


def lab_of(*objects: Node | Pod) -> Lab:
    return Lab(*objects, node("other", cpu="64"), gates=ON)


def compiled(lab: Lab, each: Pod) -> PodInfo:
    return lab.cluster.compiler.resizing(each)


def decide(lab: Lab, each: Pod) -> list[str] | Diagnosis:
    found = feasible_rows(lab.framework.evaluator, CycleState(), compiled(lab, each))
    return found if isinstance(found, Diagnosis) else lab.names(found)


# --- filters ----------------------------------------------------------------------------------


def test_without_the_gate_the_plugin_is_not_there() -> None:
    assert PLUGIN not in Lab().framework.plugins.instances


def test_a_pod_without_node_is_not_its_business() -> None:
    lab = lab_of(HERE)
    signature = lab.pending(pod("q")).signature
    assert lab.plugin(PLUGIN).pre_filter(signature).status.code is Code.SKIP
    assert lab.plugin(PLUGIN).permit(CycleState(), lab.pending(pod("q")), "here") == (SUCCESS, 0.0)


def test_a_resize_that_fits_is_counted_already() -> None:
    waiting = resizing(cpu="3")
    assert decide(lab_of(HERE, waiting, pod("q", node="here", cpu="1")), waiting) == ["here"]


def test_a_resize_that_does_not_fit_lacks_room_on_its_node_alone() -> None:
    waiting = resizing(cpu="3")
    found = decide(lab_of(HERE, waiting, pod("q", node="here", cpu="2")), waiting)
    assert isinstance(found, Diagnosis)
    assert found.message() == (
        "0/2 nodes are available: 1 Insufficient cpu, "
        "1 node(s) didn't satisfy plugin(s) [NodeName]."
    )
    assert found.unschedulable_plugins == {FIT, "NodeName"}


def test_a_resize_that_no_eviction_helps() -> None:
    waiting = resizing(cpu="5")
    found = decide(lab_of(HERE, waiting), waiting)
    assert isinstance(found, Diagnosis)
    assert found.status_of(0).code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def test_where_resizes_may_not_preempt() -> None:
    waiting = resizing()
    found = decide(lab_of(FORBIDDING, waiting), waiting)
    assert isinstance(found, Diagnosis)
    assert found.message() == (
        "0/2 nodes are available: 1 node had resize preemption disabled, "
        "1 node(s) didn't satisfy plugin(s) [NodeName]."
    )


def test_each_node_by_itself() -> None:
    lab = lab_of(FORBIDDING)
    signature = compiled(lab, resizing()).signature
    verdict = lab.plugin(PLUGIN).filter(signature, NodeRows.all_of(lab.cluster.table))
    assert [verdict.status_of(row) for row in range(2)] == [
        unresolvable("node had resize preemption disabled"),
        unresolvable("pod assigned to different node"),
    ]


def test_no_other_filter_has_a_say() -> None:
    bad = node("here", cpu="4", unschedulable=True, taints=["a:NoExecute"], labels={"zone": "a"})
    hater = pod("hater", node="here", away_from=must(pod_term("zone", app="web")))
    waiting = resizing(
        labels={"app": "web"},
        node_selector={"no": "where"},
        ports=[80],
        near=must(pod_term("zone", app="gone")),
        host_network=True,
        host_users=False,
    )
    lab = lab_of(bad, hater, waiting, pod("q", node="here", ports=[80]))
    assert decide(lab, waiting) == ["here"]
    signature = compiled(lab, waiting).signature
    plan = lab.framework.evaluator.plans.plan(signature.row_signature)
    passed = [name for name, each in plan.pre_filter.items() if each.status.code is not Code.SKIP]
    assert sorted(passed) == sorted([PLUGIN, FIT, "NodeName"])


def test_a_signature_of_a_resize_is_not_that_of_a_pod_that_wants_a_node() -> None:
    lab = lab_of(HERE)
    named = pod("q", node="here", cpu="3")
    assert compiled(lab, resizing(cpu="3")).signature is not lab.pending(named).signature


# --- preemption -------------------------------------------------------------------------------


def test_less_important_pods_of_its_node_are_preempted() -> None:
    waiting = resizing(cpu="3", priority=5)
    lab = lab_of(
        HERE,
        waiting,
        pod("small", node="here", cpu="1", priority=1),
        pod("large", node="here", cpu="2", priority=0),
        pod("elsewhere", node="other", cpu="2", priority=0),
    )
    info, state = compiled(lab, waiting), CycleState()
    found = feasible_rows(lab.framework.evaluator, state, info)
    assert isinstance(found, Diagnosis)
    said = "preemption: found a potential placement for pod on node here, preempting 1 victims"
    assert lab.framework.post_filter(state, info, found) == PostFilterResult(
        Status(Code.SUCCESS, (said,), "DefaultPreemption"), nominated_node="here"
    )
    assert lab.evictor.evicted == [("p", "here", ["large"])]


# --- hints ------------------------------------------------------------------------------------


def helps(plugin: str, change: Change[Any], waiting: Pod | None = None) -> bool:
    lab = lab_of(HERE)
    info = lab.pending(pod("q")) if waiting is None else compiled(lab, waiting)
    found = registration(lab, plugin, change.event)
    if found.signature_hint is not None:
        return found.signature_hint(info.signature, change)
    return found.hint is None or found.hint(info, change)


def grown(on: str) -> Change[Any]:
    old, new = pod("o", node=on, cpu="1"), pod("o", node=on, cpu="2")
    return updated(Action.UPDATE_POD_SCALE_UP, old, new)


def shrunk(on: str) -> Change[Any]:
    old, new = pod("o", node=on, cpu="2"), pod("o", node=on, cpu="1")
    return updated(Action.UPDATE_POD_SCALE_DOWN, old, new)


def larger(name: str) -> Change[Any]:
    return updated(Action.UPDATE_NODE_ALLOCATABLE, node(name, cpu="4"), node(name, cpu="8"))


@pytest.mark.parametrize(
    ("plugin", "change", "want"),
    [
        pytest.param(PLUGIN, updated(POLICY, FORBIDDING, HERE), True, id="allowed now"),
        pytest.param(PLUGIN, updated(POLICY, HERE, FORBIDDING), False, id="forbidden now"),
        pytest.param(
            PLUGIN, updated(POLICY, FORBIDDING, node("other")), False, id="allowed elsewhere"
        ),
        pytest.param(PLUGIN, added(HERE), True, id="its node came"),
        pytest.param(PLUGIN, added(FORBIDDING), False, id="its node came and forbids it"),
        pytest.param(PLUGIN, added(node("other")), False, id="another node came"),
        pytest.param(FIT, deleted(pod("o", node="here")), True, id="a pod left its node"),
        pytest.param(FIT, deleted(pod("o", node="other")), False, id="a pod left another node"),
        pytest.param(FIT, shrunk("here"), True, id="a pod of its node shrank"),
        pytest.param(FIT, shrunk("other"), False, id="a pod of another node shrank"),
        pytest.param(FIT, grown("here"), True, id="a pod of its node grew"),
        pytest.param(FIT, grown("other"), False, id="a pod of another node grew"),
        pytest.param(FIT, larger("here"), True, id="its node is larger"),
        pytest.param(FIT, larger("other"), False, id="another node is larger"),
    ],
)
def test_what_helps(plugin: str, change: Change[Any], want: bool) -> None:
    assert helps(plugin, change, resizing()) is want


@pytest.mark.parametrize("change", [updated(POLICY, FORBIDDING, HERE), added(HERE)])
def test_pods_without_node_do_not_care(change: Change[Any]) -> None:
    assert not helps(PLUGIN, change)
    assert not helps(FIT, grown("here"))


# --- a whole attempt --------------------------------------------------------------------------


def test_a_deferred_pod_evicts_others_and_is_left_to_the_kubelet() -> None:
    async def main() -> None:
        async with scheduler(gates={GATE: True}) as harness:
            [free] = [row.status.allocatable for row in harness.app.cluster.table.nodes if row]
            assert free is not None
            cpu = int(free["cpu"])
            harness.cluster.create(IMPORTANT)
            harness.create_pod("victim", containers=[_container(cpu - 2)])
            harness.create_pod("p", containers=[_container(2)], priorityClassName="important")
            await eventually(lambda: is_running(harness, "p") and is_running(harness, "victim"))
            status = {
                "conditions": [
                    {"type": "PodResizePending", "status": "True", "reason": "Deferred"}
                ],
                "containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "4"}}],
            }
            await harness.app.client.patch(
                "/api/v1/namespaces/default/pods/p/status",
                {"status": status},
                content_type=STRATEGIC_MERGE_PATCH,
            )
            await eventually(lambda: harness.app.find_pod("default", "victim") is None)
            queue = harness.app.queue
            await eventually(lambda: queue.unschedulable_count == 1)
            [waiting] = queue.pods()
            assert waiting.unschedulable_plugins == {PLUGIN}
            assert harness.node_of("p")
            assert harness.message("p") == ""
            assert not waiting.info.pod.status.nominated_node_name

    asyncio.run(main())


def is_running(harness: Harness, name: str) -> bool:
    found = harness.app.find_pod("default", name)
    return found is not None and found.status.phase == "Running"


IMPORTANT = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "important"},
    "value": 9,
}


def _container(cpu: int) -> dict[str, Any]:
    return {"name": "c", "image": "i", "resources": {"requests": {"cpu": str(cpu)}}}
