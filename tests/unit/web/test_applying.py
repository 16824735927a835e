"""Replicas of a workload that is not there yet: how many fit, where, and which pods go for them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kubesched.errors import ObjectError
from kubesched.explain.report import Victim
from kubesched.snapshot.world import World
from kubesched.web.applying import GROUP_LEFT_OFF, replicas_in, try_replicas
from tests.support.objects import node, pod
from tests.support.worlds import world_of


def cluster() -> World:
    """Two nodes of 4 CPUs: one is full of a pod that may be preempted."""
    return world_of(
        node("n1", cpu="4", zone="a"),
        node("n2", cpu="4", zone="b"),
        pod("low", node="n1", cpu="4", priority=1),
    )


def test_replicas_that_fit_are_counted_where_they_go() -> None:
    said = try_replicas(cluster(), pod("web", cpu="2"), 2)

    assert (said.pod, said.replicas, said.placed, said.preempting) == ("default/web", 2, 2, 0)
    assert (said.by_node, said.by_zone) == ({"n2": 2}, {"b": 2})
    assert (said.victims, said.message) == ((), "")


def test_replicas_that_do_not_fit_say_why() -> None:
    said = try_replicas(cluster(), pod("web", cpu="2"), 5)

    assert (said.placed, said.preempting, said.victims) == (2, 0, ())
    assert said.message.startswith("0/2 nodes are available: 2 Insufficient cpu")


def test_replicas_of_a_higher_priority_preempt_once_there_is_no_room_left() -> None:
    said = try_replicas(cluster(), pod("web", cpu="2", priority=9), 4)

    assert (said.placed, said.preempting) == (4, 1)
    assert said.victims == (Victim("default/low", 1),)
    assert said.by_node == {"n1": 2, "n2": 2}
    assert "Insufficient cpu" in said.message


def test_nothing_is_left_of_a_trial() -> None:
    world = cluster()
    before = world.table.requested[:, :2].copy()
    first = try_replicas(world, pod("web", cpu="2", priority=9), 5)

    assert (world.table.requested[:, :2] == before).all()
    assert world.cluster.pod_count == 1
    assert try_replicas(world, pod("web", cpu="2", priority=9), 5) == first


def test_a_gated_template_fits_nowhere_and_preempts_nothing() -> None:
    said = try_replicas(cluster(), pod("web", cpu="4", priority=9, gates=["g"]), 3)

    assert (said.placed, said.victims) == (0, ())
    assert said.message == "waiting for scheduling gates: [g]"


def test_the_group_of_a_template_is_left_out_with_a_note() -> None:
    from kubesched.api.core import PodSchedulingGroup

    made = pod("web", cpu="1")
    group = PodSchedulingGroup(pod_group_name="gang")
    said = try_replicas(
        cluster(), replace(made, spec=replace(made.spec, scheduling_group=group)), 1
    )

    assert (said.placed, said.notes) == (1, (GROUP_LEFT_OFF,))


@pytest.mark.parametrize(
    ("manifest", "replicas"),
    [
        ("{kind: Pod, spec: {containers: []}}", 1),
        ("{kind: Deployment, spec: {replicas: 40, template: {}}}", 40),
        ("{kind: Deployment, spec: {template: {}}}", 1),
        ("{kind: StatefulSet, spec: {replicas: 0, template: {}}}", 0),
        ("{kind: Job, spec: {parallelism: 8, completions: 3, template: {}}}", 3),
        ("{kind: Job, spec: {completions: 3, template: {}}}", 1),
        ("{kind: CronJob, spec: {jobTemplate: {spec: {parallelism: 6, template: {}}}}}", 6),
        ("kind: Service\n---\n{kind: ReplicaSet, spec: {replicas: 2, template: {}}}", 2),
        ("{kind: Deployment, spec: {replicas: many, template: {}}}", 1),
    ],
)
def test_a_manifest_says_how_many_pods_it_makes(manifest: str, replicas: int) -> None:
    assert replicas_in(manifest) == replicas


def test_a_daemon_set_has_no_replicas() -> None:
    with pytest.raises(ObjectError, match="one pod for each node"):
        replicas_in("{kind: DaemonSet, spec: {template: {}}}")
