"""The same pods with more nodes, or under another configuration."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from kubesched.api.core import Node, Pod
from kubesched.api.meta import OwnerReference
from kubesched.config import loading
from kubesched.config.types import SchedulerConfiguration
from kubesched.errors import ObjectError
from kubesched.simulate.comparing import add_nodes, compare
from kubesched.simulate.placing import in_order
from kubesched.simulate.playing import Conditions
from kubesched.simulate.report import ConfigurationComparison
from tests.support.objects import node, pod
from tests.support.worlds import CONFIG, GATES, snapshot_of, world_of

MOST_ALLOCATED = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    score: {disabled: [{name: NodeResourcesBalancedAllocation}]}
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""

MOST_ALLOCATED_ALONE = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    score: {disabled: [{name: "*"}], enabled: [{name: NodeResourcesFit}]}
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""
WITHOUT_PREEMPTION = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint: {disabled: [{name: DefaultPreemption}]}
"""


def test_more_nodes_take_what_is_pending() -> None:
    world = world_of(
        node("n1", cpu="4"),
        pod("a", node="n1", cpu="3"),
        pod("b", cpu="3", priority=5),
        pod("c", cpu="3"),
        pod("d", cpu="1"),
    )

    found = add_nodes(world, 1, "n1")

    assert (found.pending, found.placed_before, found.placed_after) == (3, 1, 2)
    # The important one comes first; where it is, there is room for one of the others.
    assert [each.pod for each in found.still_left] == ["default/c"]
    assert found.before is not None
    assert found.after is not None
    assert (found.before.cpu, found.after.cpu) == (100.0, 87.5)
    assert list(world.table.names()) == ["n1"]
    world.cluster.validate()


def test_more_nodes_of_a_kind_that_is_not_there_are_refused() -> None:
    with pytest.raises(ObjectError, match="node n9 not found"):
        add_nodes(world_of(node("n1")), 1, "n9")


def _compare(
    objects: Iterable[Node | Pod],
    after: SchedulerConfiguration = CONFIG,
    *,
    before: SchedulerConfiguration = CONFIG,
    everything: bool = False,
) -> ConfigurationComparison:
    snapshot = snapshot_of(objects)
    was, now = (
        Conditions(snapshot=snapshot, config=each, gates=GATES, everything=everything)
        for each in (before, after)
    )
    return compare(was, now)


def test_another_configuration_places_otherwise() -> None:
    packing: SchedulerConfiguration = loading.decode(MOST_ALLOCATED, gates=GATES)
    nodes, pods = (node("busy"), node("idle")), (pod("x", node="busy", cpu="2"), pod("p", cpu="1"))

    found = _compare([*nodes, *pods], packing)

    [move] = found.moves
    assert (move.pod, move.before, move.after) == ("default/p", "idle", "busy")
    assert (found.pods, found.unchanged) == (1, 0)
    assert (found.before.highest_cpu, found.after.highest_cpu) == (50.0, 75.0)
    assert (found.preemptions_before, found.preemptions_after) == ((), ())


def test_the_same_configuration_changes_nothing_even_if_all_pods_are_placed_anew() -> None:
    objects = [node(f"n{n}") for n in range(4)]
    placed = [pod(f"p{n}", node="n0", cpu="500m") for n in range(6)]

    found = _compare([*objects, *placed], everything=True)

    assert (found.pods, found.unchanged, found.moves) == (6, 6, ())
    assert (found.left_before, found.left_after) == (0, 0)
    # Placed anew they do not all stay where they were.
    assert found.after.highest_cpu < 75.0


def test_pods_that_would_be_preempted_are_listed_and_find_another_node() -> None:
    """Without preemption the important pod is left; with it, somebody moves for it."""
    objects: list[Node | Pod] = [
        node("big", cpu="4"),
        node("small", cpu="2"),
        pod("low", node="big", cpu="2", priority=1),
        pod("high", cpu="3", priority=100),
    ]
    peaceful = loading.decode(WITHOUT_PREEMPTION, gates=GATES)

    found = _compare(objects, before=peaceful)

    assert found.preemptions_before == ()
    [preemption] = found.preemptions_after
    assert preemption.preemptor == "default/high"
    assert (preemption.node, preemption.victims) == ("big", ("default/low",))
    assert [(each.pod, each.before, each.after) for each in found.moves] == [
        ("default/high", "", "big"),
        ("default/low", "big", "small"),
    ]
    assert (found.pods, found.left_before, found.left_after) == (2, 1, 0)


def test_a_victim_for_which_there_is_no_room_is_left() -> None:
    objects: list[Node | Pod] = [
        node("only", cpu="4"),
        pod("low-1", node="only", cpu="2", priority=1),
        pod("low-2", node="only", cpu="2", priority=1),
        pod("high", cpu="3", priority=100),
    ]

    found = _compare(objects)

    [preemption] = found.preemptions_after
    assert sorted(preemption.victims) == ["default/low-1", "default/low-2"]
    assert (found.left_before, found.left_after) == (2, 2)
    assert found.moves == ()


def test_a_daemon_that_is_preempted_does_not_come_again() -> None:
    daemon = pod("daemon", node="only", cpu="2", priority=1)
    owner = OwnerReference(kind="DaemonSet", name="agents")
    daemon = replace(daemon, metadata=replace(daemon.metadata, owner_references=(owner,)))

    found = _compare([node("only", cpu="4"), daemon, pod("high", cpu="4", priority=100)])

    assert found.preemptions_after[0].victims == ("default/daemon",)
    assert found.left_after == 0


def test_spread_of_workloads_is_compared() -> None:
    packing: SchedulerConfiguration = loading.decode(MOST_ALLOCATED_ALONE, gates=GATES)
    nodes = [node("a1", zone="a"), node("a2", zone="a"), node("b1", zone="b")]
    pods = [pod(f"web-{n}", cpu="100m", labels={"app": "web"}) for n in range(4)]
    alone = [pod("single", cpu="100m", labels={"app": "single"})]

    found = _compare([*nodes, *pods, *alone], packing)

    assert (found.spread_before.workloads, found.spread_after.workloads) == (1, 1)
    assert (found.spread_before.in_one_zone, found.spread_after.in_one_zone) == (0, 1)
    assert (found.spread_before.on_one_node, found.spread_after.on_one_node) == (0, 1)
    [change] = found.spread_changes
    assert change.workload == "default/web"
    assert (change.before.pods, change.after.pods) == (4, 4)
    assert change.before.zones == 2
    assert (change.after.zones, change.after.nodes, change.after.most_on_a_node) == (1, 1, 4)
    assert change.after.zone_skew == 4


def test_pods_of_unknown_schedulers_are_placed_and_noted() -> None:
    stranger = pod("stranger", cpu="1")
    stranger = replace(stranger, spec=replace(stranger.spec, scheduler_name="somebody-else"))

    found = _compare([node("n1"), stranger])

    assert found.left_after == 0
    [note] = found.notes
    assert note == (
        "1 pods name schedulers that the configuration does not have; its first profile places them"
    )


def test_pods_come_by_priority_and_age() -> None:
    old, new = (
        replace(each, metadata=replace(each.metadata, creation_timestamp=time))
        for each, time in ((pod("old"), "2026-01-01"), (pod("new"), "2026-01-02"))
    )

    ordered = in_order([new, old, pod("first", priority=1)])

    assert [each.metadata.name for each in ordered] == ["first", "old", "new"]
