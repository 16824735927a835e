"""Do these pods fit? Where they go, who has to go for them, and why not."""

from __future__ import annotations

from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.api.meta import OwnerReference
from kubesched.cluster.object_store import HasMeta
from kubesched.config.features import FeatureGates
from kubesched.simulate.wanted_pods import Replicas
from tests.support.objects import budget, node, pod

from .applied import applied, workload

POOL = "node.kubernetes.io/pool"
GROUPS = FeatureGates.of({"GenericWorkload": True})


def _of_batch(name: str, node_name: str, *, cpu: str = "2") -> Pod:
    made = pod(name, node=node_name, cpu=cpu, labels={"app": "batch"}, priority=0)
    owner = OwnerReference(kind="Job", name="batch")
    return replace(made, metadata=replace(made.metadata, owner_references=(owner,)))


def test_all_fit_and_where_by_pool_and_zone() -> None:
    nodes = [
        node(f"n{n}", cpu="2", zone="a" if n < 3 else "b", labels={POOL: "p"}) for n in (1, 2, 3)
    ]

    said = applied(workload(spec="replicas: 6,"), nodes)

    assert (said.fits, said.pods, said.placed) == (True, 6, 6)
    assert [(each.pool, each.zone, each.pods, each.nodes) for each in said.places] == [
        ("p", "a", 4, {"n1": 2, "n2": 2}),
        ("p", "b", 2, {"n3": 2}),
    ]
    assert (said.left, said.preempted) == ((), ())


def test_as_many_as_fit_and_the_schedulers_reason_for_the_others() -> None:
    said = applied(workload(spec="replicas: 5,"), [node("n1", cpu="3")])

    assert (said.fits, said.placed) == (False, 3)
    assert [each.workload for each in said.left] == ["default/web"] * 2
    assert said.left[0].message.startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_pods_that_wait_already_come_first() -> None:
    waiting = pod("waiting", cpu="2")

    said = applied(workload(spec="replicas: 3,"), [node("n1", cpu="3"), waiting])

    assert (said.placed, said.pods) == (1, 3)


def test_victims_their_budgets_and_what_becomes_of_them() -> None:
    objects: list[HasMeta] = [
        node("n1", cpu="4"),
        node("small", cpu="2", taints=["full=yes:NoSchedule"]),
        _of_batch("b1", "n1"),
        _of_batch("b2", "n1"),
        budget(allowed=1, match={"app": "batch"}),
    ]
    text = workload(spec="replicas: 2,", pod="priority: 5,", cpu="2")

    said = applied(text, objects)

    assert said.fits
    assert {each.pod for each in said.preempted} == {"default/b1", "default/b2"}
    assert sorted(each.budget for each in said.preempted) == ["", "default/b"]
    assert {each.now for each in said.preempted} == {""}, "they find no other node"
    assert {each.workload for each in said.preempted} == {"default/batch"}
    assert {each.preemptor for each in said.preempted} == {"default/web-new-1", "default/web-new-2"}


def test_preemptions_of_pods_that_wait_already_do_not_count() -> None:
    objects: list[HasMeta] = [
        node("n1", cpu="4"),
        node("n2", cpu="1"),
        _of_batch("b1", "n1", cpu="4"),
    ]
    waiting = pod("urgent", cpu="4", priority=9)

    said = applied(workload(spec="replicas: 1,"), [*objects, waiting])

    assert said.fits
    assert said.preempted == ()


def test_a_stateful_sets_next_pod_is_not_created_before_the_one_before_runs() -> None:
    text = workload("StatefulSet", spec="replicas: 4,")

    in_turn = applied(text, [node("n1", cpu="2")])
    at_once = applied(
        text.replace("replicas", "podManagementPolicy: Parallel, replicas"), [node("n1", cpu="2")]
    )

    assert (in_turn.placed, at_once.placed) == (2, 2)
    assert [each.message.partition(":")[0] for each in in_turn.left] == [
        "0/1 nodes are available",
        "not created",
    ]
    assert in_turn.left[1].message == "not created: default/web-2 has to run first"
    assert all(each.message.startswith("0/1 nodes") for each in at_once.left)


def test_claims_of_a_stateful_set_are_provisioned_where_its_pods_go() -> None:
    storage = """\
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: late, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: d
volumeBindingMode: WaitForFirstConsumer
"""
    claims = (
        "volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce]}}],"
    )
    nodes = [node("n1", cpu="1", zone="a"), node("n2", cpu="1", zone="b")]

    said = applied(workload("StatefulSet", spec=f"replicas: 2, {claims}") + storage, nodes)

    assert said.fits
    assert set(said.placements.values()) == {"n1", "n2"}


def test_a_gated_pod_says_so() -> None:
    said = applied(workload(pod="schedulingGates: [{name: g}],"), [node("n1")])

    assert [each.message for each in said.left] == [
        "Scheduling is blocked due to non-empty scheduling gates"
    ]


def test_a_gang_fits_as_a_whole_or_not_at_all() -> None:
    text = """\
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: g}
spec: {schedulingPolicy: {gang: {minCount: 3}}}
---
""" + workload("Job", spec="parallelism: 3,", pod="schedulingGroup: {podGroupName: g},")

    small, large = (applied(text, [node("n1", cpu=cpu)], gates=GROUPS) for cpu in ("2", "3"))
    without = applied(text, [node("n1", cpu="2")])

    assert (small.placed, large.placed) == (0, 3)
    assert without.placed == 2
    assert any("GenericWorkload is off" in each for each in without.notes)


def test_the_answer_is_about_what_is_missing() -> None:
    text = "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c}]}}"

    nothing = applied(text, [node("n1"), pod("a", node="n1")])
    more = applied(text, [node("n1"), pod("a", node="n1")], replicas=Replicas(2, more=True))

    assert (nothing.fits, nothing.pods) == (True, 0)
    assert [(each.asked, each.existing, each.more, each.placed) for each in more.workloads] == [
        (3, 1, 2, 2)
    ]


def test_the_same_seed_gives_the_same_answer() -> None:
    nodes = [node(f"n{number}") for number in range(9)]
    text = workload(spec="replicas: 20,")

    assert applied(text, nodes) == applied(text, nodes)
