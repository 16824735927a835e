"""Waiting pods by cause, each with its workloads and one example."""

from __future__ import annotations

from collections import Counter

import pytest
from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.cluster.pod_info import PodInfo
from kubesched.errors import ObjectError
from kubesched.explain.owners import WorkloadName
from kubesched.explain.waiting import explain_workload, find_workload, waiting_pods
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.evaluation import Evaluator
from kubesched.framework.feasible_nodes import FeasibleNodes
from tests.support.objects import node, pod, taint
from tests.support.storage_objects import using
from tests.support.worlds import world_of

from .test_owners import owned

NODES = (node("n1", cpu="4"), node("n2", cpu="4", taints=[taint("gpu:NoSchedule")]))
HASH = {"pod-template-hash": "5d4f"}


def replicas(count: int, *, cpu: str = "8", deployment: str = "web") -> list[Pod]:
    return [
        owned(pod(f"{deployment}-{n}", cpu=cpu, labels=HASH), "ReplicaSet", f"{deployment}-5d4f")
        for n in range(count)
    ]


def test_pods_are_grouped_by_the_reasons_of_nodes_the_most_common_cause_first() -> None:
    gated = pod("gated", gates=["example.com/quota"])
    world = world_of(*NODES, *replicas(3), pod("alone", cpu="5"), gated, pod("placed", node="n1"))

    said = waiting_pods(world)

    assert (said.waiting, said.placed, said.nodes) == (5, 1, 2)
    assert [(each.outcome, each.text, each.pods) for each in said.causes] == [
        ("Unschedulable", "Insufficient cpu, node(s) had untolerated taint(s)", 4),
        ("Gated", "waiting for scheduling gates: [example.com/quota]", 1),
    ]
    first = said.causes[0]
    assert [(each.kind, each.name, each.pods) for each in first.workloads] == [
        ("Deployment", "web", 3),
        ("Pod", "alone", 1),
    ]
    assert first.example == "default/web-0"
    assert first.message.startswith("0/2 nodes are available: 1 Insufficient cpu, 1 node(s)")
    texts = {each.text: each.details[0].text for each in first.reasons}
    assert texts["Insufficient cpu"] == "8 requested, 4 of 4 free"


def test_causes_that_differ_in_names_of_objects_alone_are_one() -> None:
    world = world_of(*NODES, *(using(pod(f"p{n}"), f"data-{n}") for n in range(3)))

    (cause,) = waiting_pods(world).causes

    assert (cause.pods, cause.text) == (3, 'persistentvolumeclaim "data-0" not found')
    assert [each.text for each in cause.pod_reasons[1].details] == [
        "PersistentVolumeClaim default/data-0 does not exist"
    ]


def test_pods_that_fit_are_nominated_or_have_no_scheduler_say_so() -> None:
    unclaimed = pod("other")
    unclaimed = replace(unclaimed, spec=replace(unclaimed.spec, scheduler_name="volcano"))
    world = world_of(*NODES, pod("fits"), pod("waits", cpu="8", nominated="n1"), unclaimed)

    found = {each.example: (each.outcome, each.text) for each in waiting_pods(world).causes}

    assert found["default/fits"] == ("Schedulable", "fits now, and is about to be tried")
    assert found["default/waits"][0] == "Nominated"
    assert found["default/other"][0] == "Unclaimed"
    assert "no profile is named volcano" in found["default/other"][1]


def test_a_namespace_counts_alone() -> None:
    world = world_of(*NODES, pod("a", cpu="8"), pod("b", namespace="shop", cpu="8"))

    said = waiting_pods(world, "shop")

    assert (said.waiting, said.placed) == (1, 0)
    assert [each.example for each in said.causes] == ["shop/b"]


def test_thousands_of_pods_of_a_workload_take_one_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_of(*NODES, *replicas(2000))
    evaluator = world.frameworks["default-scheduler"].evaluator
    look, looked = type(evaluator).look, Counter[str]()

    def counting(self: Evaluator, state: CycleState, info: PodInfo) -> FeasibleNodes | Diagnosis:
        looked[info.full_name] += 1
        return look(self, state, info)

    monkeypatch.setattr(type(evaluator), "look", counting)

    (cause,) = waiting_pods(world).causes

    assert cause.pods == 2000
    # One for the cause, and a few for the explanation of the example.
    assert looked.total() < 10


def test_no_node_at_all_is_a_cause() -> None:
    (cause,) = waiting_pods(world_of(pod("p"))).causes

    assert cause.text == "no nodes available to schedule pods"


# --- one workload -----------------------------------------------------------------------------


def test_a_workload_has_its_waiting_pods_by_cause_and_the_others_by_node() -> None:
    web = replicas(5, cpu="1")
    on_nodes = [
        replace(each, spec=replace(each.spec, node_name=name))
        for each, name in zip(web, ["n1", "n2", "n1"], strict=False)
    ]
    large = replicas(2, deployment="large")
    world = world_of(*NODES, *on_nodes, *web[3:], *large)

    said = explain_workload(world, WorkloadName("Deployment", "default", "web"))

    assert (said.waiting, said.placed) == (2, 3)
    assert [(each.node, each.pods) for each in said.nodes] == [("n1", 2), ("n2", 1)]
    assert [each.outcome for each in said.causes] == ["Schedulable"]


def test_a_replica_set_is_a_workload_of_its_own() -> None:
    world = world_of(*NODES, *replicas(2))

    said = explain_workload(world, find_workload(world, "ReplicaSet", "default", "web-5d4f"))

    assert said.waiting == 2


@pytest.mark.parametrize(
    ("kind", "namespace", "name", "hint"),
    [
        ("Deployment", "default", "wbe", "; there is deployment default/web"),
        ("Deployment", "shop", "web", "; there is deployment default/web"),
        ("StatefulSet", "default", "web", "; there is deployment default/web"),
        ("Job", "default", "nightly", ""),
    ],
)
def test_a_workload_that_is_not_there_names_similar_ones(
    kind: str, namespace: str, name: str, hint: str
) -> None:
    world = world_of(*NODES, *replicas(1))

    with pytest.raises(ObjectError) as missing:
        find_workload(world, kind, namespace, name)

    where = f"{kind.lower()} {namespace}/{name} not found among the owners of pods"
    assert str(missing.value) == where + hint
