"""A deleted group stays until none of its pods is left."""

from __future__ import annotations

import pytest

from kubesched.embedded.cluster import EmbeddedCluster
from kubesched.embedded.deletion import ObjectDeletion
from kubesched.embedded.groups import POD_GROUPS, GroupProtection
from kubesched.embedded.registry import Where
from kubesched.embedded.resources import PODS
from kubesched.embedded.schemas import DeleteOptions


class World:
    """A cluster with a group of two pods."""

    def __init__(self) -> None:
        self.cluster = EmbeddedCluster(run_kubelet=False)
        self.store = self.cluster.store
        self.deletion = ObjectDeletion(self.cluster.registry)
        self.protection = GroupProtection(self.store)
        policy = {"gang": {"minCount": 2}}
        self.cluster.create(
            {
                "apiVersion": "scheduling.k8s.io/v1beta1",
                "kind": "PodGroup",
                "metadata": {"name": "g"},
                "spec": {"schedulingPolicy": policy},
            }
        )
        for name in ("a", "b"):
            spec = {
                "containers": [{"name": "c", "image": "i"}],
                "schedulingGroup": {"podGroupName": "g"},
            }
            meta = {"name": name}
            self.cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
        self.notice()

    def notice(self) -> None:
        for key in ("default/a", "default/b"):
            self.protection.look_at_pod(key)
        self.protection.look_at_group("default/g")

    def delete_group(self) -> None:
        self.deletion.delete(Where(POD_GROUPS, "default", "g"), DeleteOptions())
        self.notice()

    def delete_pod(self, name: str) -> None:
        self.deletion.delete(Where(PODS, "default", name), DeleteOptions(grace_period_seconds=0))
        self.notice()

    @property
    def has_group(self) -> bool:
        return self.store.get(POD_GROUPS, "default/g") is not None


@pytest.fixture
def world() -> World:
    return World()


def test_a_group_with_pods_stays(world: World) -> None:
    world.delete_group()
    world.delete_pod("a")

    assert world.has_group


def test_it_goes_with_the_last_of_them(world: World) -> None:
    world.delete_group()
    world.delete_pod("a")
    world.delete_pod("b")

    assert not world.has_group


def test_pods_that_are_over_do_not_keep_it(world: World) -> None:
    world.delete_pod("a")
    pod = world.store.get(PODS, "default/b")
    assert pod is not None
    status = {**pod.obj["status"], "phase": "Failed"}
    meta = dict(pod.obj["metadata"])
    world.store.replace(PODS, pod, {**pod.obj, "metadata": meta, "status": status})
    world.notice()

    world.delete_group()

    assert not world.has_group


def test_without_pods_it_stays_as_long_as_it_is_wanted(world: World) -> None:
    world.delete_pod("a")
    world.delete_pod("b")

    assert world.has_group
