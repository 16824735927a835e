"""Deployments, ReplicaSets, Jobs and DaemonSets really make pods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kubesched.embedded.cluster import EmbeddedCluster
from kubesched.embedded.deletion import ObjectDeletion
from kubesched.embedded.deployments import DEPLOYMENTS, REPLICA_SETS
from kubesched.embedded.nodes import NodeTemplate
from kubesched.embedded.registry import Where
from kubesched.embedded.resources import JOBS, NODES, PODS, ServedResource
from kubesched.embedded.schemas import DeleteOptions
from kubesched.embedded.versions import encode
from kubesched.embedded.workloads import DAEMON_SETS, WorkloadControllers

JsonObject = dict[str, Any]

_MERGE = "application/merge-patch+json"


class World:
    """A cluster whose controllers are shown everything until nothing changes any more."""

    def __init__(self) -> None:
        self.cluster = EmbeddedCluster(run_kubelet=False)
        self.store = self.cluster.store
        self.deletion = ObjectDeletion(self.cluster.registry)
        self.controllers = WorkloadControllers(self.cluster.registry, self.deletion)
        self._seen: dict[ServedResource, set[str]] = {}

    def settle(self) -> None:
        looks: dict[ServedResource, Callable[[str], None]] = {
            PODS: self.controllers.look_at_pod,
            REPLICA_SETS: self.controllers.look_at_replica_set,
            DEPLOYMENTS: self.controllers._deployments.look_at,
            JOBS: lambda key: self.controllers._look_at("Job", key),
            DAEMON_SETS: lambda key: self.controllers._look_at("DaemonSet", key),
        }
        for _ in range(20):
            before = self.store.revision
            for resource, look_at in looks.items():
                seen = self._seen.setdefault(resource, set())
                seen.update(self.store.collection(resource).keys())
                for key in sorted(seen):
                    look_at(key)
            if self.store.revision == before:
                return
        raise AssertionError("the controllers do not come to rest")

    def create(self, api_version: str, kind: str, name: str, **spec: Any) -> None:
        template = {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "c", "image": "i:1"}], **spec.pop("pod", {})},
        }
        selector = {} if kind == "Job" else {"selector": {"matchLabels": {"app": name}}}
        self.cluster.create(
            {
                "apiVersion": api_version,
                "kind": kind,
                "metadata": {"name": name},
                "spec": {"template": template, **selector, **spec},
            }
        )
        self.settle()

    def patch(self, resource: ServedResource, name: str, spec: JsonObject) -> None:
        where = Where(resource, "default", name)
        self.cluster.registry.patch(where, _MERGE, encode({"spec": spec}))
        self.settle()

    def delete(self, resource: ServedResource, name: str, **options: Any) -> None:
        self.deletion.delete(Where(resource, "default", name), DeleteOptions(**options))
        self.settle()

    @property
    def pods(self) -> list[JsonObject]:
        return [version.obj for version in self.store.collection(PODS).versions()]

    @property
    def sets(self) -> list[JsonObject]:
        return [version.obj for version in self.store.collection(REPLICA_SETS).versions()]

    def status(self, resource: ServedResource, name: str) -> JsonObject:
        version = self.store.get(resource, f"default/{name}")
        assert version is not None
        found: JsonObject = version.obj["status"]
        return found

    def run(self, pod: JsonObject, phase: str = "Running") -> None:
        """Let a pod run, or end, as a kubelet would report it."""
        meta = pod["metadata"]
        version = self.store.get(PODS, f"default/{meta['name']}")
        assert version is not None
        ready = [{"type": "Ready", "status": "True"}] if phase == "Running" else []
        status = {**version.obj["status"], "phase": phase, "conditions": ready}
        obj = {**version.obj, "metadata": dict(version.obj["metadata"]), "status": status}
        self.store.replace(PODS, version, obj)

    def run_all(self) -> None:
        for pod in self.pods:
            self.run(pod)
        self.settle()


@pytest.fixture
def world() -> World:
    return World()


def test_a_replica_set_has_as_many_pods_as_it_wants(world: World) -> None:
    world.create("apps/v1", "ReplicaSet", "web", replicas=3)

    assert len(world.pods) == 3
    (pod, *_) = world.pods
    assert pod["metadata"]["name"].startswith("web-")
    assert pod["metadata"]["labels"] == {"app": "web"}
    (owner,) = pod["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("ReplicaSet", "web", True)
    assert world.status(REPLICA_SETS, "web")["replicas"] == 3

    world.patch(REPLICA_SETS, "web", {"replicas": 1})
    assert len(world.pods) == 1


def test_a_pod_that_is_lost_is_replaced(world: World) -> None:
    world.create("apps/v1", "ReplicaSet", "web", replicas=2)
    lost = world.pods[0]["metadata"]["name"]

    world.delete(PODS, lost, grace_period_seconds=0)

    assert len(world.pods) == 2
    assert lost not in {pod["metadata"]["name"] for pod in world.pods}


def test_pods_that_wait_go_before_those_that_run(world: World) -> None:
    world.create("apps/v1", "ReplicaSet", "web", replicas=2)
    running = world.pods[1]
    world.run(running)

    world.patch(REPLICA_SETS, "web", {"replicas": 1})

    assert [pod["metadata"]["name"] for pod in world.pods] == [running["metadata"]["name"]]


def test_pods_go_with_their_controller_unless_they_are_orphaned(world: World) -> None:
    world.create("apps/v1", "ReplicaSet", "web", replicas=2)
    world.create("apps/v1", "ReplicaSet", "api", replicas=2)

    world.delete(REPLICA_SETS, "web")
    world.delete(REPLICA_SETS, "api", propagation_policy="Orphan")

    assert {pod["metadata"]["labels"]["app"] for pod in world.pods} == {"api"}
    assert not any(pod["metadata"]["ownerReferences"] for pod in world.pods)


def test_a_template_that_is_refused_makes_no_pods(world: World) -> None:
    spec = {"containers": [{"name": "c", "image": "i"}], "priorityClassName": "none"}
    world.create("apps/v1", "ReplicaSet", "web", replicas=2, pod=spec)

    assert world.pods == []


def test_a_deployment_rolls_from_one_revision_to_the_next(world: World) -> None:
    world.create("apps/v1", "Deployment", "web", replicas=4)
    assert len(world.pods) == 4
    (first,) = world.sets
    world.run_all()
    assert world.status(DEPLOYMENTS, "web")["availableReplicas"] == 4

    image = {"containers": [{"name": "c", "image": "i:2"}]}
    world.patch(DEPLOYMENTS, "web", {"template": {"spec": image}})
    # One more than wanted may be there, and one less than wanted may be ready.
    assert len(world.pods) == 5
    while any("i:1" in str(pod["spec"]) for pod in world.pods):
        world.run_all()

    assert [pod["spec"]["containers"][0]["image"] for pod in world.pods] == ["i:2"] * 4
    world.run_all()
    status = world.status(DEPLOYMENTS, "web")
    assert (status["updatedReplicas"], status["availableReplicas"]) == (4, 4)
    assert status["replicas"] == 4
    revisions = {each["metadata"]["name"]: each["metadata"]["annotations"] for each in world.sets}
    assert revisions.pop(first["metadata"]["name"]) == {"deployment.kubernetes.io/revision": "1"}
    assert list(revisions.values()) == [{"deployment.kubernetes.io/revision": "2"}]


def test_pods_that_wait_are_replaced_at_once(world: World) -> None:
    world.create("apps/v1", "Deployment", "web", replicas=1)

    world.patch(DEPLOYMENTS, "web", {"template": {"spec": {"nodeSelector": {"pool": "a"}}}})
    world.run_all()

    (pod,) = world.pods
    assert pod["spec"]["nodeSelector"] == {"pool": "a"}


def test_recreate_waits_until_the_old_pods_are_gone(world: World) -> None:
    world.create("apps/v1", "Deployment", "web", replicas=2, strategy={"type": "Recreate"})
    world.run_all()
    old = {pod["metadata"]["uid"] for pod in world.pods}

    world.patch(DEPLOYMENTS, "web", {"template": {"spec": {"nodeSelector": {"pool": "a"}}}})

    assert len(world.pods) == 2
    assert not old & {pod["metadata"]["uid"] for pod in world.pods}


def test_a_deployment_takes_everything_with_it(world: World) -> None:
    world.create("apps/v1", "Deployment", "web", replicas=2)

    world.delete(DEPLOYMENTS, "web")

    assert (world.sets, world.pods) == ([], [])


def test_a_job_runs_as_many_at_a_time_as_it_may_until_enough_succeeded(world: World) -> None:
    pod = {"restartPolicy": "Never"}
    world.create("batch/v1", "Job", "work", parallelism=2, completions=3, pod=pod)
    assert len(world.pods) == 2

    world.run(world.pods[0], "Succeeded")
    world.settle()
    assert len(world.pods) == 3
    for each in world.pods:
        world.run(each, "Succeeded")
    world.settle()

    assert len(world.pods) == 3


def test_a_daemon_set_has_a_pod_for_each_node_that_takes_it(world: World) -> None:
    taint = {"key": "gpu", "effect": "NoSchedule"}
    world.cluster.add_nodes(2, NodeTemplate(labels={"pool": "a"}))
    world.cluster.add_nodes(1, NodeTemplate(labels={"pool": "b"}))
    world.cluster.add_nodes(1, NodeTemplate(labels={"pool": "a"}, taints=[taint]))
    world.create("apps/v1", "DaemonSet", "agent", pod={"nodeSelector": {"pool": "a"}})

    fields = [
        pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        for pod in world.pods
    ]
    names = {f["nodeSelectorTerms"][0]["matchFields"][0]["values"][0] for f in fields}
    assert names == {"node-0000", "node-0001"}
    assert world.status(DAEMON_SETS, "agent")["desiredNumberScheduled"] == 2

    node = world.store.get(NODES, "node-0000")
    assert node is not None
    world.store.remove(NODES, node)
    world.controllers.look_at_node("node-0000")
    world.settle()
    assert len(world.pods) == 1
