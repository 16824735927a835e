"""What belongs together, and how evenly it is spread."""

from __future__ import annotations

from msgspec.structs import replace

from kubesched.api.core import Node, Pod
from kubesched.api.meta import OwnerReference
from kubesched.simulate.report import WorkloadSpread
from kubesched.simulate.spreading import changes, spread_of, summed, workload_of
from tests.support.objects import node, pod
from tests.support.worlds import world_of


def _owned(one: Pod, kind: str, name: str) -> Pod:
    owner = OwnerReference(kind=kind, name=name, controller=True)
    return replace(one, metadata=replace(one.metadata, owner_references=(owner,)))


def test_replica_sets_of_a_deployment_are_one_workload() -> None:
    old = _owned(pod("a", labels={"pod-template-hash": "6d4c"}), "ReplicaSet", "web-6d4c")
    new = _owned(pod("b", labels={"pod-template-hash": "77fb"}), "ReplicaSet", "web-77fb")

    assert workload_of(old) == workload_of(new) == "default/web"


def test_pods_without_an_owner_belong_to_their_app() -> None:
    assert workload_of(pod("a", labels={"app": "web"})) == "default/web"
    assert workload_of(pod("a", labels={"app.kubernetes.io/name": "x", "app": "y"})) == "default/x"
    assert workload_of(pod("a")) == ""


def test_daemons_are_of_no_workload() -> None:
    assert workload_of(_owned(pod("a", labels={"app": "agent"}), "DaemonSet", "agent")) == ""


def _spread(*objects: Node | Pod) -> dict[str, WorkloadSpread]:
    world = world_of(*objects)
    return spread_of(world.cluster, [each for each in objects if isinstance(each, Pod)])


def test_zones_without_a_pod_count_for_the_skew() -> None:
    nodes = [node("a1", zone="a"), node("a2", zone="a"), node("b1", zone="b"), node("c1", zone="c")]
    on = ("a1", "a1", "a2", "b1")
    pods = [pod(f"w{n}", node=name, labels={"app": "web"}) for n, name in enumerate(on)]

    assert _spread(*nodes, *pods) == {
        "default/web": WorkloadSpread(pods=4, zones=2, zone_skew=3, nodes=3, most_on_a_node=2)
    }


def test_without_zones_only_nodes_tell() -> None:
    pods = [pod(f"w{n}", node="n1", labels={"app": "web"}) for n in range(2)]

    found = _spread(node("n1"), node("n2"), *pods)

    assert found["default/web"] == WorkloadSpread(pods=2, nodes=1, most_on_a_node=2)
    assert summed(found).on_one_node == 1
    assert summed(found).in_one_zone == 0


def test_only_workloads_that_change_are_listed_the_most_first() -> None:
    before = {"a": WorkloadSpread(2, 2, 0, 2, 1), "b": WorkloadSpread(4, 2, 0, 4, 1)}
    after = {"a": WorkloadSpread(2, 2, 0, 2, 1), "b": WorkloadSpread(4, 1, 4, 1, 4)}
    after["c"] = WorkloadSpread(2, 1, 2, 1, 2)

    found = changes(before, after)

    assert [each.workload for each in found] == ["b", "c"]
    assert found[1].before == WorkloadSpread()
