"""The workload of a pod: its controller, or the controller of its ReplicaSet."""

from __future__ import annotations

from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.api.meta import ObjectMeta, OwnerReference
from kubesched.api.workloads import ReplicaSet, StatefulSet
from kubesched.explain.owners import WorkloadName, known_workloads, workload_of
from tests.support.objects import pod
from tests.support.worlds import world_of


def owned(by: Pod, kind: str, name: str) -> Pod:
    owner = OwnerReference(kind=kind, name=name, uid=name, controller=True)
    return replace(by, metadata=replace(by.metadata, owner_references=(owner,)))


def replica_set(name: str, kind: str = "", owner: str = "") -> ReplicaSet:
    owners = (OwnerReference(kind=kind, name=owner, uid=owner, controller=True),) if kind else ()
    return ReplicaSet(metadata=ObjectMeta(name=name, namespace="default", owner_references=owners))


def test_a_pod_of_a_replica_set_belongs_to_what_controls_that() -> None:
    world = world_of(replica_set("web-5d4f", "Rollout", "shop-front"), replica_set("lone"))
    known = world.cluster.workloads.replica_sets

    assert workload_of(owned(pod("a"), "ReplicaSet", "web-5d4f"), known) == WorkloadName(
        "Rollout", "default", "shop-front"
    )
    assert workload_of(owned(pod("b"), "ReplicaSet", "lone"), known) == WorkloadName(
        "ReplicaSet", "default", "lone"
    )


def test_without_the_replica_set_its_name_tells_the_deployment() -> None:
    made = owned(pod("a", labels={"pod-template-hash": "5d4f"}), "ReplicaSet", "web-5d4f")

    assert workload_of(made) == WorkloadName("Deployment", "default", "web")
    assert workload_of(owned(pod("b"), "ReplicaSet", "web-5d4f")) == WorkloadName(
        "ReplicaSet", "default", "web-5d4f"
    )


def test_other_controllers_are_the_workload_and_a_pod_may_have_none() -> None:
    assert workload_of(owned(pod("a"), "Job", "nightly")) == WorkloadName(
        "Job", "default", "nightly"
    )
    assert workload_of(pod("b")) is None


def test_workloads_without_pods_are_known_too() -> None:
    idle = StatefulSet(metadata=ObjectMeta(name="db", namespace="shop"))
    world = world_of(replica_set("web-1", "Deployment", "web"), idle)

    names = {each.full_name for each in known_workloads(world, [])}

    assert names == {"ReplicaSet default/web-1", "Deployment default/web", "StatefulSet shop/db"}
