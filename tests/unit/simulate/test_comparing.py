"""The same pods with more nodes, or under another configuration."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kubesched.config import loading
from kubesched.config.types import SchedulerConfiguration
from kubesched.errors import ObjectError
from kubesched.simulate.comparing import add_nodes, compare
from kubesched.simulate.placing import in_order
from tests.unit.builders import node, pod
from tests.unit.explain.worlds import CONFIG, GATES, world_of

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


def test_another_configuration_places_otherwise() -> None:
    packing: SchedulerConfiguration = loading.decode(MOST_ALLOCATED, gates=GATES)
    nodes, pods = (node("busy"), node("idle")), (pod("x", node="busy", cpu="2"), pod("p", cpu="1"))

    found = compare(
        lambda: world_of(*nodes, *pods), lambda: world_of(*nodes, *pods, config=packing)
    )

    [move] = found.moves
    assert (move.pod, move.before, move.after) == ("default/p", "idle", "busy")
    assert (found.pods, found.unchanged) == (1, 0)
    assert (found.before.highest_cpu, found.after.highest_cpu) == (50.0, 75.0)


def test_the_same_configuration_changes_nothing_even_if_all_pods_are_placed_anew() -> None:
    objects = [node(f"n{n}") for n in range(4)]
    placed = [pod(f"p{n}", node="n0", cpu="500m") for n in range(6)]

    found = compare(
        lambda: world_of(*objects, *placed),
        lambda: world_of(*objects, *placed, config=CONFIG),
        everything=True,
    )

    assert (found.pods, found.unchanged, found.moves) == (6, 6, ())
    assert (found.left_before, found.left_after) == (0, 0)


def test_pods_come_by_priority_and_age() -> None:
    old, new = (
        replace(each, metadata=replace(each.metadata, creation_timestamp=time))
        for each, time in ((pod("old"), "2026-01-01"), (pod("new"), "2026-01-02"))
    )

    ordered = in_order([new, old, pod("first", priority=1)])

    assert [each.metadata.name for each in ordered] == ["first", "old", "new"]
