"""An explanation says what the scheduler would say, and more."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from kubesched.api.core import Node, Pod, PodCondition
from kubesched.api.meta import OwnerReference
from kubesched.errors import ObjectError, UsageError
from kubesched.explain.explaining import (
    ExplainOptions,
    changes_that_help,
    explain,
    find_pod,
)
from kubesched.explain.report import Operation
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.scheduler.cycle import SchedulingCycle
from tests.support.drawn_clusters import clusters
from tests.support.objects import (
    must,
    node,
    on_node,
    pod,
    pod_term,
    requirement,
    requires,
    spread_over,
    taint,
    term,
)
from tests.support.worlds import case_of, explained, titles, world_of

ZONE = "topology.kubernetes.io/zone"
Drawn = tuple[list[Node | Pod], Pod]


# --- what is said -----------------------------------------------------------------------------


def test_every_reason_of_a_node_is_given_not_only_the_first() -> None:
    said = explained(
        pod("p", cpu="8", node_selector={"disk": "ssd"}),
        node("n1", cpu="4", taints=[taint("gpu:NoSchedule")]),
    )

    assert [(each.plugin, each.text) for each in said.nodes[0].reasons] == [
        ("TaintToleration", "node(s) had untolerated taint(s)"),
        ("NodeAffinity", "node(s) didn't match Pod's node affinity/selector"),
        ("NodeResourcesFit", "Insufficient cpu"),
    ]
    assert said.message.startswith("0/1 nodes are available: 1 node(s) had untolerated taint(s). ")


def test_reasons_are_counted_and_those_that_stand_alone_apart() -> None:
    said = explained(
        pod("p", cpu="8"),
        node("n1", cpu="4"),
        node("n2", cpu="4", taints=[taint("gpu:NoSchedule")]),
        node("n3", cpu="16", taints=[taint("gpu:NoSchedule")]),
    )

    counted = {each.text: (each.nodes, each.alone) for each in said.reasons}
    assert counted == {
        "Insufficient cpu": (2, 1),
        "node(s) had untolerated taint(s)": (2, 1),
    }


def test_nodes_that_fit_are_scored_plugin_by_plugin() -> None:
    said = explained(
        pod("p", cpu="1", memory="1Gi"),
        node("small", cpu="2", memory="4Gi"),
        node("large", cpu="16", memory="32Gi"),
    )

    assert said.outcome == "Schedulable"
    assert [each.node for each in said.scores] == ["large", "small"]
    assert said.best_nodes == ("large",)
    large = said.scores[0]
    assert large.total == sum(each.weighted for each in large.plugins.values())
    fit = large.plugins["NodeResourcesFit"]
    # 15 of 16 cpu and 31 of 32Gi would be left: 93 and 96, of which the mean counts.
    assert (fit.raw, fit.normalized, fit.weighted) == (94, 94, 94)


def test_a_pod_that_has_a_node_is_explained_as_if_it_had_none() -> None:
    placed = pod("p", node="n1", cpu="3")
    world = world_of(node("n1", cpu="4"), node("n2", cpu="2"), placed)

    said = explain(world, placed)

    assert (said.outcome, said.current_node, said.feasible_nodes) == ("Schedulable", "n1", 1)
    assert world.cluster.node_of("p") == "n1"
    world.cluster.validate()


def test_a_gated_pod_is_said_to_wait_for_its_gates() -> None:
    said = explained(pod("p", gates=["wait"]), node("n1"))

    assert said.outcome == "Gated"
    assert "wait" in said.message
    assert [each.title for each in said.changes] == ["remove gate wait"]


def test_gates_are_removed_from_a_pod_as_it_is() -> None:
    gated = pod("p", gates=["a", "b"])

    said = explain(world_of(node("n1"), gated), gated)

    [change] = said.changes
    assert change.title == "remove gates a, b"
    assert change.patch == (Operation("remove", "/spec/schedulingGates"),)
    [command] = change.commands
    assert command.startswith("kubectl -n default patch pod p --type=json")
    assert "created anew" not in change.note


def test_without_nodes_there_is_nothing_to_try() -> None:
    said = explained(pod("p"))

    assert said.message == "no nodes available to schedule pods"
    assert said.changes == ()


def test_room_that_is_promised_to_another_pod_is_named() -> None:
    waiting = pod("first", cpu="3", priority=10, nominated="n1")
    said = explained(pod("p", cpu="2"), node("n1", cpu="4"), waiting)

    [reason] = said.nodes[0].reasons
    assert reason.text == ("Insufficient cpu (beside nominated default/first)")


def test_preemption_names_node_and_victims() -> None:
    said = explained(
        pod("p", cpu="4", priority=5),
        node("n1", cpu="4"),
        pod("low", node="n1", cpu="3", priority=1),
    )

    assert said.preemption is not None
    assert said.preemption.node == "n1"
    assert [each.pod for each in said.preemption.victims] == ["default/low"]


def for_scheduler(name: str, **more: Any) -> Pod:
    made = pod("p", **more)
    return replace(made, spec=replace(made.spec, scheduler_name=name))


def test_a_pod_that_no_profile_is_for_waits_without_events() -> None:
    said = explained(for_scheduler("defualt-scheduler"), node("n1"))

    assert said.outcome == "Unclaimed"
    assert said.message == (
        "no profile is named defualt-scheduler, as the pod's schedulerName says, only "
        "default-scheduler: unless another scheduler takes the pod, it waits without conditions "
        "and events"
    )
    # What the other profile would make of it is still worth knowing.
    assert (said.feasible_nodes, said.best_nodes) == (1, ("n1",))
    [change] = said.changes
    assert change.title == "schedulerName default-scheduler instead of defualt-scheduler"
    assert change.patch == (Operation("replace", "/spec/schedulerName", "default-scheduler"),)


def test_a_pod_of_another_scheduler_that_is_at_work_is_not_unclaimed() -> None:
    condition = PodCondition(type="PodScheduled", status="False", reason="Unschedulable")
    refused = for_scheduler("other", cpu="9")
    refused = replace(refused, status=replace(refused.status, conditions=(condition,)))
    placed = for_scheduler("other", node="n1")

    for each, outcome in ((refused, "Unschedulable"), (placed, "Schedulable")):
        said = explained(each, node("n1"))
        assert said.outcome == outcome
        assert said.notes[0].startswith("the pod is for scheduler other, which may decide other")


def test_a_profile_that_is_asked_for_stands_in_for_the_one_that_the_pod_names() -> None:
    said = explain(
        world_of(node("n1")), for_scheduler("other"), ExplainOptions(profile="default-scheduler")
    )

    assert said.outcome == "Schedulable"


def test_a_profile_that_the_configuration_does_not_have_is_refused() -> None:
    world, foreign = world_of(node("n1")), pod("p")

    with pytest.raises(UsageError, match="no profile other, only default-scheduler"):
        explain(world, foreign, ExplainOptions(profile="other"))


def test_a_missing_pod_is_answered_with_similar_names() -> None:
    world = world_of(node("n1"), pod("web-1", namespace="shop"), pod("db", namespace="prod"))

    with pytest.raises(ObjectError, match="pod shop/web-2 not found; there is shop/web-1"):
        find_pod(world, "shop", "web-2")
    with pytest.raises(ObjectError, match="pod shop/db not found; there is prod/db"):
        find_pod(world, "shop", "db")


@pytest.mark.parametrize("namespace", ["shop", "default"])
def test_the_name_of_a_workload_is_no_pod_and_said_to_be_one(namespace: str) -> None:
    made = pod("web-5d4f8-x", namespace="shop", labels={"pod-template-hash": "5d4f8"})
    owner = OwnerReference(kind="ReplicaSet", name="web-5d4f8", uid="r", controller=True)
    world = world_of(replace(made, metadata=replace(made.metadata, owner_references=(owner,))))

    with pytest.raises(ObjectError, match=r"/web not found; there is deployment shop/web$"):
        find_pod(world, namespace, "web")


# --- what would help --------------------------------------------------------------------------


def test_a_smaller_request_is_computed_from_what_is_left() -> None:
    change = explained(
        pod("p", memory="8Gi"),
        node("n1", memory="8Gi"),
        pod("a", node="n1", memory="1843Mi"),
        node("n2", memory="4Gi"),
    ).changes[0]

    assert change.title == "request 6349Mi (6.2Gi) memory instead of 8Gi"
    assert (change.nodes, change.examples) == (1, ("n1",))
    path = "/spec/containers/0/resources/requests/memory"
    assert change.patch == (Operation("replace", path, "6349Mi"),)


def test_a_taint_is_to_be_tolerated_where_nothing_else_is_in_the_way() -> None:
    tainted = [taint("gpu=yes:NoSchedule")]
    found = explained(
        pod("p", cpu="2"),
        *(node(f"g{number}", cpu="4", taints=tainted) for number in range(3)),
        node("small", cpu="1", taints=tainted),
    ).changes[0]

    assert (found.title, found.nodes) == ("tolerate taint gpu=yes:NoSchedule", 3)
    wanted = {"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}
    assert found.patch == (Operation("add", "/spec/tolerations", [wanted]),)


def test_a_selector_gets_another_value_or_goes() -> None:
    found = titles(
        pod("p", node_selector={"pool": "a"}),
        node("n1", labels={"pool": "b"}),
        node("n2", labels={}),
    )

    assert found[:2] == ["node selector pool=b instead of a", "drop node selector pool=a"]


def test_one_requirement_of_a_node_affinity_goes() -> None:
    wanted = term(requirement("disk", "In", "ssd"), requirement("pool", "Exists"))

    found = titles(pod("p", node_affinity=requires(wanted)), node("n1", labels={"pool": "a"}))

    assert found[0] == "drop node affinity disk In (ssd)"


def test_spread_gets_the_smallest_skew_that_helps() -> None:
    nodes = [
        node("a", cpu="16", labels={ZONE: "a"}),
        node("b", cpu="1", labels={ZONE: "b"}),
    ]
    placed = [pod(f"p{n}", node="a", cpu="1", labels={"app": "x"}) for n in range(3)]
    wanting = pod("p", cpu="2", labels={"app": "x"}, spread=[spread_over(ZONE, app="x")])

    found = titles(wanting, *nodes, *placed)

    assert "spread over topology.kubernetes.io/zone with maxSkew 4 instead of 1" in found


def test_anti_affinity_goes_term_by_term() -> None:
    found = titles(
        pod("p", away_from=must(pod_term(ZONE, app="x"))),
        node("n1", labels={ZONE: "a"}),
        pod("x", node="n1", labels={"app": "x"}),
    )

    assert f"drop the pod anti-affinity term over {ZONE}" in found
    assert "evict default/x (priority 0) from n1" in found


@pytest.mark.parametrize(("replica_set", "helps"), [("web-5d4f8", True), ("web", False)])
def test_pods_of_a_deployment_lose_their_anti_affinity_together(
    replica_set: str, helps: bool
) -> None:
    """It makes them all anew; a ReplicaSet of its own leaves those that there are."""
    owner = OwnerReference(kind="ReplicaSet", name=replica_set, uid="r", controller=True)
    labels = {"app": "x", "pod-template-hash": "5d4f8"}

    def of_template(name: str, **more: Any) -> Pod:
        made = pod(name, labels=labels, away_from=must(pod_term(ZONE, app="x")), **more)
        return replace(made, metadata=replace(made.metadata, owner_references=(owner,)))

    found = titles(
        of_template("p"), node("n1", labels={ZONE: "a"}), of_template("other", node="n1")
    )

    assert (f"drop the pod anti-affinity term over {ZONE}" in found) is helps


def test_cordoned_and_unwell_nodes_are_to_be_brought_back() -> None:
    found = titles(
        pod("p"),
        node("n1", unschedulable=True),
        node("n2", taints=[taint("node.kubernetes.io/not-ready:NoExecute")]),
    )

    assert found[:2] == ["uncordon node n1", "bring back node n2 (not-ready)"]


def test_several_obstacles_are_taken_away_together() -> None:
    [first, *_] = explained(
        pod("p", cpu="8", node_selector={"disk": "ssd"}),
        node("n1", cpu="4", taints=[taint("gpu:NoSchedule")]),
    ).changes

    assert first.steps == 3
    assert first.title == (
        "tolerate taint gpu:NoSchedule, and drop node selector disk=ssd, and "
        "request 4 cpu instead of 8"
    )


def test_one_more_node_comes_with_the_pods_that_every_node_gets() -> None:
    agent = pod("agent", node="n1", cpu="1")
    owner = OwnerReference(kind="DaemonSet", name="agent")
    agent = replace(agent, metadata=replace(agent.metadata, owner_references=(owner,)))
    others = (node("n1", cpu="4"), agent, pod("x", node="n1", cpu="1", priority=9))

    assert any("one more node like n1" in each for each in titles(pod("p", cpu="3"), *others))
    # Beside the agent there is no room for more than 3.
    assert not any("one more node" in each for each in titles(pod("p", cpu="4"), *others))


def test_a_node_that_is_cordoned_and_unwell_is_not_just_uncordoned() -> None:
    unwell = node(
        "n1", cpu="4", unschedulable=True, taints=[taint("node.kubernetes.io/not-ready:NoExecute")]
    )

    [change] = (each for each in explained(pod("p", cpu="8"), unwell).changes if each.steps > 1)

    assert change.title == "bring back node n1, and request 4 cpu instead of 8"
    assert change.note.startswith("Find out what is wrong with node n1: not-ready.")


def test_a_node_stays_cordoned_if_the_pod_s_own_change_places_it_elsewhere() -> None:
    cordoned, open_to_all = node("n1", cpu="4", unschedulable=True), node("n2", cpu="4")

    found = titles(pod("p", cpu="8"), cordoned, open_to_all)

    assert any(each.startswith("request 4 cpu") for each in found)
    assert not any("uncordon" in each for each in found)


def test_ports_of_a_pod_on_the_network_of_its_node_cannot_go() -> None:
    host = pod("p", ports=[80])
    host = replace(host, spec=replace(host.spec, host_network=True))

    found = explained(host, node("n1"), pod("other", node="n1", ports=[80]))

    assert "ports" not in {each.kind for each in found.changes}


def test_one_of_several_alternatives_does_not_stand_for_all_of_them() -> None:
    wanted = requires(term(requirement("a", "Exists")), term(requirement("b", "Exists")))

    assert titles(pod("p", node_affinity=wanted), node("n1"))[0] == (
        "drop the required node affinity"
    )


# --- whatever the cluster ---------------------------------------------------------------------


@given(clusters())
@settings(max_examples=40)
def test_it_says_what_the_scheduler_says(drawn: Drawn) -> None:
    objects, wanting = drawn
    said = explain(world_of(*objects), wanting)

    other = world_of(*objects)
    framework = other.frameworks["default-scheduler"]
    info = other.compile(wanting)
    decision = SchedulingCycle(other.cluster, seed=1).schedule(framework, info)
    assert (said.outcome == "Schedulable") == decision.status.ok
    assert said.message == decision.status.message
    if not decision.status.ok:
        found = framework.evaluator.look(CycleState(), info)
        assert isinstance(found, Diagnosis)
        for answer in said.nodes if found.pre_filter is None else ():
            row = other.table.row_of(answer.node)
            assert row is not None
            first = tuple(
                each.text for each in answer.reasons if each.plugin == answer.reasons[0].plugin
            )
            if answer.reasons[0].plugin == "InterPodAffinity":
                first = first[:1]  # of its rules the scheduler gives the first, and we give all
            assert first == found.status_of(row).reasons
    else:
        assert decision.node_name in said.best_nodes


@given(clusters())
@settings(max_examples=40)
def test_every_change_makes_the_pod_fit_in_a_cluster_made_anew(drawn: Drawn) -> None:
    objects, wanting = drawn
    world = world_of(*objects)
    case = case_of(world, wanting)
    if len(case.feasible()):
        return

    for proposal, rows in changes_that_help(case):
        evicted = {each.uid for each in proposal.evict}
        changed = {each.metadata.name: each for each in proposal.nodes}
        kept = [
            each
            for each in objects
            if each.metadata.uid not in evicted and each.metadata.name not in changed
        ]
        anew = world_of(*changed.values(), *kept, *proposal.arriving)
        fits = case_of(anew, proposal.pod).feasible()
        assert len(fits) == len(rows), proposal.title
        if proposal.kind == "evict":
            # None of them is evicted in vain.
            back = [on_node(each.pod, each.pod.spec.node_name) for each in proposal.evict[-1:]]
            assert not len(case_of(world_of(*kept, *back), proposal.pod).feasible())
    world.cluster.validate()


# --- evictions and preemption -------------------------------------------------------------------


def test_an_eviction_is_the_one_that_preemption_would_make() -> None:
    said = explained(
        pod("p", cpu="3", priority=100),
        node("n1", cpu="4"),
        node("n2", cpu="4"),
        pod("large", cpu="4", node="n1", priority=50),
        *(pod(f"small-{n}", cpu="1", node="n2", priority=10) for n in range(4)),
    )

    assert said.preemption is not None
    assert said.preemption.node == "n2"
    (eviction,) = [each for each in said.changes if each.kind == "evict"]
    assert eviction.evict == said.preemption.victims
    assert eviction.title.endswith(" from n2")
    assert eviction.note == "Preemption does it by itself."


def test_no_pod_is_evicted_that_would_be_scheduled_first_again() -> None:
    important = pod("important", cpu="4", node="n1", priority=10)
    equal = pod("equal", cpu="4", node="n2", priority=0)

    assert titles(pod("p", cpu="3"), node("n1", cpu="4"), important) == [
        "one more node like n1 (4 cpu, 8Gi; there are 1)"
    ]
    found = titles(pod("p", cpu="3"), node("n1", cpu="4"), node("n2", cpu="4"), important, equal)
    assert "evict default/equal (priority 0) from n2" in found


def test_no_pod_of_a_daemon_set_is_evicted() -> None:
    agent = pod("agent", cpu="2", node="n1", priority=-1)
    owner = OwnerReference(kind="DaemonSet", name="agent", uid="d", controller=True)
    agent = replace(agent, metadata=replace(agent.metadata, owner_references=(owner,)))
    # A pod that never preempts: otherwise preemption would evict it.
    patient = pod("p", cpu="3")
    patient = replace(patient, spec=replace(patient.spec, preemption_policy="Never"))

    assert not [each for each in titles(patient, node("n1", cpu="4"), agent) if "evict" in each]
